"""Guarantees as text: a name, a colon, and numbers in order or by name."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping

from funnel.errors import SpecError
from funnel.guarantees.base import Guarantee


def read_guarantee(text: str, kinds: Mapping[str, type[Guarantee]]) -> Guarantee:
    """The guarantee that a text such as ``"alip:1.3,0.7"`` names, of the kinds given by name.

    Raises
    ------
    SpecError
        If the name or its numbers are wrong.
    """
    kind, numbers = read_numbers(text, kinds)
    missing = [
        field.name
        for field in dataclasses.fields(kind)  # type: ignore[arg-type]
        if field.name not in numbers and field.default is dataclasses.MISSING
    ]
    if missing:
        raise SpecError(f"{kind.name} lacks its {' and '.join(missing)}; write for instance {kind.example!r}")
    return kind(**numbers)


def read_numbers(text: str, kinds: Mapping[str, type[Guarantee]]) -> tuple[type[Guarantee], dict[str, float]]:
    """The kind of guarantee a text names, and its numbers by name, which may be out of range or not all there.

    Raises
    ------
    SpecError
        If there is no such kind, or a number is none, of another name, or one too many.
    """
    name, colon, rest = text.strip().partition(":")
    kind = _kind(name.strip().lower(), kinds)
    fields = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    numbers: dict[str, float] = {}
    for place, part in enumerate(rest.split(",") if colon else []):
        key, equals, number = part.rpartition("=")
        key = key.strip() if equals else next(iter(fields[place:]), "")
        if not key and not equals:
            raise SpecError(f"{kind.name} takes {_number_of(fields)}, but {text!r} has more; write {kind.example!r}")
        if key not in fields:
            raise SpecError(f"{kind.name} does not take {key or repr(key)}; write for instance {kind.example!r}")
        if key in numbers:
            raise SpecError(f"guarantee {text!r} gives {key} twice; write {kind.example!r}")
        try:
            numbers[key] = float(number)
        except ValueError as error:
            raise SpecError(f"guarantee {text!r} needs a number after the colon, as in {kind.example!r}") from error
    return kind, numbers


def _number_of(fields: list[str]) -> str:
    return f"{' and '.join(fields)} only" if fields else "no numbers"


def _kind(name: str, kinds: Mapping[str, type[Guarantee]]) -> type[Guarantee]:
    if name not in kinds:
        near = difflib.get_close_matches(name, kinds, n=1, cutoff=0.4)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise SpecError(f"unknown guarantee {name!r}{hint} Known: {', '.join(kinds)}")
    return kinds[name]
