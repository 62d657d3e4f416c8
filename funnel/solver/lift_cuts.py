"""Cuts of robust LIP and ALIP where one distribution leaves much open; and the cuts of a guarantee over a set."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from funnel.guarantees.exact import capped_exp
from funnel.guarantees.over_distributions import RatioGuarantee
from funnel.joint import FloatArray
from funnel.solver.budget import Budget
from funnel.solver.cuts import SPACED, Cuts, PlainCuts, SetProblem
from funnel.solver.distribution_cuts import DistributionCuts, LevelCuts, widest
from funnel.solver.filling_cells import Limits
from funnel.solver.pricing import Pricer
from funnel.solver.threshold_pricing import ThresholdPricer

# Priors nearer than this are one.
_SAME = 1e-12
# More than the rounding of sums of a few numbers, relatively.
_SPARE = 1e-9
# Lifts of one output that are looked at in a round: those that exceed the bound most.
_WORST = 3
# The least upper threshold that cells are about, where the average entry is 1.
_LEAST = 0.5


class LiftCuts(DistributionCuts):
    """Cuts of a bound on lifts and their inverses, where the limits of one distribution leave much open.

    With hi_s and lo_s the largest and the least P(y|s), no lift exceeds e^εu and no inverse e^εl if and only if

        ``(1 - e^εu p_s) hi_s <= e^εu Σ_{t≠s} p_t lo_t``,   ``Σ_{t≠s} p_t hi_t <= (e^εl - p_s) lo_s``

    for every secret s and every distribution p of the secret that is possible: a lift rises in P(y|s) and falls in
    every other. Columns are climbed for under half-spaces, each of which has one distribution of every secret and one
    of the secret itself. Bounds know more: all of the distribution that leaves most open, and each distribution of
    another secret with any of all others. There hi and lo are levels, two for each secret.

    Parameters
    ----------
    problem : SetProblem
    guarantee : RatioGuarantee
    widest : tuple of int and Limits
        The secret whose limits leave most open, and these.
    """

    def __init__(self, problem: SetProblem, guarantee: RatioGuarantee, widest: tuple[int, Limits]) -> None:
        super().__init__(problem, guarantee)
        self._up, self._down = capped_exp(guarantee.sides.up), capped_exp(guarantee.sides.down)
        self._secret, self._limits = widest
        self._plain = PlainCuts(problem)
        # Conditions on all hi, then all lo.
        self._averages: list[FloatArray] = []
        average = self._stacked(np.ones((1, len(self._distribution))))
        for s in self._secrets.tolist():
            for upward in (True, False):
                self._add_prior(
                    s, upward, self._distributions.lift_distributions(average, np.array([s]), upward).prior[0]
                )

    def __len__(self) -> int:
        return len(self._plain) + super().__len__() + len(self._averages)

    def pricer(self, budget: Budget) -> Pricer:
        """By thresholds."""
        return ThresholdPricer(self._plain.region, self._conditions, self._limits, budget, _LEAST)

    @property
    def _conditions(self) -> FloatArray:
        """What `CellProgramme` takes: hi and lo of the secret that is most open, posteriors, and levels."""
        a, c = len(self._distribution), self._distributions.shape[0]
        rows = []
        for sign, first, known in ((1.0, a, self._high), (-1.0, a + c, self._low)):
            for s in self._secrets.tolist():
                # Of that secret, hi and lo are those of all distributions.
                for distribution in known[s] if s != self._secret else ():
                    rows.append(np.concatenate([sign * distribution / self._distribution, np.zeros(2 * c)]))
                    rows[-1][first + s] = -sign
        rows.extend(np.concatenate([np.zeros(a), average]) for average in self._averages)
        exact = [a + self._secret, a + c + self._secret]
        # Levels are in units of what they are at most.
        units = np.concatenate([np.ones(a), self._most, self._most])
        units[exact] = 1.0
        scaled = np.array(rows) * units
        conditions = np.hstack([scaled[:, exact], np.delete(scaled, exact, axis=1)])
        return np.asarray(conditions / np.abs(conditions).max(axis=1, keepdims=True))

    @cached_property
    def _most(self) -> FloatArray:
        """What hi of each secret is at most, (c,), where P(y) is 1: it is convex, so that of some input alone."""
        high, _ = self._distributions.given(self._stacked(np.diag(1 / self._distribution)))
        return np.asarray(high.max(axis=0) * (1 + _SPARE))

    def _add_prior(self, secret: int, upward: bool, prior: FloatArray) -> int:
        """Whether a distribution p(s), shape (c,), sets a condition that is new for one secret and side."""
        c, own = len(prior), float(prior[secret])
        high, low = np.zeros(c), -prior
        if upward:
            # Where p(s) is large no lift is too much.
            if 1 - self._up * own <= 0:
                return 0
            low = -self._up * prior
            high[secret], low[secret] = 1 - self._up * own, 0.0
        else:
            high, low = prior.copy(), np.zeros(c)
            high[secret], low[secret] = 0.0, own - self._down
        new = np.concatenate([high, low])
        if any(float(np.abs(new - old).max()) < _SAME for old in self._averages):
            return 0
        self._averages.append(new)
        return 1

    def add(self, rows: FloatArray) -> int:
        """The distributions of the lifts that each row breaks most, but for those that say what is known already."""
        stack = self._stacked(rows)
        up, down = self._distributions.lifts(stack)
        over = np.nan_to_num(np.hstack([up / self._up, down / self._down]), nan=0.0, posinf=np.inf)
        c, added = self._distributions.shape[0], self._plain.add(rows)
        for row, entries, ratios in zip(rows, stack, over, strict=True):
            for place in np.argsort(-ratios, kind="stable")[:_WORST]:
                if ratios[place] <= 1 + SPACED:
                    break
                secret, upward = int(place % c), bool(place < c)
                found = self._distributions.lift_distributions(entries[None], np.array([secret]), upward)
                added += self._add_prior(secret, upward, found.prior[0])
                added += self._add_distributions(row, found.given[0], found.prior[0], secret, upward)
        return added

    def _add_distributions(
        self, row: FloatArray, distributions: FloatArray, prior: FloatArray, secret: int, upward: bool
    ) -> int:
        """Those of the distributions p(x|s), shape (c, u), that matter for how far the bound on a lift is exceeded."""
        whole = self.problem.whole(row[None])[0]
        given = distributions @ whole
        average = float(prior @ given)
        limit, own = (self._up, 1.0) if upward else (self._down, self._down)
        least = (given[secret] - limit * average if upward else average - limit * given[secret]) / (4 * len(given))
        added = 0
        for s in self._secrets.tolist():
            if s == self._secret:
                continue
            high = (s == secret) == upward
            known = self._high[s] if high else self._low[s]
            told = np.array(known) @ row
            more = given[s] - told.max() if high else told.min() - given[s]
            weight = own if s == secret else float(prior[s]) * (limit if upward else 1.0)
            if weight * more > least:
                added += self._add_distribution(known, distributions[s], s)
        return added


def cuts_for(problem: SetProblem) -> Cuts:
    """One by one where pairs of secrets are compared, or lifts and one leaves much open; else as half-spaces."""
    guarantee = problem.guarantee
    if not isinstance(guarantee, RatioGuarantee) or not guarantee.over_boxes:
        return PlainCuts(problem)
    sides = guarantee.sides
    if sides.up == sides.down == np.inf and 0 < sides.pairs < np.inf:
        return LevelCuts(problem, guarantee)
    if sides.pairs == np.inf and 0 < sides.up < np.inf and 0 < sides.down < np.inf and problem.image is None:
        most_open = widest(problem, guarantee.distributions(problem.read))
        if most_open is not None:
            return LiftCuts(problem, guarantee, most_open)
    return PlainCuts(problem)
