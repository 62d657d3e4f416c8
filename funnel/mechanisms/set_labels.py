"""Sets of values as texts that a data user can read back: ``{Bachelors, Masters}``."""

from __future__ import annotations

import json
from collections.abc import Sequence

from funnel.errors import DataError

_SPECIAL = frozenset('{},"')
_DECODER = json.JSONDecoder()


def set_label(values: Sequence[str]) -> str:
    """The text of a list of values: ``"{Bachelors, Masters}"``, and ``"{}"`` for none.

    A value is written as it is, unless it could be misread: with a comma, a brace, a quote or a character that does not
    print in it, with space at an end, or empty, it is written as a JSON string. So different lists have different
    texts, and `parse_set` is the inverse.
    """
    return "{" + ", ".join(value if _is_plain(value) else _quoted(value) for value in values) + "}"


def parse_set(label: str) -> tuple[str, ...]:
    """The values that a text of `set_label` lists.

    Raises
    ------
    DataError
        If the text is no such list.
    """
    if label == "{}":
        return ()
    values = []
    place = 1
    while True:
        value, place = _next_value(label, place)
        values.append(value)
        if label[place:] == "}" and set_label(values) == label:
            return tuple(values)
        if not label.startswith(", ", place):
            raise _unreadable(label)
        place += 2


def set_labels(members: Sequence[tuple[str, ...]], width: int) -> tuple[str, ...]:
    """One text per published column for a set of symbols over ``width`` columns.

    Each column lists that column's values of the members, in the same order: the k-th values of all columns belong
    together. The set of (Masters, F) and (Masters, M) is ``"{Masters, Masters}"`` and ``"{F, M}"``. So different sets,
    with members in the order of their alphabet, differ in some column.
    """
    return tuple(set_label([member[column] for member in members]) for column in range(width))


def parse_sets(labels: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The symbols of a set from its texts, one per published column: the inverse of `set_labels`.

    Raises
    ------
    DataError
        If a text is no list of values, or the columns list different numbers of them.
    """
    columns = [parse_set(label) for label in labels]
    if len({len(column) for column in columns}) != 1:
        raise DataError(f"the columns of a set list different numbers of values: {', '.join(map(repr, labels))}")
    return tuple(zip(*columns, strict=True))


def _is_plain(value: str) -> bool:
    return value != "" and value.isprintable() and value == value.strip() and not _SPECIAL & set(value)


def _quoted(value: str) -> str:
    # Escapes where a reader would see nothing; letters of all alphabets stay as they are.
    return json.dumps(value, ensure_ascii=not value.isprintable())


def _next_value(label: str, place: int) -> tuple[str, int]:
    if label.startswith('"', place):
        try:
            value, end = _DECODER.raw_decode(label, place)
        except ValueError:
            raise _unreadable(label) from None
        return str(value), end
    end = min((at for at in (label.find(", ", place), label.find("}", place)) if at >= 0), default=-1)
    if end < 0 or not label.startswith("{"):
        raise _unreadable(label)
    return label[place:end], end


def _unreadable(label: str) -> DataError:
    return DataError(f"{label!r} is no set of values such as '{{Bachelors, Masters}}'; take it from a release")
