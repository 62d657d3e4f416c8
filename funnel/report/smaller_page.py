"""Smaller page: a page without what no browser shows, which are indents, and rules of style for what is not in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

_STYLE = re.compile("(?<=<style>).*?(?=</style>)", re.DOTALL)
_NAMES = re.compile(r"([.#]?)([a-zA-Z][\w-]*)")
# Where a space between parts of a rule of style is.
_IN_RULES, _SIGN = re.compile("([:;,]) "), r"\1"
# Of a selector: what is in brackets, the innermost first, and says nothing of which element it is about.
_BRACKETS = re.compile(r"\([^()]*\)|\[[^\]]*\]")
_STATES = re.compile(r"::?[\w-]+")


def smaller(page: str) -> str:
    """The same page in fewer bytes.

    Parameters
    ----------
    page : str
        Of our templates: one style, no script.
    """
    parts = re.split("(<pre>.*?</pre>)", page, flags=re.DOTALL)
    page = "".join(part if part.startswith("<pre>") else re.sub(r"\n\s+", "\n", part) for part in parts)
    body = _STYLE.sub("", page)
    there = {f".{name}" for names in re.findall('class="([^"]*)"', body) for name in names.split()}
    there |= {f"#{name}" for name in re.findall('id="([^"]*)"', body)}
    there |= set(re.findall(r"<([a-z][a-z0-9]*)", body))
    return _STYLE.sub(lambda style: "\n" + "\n".join(_used(style.group(), frozenset(there))) + "\n", page)


def _used(style: str, there: frozenset[str]) -> Iterator[str]:
    """The rules that are about what is there."""
    for selectors, rule in _rules(style):
        if selectors.startswith("@media"):
            within = "".join(_used(rule, there))
            if within:
                yield f"{selectors}{{{within}}}"
        elif selectors.startswith("@"):
            yield f"{selectors}{{{_IN_RULES.sub(_SIGN, rule)}}}"
        else:
            kept = [one for one in _selectors(selectors) if _about(one) <= there]
            if kept:
                yield f"{','.join(kept)}{{{_IN_RULES.sub(_SIGN, rule)}}}"


@cache
def _rules(style: str) -> tuple[tuple[str, str], ...]:
    """Selectors and what is between the braces, of every rule."""
    style = " ".join(re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL).split())
    found, depth, begin, opened = [], 0, 0, 0
    for place, character in enumerate(style):
        if character == "{":
            opened = opened if depth else place
            depth += 1
        elif character == "}":
            depth -= 1
            if depth == 0:
                found.append((style[begin:opened].strip(), style[opened + 1 : place].strip()))
                begin = place + 1
    return tuple(found)


@cache
def _selectors(text: str) -> tuple[str, ...]:
    """Selectors between commas, but not those in brackets."""
    found, depth = [""], 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            found.append("")
        else:
            found[-1] += character
    return tuple(one.strip() for one in found)


@cache
def _about(selector: str) -> frozenset[str]:
    """Classes, identifiers and elements that must all be there for a selector to mean anything."""
    outside = selector
    while (fewer := _BRACKETS.sub("", outside)) != outside:
        outside = fewer
    return frozenset(kind + name for kind, name in _NAMES.findall(_STATES.sub("", outside)))
