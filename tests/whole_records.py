"""Invariance: whether published records have the distribution of the true ones, and what parts of them disclose.

Of a protocol over classes of records both are computed from its text, the questions that classes follow from and the
counts of the source, in plain whole numbers. A record of class h is published for a record of class g with probability
W(h|g), and which one of h is as likely to be anybody's of it, over all people of g.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from funnel.errors import DataError
from funnel.recount.channel import SparseRow, entries_of
from funnel.recount.classes import PlainClasses
from funnel.recount.levels import PlainLevel
from funnel.recount.promise import Promise
from funnel.recount.released import ReleasedProtocol
from funnel.recount.source import Recount

Record = tuple[str, ...]


def largest_imbalance(released: ReleasedProtocol, classes: PlainClasses, counted: Recount) -> Fraction:
    """The largest ``|P(Y = y) - P(X = y)|`` over all records y that somebody has.

    Raises
    ------
    DataError
        If the protocol is not about the classes of these records, or nobody is of a class that records come to.
    """
    records, sizes = _people(released, classes, counted)
    largest: Counter[str] = Counter()
    for record, number in records.items():
        name = classes.of(record)
        largest[name] = max(largest[name], number)
    worst = Fraction(0)
    for output, row in zip(released.outputs, released.weights, strict=True):
        name = output[-1]
        drawn = sum(sizes[released.inputs[g][-1]] * weight for g, weight in entries_of(row))
        # Each record of the class is published as often as its share of the class says.
        off = abs(Fraction(drawn, released.denominator) - sizes[name])
        worst = max(worst, off * Fraction(largest[name], sizes[name] * counted.rows) if sizes[name] else worst)
    return worst


def part_of(
    released: ReleasedProtocol, classes: PlainClasses, counted: Recount, columns: Sequence[str]
) -> ReleasedProtocol:
    """From classes to what an observer has who sees some of the published columns only; weights are fractions.

    Parts that records of one class alone have tell what this class tells, whichever they are: they are one output.

    Raises
    ------
    DataError
        As `largest_imbalance`, and if a column is not published.
    """
    if missing := [column for column in columns if column not in classes.columns]:
        raise DataError(f"column {missing[0]!r} is not published by the protocol; name others")
    records, sizes = _people(released, classes, counted)
    places = [counted.published_columns.index(column) for column in columns]
    of_part: dict[Record, Counter[str]] = defaultdict(Counter)
    for record, number in records.items():
        of_part[tuple(record[place] for place in places)][classes.of(record)] += number
    seen: dict[str, Counter[Record]] = {name: Counter() for name in classes.names}
    alone: dict[str, Record] = {}
    for part, numbers in of_part.items():
        for name, number in numbers.items():
            seen[name][part if len(numbers) > 1 else alone.setdefault(name, part)] += number
    rows: dict[Record, dict[int, Fraction]] = {}
    for output, row in zip(released.outputs, released.weights, strict=True):
        name = output[-1]
        for part, number in seen[name].items():
            entries = rows.setdefault(part, {})
            share = Fraction(number, sizes[name])
            for g, weight in entries_of(row):
                entries[g] = entries.get(g, Fraction(0)) + weight * share
    width = len(released.inputs)
    return replace(
        released,
        output_columns=tuple(columns),
        outputs=tuple(rows),
        weights=tuple(SparseRow(entries, width) for entries in rows.values()),  # type: ignore[arg-type]
        marginal=(0,) * len(rows),
        sparse=True,
    )


def levels_by_prefix(
    guarantee: str | Promise,
    released: ReleasedProtocol,
    classes: PlainClasses,
    counted: Recount,
    groups: Sequence[Sequence[str]],
) -> list[PlainLevel]:
    """What published records disclose up to every group: of the first, of the first two, and so on to whole records.

    The observer knows of the secret what the counts of classes say.

    Raises
    ------
    SpecError, DataError
        As `part_of` and `ReleasedProtocol.level`.
    """
    levels, seen, of_class = [], list[str](), classes.counted(counted)
    for group in groups:
        seen += group
        levels.append(part_of(released, classes, counted, seen).level(guarantee, of_class))
    return levels


def _people(
    released: ReleasedProtocol, classes: PlainClasses, counted: Recount
) -> tuple[Counter[Record], Counter[str]]:
    """People with every record, and of every class."""
    named = tuple((name,) for name in classes.names)
    if released.inputs != named or released.outputs != named or counted.published_columns != classes.columns:
        raise DataError("the protocol is not about these classes of these columns; take all of one solution")
    records: Counter[Record] = Counter()
    sizes: Counter[str] = Counter()
    for (_, record), number in counted.counts.items():
        records[record] += number
        sizes[classes.of(record)] += number
    for output, row in zip(released.outputs, released.weights, strict=True):
        if not sizes[output[-1]] and any(sizes[released.inputs[g][-1]] for g, weight in entries_of(row) if weight):
            raise DataError(f"nobody is of class {output[-1]!r}, which records come to")
    return records, sizes
