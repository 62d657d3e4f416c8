"""Whole records of groups of columns: P(secret | record) once more, from the text of the protocol, in whole numbers.

What makes grouped protocols follows prefixes of outputs, each by itself. Here a record is what a reader has: one text
for every column. All ways to be published as it are added up, whichever outputs and classes were behind the texts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from funnel.errors import DataError, SpecError
from funnel.recount.promise import Promise, read_promise
from funnel.recount.ratios import Ratio, larger, scaled

Values = tuple[str, ...]
# Weights of source records, by their number.
_Weights = dict[int, int]
_SILENT = -1


@dataclass(frozen=True)
class RecordLevel:
    """How far whole records go.

    Attributes
    ----------
    nats : float
        The smallest budget that would do; never below it. Infinite if none would.
    holds : bool
        Whether the promised one does, decided exactly.
    records : int
        Distinct published records that were judged.
    missing : int
        Of those that were asked about, how many this protocol cannot publish about anybody who was counted.
    """

    nats: float
    holds: bool
    records: int
    missing: int


def record_level(
    protocol: str | bytes,
    guarantee: str,
    counts: Mapping[tuple[Values, Values], int],
    records: Iterable[Values] | None = None,
) -> RecordLevel:
    """The level of whole records under a grouped protocol.

    Parameters
    ----------
    protocol : str or bytes
        ``protocol.json`` of groups.
    guarantee : str
        Such as ``"lip:1.0"``; lip, alip, ldp or perfect.
    counts : mapping of (secret, record) to int
        How many people have each; a record is one text for every column, in the order of the protocol's columns.
    records : iterable of tuple of str, optional
        Published records, such as those of a release; by default, every one that is possible.

    Raises
    ------
    DataError
        If it is no grouped protocol, or a record has values that it does not know.
    SpecError
        If the guarantee is of another kind.

    Notes
    -----
    A product of whole numbers for every source record, prefix that it may be published with, and stage.
    """
    promise = read_promise(guarantee)
    if promise.kind not in ("lip", "alip", "ldp", "perfect"):
        raise SpecError(f"{guarantee} is no bound on the posterior of the secret that whole records are judged by")
    try:
        walk = _Walk(json.loads(protocol), counts, records)
        worst = walk.judged()
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise DataError(f"this is no grouped protocol for these records: {type(error).__name__}") from error
    return RecordLevel(*_level(promise, worst), walk.found, walk.missing)


@dataclass(frozen=True)
class _Worst:
    """The largest lift, inverse lift and odds."""

    up: Ratio
    down: Ratio
    odds: Ratio


class _Walk:
    """All ways of the counted people through the stages, by what is published."""

    def __init__(
        self,
        content: dict[str, Any],
        counts: Mapping[tuple[Values, Values], int],
        records: Iterable[Values] | None,
    ) -> None:
        self._unit = int(content["denominator"])
        self._stages = content["stages"]
        columns = list(content["columns"])
        secrets = sorted({secret for (secret, _), count in counts.items() if count})
        numbers: dict[Values, int] = {}
        self._counts: list[list[int]] = []
        for (secret, record), count in counts.items():
            place = numbers.setdefault(record, len(numbers))
            if place == len(self._counts):
                self._counts.append([0] * len(secrets))
            if count:
                self._counts[place][secrets.index(secret)] += count
        self._sizes = [sum(column) for column in zip(*self._counts, strict=True)]
        self._inputs = [[_input(stage, columns, record) for record in numbers] for stage in self._stages]
        self._tables = [[self._table(channel) for channel in stage["channels"]] for stage in self._stages]
        # What is published after every stage, in the order of the stages.
        order = [columns.index(column) for stage in self._stages for column in stage["columns"]]
        ends, self._wanted = 0, None
        if records is not None:
            asked = {tuple(record[j] for j in order) for record in records}
            self._wanted = []
            for stage in self._stages:
                ends += len(stage["columns"])
                self._wanted.append({record[:ends] for record in asked})
        self._asked = len(self._wanted[-1]) if self._wanted is not None else 0
        self.found = 0

    @property
    def missing(self) -> int:
        """Records that were asked about and cannot be published."""
        return self._asked - self.found if self._wanted is not None else 0

    def _table(self, channel: dict[str, Any]) -> tuple[list[tuple[Values, dict[int, int]]], set[int], list[int]]:
        outputs = [
            (tuple(label), dict(zip(inputs, weights, strict=True)))
            for label, inputs, weights in zip(channel["labels"], channel["inputs"], channel["weights"], strict=True)
        ]
        sums: dict[int, int] = {}
        for _, weights in outputs:
            for place, weight in weights.items():
                if weight < 0:
                    raise ValueError("a weight is negative")
                sums[place] = sums.get(place, 0) + weight
        if any(total != self._unit for total in sums.values()) or sum(channel["marginal"]) != self._unit:
            raise ValueError("weights do not add up")
        return outputs, set(sums), list(channel["marginal"])

    def judged(self) -> _Worst:
        """The worst over all records that are wanted."""
        start: dict[int, _Weights] = {0: dict.fromkeys(range(len(self._counts)), 1)}
        left: list[tuple[int, Values, dict[int, _Weights]]] = [(0, (), start)]
        one = Ratio(Fraction(1), 0, 0)
        worst = _Worst(one, one, one)
        while left:
            number, prefix, ways = left.pop()
            if number == len(self._stages):
                worst = self._worse(worst, ways)
                self.found += 1
                continue
            for label, after in self._published(number, ways).items():
                longer = prefix + label
                if self._wanted is None or longer in self._wanted[number]:
                    left.append((number + 1, longer, after))
        return worst

    def _published(self, number: int, ways: dict[int, _Weights]) -> dict[Values, dict[int, _Weights]]:
        """The ways after a stage, by what it publishes and by class."""
        stage, inputs = self._stages[number], self._inputs[number]
        found: dict[Values, dict[int, _Weights]] = {}
        for place, weights in ways.items():
            if place == _SILENT:
                after = found.setdefault(_nothing(stage), {}).setdefault(_SILENT, {})
                for r, weight in weights.items():
                    after[r] = after.get(r, 0) + weight * self._unit
                continue
            channel, following = stage["classes"][place]
            outputs, known, marginal = self._tables[number][channel]
            for (label, table), rare, then in zip(outputs, marginal, following, strict=True):
                after = {}
                for r, weight in weights.items():
                    x = inputs[r]
                    likely = table.get(x, 0) if x in known else rare
                    if likely:
                        after[r] = weight * likely
                if after:
                    together = found.setdefault(label, {}).setdefault(then, {})
                    for r, weight in after.items():
                        together[r] = together.get(r, 0) + weight
        return found

    def _worse(self, worst: _Worst, ways: dict[int, _Weights]) -> _Worst:
        masses = [0] * len(self._sizes)
        for weights in ways.values():
            for r, weight in weights.items():
                for s, count in enumerate(self._counts[r]):
                    if count:
                        masses[s] += count * weight
        up, down, odds = worst.up, worst.down, worst.odds
        whole, n = sum(masses), sum(self._sizes)
        for s, (mass, size) in enumerate(zip(masses, self._sizes, strict=True)):
            up = larger(up, mass * n, whole * size, self.found, s)
            down = larger(down, whole * size, mass * n, self.found, s)
        given = [Fraction(mass, size) for mass, size in zip(masses, self._sizes, strict=True)]
        high, low = given.index(max(given)), given.index(min(given))
        odds = larger(odds, masses[high] * self._sizes[low], masses[low] * self._sizes[high], self.found, high)
        return _Worst(up, down, odds)


def _input(stage: dict[str, Any], columns: list[str], record: Values) -> int:
    """What a stage reads of a record; -1 where it knows no such combination."""
    of_stage = stage.setdefault("_known", {tuple(symbol): x for x, symbol in enumerate(stage["symbols"])})
    x = of_stage.get(tuple(record[columns.index(column)] for column in stage["columns"]))
    ahead = stage["ahead"]
    if x is None or ahead is None:
        return -1 if x is None else int(x)
    value = record[columns.index(ahead["column"])]
    if value not in ahead["values"]:
        return -1
    return int(x * (max(ahead["classes"]) + 1) + ahead["classes"][ahead["values"].index(value)])


def _nothing(stage: dict[str, Any]) -> Values:
    """What is published of the columns of a stage where nothing is said."""
    texts = []
    for values in zip(*stage["symbols"], strict=True):
        text = "any"
        while text in values:
            text += " (mixed)"
        texts.append(text)
    return tuple(texts)


def _level(promise: Promise, worst: _Worst) -> tuple[float, bool]:
    if promise.kind == "ldp":
        return worst.odds.nats, worst.odds.within(promise.budget)
    if promise.kind == "alip":
        sides = ((worst.up, promise.numbers["upper"]), (worst.down, promise.numbers["lower"]))
        levels = [scaled(one.nats, side, promise.budget) for one, side in sides]
        return max(levels), all(side is None or one.within(side) for one, side in sides)
    nats = max(worst.up.nats, worst.down.nats)
    if promise.kind == "perfect":
        return nats, nats == 0
    return nats, not math.isinf(nats) and worst.up.within(promise.budget) and worst.down.within(promise.budget)
