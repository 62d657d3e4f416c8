"""Any column: what observers conclude from whole records who know nothing else of a person, or any one column."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from funnel.errors import SpecError
from funnel.guarantees.base import Witness
from funnel.guarantees.exact import exp_below
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
    def of(cls, joint: Joint, knowing: bool = True) -> Self:
        """Of counts of secrets and parts of classes; of observers of no column alone, unless they know one.

        Raises
        ------
        SpecError
            If the inputs of the counts are no parts of classes.
        """
        parts = joint.parts
        if parts is None:
            raise SpecError("what observers of one column conclude is known of parts of classes of records alone")
        some = parts.people if knowing else parts.people[:0]
        everybody = joint.counts.sum(axis=0)
        return cls(
            joint.by_class.counts,
            parts.class_of,
            np.vstack([everybody, some]),
            parts.known if knowing else (),
        )

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

    def worst(self, weights: WeightArray) -> Witness:
        """Where a belief changes most, exactly.

        Parameters
        ----------
        weights : ndarray of uint64, shape (k, k)
            P(published part | true part) in units of 2^-63.

        Raises
        ------
        SpecError
            If there are other outputs than parts.
        """
        found: Witness | None = None
        for ratios in self._ratios(weights):
            found = ratios.worst(found, self.known)
        if found is None:
            raise SpecError("nobody is published under these weights, so no observer concludes anything")
        return found

    def concluded(self, channel: FloatArray, budget: float) -> dict[str, tuple[float, float]]:
        """Of every column what observers of its values conclude at most, nats, and the share of people beyond a budget.

        Parameters
        ----------
        channel : ndarray, shape (k, k)
            P(published part | true part); in floats, as the answer is.
        budget : float
            Nats.
        """
        moves, stays = channel.copy(), np.diagonal(channel)
        np.fill_diagonal(moves, 0.0)
        own = self.given * (stays * self.sizes)
        beyond = budget * (1 + _CLOSE) + _CLOSE
        found: dict[str, tuple[float, float]] = {}
        for (column, _), having, prior in zip(self.known, self.people[1:], self.before.T[1:], strict=True):
            level, outside = found.get(column, (0.0, 0.0))
            moved, agree = moves * having, having / self.sizes
            come = self.given @ moved.T
            arrive = moved.sum(axis=1)
            apart = _changes(come, prior, (having < self.sizes) & (arrive > _CLOSE))
            alike = _changes(come + own, prior, (having > 0) & (arrive + stays * having > _CLOSE))
            outside += float((arrive * (1 - agree))[apart > beyond].sum())
            outside += float((arrive * agree + stays * having)[alike > beyond].sum())
            found[column] = max(level, float(apart.max()), float(alike.max())), outside
        people = float(self.sizes.sum())
        return {column: (level, outside / people) for column, (level, outside) in found.items()}

    def broken(self, weights: WeightArray, alone: float, knowing: float) -> list[Condition]:
        """The conditions that integer weights break, decided exactly."""
        limits = [exp_below(alone), *[exp_below(knowing)] * len(self.known)]
        return [one for ratios in self._ratios(weights) for one in ratios.beyond(limits)]

    def _ratios(self, weights: WeightArray) -> Iterator[_Ratios]:
        """Beliefs after a record over those before, exactly: of every part, for records that agree and that do not."""
        if weights.shape != (len(self.sizes),) * 2:
            raise SpecError("donors are drawn between parts of classes, and these weights are of other outputs")
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
            some = np.flatnonzero(moved)
            come = tells[:, self.class_of[some]] @ (people[:, some] * moved[some]).T
            own = tells[:, self.class_of[part]] * (row[part] * int(self.sizes[part]))
            yield _Ratios(part, False, before, come, self.people[:, part] < self.sizes[part])
            yield _Ratios(part, True, before, come + own[:, np.newaxis], self.people[:, part] > 0)


def _changes(seen: FloatArray, prior: FloatArray, there: BoolArray) -> FloatArray:
    """The largest |log| of a posterior (c, k) over the prior (c,), of each part; 0 where nobody sees one."""
    known = prior > 0
    found = np.zeros(seen.shape[1])
    posterior = seen[known][:, there] / seen[:, there].sum(axis=0)
    with np.errstate(divide="ignore"):
        found[there] = np.abs(np.log(posterior / prior[known, np.newaxis])).max(axis=0)
    return found


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

    def worst(self, so_far: Witness | None, known: tuple[tuple[str, str], ...]) -> Witness | None:
        """The witness of the largest ratio, or smallest, if it is worse than one found before."""
        over, under, seen = self._terms()
        found = so_far
        for upward, (top, bottom) in enumerate(((under, over), (over, under))):
            for s, v in zip(*np.nonzero(seen), strict=True):
                given = (known[v - 1],) if v else ()
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
