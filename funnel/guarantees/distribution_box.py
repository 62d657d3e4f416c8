"""Boxes of distributions that hold the true one for any sample size: simultaneous Clopper–Pearson limits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

import numpy as np
import numpy.typing as npt

from funnel.errors import DataError
from funnel.guarantees.binomial_limits import UNIT, lower_limit, upper_limit
from funnel.guarantees.count_box import CountBox, count_box
from funnel.guarantees.greedy import Places, exact_sum, filled, ranked
from funnel.guarantees.possible_distributions import DistributionSet, Extreme
from funnel.joint import FloatArray, IntArray, Joint
from funnel.protocol import WeightArray


@dataclass(frozen=True, eq=False)
class DistributionBox(DistributionSet):
    """All with ``lower <= p(x|s) <= upper`` and ``prior_lower <= p(s) <= prior_upper``, in units of 2^-32.

    Attributes
    ----------
    lower, upper : ndarray of int64, shape (c, u)
        Limits of p(x|s), rounded outwards.
    prior_lower, prior_upper : ndarray of int64, shape (c,)
        Limits of p(s), rounded outwards.

    Notes
    -----
    The largest P(y|s) is greedy: give every input its lower limit, then raise inputs to their upper limits in
    decreasing order of T until all is given away. A lift ``P(y|s)/P(y)`` rises in P(y|s) and falls in every other
    P(y|t), so its largest value is ``hi_s / min_p (p_s hi_s + Σ_{t≠s} p_t lo_t)``, again greedy in p; inverse lifts
    likewise with lo_s and hi_t (METHOD section 5).
    """

    lower: IntArray
    upper: IntArray
    prior_lower: IntArray
    prior_upper: IntArray

    @property
    def possible(self) -> npt.NDArray[np.bool_]:
        """Secrets that may occur."""
        return np.asarray(self.prior_upper > 0)

    def without(self, entries: npt.NDArray[np.bool_]) -> Self | None:
        """With an upper limit of 0 for them."""
        upper = np.where(entries, 0, self.upper)
        empty = ((self.lower > upper).any(axis=1) | (upper.sum(axis=1) < UNIT)) & self.possible
        return None if empty.any() else replace(self, upper=upper)

    @property
    def wider(self) -> npt.NDArray[np.bool_]:
        """Where the limits of t are within those of s."""
        below = (self.lower[:, None] <= self.lower).all(axis=2)
        return np.asarray(below & (self.upper[:, None] >= self.upper).all(axis=2))

    def _filled(self, rows: FloatArray | WeightArray, downwards: bool) -> IntArray:
        """The numerators (b, c, u) of the p(x|s) that make every P(y|s) largest, or least."""
        order = ranked(rows, downwards)
        return filled(order, self.lower, self.upper, UNIT, UNIT).table(0)

    def _prior(self, gains: FloatArray, downwards: bool) -> FloatArray:
        """The p(s), shape (..., c), with the largest or least ``Σ p_s gains_s``, gains (..., c)."""
        order = ranked(gains, downwards)
        return np.asarray(filled(order, self.prior_lower, self.prior_upper, UNIT, UNIT).table(0) / UNIT)

    def given(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Greedy; O(b c u log u)."""
        return self._mass(rows, True), self._mass(rows, False)

    def _mass(self, rows: FloatArray, largest: bool) -> FloatArray:
        return np.asarray((self._filled(rows, largest) * rows).sum(axis=-1) / UNIT)

    def lifts(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Greedy in p(x|s), then in p(s); O(b c (u log u + c log c))."""
        high, low = self.given(rows)
        up, down = self._averages(high, low, False), self._averages(low, high, True)
        with np.errstate(divide="ignore", invalid="ignore"):
            lifts = np.where(high > 0, high / up, 0.0), np.where(down > 0, down / low, np.nan)
        never = ~(high > 0).any(axis=-1)
        for side in lifts:
            side[never] = np.nan
        return lifts

    def _averages(self, own: FloatArray, others: FloatArray, largest: bool) -> FloatArray:
        """The extreme P(y) where each secret (b, c) has its own extreme and the others theirs."""
        c = own.shape[-1]
        gains = np.repeat(others[:, None, :], c, axis=1)
        gains[:, np.arange(c), np.arange(c)] = own
        return np.asarray((self._prior(gains, largest) * gains).sum(axis=-1))

    def given_distributions(
        self, rows: FloatArray, secrets: Places, upward: bool
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Greedy."""
        own = rows[np.arange(len(rows)), secrets if rows.shape[1] > 1 else 0]
        lower, upper = self.lower[secrets], self.upper[secrets]
        worst = filled(ranked(own, upward), lower, upper, UNIT, UNIT).table(0)
        return worst / UNIT, lower / UNIT, upper / UNIT

    def lift_distributions(self, rows: FloatArray, secrets: Places, upward: bool) -> Extreme:
        """Greedy in p(x|s), then in p(s)."""
        every = np.arange(len(rows))
        distributions = self._filled(rows, not upward) / UNIT
        distributions[every, secrets], _, _ = self.given_distributions(rows, secrets, upward)
        prior = self._prior((distributions * rows).sum(axis=-1), not upward)
        lower, upper = (np.broadcast_to(limits / UNIT, distributions.shape) for limits in (self.lower, self.upper))
        return Extreme(distributions, prior, lower, upper)

    def exact_given(self, row: WeightArray) -> list[tuple[Fraction, Fraction] | None]:
        """Sums of whole numbers below 2^95."""
        sides = zip(self._exact_masses(row, True), self._exact_masses(row, False), strict=True)
        return [
            (Fraction(high, UNIT), Fraction(low, UNIT)) if possible else None
            for (high, low), possible in zip(sides, self.possible, strict=True)
        ]

    def _exact_masses(self, row: WeightArray, largest: bool) -> list[int]:
        table = self._filled(row, largest)
        return [
            exact_sum(distribution, one)
            for distribution, one in zip(table, np.broadcast_to(row, table.shape), strict=True)
        ]

    def exact_lift(self, row: WeightArray, secret: int, upward: bool) -> Fraction | None:
        """As `lifts`, in whole numbers."""
        own, gains = self._exact_masses(row, upward)[secret], self._exact_masses(row, not upward)
        gains[secret] = own
        average = self._exact_average(gains, largest=not upward)
        if upward:
            if own == 0:
                return Fraction(0)
            # Nobody at all may have what the output says for certain: no factor is too large.
            return Fraction(own * UNIT, average) if average else None
        if own == 0:
            return None if average else Fraction(0)
        return Fraction(average, own * UNIT)

    def _exact_average(self, gains: list[int], largest: bool) -> int:
        total, left = 0, UNIT - int(self.prior_lower.sum())
        for s in sorted(range(len(gains)), key=gains.__getitem__, reverse=largest):
            least, most = int(self.prior_lower[s]), int(self.prior_upper[s])
            more = min(left, most - least)
            total += (least + more) * gains[s]
            left -= more
        return total


def distribution_box(joint: Joint, alpha: float) -> DistributionBox:
    """The box around the counts a channel reads; it misses the true distribution with probability at most α.

    Each limit of p(x|s), given the number of records with s, and of p(s) misses with at most α/(2(ca + c)), so that all
    hold together with at least 1 - α, for every number of records and every true distribution (Clopper and Pearson
    1934). Where the counts are known up to noise only, each limit is that of the worst counts within the bounds: the
    lower one of the fewest successes among the most trials, and so on; then what may go wrong is α plus the bounds' β.

    Raises
    ------
    DataError
        If a secret never occurs: no distribution is ruled out for it then.
    """
    # Where the counts are known exactly they are all that is within their bounds.
    box = count_box(joint)
    check_every_secret(joint, box)
    return limits_of(box, Fraction(repr(float(alpha))) / limit_number(box))


def check_every_secret(joint: Joint, box: CountBox) -> None:
    """Refuse a secret that never occurs.

    Raises
    ------
    DataError
        With its value.
    """
    if (box.most == 0).any():
        never = joint.secret.labels[int(np.flatnonzero(box.most == 0)[0])]
        raise DataError(
            f"no record has {', '.join(joint.secret.columns)} {never!r}, so the data set no bound on what could be "
            "said about it; leave the value out, or use a guarantee that is not robust"
        )


def limit_number(box: CountBox) -> int:
    """How many limits the box around some tables of counts has: of every p(x|s) and p(s), two each."""
    c, u = box.shape
    return 2 * (c * u + c)


def limits_of(box: CountBox, tail: Fraction) -> DistributionBox:
    """The box around tables of counts, each limit of which misses with ``tail`` at most.

    Nothing is known of p(x|s) for a secret without records: its limits are 0 and 1.
    """
    lower, upper, least, most = box.lower, box.upper, box.least, box.most
    c, u = box.shape
    low, high = np.zeros((c, u), dtype=np.int64), np.zeros((c, u), dtype=np.int64)
    for s in range(c):
        fewest, largest = int(least[s]), int(most[s])
        for x in range(u):
            low[s, x] = lower_limit(int(lower[s, x]), largest, tail)
            high[s, x] = upper_limit(min(int(upper[s, x]), fewest), fewest, tail) if fewest else UNIT
    prior_low = [lower_limit(int(least[s]), int(least[s] + most.sum() - most[s]), tail) for s in range(c)]
    prior_high = [upper_limit(int(most[s]), int(most[s] + least.sum() - least[s]), tail) for s in range(c)]
    return DistributionBox(low, high, np.array(prior_low, dtype=np.int64), np.array(prior_high, dtype=np.int64))
