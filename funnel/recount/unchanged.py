"""What stays as it is under an invariant protocol, and what observers conclude: again, in whole numbers."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

from funnel.recount.channel import Symbols
from funnel.recount.part_beliefs import beliefs
from funnel.recount.source import Recount

Json = Mapping[str, Any]
Symbol = tuple[str, ...]

# Steps of secrets, values and outputs beyond which no observers are told of.
LARGEST = 20_000_000
_RARE = 1000
_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class PlainStays:
    """What a protocol whose outputs are its inputs leaves as it is, whatever the counts are.

    Parameters
    ----------
    protocol : JSON object
        Content of ``protocol.json``.
    """

    protocol: Json

    @cached_property
    def symbols(self) -> Symbols:
        """Inputs and outputs."""
        return tuple(map(tuple, self.protocol["inputs"]["symbols"]))

    @cached_property
    def whole(self) -> int:
        """What the weights of an input add up to."""
        return int(self.protocol["denominator"])

    @cached_property
    def rows(self) -> dict[Symbol, dict[Symbol, int]]:
        """Weights that are not zero, by input and output."""
        found: dict[Symbol, dict[Symbol, int]] = {x: {} for x in self.symbols}
        for y, row in zip(self.symbols, self.protocol["weights"], strict=True):
            for x, weight in row.items() if isinstance(row, dict) else enumerate(row):
                if int(weight):
                    found[self.symbols[int(x)]][y] = int(weight)
        return found

    def stays(self, x: Symbol) -> int:
        """The weight with which an input is published as it is."""
        return self.rows[x].get(x, 0)

    def keeps(self, x: Symbol, places: slice) -> int:
        """The weight with which an input is published with its own values at some places."""
        return sum(weight for y, weight in self.rows[x].items() if y[places] == x[places])

    def entered(self, occurring: Collection[Symbol]) -> set[Symbol]:
        """What inputs that occur become, other than themselves."""
        return {y for x in occurring for y in self.rows[x] if y != x}

    def alone(self, published: Mapping[Symbol, int]) -> tuple[int, float | None]:
        """Published records like no other, and the share of them that is expected to be true."""
        single = [y for y, count in published.items() if count == 1]
        true = sum(self.stays(y) for y in single)
        return len(single), true / (len(single) * self.whole) if single else None


@dataclass(frozen=True, eq=False)
class PlainUnchanged(PlainStays):
    """Figures of such a protocol, under counts of secret and published values.

    Parameters
    ----------
    counted : Recount
        The counts that everything public follows from, over what is published.
    """

    counted: Recount

    @cached_property
    def _beliefs(self) -> tuple[Mapping[tuple[Symbol, Symbol], int], int]:
        """Counts of secrets and values, times a number: between parts of classes what is believed of these."""
        counted = self.counted
        if not counted.having:
            return counted.counts, 1
        table = beliefs(counted.table(counted.secret, counted.inputs), counted.inputs)
        cells = {
            (s, x): number
            for s, row in zip(counted.secret, table, strict=True)
            for x, number in zip(counted.inputs, row, strict=True)
        }
        return cells, sum(cells.values()) // counted.rows

    @cached_property
    def records(self) -> dict[Symbol, int]:
        """Records of every input that occurs."""
        found: dict[Symbol, int] = {}
        for (_, x), count in self.counted.counts.items():
            if count:
                found[x] = found.get(x, 0) + count
        return found

    @property
    def share(self) -> float:
        """Records wholly unchanged."""
        return sum(n * self.stays(x) for x, n in self.records.items()) / (self.counted.rows * self.whole)

    @property
    def error(self) -> float:
        """Largest standard error of a counted share."""
        spread: dict[Symbol, int] = {}
        for x, n in self.records.items():
            for y, weight in self.rows[x].items():
                spread[y] = spread.get(y, 0) + n * weight * (self.whole - weight)
        return math.sqrt(max(spread.values()) / (self.counted.rows * self.whole) ** 2)

    def in_column(self, place: int) -> float:
        """Records whose value in a column is the true one."""
        kept = sum(n * self.keeps(x, slice(place, place + 1)) for x, n in self.records.items())
        return kept / (self.counted.rows * self.whole)

    @property
    def publishes_secret(self) -> bool:
        """Whether published values begin with those of the secret."""
        columns = self.counted.secret_columns
        return self.counted.published_columns[: len(columns)] == columns

    def of_secret(self, s: Symbol) -> tuple[float, float]:
        """Of the records with a secret those wholly unchanged, and those whose published secret is the true one."""
        of = [(x, n) for (secret, x), n in self._beliefs[0].items() if secret == s and n]
        people = sum(n for _, n in of) * self.whole
        kept = sum(n * self.stays(x) for x, n in of)
        same = sum(n * self.keeps(x, slice(len(s))) for x, n in of)
        return (kept / people, same / people) if people else (0.0, 0.0)

    @property
    def rare(self) -> tuple[float, float | None]:
        """Records in combinations of less than a thousandth of all, and those of them that are unchanged."""
        rare = {x: n for x, n in self.records.items() if n * _RARE < self.counted.rows}
        people = sum(rare.values())
        kept = sum(n * self.stays(x) for x, n in rare.items())
        return people / self.counted.rows, kept / (people * self.whole) if people else None

    @property
    def exact(self) -> float:
        """Records in combinations that always stay, and that nothing else that occurs becomes."""
        entered = self.entered(self.records)
        kept = sum(n for x, n in self.records.items() if self.stays(x) == self.whole and x not in entered)
        return kept / self.counted.rows

    @property
    def others(self) -> tuple[int, ...]:
        """Places of the published columns that are not secret."""
        first = len(self.counted.secret_columns) if self.publishes_secret else 0
        return tuple(range(first, len(self.counted.published_columns)))

    def observers(self, budget: float) -> Iterator[tuple[int, float, float]]:
        """How many other columns observers know; how far a belief moves at most, and of how many people beyond that.

        Parameters
        ----------
        budget : float
            In nats, as what moves: the largest change of the logarithm of a belief in a secret.
        """
        known = [
            (size, some)
            for size in sorted({0, 1, min(2, len(self.others)), len(self.others)})
            for some in combinations(self.others, size)
        ]
        entries = len(self.symbols) ** 2 * len(self.counted.secret)
        if len(known) * entries > LARGEST:
            return
        worst: dict[int, tuple[float, float]] = {}
        for size, some in known:
            level, outside = self._observed(some, budget)
            before = worst.get(size, (0.0, 0.0))
            worst[size] = max(level, before[0]), max(outside, before[1])
        for size, (level, outside) in worst.items():
            yield size, level, outside

    def _observed(self, some: tuple[int, ...], budget: float) -> tuple[float, float]:
        seen: dict[tuple[Symbol, Symbol], dict[Symbol, int]] = {}
        people: dict[Symbol, dict[Symbol, int]] = {}
        counts, unit = self._beliefs
        for (s, x), n in counts.items():
            if not n:
                continue
            knows = tuple(x[place] for place in some)
            of = people.setdefault(knows, {})
            of[s] = of.get(s, 0) + n
            for y, weight in self.rows[x].items():
                masses = seen.setdefault((knows, y), {})
                masses[s] = masses.get(s, 0) + n * weight
        level, outside = 0.0, 0
        for (knows, _), masses in seen.items():
            of, shown = people[knows], sum(masses.values())
            group, most = sum(of.values()), 0.0
            for s, n in of.items():
                mass = masses.get(s, 0)
                # A quotient of whole numbers is rounded once.
                most = max(most, abs(math.log((mass * group) / (n * shown))) if mass else math.inf)
            level = max(level, most)
            if most > budget * (1 + _TOLERANCE) + _TOLERANCE:
                outside += shown
        return level, outside / (self.counted.rows * unit * self.whole)
