"""Binning: cut points that are found for a column of numbers, where the spec says ``bins = "auto"``.

Partitions of the column into intervals tell much of it and little of the secret; those are chosen that are few, and of
which the certified optimum tells nearly as much as of many. Where noise protects the frequencies, cut points are a
function of the declared range (`funnel.settings.numbers.NumberSettings`), and this module has no part in it: nothing of
the source may.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import xlogy

from funnel.errors import FunnelError
from funnel.guarantees import LIP
from funnel.guarantees.base import ConeGuarantee, Guarantee
from funnel.guarantees.robust_guarantee import Robust
from funnel.joint import FloatArray, IntArray, Joint
from funnel.measures.utilities import INFORMATION, Utility, Variance
from funnel.progress import Progress, quiet
from funnel.solver.optimum import optimal

# Cells of quantiles that intervals are made of, at most.
MOST_CELLS = 64
# How much a nat of the secret costs.
WEIGHTS = (0.0, 0.25, 1.0, 4.0, 16.0)


@dataclass(frozen=True, eq=False)
class Cells:
    """Records of every secret in consecutive cells of numbers.

    Attributes
    ----------
    counts : ndarray of int64, shape (c, m)
    sums : ndarray, shape (m,)
        Sum of the numbers of the records of each cell.
    squares : float
        Sum of the squared differences of all numbers from their mean.
    firsts : tuple of numbers, length m
        The least number of each cell.
    """

    counts: IntArray
    sums: FloatArray
    squares: float
    firsts: tuple[int | float, ...]

    @classmethod
    def of(cls, numbers: tuple[int | float, ...], counts: IntArray, most: int = MOST_CELLS) -> Self:
        """Quantile cells of rising numbers (k) with counts (c, k).

        A cell begins at the least number below which there are at least j of ``most`` equal parts of the records, for
        every j; so no cell is empty.
        """
        below = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
        n = int(below[-1])
        begins = np.unique([np.searchsorted(below[:-1] * most, j * n) for j in range(most)])
        begins = begins[begins < len(numbers)]
        values = np.array(numbers, dtype=np.float64)
        records = counts.sum(axis=0)
        mean = float(values @ records) / n
        return cls(
            np.add.reduceat(counts, begins, axis=1),
            np.add.reduceat((values - mean) * records, begins),
            float((values - mean) ** 2 @ records),
            tuple(numbers[place] for place in begins.tolist()),
        )

    def __len__(self) -> int:
        return len(self.firsts)

    def edges(self, cuts: tuple[int, ...]) -> tuple[int | float, ...]:
        """The edges of intervals that begin at these cells."""
        return tuple(self.firsts[cut] for cut in cuts)

    def scores(self, weight: float, by_variance: bool) -> FloatArray:
        """What an interval of cells i to j - 1 adds, shape (m + 1, m + 1); -inf where there is none.

        ``told - weight · q D(p(S|interval) ‖ p(S))``, where told is ``-q ln q``, or the interval's part of the variance
        between intervals. Summed over intervals that is I(X;B) - weight · I(S;B), or the share of the variance that B
        explains less the same: the Lagrangian of the privacy funnel, whose first term is what is told where the bound
        does not bind, and whose second is why it would.
        """
        ends = np.concatenate([np.zeros((len(self.counts), 1)), np.cumsum(self.counts, axis=1)], axis=1)
        n = ends[:, -1].sum()
        inside = (ends[:, None, :] - ends[:, :, None]) / n
        q = inside.sum(axis=0)
        prior = self.counts.sum(axis=1) / n
        known = prior > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            secret = xlogy(inside, inside)[known].sum(axis=0) - xlogy(q, q)
            secret -= (inside[known] * np.log(prior[known])[:, None, None]).sum(axis=0)
            sums = np.concatenate([[0.0], np.cumsum(self.sums)])
            between = (sums[None, :] - sums[:, None]) ** 2 / (q * n) / max(self.squares, 1e-300)
            told = between if by_variance else -xlogy(q, q)
            found = told - weight * secret
        return np.asarray(np.where(q > 0, found, -np.inf))


def best_cuts(scores: FloatArray, number: int) -> tuple[int, ...]:
    """Where all but the first of so many intervals begin, with the largest sum of scores; dynamic programming, O(k m²).

    Parameters
    ----------
    scores : ndarray, shape (m + 1, m + 1)
    number : int
        Of intervals, at most m.
    """
    best, froms = scores[0].copy(), []
    for _ in range(number - 1):
        through = best[:, None] + scores
        froms.append(through.argmax(axis=0))
        best = through.max(axis=0)
    place, cuts = len(scores) - 1, []
    for came in reversed(froms):
        place = int(came[place])
        cuts.append(place)
    return tuple(reversed(cuts))


def partitions(cells: Cells, number: int, by_variance: bool) -> Iterator[tuple[int, ...]]:
    """Partitions into so many intervals, the best for every weight of the secret, each once."""
    found: set[tuple[int, ...]] = set()
    for weight in WEIGHTS:
        cuts = best_cuts(cells.scores(weight, by_variance), number)
        if cuts not in found:
            found.add(cuts)
            yield cuts


# Numbers of intervals that are tried.
NUMBERS = (2, 3, 4, 5, 6, 7, 8, 10, 12)
# The least share of what the best of all tells that is enough.
ENOUGH = 0.95
# Seconds of work, and the share of all there is, that the optimum of each may take and leave.
_SECONDS, _GAP = 1.0, 1e-3


@dataclass(frozen=True)
class Tried:
    """A partition that was tried.

    Attributes
    ----------
    cuts : tuple of int
        Cells at which all but the first of its intervals begin.
    told : float
        What the optimum tells of the numbers: I(X;Y) in nats, or the share of their variance that is explained.
    bound : float
        No protocol that reads these intervals, under this guarantee, tells more.
    """

    cuts: tuple[int, ...]
    told: float
    bound: float


def chosen_edges(
    cells: Cells, guarantee: Guarantee, by_variance: bool, progress: Progress = quiet
) -> tuple[int | float, ...]:
    """Edges of the fewest intervals with which 95 % of what any partition that was tried tells is told.

    What the optimum under a bound tells cannot be told before it is found, and is no sum over intervals. So dynamic
    programming over quantile cells proposes partitions by a sum that is near it (`Cells.scores`), for several numbers
    of intervals and weights of the secret, and the optimum of every one is found, with its certificate.

    Parameters
    ----------
    cells : Cells
    guarantee : Guarantee
        Where it is over a set of distributions, the same for the counts alone; where it is no cone, LIP of the same
        budget.
    by_variance : bool
        Whether the variance that is explained counts, instead of information.
    progress : callable

    Notes
    -----
    At most 45 optima over 12 values of X, of a second of work each.
    """
    if len(cells) == 1:
        return ()
    found: list[Tried] = []
    tried = list(_proposed(cells, by_variance))
    for done, cuts in enumerate(tried):
        progress("choosing bins", done, len(tried))
        found.append(assessed(cells, cuts, _nominal(guarantee), by_variance))
    enough = ENOUGH * max(one.told for one in found)
    best = min((one for one in found if one.told >= enough), key=lambda one: (len(one.cuts), -one.told))
    return cells.edges(best.cuts)


def _proposed(cells: Cells, by_variance: bool) -> Iterator[tuple[int, ...]]:
    for number in sorted({min(number, len(cells)) for number in NUMBERS}):
        yield from partitions(cells, number, by_variance)


def _nominal(guarantee: Guarantee) -> Guarantee:
    nominal = guarantee.nominal if isinstance(guarantee, Robust) else guarantee
    return nominal if isinstance(nominal, ConeGuarantee) else LIP(nominal.budget)


def assessed(cells: Cells, cuts: tuple[int, ...], guarantee: Guarantee, by_variance: bool) -> Tried:
    """A partition with the optimum over its intervals; nothing is told where that cannot be found."""
    begins = np.array([0, *cuts])
    counts = np.add.reduceat(cells.counts, begins, axis=1)
    names = [str(k) for k in range(len(begins))]
    joint = Joint.from_counts(counts, inputs=names)
    utility: Utility = INFORMATION
    scale = 1.0
    if by_variance:
        means = np.add.reduceat(cells.sums, begins) / counts.sum(axis=0)
        utility = Variance(dict(zip(names, means.tolist(), strict=True)))
        # Of the variance within an interval nothing is told.
        scale = float(means**2 @ counts.sum(axis=0)) / cells.squares if cells.squares > 0 else 0.0
    whole = utility.whole(joint)
    try:
        best = optimal(joint, guarantee, _GAP * max(whole, _GAP), _SECONDS, utility=utility)
    except FunnelError:
        return Tried(cuts, 0.0, scale * whole)
    return Tried(cuts, scale * best.utility, scale * best.bound)
