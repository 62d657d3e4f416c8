"""Foreseen: what people who prove will probably say of an output, from people who make: in doubles, for a search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from funnel.groups.posteriors import Bound
from funnel.guarantees.exact import capped_exp
from funnel.joint import FloatArray

# Standard deviations by which an output should be clear of the bound, so that few of them turn out not to be.
_CLEAR = 0.6
_HALVINGS = 20


@dataclass(frozen=True, eq=False)
class Foreseen:
    """How close outputs will come to a bound.

    Attributes
    ----------
    bound : Bound
    provers : float
        People who prove for each who makes.
    tail : float
        What each limit may miss.
    """

    bound: Bound
    provers: float
    tail: float

    def excess(self, people: FloatArray, most: FloatArray) -> FloatArray:
        """The largest ratio of each output over its limit, (k,); at most 1 where it will probably be proven.

        Parameters
        ----------
        people : ndarray, shape (k, c)
            Of those who make, by secret, how many are expected to have each output.
        most : ndarray, shape (k,)
            How likely the output is for anybody, at most.
        """
        counts = people * (self.provers / most)[:, None]
        prior, secrets = self.bound.prior, range(people.shape[1])
        worst = np.zeros(len(people))
        with np.errstate(divide="ignore", invalid="ignore"):
            for kind, budget in self.bound.sides.finite():
                limit = capped_exp(budget)
                for s in secrets:
                    if kind == "pairs":
                        ratios = []
                        for t in secrets:
                            if t != s:
                                high = self._upper(counts[:, s], counts[:, s] + counts[:, t])
                                before = float(prior.among(s, t)[0])
                                ratios.append(high / (1 - high) * (1 - before) / before)
                    elif kind == "up":
                        ratios = [self._upper(counts[:, s], counts.sum(axis=1)) / float(prior.share(s)[0])]
                    else:
                        rest = counts.sum(axis=1)
                        ratios = [float(prior.share(s)[1]) / (1 - self._upper(rest - counts[:, s], rest))]
                    for ratio in ratios:
                        worst = np.maximum(worst, np.nan_to_num(ratio, nan=np.inf, posinf=np.inf) / limit)
        return worst

    def cone(self, people: float, radius: float) -> FloatArray:
        """Conditions M, (k, c), with ``M π <= 0`` for posteriors π that so many people would probably prove.

        Parameters
        ----------
        people : float
            Who stand for an output.
        radius : float
            The share of the budget that may be used.
        """
        prior = self.bound.prior
        c = len(prior.counts)
        rows = []
        for kind, budget in self.bound.sides.finite():
            limit = capped_exp(budget * radius)
            for s in range(c):
                own = np.eye(c)[s]
                if kind == "up":
                    rows.append(own - self._largest_share(people, limit * float(prior.share(s)[0])))
                elif kind == "down":
                    rows.append(1 - self._largest_share(people, 1 - float(prior.share(s)[1]) / limit) - own)
                else:
                    for t in range(c):
                        if t != s:
                            before = float(prior.among(s, t)[0])
                            odds = limit * before / (1 - before)
                            both = people * (prior.counts[s] + prior.counts[t]) / sum(prior.counts)
                            share = self._largest_share(both, odds / (1 + odds))
                            rows.append((1 - share) * own - share * np.eye(c)[t])
        return np.array(rows)

    def _largest_share(self, trials: float, limit: float) -> float:
        """The largest share whose upper limit is within a limit."""
        if limit >= 1:
            return 1.0
        low, high = 0.0, max(limit, 0.0)
        for _ in range(_HALVINGS):
            share = (low + high) / 2
            within = self._upper(np.array([share * trials]), np.array([trials]))[0] <= limit
            low, high = (share, high) if within else (low, share)
        return low

    def _upper(self, successes: FloatArray, trials: FloatArray) -> FloatArray:
        """The upper limit of a share that is a little larger than what was seen."""
        from scipy.special import betaincinv

        share = np.where(trials > 0, successes / trials, 0.0)
        seen = np.minimum(successes + _CLEAR * np.sqrt(trials * share * (1 - share)), trials)
        limit = betaincinv(seen + 1, np.maximum(trials - seen, 1e-9), 1 - self.tail)
        return np.asarray(np.where(trials > seen, limit, 1.0))
