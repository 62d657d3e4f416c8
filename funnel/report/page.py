"""A page as one HTML file that needs nothing else: no network, no script, no second file.

What no browser shows is left out: indents, and rules of style for what is not in it.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import fields
from functools import cache, lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, UndefinedError
from markupsafe import Markup, escape

from funnel.errors import DataError
from funnel.guarantees import Guarantee, Several
from funnel.release.public_report import Compared
from funnel.release.report_parts import LiftCell
from funnel.report import number_texts
from funnel.report.estimated import error_map
from funnel.wording import confidence

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
    return _STYLE.sub(lambda style: _shorter(style.group(), frozenset(there)), page)


# Pages of one kind have the same elements, and the public one is made again by the checks.
@lru_cache(maxsize=32)
def _shorter(style: str, there: frozenset[str]) -> str:
    return "\n" + "\n".join(_used(style, there)) + "\n"


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


# Characters that embed or override a writing direction; letters of right-to-left scripts are none of them.
_TURNS = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
_LONGEST_WORD = 22


def render(template: str, values: dict[str, Any]) -> str:
    """A whole page, in UTF-8 text; the same values give the same page, to the byte.

    Notes
    -----
    Labels, names and texts are escaped wherever they stand. The page's content security policy allows no resource
    outside the page, whatever is in it.

    Raises
    ------
    DataError
        If the values lack what the page tells, as those of a forged report may.
    """
    try:
        return smaller(_environment().get_template(template).render(**values))
    except UndefinedError as error:
        raise DataError(f"the figures lack what the page tells: {error.message}") from error


# What templates write numbers with, by the names of `funnel.report.number_texts`.
_TEXTS = (
    *("count", "exact", "factor", "gain", "level", "percent", "percent_at_least", "percent_at_most"),
    *("percent_in_detail", "plain", "plural", "points", "probability", "seconds", "short", "significant"),
    *("significant_at_least", "significant_at_most", "things", "whole_percent", "written"),
)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("funnel.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update({name: getattr(number_texts, name) for name in _TEXTS})
    words = (_label, _breakable, _columns, _quoted, _knowledge, _link, _readable, _optimum, _observer)
    environment.filters.update({one.__name__.removeprefix("_"): one for one in (*words, error_map, tint)})
    environment.globals["confidence"] = confidence
    environment.tests["infinite"] = lambda value: value == "infinite" or value == math.inf
    return environment


class _Shown(dict[int, str]):
    """What every character is shown as, by its number; found when it is first met."""

    def __missing__(self, number: int) -> str:
        character = chr(number)
        hidden = unicodedata.category(character) in ("Cc", "Cs") or unicodedata.bidirectional(character) in _TURNS
        self[number] = "\N{REPLACEMENT CHARACTER}" if hidden and character not in "\n\t" else character
        return self[number]


_SHOWN = _Shown()


def _readable(text: str) -> str:
    """The text without characters that are invisible or turn the writing direction of what follows."""
    return text.translate(_SHOWN)


def _optimum(line: Compared) -> str:
    """By how much another protocol than this one could be better."""
    return "" if line.certificate is None or line.share is None else line.certificate.sentence(line.share)


def _label(text: str) -> Markup:
    """A name from the data: isolated, so that its writing direction cannot reorder the sentence around it."""
    return _isolated(text, "")


def _breakable(name: str) -> Markup:
    """An identifier that may be broken after its underscores."""
    return Markup("_<wbr>").join(_readable(name).split("_"))


def _quoted(text: str) -> Markup:
    """A value in a sentence."""
    return Markup("“{}”").format(_label(text))


def _knowledge(given: tuple[tuple[str, str], ...]) -> Markup:
    """What an observer knows besides, as a phrase after a noun; nothing where they know nothing."""
    parts = [Markup("{} is {}").format(_isolated(column, "column"), _quoted(value)) for column, value in given]
    return Markup(" whose ") + Markup(" and ").join(parts) if parts else Markup("")


def tint(cell: LiftCell) -> str:
    """Name of the shade of a lift: ``up1`` to ``up4`` or ``down1`` to ``down4``, or nothing where it tells little."""
    if cell.lift is None or cell.strength is None:
        return ""
    shade = min(4, int(cell.strength * 4 + 0.5))
    return f"{'up' if cell.lift > 1 else 'down'}{shade}" if shade else ""


# What each observer knows who keeps all versions.
_OBSERVERS = {
    "transitions": "how common every change is",
    "mover-stayer": "besides, how common it is among people who ever changed, and among people who never did",
}


def _observer(name: str) -> str:
    """What an observer knows, and which published columns of everybody besides."""
    known, _, columns = name.partition(", knowing ")
    return _OBSERVERS[known] + (f", and {columns} of each person" if columns else "")


_LETTERS = {"epsilon": "ε", "alpha": "α"}


def bound(guarantee: Guarantee) -> str:
    """The numbers of a guarantee, and its words that are not the usual ones: ε = 1, or each by its name.

    Several guarantees are written as a spec writes them.
    """
    if isinstance(guarantee, Several):
        return str(guarantee)
    usual = {field.name: field.default for field in fields(guarantee)}  # type: ignore[arg-type]
    told = [
        (_LETTERS.get(name, name), value if isinstance(value, str) else number_texts.plain(value))
        for name, value in guarantee.settings.items()
        if not isinstance(value, str) or value != usual[name]
    ]
    # No line ends between a name and its value.
    texts = [f"{name}\u00a0=\u00a0{value}" for name, value in told]
    return ", ".join(texts) or "none at all"


def _columns(names: tuple[str, ...]) -> Markup:
    """Column names as in a sentence: a, b and c."""
    marked = [_isolated(name, "column") for name in names]
    if len(marked) < 2:
        return Markup("").join(marked)
    return Markup(", ").join(marked[:-1]) + Markup(" and ") + marked[-1]


def _isolated(text: str, kind: str) -> Markup:
    readable = _readable(text) or "(empty)"
    # Only what has no room for a line break in itself may be broken anywhere: short words stay whole.
    long = "long" if max(map(len, readable.split()), default=0) > _LONGEST_WORD else ""
    kinds = " ".join(filter(None, (kind, long)))
    start = f'<bdi class="{kinds}">' if kinds else "<bdi>"
    return Markup(f"{start}{escape(readable)}</bdi>")


def _link(url: str | None, text: str) -> Markup:
    """A link to a web address; anything else that stands for an address is shown as text."""
    if url is None:
        return escape(_readable(text))
    if not re.match(r"https?://", url, flags=re.IGNORECASE):
        return Markup("{} ({})").format(_readable(text), _readable(url))
    return Markup('<a href="{}" rel="noopener noreferrer">{}</a>').format(url, _readable(text))
