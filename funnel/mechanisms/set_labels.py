"""Sets of values as texts, different ones for different sets: ``{Bachelors, Masters}``."""

from __future__ import annotations

import json
from collections.abc import Sequence

_SPECIAL = frozenset('{},"')


def set_label(values: Sequence[str]) -> str:
    """The text of a list of values: ``"{Bachelors, Masters}"``, and ``"{}"`` for none.

    A value is written as it is, unless it could be misread: with a comma, a brace, a quote or a character that does not
    print in it, with space at an end, or empty, it is written as a JSON string. So different lists have different
    texts.
    """
    return "{" + ", ".join(value if _is_plain(value) else _quoted(value) for value in values) + "}"


def set_labels(members: Sequence[tuple[str, ...]], width: int) -> tuple[str, ...]:
    """One text per published column for a set of symbols over ``width`` columns.

    Each column lists that column's values of the members, in the same order: the k-th values of all columns belong
    together. The set of (Masters, F) and (Masters, M) is ``"{Masters, Masters}"`` and ``"{F, M}"``. So different sets,
    with members in the order of their alphabet, differ in some column.
    """
    return tuple(set_label([member[column] for member in members]) for column in range(width))


def _is_plain(value: str) -> bool:
    return value != "" and value.isprintable() and value == value.strip() and not _SPECIAL & set(value)


def _quoted(value: str) -> str:
    # Escapes where a reader would see nothing; letters of all alphabets stay as they are.
    return json.dumps(value, ensure_ascii=not value.isprintable())
