"""Noisy moves: the tables of a version that say, with noise, how people changed since earlier ones, read and judged.

One person is in at most one cell of ``secrets`` and one of ``stayed`` and ``left``, over all earlier versions, and in
one cell of ``sizes`` and one of the two tables of rows: each family moves by two, so that its scale is 2 / epsilon.
Means move by one record in all, of 2^20 parts; departures by the length that is stated beside them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

from funnel.recount.noise import scale_of


def _is_positive(number: float) -> bool:
    return number > 0


def _is_rectangular(rows: tuple[tuple[int, ...], ...]) -> bool:
    return bool(rows) and len({len(row) for row in rows}) == 1


Row = Annotated[tuple[int, ...], bool]
Table = Annotated[tuple[Row, ...], _is_rectangular]
Positive = Annotated[float, _is_positive]

MOST_ROWS = 100
SENSITIVITY = 2
# A record in the parts that means are told in.
RECORD = 1 << 20
# Of what is left after learning values, changes, rows and means or departures have a quarter each.
PART = Fraction(1, 4)


@dataclass(frozen=True)
class Since:
    """What became of people whose last version before this one was a certain one; noisy, so maybe negative.

    Attributes
    ----------
    version : str
        ``"<series>/<version>"`` of the earlier one.
    secrets : c' × c whole numbers
        People by secret then and now.
    stayed, left : c' × a' whole numbers, or c' × 1
        By what they were then, or by their secret alone: whether the published input has the same labels now.
    """

    version: str
    secrets: Table
    stayed: Table
    left: Table


@dataclass(frozen=True)
class NoisyTables:
    """Tables with noise.

    Attributes
    ----------
    epsilon, scale : float
    """

    epsilon: Positive
    scale: Positive


@dataclass(frozen=True)
class NoisyChanges(NoisyTables):
    """The block ``changes``: one `Since` for every earlier version of the register.

    Attributes
    ----------
    since : tuple of Since
    """

    since: tuple[Since, ...]

    @property
    def arrived(self) -> tuple[int, ...]:
        """About how many people came from each of the versions: by the table whose sum has least noise."""
        return tuple(max(0, sum(map(sum, one.secrets))) for one in self.since)


@dataclass(frozen=True)
class NoisyRows(NoisyTables):
    """The block ``rows``: people with several rows.

    Attributes
    ----------
    stayed, left : c × a whole numbers, or c × 1
        People with two rows or more, by the first or by their secret alone: whether the second has the same input.
    sizes : tuple of int, length MOST_ROWS
        People by how many rows they have.
    """

    stayed: Table
    left: Table
    sizes: Row


@dataclass(frozen=True)
class NoisyMeans(NoisyTables):
    """The block ``means``: how many records each value is published for on average, by the rows of all histories.

    Attributes
    ----------
    counts : tuple of int, length a
        In parts of a record, `RECORD` of which are one.
    """

    counts: Row


@dataclass(frozen=True)
class NoisyDepartures(NoisyMeans):
    """The block ``departures``: how many more records have a value on average than the protocol leads to expect.

    Attributes
    ----------
    epsilon, scale, counts
        As of means.
    length : int
        What one person adds to all of them together at most, in parts of a record.
    """

    length: int


def change_complaints(changes: NoisyChanges, secrets: int) -> Iterator[str]:
    """What is wrong with a block of changes by itself, as parts of sentences.

    Parameters
    ----------
    changes : NoisyChanges
    secrets : int
        Values of the secret in this version.
    """
    yield from _scale_complaints("changes", changes)
    names = [one.version for one in changes.since]
    if not names:
        yield "changes are since no version"
    if len(set(names)) < len(names):
        yield "changes since a version are there twice"
    for one in changes.since:
        if {len(row) for row in one.secrets} != {secrets}:
            yield f"changes of the secret since {one.version} do not lead to its values"
        if not len(one.secrets) == len(one.stayed) == len(one.left) or len(one.stayed[0]) != len(one.left[0]):
            yield f"changes since {one.version} are of tables that do not fit each other"


def since_complaints(
    one: Since, before: tuple[Sequence[object], Sequence[object]], inputs: Sequence[object]
) -> Iterator[str]:
    """What is wrong with changes since a version whose values are known.

    Parameters
    ----------
    one : Since
    before : pair of sequences
        Values of the secret and of the input in the earlier version.
    inputs : sequence
        Those of the input in the later one.
    """
    if len(one.stayed) != len(before[0]) or len(one.stayed[0]) not in (1, len(before[1])):
        yield f"changes since {one.version} do not fit its values"
        return
    can = [x in set(inputs) for x in before[1]]
    if len(one.stayed[0]) != len(can):
        can = [any(can)]
    if any(count for row in one.stayed for count, possible in zip(row, can, strict=True) if not possible):
        yield f"changes since {one.version} have people who stayed what nobody can be any more"


def row_complaints(rows: NoisyRows, secrets: int, inputs: int) -> Iterator[str]:
    """What is wrong with a block of rows by itself, as parts of sentences."""
    yield from _scale_complaints("rows", rows)
    for table in (rows.stayed, rows.left):
        if (len(table), len(table[0])) not in ((secrets, inputs), (secrets, 1)) or len(table[0]) != len(rows.left[0]):
            yield "tables of rows do not fit the values of the version"
    if len(rows.sizes) != MOST_ROWS:
        yield f"people by their number of rows are not told up to {MOST_ROWS} rows"


def length_of(averages: NoisyMeans) -> int:
    """What one person adds to all averages together at most, in parts of a record."""
    return averages.length if isinstance(averages, NoisyDepartures) else RECORD


def average_complaints(what: str, averages: NoisyMeans, values: int | None) -> Iterator[str]:
    """What is wrong with a block of means or departures by itself, as parts of sentences; by how many values it is."""
    if length_of(averages) < 1:
        yield f"nobody may add anything to the {what}"
        return
    yield from _scale_complaints(what, averages, length_of(averages))
    if not averages.counts or values not in (None, len(averages.counts)):
        yield f"{what} do not fit the published values"


def block_complaints(
    changes: NoisyChanges | None,
    rows: NoisyRows | None,
    means: NoisyMeans | None,
    departures: NoisyDepartures | None,
    sizes: tuple[int, int, int | None],
) -> Iterator[str]:
    """What is wrong with the blocks that are there, each by itself, as parts of sentences.

    ``sizes``: how many values the secret, what is read and what is published have; None where nothing says the last.
    """
    secrets, inputs, outputs = sizes
    if changes is not None:
        yield from change_complaints(changes, secrets)
    if rows is not None:
        yield from row_complaints(rows, secrets, inputs)
    if means is not None:
        yield from average_complaints("means", means, inputs)
    if departures is not None:
        yield from average_complaints("departures", departures, outputs)


def _scale_complaints(what: str, tables: NoisyTables, sensitivity: int = SENSITIVITY) -> Iterator[str]:
    if tables.scale != scale_of(tables.epsilon, sensitivity):
        yield f"the scale of noise on {what} is not the least one that costs no more than its epsilon"


def split_complaints(
    declared: Fraction, learning: Fraction, told: float, counts: float, *tables: float | None
) -> Iterator[str]:
    """How an epsilon is not what its parts are by the stated split, as parts of sentences.

    Changes, rows and means or departures have a quarter each of what learning values leaves, and counts the rest. Noise
    on counts that was drawn when nothing went to the others is not drawn again: the version then costs more than is
    declared for one.

    Parameters
    ----------
    declared, learning : Fraction
        Of a version by its spec, and what of it learning values costs.
    told : float
        What the version says that it spent.
    counts : float
        What the counts have.
    tables : float or None
        What each of the others has; None where it is not told.
    """
    rest, others = declared - learning, [part for part in tables if part is not None]
    for part in others:
        if not _is(part, rest * PART) or Fraction(part) > rest * PART:
            yield f"a part of {part!r} is not a quarter of what learning values leaves"
    ways = [rest * (1 - PART * number) for number in range(len(others) + 1)]
    if not any(_is(counts, way) and Fraction(counts) <= way for way in ways):
        yield f"the counts have {counts!r}, which is not what the others leave"
    spent = sum(map(Fraction, (counts, *others)), learning)
    if told != float(declared) if spent <= declared else not (_is(told, spent) and Fraction(told) >= spent):
        yield f"it is {told!r}, and its parts are {float(spent)!r}"


def _is(number: float, exact: Fraction) -> bool:
    return math.isclose(number, float(exact), rel_tol=1e-12)
