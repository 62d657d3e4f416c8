"""Any column: what observers conclude from whole records who know nothing else of a person, or any one column."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from funnel.donors.composition import Composition
from funnel.donors.record_classes import RecordClasses
from funnel.guarantees.base import Level, Witness
from funnel.guarantees.exact import exp_below, log_level, scaled_up
from funnel.joint import FloatArray, IntArray, Joint
from funnel.protocol import WeightArray

BoolArray = npt.NDArray[np.bool_]
# Python integers.
Whole = npt.NDArray[np.object_]
# Which ratios are compared exactly: floats are closer to them than that, relatively.
_CLOSE = 1e-9


@dataclass(frozen=True, eq=False)
class Condition:
    """That a belief is within one side of a bound: of those who know a value and see a record of a part.

    Attributes
    ----------
    part, known, secret : int
        Numbers of the part, of what the observer knows, and of the value of the secret.
    upward : bool
        Whether the belief must not be too large, else not too small.
    agrees : bool
        Whether the record has the value that the observer knows, so that it may be the person's own.
    """

    part: int
    known: int
    secret: int
    upward: bool
    agrees: bool


@dataclass(frozen=True, eq=False)
class AnyColumn:
    """Observers of no column, and of each value of each column, where donors are drawn evenly from parts of classes.

    An observer believes that a person has the secret as often as people of their class have it, and sees a published
    record. A record of a part is that of the person, with the probability that the part stays, or a donor's: of each
    other part that goes there all people are as likely to come to it, those with the known value among them.

    Parameters
    ----------
    counts : ndarray of int64, shape (c, g)
        People with each secret in each class, which beliefs follow from.
    class_of : ndarray of int64, shape (k,)
        The class that every part belongs to.
    people : ndarray of int64, shape (v, k)
        Of every part those who have what an observer may know; the first row is everybody.
    known : tuple of (column, value)
        Of every other row.
    """

    counts: IntArray
    class_of: IntArray
    people: IntArray
    known: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, joint: Joint, classes: RecordClasses) -> Self:
        """From counts (c, a) of secrets and whole records."""
        found = Composition.of(joint, classes)
        class_of = classes.class_of
        counts = np.zeros((len(joint.secret), class_of.max() + 1), dtype=np.int64)
        np.add.at(counts.T, class_of, found.people.T)
        people = np.column_stack([found.people.sum(axis=0), found.counts.sum(axis=0)]).T
        return cls(counts, class_of, people, found.cells)

    @property
    def sizes(self) -> IntArray:
        """People of every part, shape (k,)."""
        sizes: IntArray = self.people[0]
        return sizes

    @cached_property
    def given(self) -> FloatArray:
        """P(secret | part), which is that of its class, shape (c, k)."""
        return np.asarray((self.counts / self.counts.sum(axis=0))[:, self.class_of])

    @cached_property
    def before(self) -> FloatArray:
        """P(secret | what is known), shape (c, v)."""
        return np.asarray(self.given @ self.people.T / self.people.sum(axis=1))

    def level(self, weights: WeightArray, alone: float, knowing: float, budget: float) -> Level:
        """The smallest value of a budget for which both bounds hold in proportion to it, with the worst observer.

        Parameters
        ----------
        weights : ndarray of uint64, shape (k, k)
            P(published part | true part) in units of 2^-63.
        alone, knowing : float
            Budgets of observers of no column and of one (nats).
        budget : float
            What the level is compared with.
        """
        worst: list[Witness | None] = [None, None]
        for ratios in self._ratios(weights):
            for one, some in enumerate((slice(0, 1), slice(1, None))):
                worst[one] = ratios.worst(some, worst[one], self.known)
        levels = [
            dataclasses.replace(level, value=scaled_up(level.value, side, budget))
            for level, side in zip(
                (log_level(witness) for witness in worst if witness is not None), (alone, knowing), strict=True
            )
        ]
        return max(levels, key=float)

    def broken(self, weights: WeightArray, alone: float, knowing: float) -> list[Condition]:
        """The conditions that integer weights break, decided exactly."""
        limits = [exp_below(alone), *[exp_below(knowing)] * len(self.known)]
        return [one for ratios in self._ratios(weights) for one in ratios.beyond(limits)]

    def _ratios(self, weights: WeightArray) -> Iterator[_Ratios]:
        """Beliefs after a record over those before, exactly: of every part, for records that agree and that do not."""
        sizes = [int(size) for size in self.counts.sum(axis=0)]
        unit = math.lcm(*sizes)
        # Secrets of a person of each class in units, and people by class and by what is known of them.
        tells = self.counts.astype(object) * np.array([unit // size for size in sizes], dtype=object)
        belongs = (np.arange(len(sizes))[:, np.newaxis] == self.class_of).astype(np.int64).astype(object)
        people = self.people.astype(object)
        before = tells @ (belongs @ people.T)
        for part, row in enumerate(weights.astype(object)):
            moved = row.copy()
            moved[part] = 0
            come = tells @ (belongs @ (people * moved).T)
            own = tells[:, self.class_of[part]] * (row[part] * int(self.sizes[part]))
            yield _Ratios(part, False, before, come, self.people[:, part] < self.sizes[part])
            yield _Ratios(part, True, before, come + own[:, np.newaxis], self.people[:, part] > 0)


@dataclass(frozen=True, eq=False)
class _Ratios:
    """Beliefs (c, v) before and after a record of a part, in whole numbers, and who may see such a record (v,)."""

    part: int
    agrees: bool
    before: Whole
    after: Whole
    there: BoolArray

    def _terms(self) -> tuple[Whole, Whole, BoolArray]:
        """Numerators and denominators (c, v) of P(s | seen) / P(s | known), and where there are such."""
        sums: Any = self.after.sum(axis=0)
        seen = self.there & (sums > 0).astype(bool) & (self.before > 0).astype(bool)
        return self.after * self.before.sum(axis=0), self.before * sums, seen

    def worst(self, some: slice, so_far: Witness | None, known: tuple[tuple[str, str], ...]) -> Witness | None:
        """The witness of the largest ratio, or smallest, of some observers, if it is worse than one found before."""
        over, under, seen = (table[:, some] for table in self._terms())
        found = so_far
        for upward, (top, bottom) in enumerate(((under, over), (over, under))):
            for s, v in zip(*np.nonzero(seen), strict=True):
                given = (known[v],) if some.start else ()
                if not bottom[s, v]:
                    return Witness(self.part, int(s), None, None, False, given)
                if found is not None and (
                    found.ratio is None or top[s, v] / bottom[s, v] < float(found.ratio) * (1 - _CLOSE)
                ):
                    continue
                ratio = Fraction(top[s, v], bottom[s, v])
                if found is None or found.ratio is None or ratio > found.ratio:
                    found = Witness(self.part, int(s), None, max(ratio, Fraction(1)), bool(upward), given)
        return found

    def beyond(self, limits: list[Fraction]) -> Iterator[Condition]:
        """Which conditions are broken, given e^ε of every observer, rounded down."""
        over, under, seen = self._terms()
        of = np.array([limit.numerator for limit in limits], dtype=object)
        by = np.array([limit.denominator for limit in limits], dtype=object)
        for upward, (top, bottom) in enumerate(((under, over), (over, under))):
            for s, v in zip(*np.nonzero(seen & (top * by > bottom * of).astype(bool)), strict=True):
                yield Condition(self.part, int(v), int(s), bool(upward), self.agrees)
