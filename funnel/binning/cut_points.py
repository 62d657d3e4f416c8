"""The choice of cut points: few intervals of which the certified optimum tells nearly as much as of many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from funnel.binning.partitions import Cells, partitions
from funnel.errors import FunnelError
from funnel.guarantees import LIP
from funnel.guarantees.base import ConeGuarantee, Guarantee
from funnel.guarantees.robust_guarantee import Robust
from funnel.joint import Joint
from funnel.measures.utilities import INFORMATION, Utility, Variance
from funnel.progress import Progress, quiet
from funnel.solver.optimum import optimal

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
