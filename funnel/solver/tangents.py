"""Tangents: columns for a goal of which only value and slopes are known; and which pricer the goal of a region has."""

from __future__ import annotations

from funnel.errors import SolverError
from funnel.joint import FloatArray
from funnel.solver.budget import Budget
from funnel.solver.goal import SquaredMean, SumOfShares
from funnel.solver.pricing import Priced, Pricer
from funnel.solver.region import Region
from funnel.solver.slopes import SlopePricer


class TangentPricer(Pricer):
    """Climbs along the tangents of any convex goal; has the methods of `Pricer`, but for what bounds.

    The tangent of a convex function lies below it, so the best posterior along a tangent is at least as good as
    where it touches. A search that has to prove something needs a pricer of its goal's own.
    """

    def _slopes(self, posteriors: FloatArray) -> FloatArray:
        return self.region.goal.slopes(self.region.counts(posteriors))

    def search(self, prices: FloatArray, target: float) -> Priced:
        """Nothing: it would have to bound what it does not find.

        Raises
        ------
        SolverError
            Always.
        """
        raise SolverError("climbing along tangents bounds nothing; ask for columns without a proof")


def pricer_of(region: Region, budget: Budget | None = None) -> Pricer:
    """What finds and bounds columns of a region, as its goal needs it."""
    if isinstance(region.goal, SquaredMean):
        return SlopePricer(region, budget)
    return TangentPricer(region, budget) if isinstance(region.goal, SumOfShares) else Pricer(region, budget)
