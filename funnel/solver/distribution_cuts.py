"""Distribution cuts: what is known of the largest and least P(y|s) of each secret, and thresholds of one."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from funnel.guarantees.binomial_limits import UNIT
from funnel.guarantees.distribution_box import DistributionBox
from funnel.guarantees.exact import capped_exp
from funnel.guarantees.over_distributions import RatioGuarantee
from funnel.guarantees.possible_distributions import DistributionSet
from funnel.guarantees.reading import reads_secret, stacked
from funnel.joint import FloatArray
from funnel.solver.budget import Budget
from funnel.solver.cuts import SPACED, Cuts, SetProblem
from funnel.solver.filling_cells import Limits
from funnel.solver.goal import Entropy
from funnel.solver.parts import PartsPricer
from funnel.solver.pricing import Pricer
from funnel.solver.region import Region
from funnel.solver.slopes import pricer_of
from funnel.solver.threshold_pricing import ThresholdPricer

# Where limits leave more of a distribution open, and there are so many inputs, rows are searched by its thresholds:
# boxes of posteriors of fewer inputs close sooner, or are as close after ten seconds.
_OPEN, _MANY_INPUTS = 0.5, 14
# Distributions nearer than this are one.
_SAME = 1e-12


class DistributionCuts(Cuts):
    """Cuts that are distributions p(x|s) of one secret: what P(y|s) is at least, and at most, whatever is true.

    hi_s, the largest P(y|s) over the set, is at least what any distribution gives, and lo_s, the least, at most.
    Conditions on hi and lo have these as levels, so that a distribution of one secret is one condition, not one with
    every distribution of every other.
    """

    def __init__(self, problem: SetProblem, guarantee: RatioGuarantee) -> None:
        super().__init__(problem)
        self._distribution = problem.distribution
        self._distributions = guarantee.distributions(problem.read)
        self._secrets = np.flatnonzero(self._distributions.possible)
        self._high: list[list[FloatArray]] = [[] for _ in range(self._distributions.shape[0])]
        self._low: list[list[FloatArray]] = [[] for _ in range(self._distributions.shape[0])]
        # Some distribution of each to begin with: those of a row that says nothing.
        average = np.ones((1, len(self._distribution)))
        for s in self._secrets.tolist():
            self._add(self._high[s], average, s, True)
            self._add(self._low[s], average, s, False)

    def __len__(self) -> int:
        return sum(len(distributions) for distributions in (*self._high, *self._low))

    @cached_property
    def _widest(self) -> tuple[int, Limits] | None:
        return widest(self.problem, self._distributions)

    def _stacked(self, rows: FloatArray) -> FloatArray:
        return stacked(self.problem.read, self.problem.whole(rows))

    def _add(self, known: list[FloatArray], row: FloatArray, secret: int, upward: bool) -> int:
        distribution = self._distributions.given_distributions(self._stacked(row), np.array([secret]), upward)[0][0]
        return self._add_distribution(known, distribution, secret)

    def _add_distribution(self, known: list[FloatArray], distribution: FloatArray, secret: int) -> int:
        """Whether a distribution p(x|s), shape (u,), was new."""
        full = np.zeros(len(self.problem.seen))
        if reads_secret(self.problem.read):
            full.reshape(self._distributions.shape)[secret] = distribution
        else:
            full[:] = distribution
        new = self.problem.on_seen(full[None])[0]
        if any(float(np.abs(new - old).max()) < _SAME for old in known):
            return 0
        known.append(new)
        return 1


def widest(problem: SetProblem, distributions: DistributionSet) -> tuple[int, Limits] | None:
    """The secret whose limits leave most open, and these; None where rows are searched by boxes of posteriors."""
    # Thresholds bound the entropy; the square of a mean has a search of its own.
    seen = problem.seen
    if (
        not isinstance(distributions, DistributionBox)
        or not isinstance(problem.goal, Entropy)
        or reads_secret(problem.read)
    ):
        return None
    if seen.sum() < _MANY_INPUTS:
        return None
    secrets = np.flatnonzero(distributions.possible)
    secret = int(secrets[distributions.lower[secrets].sum(axis=1).argmin()])
    lower, upper = distributions.lower[secret] / UNIT, distributions.upper[secret] / UNIT
    if not seen.all():
        lower, upper = (np.append(side[seen], side[~seen].sum()) for side in (lower, upper))
    limits = Limits(lower, upper)
    return (secret, limits) if limits.ordered and limits.free > _OPEN else None


class LevelCuts(DistributionCuts):
    """Cuts of robust LDP, distribution by distribution instead of pair by pair.

    ``hi_s <= e^ε lo_t`` for all s ≠ t, where hi_s is the largest P(y|s) over the set and lo_t the least. Let t* have
    the least lo, m, and let n be the least of the others. Then the conditions say no more than ``hi_s <= e^ε m`` for
    s ≠ t* and ``hi_t* <= e^ε n``, with ``lo_t >= n`` for t ≠ t*. So the cone is the union, over t*, of regions with the
    levels m and n as variables, in which a distribution of one secret is one condition, not one with every distribution
    of every other. A secret whose distributions are all distributions of another one never has a lo below that one's:
    it needs no region.
    """

    def __init__(self, problem: SetProblem, guarantee: RatioGuarantee) -> None:
        super().__init__(problem, guarantee)
        self._limit = capped_exp(guarantee.sides.pairs)
        self._pricer: PartsPricer | None = None

    def pricer(self, budget: Budget) -> PartsPricer:
        """Of one region for every secret that may be the one with the least lo."""
        rising = None if self._pricer is None else self._pricer.rising
        self._pricer = PartsPricer([self._part(t, budget) for t in self.least], budget, rising)
        return self._pricer

    def _part(self, least: int, budget: Budget) -> Pricer:
        """What prices the region where lo of one secret is at most the others'."""
        region = self._region(least)
        if self._widest is None:
            return pricer_of(region, budget)
        secret, limits = self._widest
        known = self._region(least, but=secret).rows
        exact = np.zeros((2, 2 + known.shape[1]))
        exact[0, 0], exact[0, -2:] = 1.0, self._levels(secret == least, -self._limit)
        exact[1, 1], exact[1, -2:] = -1.0, self._levels(secret != least, 1.0)
        exact /= np.abs(exact).max(axis=1, keepdims=True)
        return ThresholdPricer(region, np.vstack([exact, np.pad(known, ((0, 0), (2, 0)))]), limits, budget)

    @property
    def least(self) -> list[int]:
        """The secrets that may have the least lo: all but those whose distributions another one has too."""
        secrets = self._secrets.tolist()
        if reads_secret(self.problem.read):
            # Each secret has entries of its own then.
            return secrets
        wider = self._distributions.wider
        # Of several with the same distributions the first.
        return [t for t in secrets if not any(wider[s, t] and (s < t or not wider[t, s]) for s in secrets if s != t)]

    def _region(self, least: int, but: int | None = None) -> Region:
        """The region where lo of one secret is at most the others': levels m, and n in units of e^ε.

        but: a secret whose distributions are left out.
        """
        rows = []
        for s in self._secrets.tolist():
            if s == but:
                continue
            for distribution in self._high[s]:
                rows.append(np.concatenate([distribution / self._distribution, self._levels(s == least, -self._limit)]))
            for distribution in self._low[s]:
                rows.append(np.concatenate([-distribution / self._distribution, self._levels(s != least, 1.0)]))
        rows.append(np.concatenate([np.zeros(len(self._distribution)), [1.0, -self._limit]]))
        return Region.with_levels(np.array(rows), self._distribution, 2, self.problem.image, self.problem.goal)

    def _levels(self, second: bool, by: float) -> FloatArray:
        return np.array([0.0, by * self._limit] if second else [by, 0.0])

    def add(self, rows: FloatArray) -> int:
        """The distributions of the pair that each row breaks most."""
        high, low = self._distributions.given(self._stacked(rows))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.nan_to_num(high[:, :, None] / low[:, None, :], nan=0.0, posinf=np.inf)
        same = np.arange(ratios.shape[1])
        ratios[:, same, same] = 0.0
        ratios[:, ~self._distributions.possible] = 0.0
        ratios[:, :, ~self._distributions.possible] = 0.0
        added = 0
        for row, apart in zip(rows, ratios, strict=True):
            s, t = np.unravel_index(int(apart.argmax()), apart.shape)
            if apart[s, t] > self._limit * (1 + SPACED):
                added += self._add(self._high[s], row[None], int(s), True)
                added += self._add(self._low[t], row[None], int(t), False)
        return added
