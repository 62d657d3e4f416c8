"""A channel with the counts that it meets, in plain whole numbers; rows of weights most of which may be zero."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from operator import mul
from typing import Any, overload

from funnel.errors import DataError


class SparseRow(Sequence[int]):
    """A row of whole numbers as those that are not zero, by their places.

    Parameters
    ----------
    entries : mapping of int to int
        The numbers that are not zero, by places below ``width``.
    width : int
        How long the row is.
    """

    __slots__ = ("entries", "width")

    def __init__(self, entries: Mapping[int, int], width: int) -> None:
        self.entries = dict(sorted(entries.items()))
        self.width = width

    def __len__(self) -> int:
        return self.width

    def __iter__(self) -> Iterator[int]:
        return (self.entries.get(place, 0) for place in range(self.width))

    @overload
    def __getitem__(self, place: int) -> int: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[int, ...]: ...
    def __getitem__(self, place: int | slice) -> int | tuple[int, ...]:
        if isinstance(place, slice):
            return tuple(self.entries.get(one, 0) for one in range(self.width)[place])
        return self.entries.get(range(self.width)[place], 0)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SparseRow):
            return (self.width, self.entries) == (other.width, other.entries)
        return isinstance(other, tuple) and tuple(self) == other

    def __hash__(self) -> int:
        return hash(tuple(self))


Row = Sequence[int]


def weights_of(protocol: Mapping[str, Any]) -> Iterator[tuple[int, int, int]]:
    """Output, input and weight of the content of a ``protocol.json``, of all weights above zero, output by output."""
    for y, row in enumerate(protocol["weights"]):
        for x, weight in row.items() if isinstance(row, dict) else enumerate(row):
            if int(weight) > 0:
                yield y, int(x), int(weight)


def entries_of(row: Row) -> Iterable[tuple[int, int]]:
    """The numbers of a row that are not zero, with their places, rising."""
    return row.entries.items() if isinstance(row, SparseRow) else ((x, n) for x, n in enumerate(row) if n)


def columns_of(rows: Sequence[Row], width: int) -> list[Row]:
    """The columns of a table of rows of one kind; of sparse rows as sparse rows."""
    if not any(isinstance(row, SparseRow) for row in rows):
        return list(zip(*rows, strict=True))
    columns: list[dict[int, int]] = [{} for _ in range(width)]
    for y, row in enumerate(rows):
        for x, number in entries_of(row):
            columns[x][y] = number
    return [SparseRow(column, len(rows)) for column in columns]


def spread(row: Row, places: Mapping[int, Sequence[int]], width: int) -> SparseRow:
    """A row over other places: every entry at all the places that its own one becomes."""
    return SparseRow({there: number for x, number in entries_of(row) for there in places.get(x, ())}, width)


Symbols = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Channel:
    """Counts of (secret, input) and the weights of every output.

    Attributes
    ----------
    counts : tuple of tuple of int, c × a
        Records with secret s and published input u.
    weights : tuple of rows of int, b × i
        Plain, or sparse where most are zero. Of every output for every input that the protocol reads: i = a published
        inputs u; or i = c · a pairs (s, u), s slowest, where it reads the secret too.
    denominator : int
        What the weights of one input add up to.
    reads_secret : bool

    Raises
    ------
    DataError
        If shapes do not fit, a number is negative, weights do not add up to the denominator, or there is no record.
    """

    counts: tuple[tuple[int, ...], ...]
    weights: tuple[Row, ...]
    denominator: int
    reads_secret: bool = False

    def __post_init__(self) -> None:
        widths = {len(row) for row in self.counts}
        if len(widths) != 1 or not self.counts[0] or min(map(min, self.counts)) < 0 or self.n == 0:
            raise DataError("the counts of secret and input are no table of whole numbers >= 0 with a record in it")
        inputs = self.a * (self.c if self.reads_secret else 1)
        if not self.weights or any(len(row) != inputs for row in self.weights):
            raise DataError(f"the weights of the protocol do not fit the {inputs:,} inputs that occur")
        sums, least = [0] * inputs, 0
        for row in self.weights:
            for x, weight in entries_of(row):
                sums[x] += weight
                least = min(least, weight)
        if least < 0 or any(one != self.denominator for one in sums):
            raise DataError("the weights of an input do not add up to the denominator of the protocol")

    @classmethod
    def of(
        cls,
        counts: Sequence[Sequence[int]],
        weights: Sequence[Sequence[int]],
        denominator: int,
        reads_secret: bool = False,
    ) -> Channel:
        """A channel of any sequences of numbers, arrays of numpy among them."""
        sparse = all(isinstance(row, SparseRow) for row in weights)
        return cls(_whole(counts), tuple(weights) if sparse else _whole(weights), int(denominator), reads_secret)

    @property
    def c(self) -> int:
        """Values of the secret."""
        return len(self.counts)

    @property
    def a(self) -> int:
        """Published inputs."""
        return len(self.counts[0])

    @cached_property
    def n(self) -> int:
        """Records."""
        return sum(map(sum, self.counts))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Records of every secret."""
        return tuple(map(sum, self.counts))

    @cached_property
    def secrets(self) -> tuple[int, ...]:
        """The secrets that occur."""
        return tuple(s for s, size in enumerate(self.sizes) if size)

    def row(self, y: int, s: int) -> Row:
        """Weights of an output for the inputs u of a record with secret s, length a."""
        return self.weights[y][s * self.a : (s + 1) * self.a] if self.reads_secret else self.weights[y]

    def masses(self, y: int) -> list[int]:
        """``N_s = Σ_u n[s, u] w[y, (s, u)]`` of every secret, so that P(s, y) = N_s / (n · denominator).

        O(c) for every weight that is not zero.
        """
        if not self.reads_secret:
            entries = list(entries_of(self.weights[y]))
            return [sum(counts[u] * weight for u, weight in entries) for counts in self.counts]
        return [sum(map(mul, counts, self.row(y, s))) for s, counts in enumerate(self.counts)]

    @cached_property
    def records(self) -> tuple[int, ...]:
        """Records of every published input."""
        return tuple(map(sum, zip(*self.counts, strict=True)))

    def masses_by_input(self, y: int) -> list[tuple[int, int]]:
        """``(u, Σ_s n[s, u] w[y, (s, u)])`` of the inputs that an output may come from."""
        if not self.reads_secret:
            found = ((u, self.records[u] * weight) for u, weight in entries_of(self.weights[y]))
        else:
            rows = [self.row(y, s) for s in range(self.c)]
            found = ((u, sum(self.counts[s][u] * rows[s][u] for s in range(self.c))) for u in range(self.a))
        return [(u, mass) for u, mass in found if mass]

    def outputs(self) -> Iterator[list[int]]:
        """The masses of every output that occurs."""
        yield from filter(any, map(self.masses, range(len(self.weights))))

    def lifts(self, masses: Sequence[int]) -> dict[int, Fraction]:
        """``P(y|s)/P(y)`` for the secrets that occur."""
        whole = sum(masses)
        return {s: Fraction(masses[s] * self.n, whole * self.sizes[s]) for s in self.secrets}


def alike(symbols: Sequence[tuple[str, ...]], places: Sequence[int]) -> dict[tuple[str, ...], list[int]]:
    """Which symbols have the same values at some places, by these values."""
    found: dict[tuple[str, ...], list[int]] = {}
    for x, symbol in enumerate(symbols):
        found.setdefault(tuple(symbol[place] for place in places), []).append(x)
    return found


def by_secret(numbers: Sequence[int], a: int) -> list[Sequence[int]]:
    """Numbers by cell, of a inputs, as a row for each secret."""
    return [numbers[start : start + a] for start in range(0, len(numbers), a)]


def _whole(rows: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    table = []
    for row in rows:
        numbers = tuple(int(value) for value in row)
        if any(number != value for number, value in zip(numbers, row, strict=True)):
            raise DataError("counts and weights must be whole numbers")
        table.append(numbers)
    return tuple(table)
