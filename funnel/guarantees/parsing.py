"""Guarantees from text and from settings: a name, and numbers or words in order or by name."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Mapping

from funnel.errors import SpecError
from funnel.guarantees.base import Guarantee
from funnel.guarantees.several import Several
from funnel.wording import did_you_mean

# What float() takes besides, such as 1_0 or digits of other scripts, is a slip of the pen here.
_NUMBER = re.compile(r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf|nan)", re.ASCII | re.IGNORECASE)


def read_guarantee(text: str, kinds: Mapping[str, type[Guarantee]]) -> Guarantee:
    """The guarantee that a text such as ``"alip:1.3,0.7"`` names, of the kinds given by name.

    Raises
    ------
    SpecError
        If there is no such kind, or a number is none, of another name, one too many, missing or out of range.
    """
    if "&" in text:
        return Several([read_guarantee(part, kinds) for part in text.split("&")])
    name, colon, rest = text.strip().partition(":")
    kind = _kind(name.strip().lower(), kinds)
    fields = numbers_of(kind)
    values: dict[str, float | str] = {}
    for place, part in enumerate(rest.split(",") if colon else []):
        key, equals, number = part.rpartition("=")
        key = key.strip() if equals else next(iter(fields[place:]), "")
        if not key and not equals:
            raise SpecError(f"{kind.name} takes {_number_of(fields)}, but {text!r} has more; write {kind.example!r}")
        _check_name(kind, key)
        if key in values:
            raise SpecError(f"guarantee {text!r} gives {key} twice; write {kind.example!r}")
        if key in words_of(kind):
            values[key] = number.strip().lower()
            continue
        if not _NUMBER.fullmatch(number.strip()):
            raise SpecError(f"guarantee {text!r} needs a number after the colon, as in {kind.example!r}")
        values[key] = float(number)
    return make_guarantee(kind, values)


def make_guarantee(kind: type[Guarantee], values: Mapping[str, float | str]) -> Guarantee:
    """The guarantee of a kind with numbers and words by name; those that have a default may be left out.

    Raises
    ------
    SpecError
        If a value is of another name, missing or out of range.
    """
    for key in values:
        _check_name(kind, key)
    missing = [
        field.name
        for field in dataclasses.fields(kind)  # type: ignore[arg-type]
        if field.name not in values
        and field.default is dataclasses.MISSING
        and field.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise SpecError(f"{kind.name} lacks its {' and '.join(missing)}; write for instance {kind.example!r}")
    return kind(**values)


def numbers_of(kind: type[Guarantee]) -> tuple[str, ...]:
    """The names of a kind's numbers and words, in order: the fields of its dataclass."""
    return tuple(field.name for field in dataclasses.fields(kind))  # type: ignore[arg-type]


def words_of(kind: type[Guarantee]) -> tuple[str, ...]:
    """The names of those that are words: fields of text."""
    return tuple(field.name for field in dataclasses.fields(kind) if field.type == "str")  # type: ignore[arg-type]


def _check_name(kind: type[Guarantee], key: str) -> None:
    fields = numbers_of(kind)
    if key not in fields:
        hint = did_you_mean(key, fields) or f"; write for instance {kind.example!r}"
        raise SpecError(f"{kind.name} does not take {key or repr(key)}{hint}")


def _number_of(fields: tuple[str, ...]) -> str:
    return f"{' and '.join(fields)} only" if fields else "no numbers"


def _kind(name: str, kinds: Mapping[str, type[Guarantee]]) -> type[Guarantee]:
    if name not in kinds:
        near = difflib.get_close_matches(name, kinds, n=1, cutoff=0.4)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise SpecError(f"unknown guarantee {name!r}{hint} Known: {', '.join(kinds)}")
    return kinds[name]
