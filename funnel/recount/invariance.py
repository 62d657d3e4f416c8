"""Invariance: whether published records have the distribution of the true ones, and what parts of them disclose.

Both are computed from the text of the protocol and the counts of the source, in plain whole numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from funnel.errors import DataError
from funnel.recount.levels import PlainLevel
from funnel.recount.promise import Promise
from funnel.recount.released import ReleasedProtocol
from funnel.recount.source import Recount
from funnel.recount.sparse_row import SparseRow, entries_of


def largest_imbalance(released: ReleasedProtocol, counted: Recount) -> Fraction:
    """The largest ``|P(Y = y) - P(X = y)|`` over all records y, published or counted.

    Raises
    ------
    DataError
        If the protocol reads or publishes other columns than were counted.
    """
    if not released.input_columns == released.output_columns == counted.published_columns:
        raise DataError(
            f"the protocol publishes {', '.join(released.output_columns)} from {', '.join(released.input_columns)}, "
            f"not the columns {', '.join(counted.published_columns)}; balance is about the same columns"
        )
    records: dict[tuple[str, ...], int] = {}
    for (_, record), number in counted.counts.items():
        records[record] = records.get(record, 0) + number
    people = sum(records.values())
    known = set(released.inputs)
    unknown = sum(number for record, number in records.items() if record not in known)
    worst = 0
    for record, row, other in zip(released.outputs, released.weights, released.marginal, strict=True):
        drawn = sum(records.get(released.inputs[x], 0) * weight for x, weight in entries_of(row)) + unknown * other
        worst = max(worst, abs(drawn - records.get(record, 0) * released.denominator))
    published = set(released.outputs)
    never = max((number for record, number in records.items() if record not in published), default=0)
    return Fraction(max(worst, never * released.denominator), people * released.denominator)


def part_of(released: ReleasedProtocol, columns: Sequence[str]) -> ReleasedProtocol:
    """The same protocol as an observer has it who sees some of the published columns only.

    Raises
    ------
    DataError
        If a column is not published.
    """
    if missing := [column for column in columns if column not in released.output_columns]:
        raise DataError(f"column {missing[0]!r} is not published by the protocol; name others")
    places = [released.output_columns.index(column) for column in columns]
    rows: dict[tuple[str, ...], dict[int, int]] = {}
    marginal: dict[tuple[str, ...], int] = {}
    for symbol, row, other in zip(released.outputs, released.weights, released.marginal, strict=True):
        seen = tuple(symbol[place] for place in places)
        marginal[seen] = marginal.get(seen, 0) + other
        entries = rows.setdefault(seen, {})
        for x, weight in entries_of(row):
            entries[x] = entries.get(x, 0) + weight
    width = len(released.inputs)
    return replace(
        released,
        output_columns=tuple(columns),
        outputs=tuple(rows),
        weights=tuple(SparseRow(entries, width) for entries in rows.values()),
        marginal=tuple(marginal.values()),
        sparse=True,
    )


def levels_by_prefix(
    guarantee: str | Promise, released: ReleasedProtocol, counted: Recount, groups: Sequence[Sequence[str]]
) -> list[PlainLevel]:
    """What published records disclose up to every group: of the first, of the first two, and so on to whole records.

    Raises
    ------
    SpecError, DataError
        As `part_of` and `ReleasedProtocol.level`.
    """
    levels, seen = [], list[str]()
    for group in groups:
        seen += group
        levels.append(part_of(released, seen).level(guarantee, counted))
    return levels
