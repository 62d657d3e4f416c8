"""Class limits: what held-out records leave open of the secret in classes of records, and what a record then tells.

Classes that are chosen by some records are fixed for the others, which are a sample of the population: so how common a
secret is in a class lies within the limits of Clopper and Pearson, all at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np

from funnel.errors import SpecError
from funnel.guarantees.any_column import Whole
from funnel.guarantees.base import Witness
from funnel.guarantees.binomial_limits import UNIT, lower_limit, upper_limit
from funnel.guarantees.exact import exp_below
from funnel.joint import FloatArray, IntArray, Joint
from funnel.protocol import WeightArray

# Ratios that are relatively further from the largest, or from a limit, are on the side of it where floats are.
_CLOSE = 1e-9


@dataclass(frozen=True, eq=False)
class Belief:
    """How common a secret is in every class, and what a record of an output then tells of it at most, or at least.

    Attributes
    ----------
    output, secret : int
    upward : bool
        Whether the record raises the belief in the secret, else it lowers it.
    shares : ndarray of int64, shape (g,)
        P(secret | class) in units of 2^-32.
    ratio : Fraction or None
        P(secret | record) over P(secret), or the other way round where it is lowered; None if that is infinite.
    """

    output: int
    secret: int
    upward: bool
    shares: IntArray
    ratio: Fraction | None

    def exceeds(self, limit: Fraction) -> bool:
        """Whether the ratio is above a limit."""
        return self.ratio is None or self.ratio > limit


@dataclass(frozen=True, eq=False)
class ClassLimits:
    """All with ``lower <= P(secret | class) <= upper``, each for itself, of records between parts of classes.

    An observer believes that a person is any of those whose records are published, with the secret as often as people
    of the class have it: P(s | y) / P(s) is a ratio of two sums over classes, ``Σ a_h q_h / Σ π_h q_h``, where a is the
    distribution of the class of those who are published as y, and π that of all. It rises in q_h if a_h / π_h exceeds
    it and falls in the others: so it is largest where the classes with the largest a_h / π_h are at their upper limits,
    and the others at their lower ones.

    Attributes
    ----------
    lower, upper : ndarray of int64, shape (c, g)
        In units of 2^-32, rounded outwards.
    sizes : ndarray of int64, shape (k,)
        People of every part.
    class_of : ndarray of int64, shape (k,)
        The class that every part belongs to.
    """

    lower: IntArray
    upper: IntArray
    sizes: IntArray
    class_of: IntArray

    @classmethod
    def of(cls, joint: Joint, alpha: float) -> Self:
        """Limits that all hold with probability at least 1 - α, and the shares by the counts of all records.

        Raises
        ------
        SpecError
            If no records are held out, or the secret is published.
        """
        parts = joint.parts
        if parts is None or parts.held_out is None:
            raise SpecError(
                "a bound in the population is kept between parts of classes that other records have chosen; write "
                "held_out = 0.3 in [groups]"
            )
        if joint.counts.shape[1] != len(parts.class_of):
            raise SpecError("a bound in the population is not kept between parts of classes for a published secret")
        counted, of_class = parts.held_out, joint.by_class.counts
        tail = Fraction(alpha) / (2 * counted.size)
        trials, people = counted.sum(axis=0).tolist(), of_class.sum(axis=0)
        limits = [
            [
                (lower_limit(count, n, tail), upper_limit(count, n, tail)) if n else (0, UNIT)
                for count, n in zip(row, trials, strict=True)
            ]
            for row in counted.tolist()
        ]
        lower, upper = np.moveaxis(np.array(limits, dtype=np.int64), -1, 0)
        return cls(
            np.minimum(lower, of_class * UNIT // people),
            np.maximum(upper, -(-of_class * UNIT // people)),
            joint.counts.sum(axis=0),
            parts.class_of,
        )

    @property
    def of_class(self) -> IntArray:
        """People of every class, shape (g,)."""
        found: IntArray = np.bincount(self.class_of, self.sizes, self.lower.shape[1]).astype(np.int64)
        return found

    def extremes(self, people: FloatArray) -> Iterator[tuple[int, bool, FloatArray, IntArray]]:
        """By secret and direction the extreme ratios (o,) and shares (o, g) that attain them; in floats.

        Parameters
        ----------
        people : ndarray, shape (o, k)
            Of every part those who are published as each output.
        """
        by_class = np.zeros((len(people), self.lower.shape[1]))
        np.add.at(by_class.T, self.class_of, people.T)
        before = self.of_class / self.sizes.sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            after = by_class / by_class.sum(axis=1, keepdims=True)
            change = np.nan_to_num(after / before)
        every = np.arange(len(people))
        for upward in (True, False):
            order = np.argsort(-change if upward else change, axis=1, kind="stable")
            rank = np.argsort(order, axis=1, kind="stable")
            for secret, (low, high) in enumerate(zip(self.lower, self.upper, strict=True)):
                sums = []
                for weights in (after, np.broadcast_to(before, after.shape)):
                    more = np.take_along_axis(weights * (high - low), order, axis=1).cumsum(axis=1)
                    sums.append((weights * low).sum(axis=1)[:, np.newaxis] + np.pad(more, ((0, 0), (1, 0))))
                with np.errstate(divide="ignore", invalid="ignore"):
                    ratios = sums[0] / sums[1] if upward else sums[1] / sums[0]
                ratios = np.where(np.isnan(ratios), 1.0, ratios)
                most = ratios.argmax(axis=1)
                yield secret, upward, ratios[every, most], np.where(rank < most[:, np.newaxis], high, low)

    def worst(self, weights: WeightArray) -> Witness:
        """Where a belief changes most, exactly.

        Parameters
        ----------
        weights : ndarray of uint64, shape (k, k)
            P(published part | true part) in units of 2^-63.
        """
        found = self._beliefs(weights, None)
        worst = max(found, key=lambda one: (one.ratio is None, one.ratio or 0))
        ratio = None if worst.ratio is None else max(worst.ratio, Fraction(1))
        return Witness(worst.output, worst.secret, None, ratio, worst.upward)

    def broken(self, weights: WeightArray, budget: float) -> list[Belief]:
        """The beliefs that a record may change by more than the budget (nats), decided exactly."""
        limit = exp_below(budget)
        return [one for one in self._beliefs(weights, float(limit)) if one.exceeds(limit)]

    def _beliefs(self, weights: WeightArray, least: float | None) -> list[Belief]:
        """Exactly, of all outputs whose extreme ratio may be above the least one, or the largest of all."""
        extremes = list(self.extremes(np.asarray(weights * self.sizes.astype(np.float64))))
        if least is None:
            least = max(float(ratios.max()) for _, _, ratios, _ in extremes)
        return [
            self._exactly(weights[output], output, secret, upward)
            for secret, upward, ratios, _ in extremes
            if self.upper[secret].any()
            for output in np.flatnonzero((ratios > least * (1 - _CLOSE)) & weights.any(axis=1)).tolist()
        ]

    def _exactly(self, row: WeightArray, output: int, secret: int, upward: bool) -> Belief:
        """The extreme ratio for an output, in whole numbers."""
        after = np.zeros(self.lower.shape[1], dtype=object)
        np.add.at(after, self.class_of, row.astype(object) * self.sizes.astype(object))
        before = self.of_class.astype(object)
        order = sorted(range(len(after)), key=lambda h: Fraction(int(after[h]), int(before[h])), reverse=upward)
        shares = self.lower[secret].astype(object)
        found = [(_ratio(after, before, shares, upward), shares.copy())]
        for h in order:
            shares[h] = int(self.upper[secret, h])
            found.append((_ratio(after, before, shares, upward), shares.copy()))
        ratio, at = max(found, key=lambda one: (one[0] is None, one[0] or 0))
        return Belief(output, secret, upward, at.astype(np.int64), ratio)


def _ratio(after: Whole, before: Whole, shares: Whole, upward: bool) -> Fraction | None:
    """P(secret | record) over P(secret), or the other way round; 1 where nobody has the secret, None if infinite."""
    over, under = int(after @ shares) * int(before.sum()), int(before @ shares) * int(after.sum())
    top, bottom = (over, under) if upward else (under, over)
    if not top:
        return Fraction(1)
    return Fraction(top, bottom) if bottom else None
