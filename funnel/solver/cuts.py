"""Cuts: what is known so far of a guarantee over many distributions, as a region that the optimiser can search."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from funnel.guarantees.over_distributions import SetGuarantee
from funnel.guarantees.rldp import RLDP
from funnel.guarantees.worst_case import Neighbourhood
from funnel.joint import FloatArray, IntArray, Joint
from funnel.protocol import DENOMINATOR, WeightArray
from funnel.solver.budget import Budget
from funnel.solver.goal import ENTROPY, Goal
from funnel.solver.parts import PartsPricer
from funnel.solver.pricing import Pricer
from funnel.solver.region import Region
from funnel.solver.slopes import pricer_of
from funnel.solver.split import Split, channel_of, value_of

Flags = npt.NDArray[np.bool_]

# A row that breaks a half-space by less than this share meets it: what is left is moved inside at the end.
SPACED = 1e-9
# How far inside a row is moved besides, as a share of the average row: more than rounding takes.
_INSIDE = 1e-10
_SHRINKINGS = 8
# Half-spaces added for one output and round: those that it breaks most.
_WORST = 3
# More than any ratio that more than rounding apart from the average row needs to be moved by.
_FAR = 1e6


@dataclass(frozen=True, eq=False)
class SetProblem:
    """The best channel under a guarantee over a set of distributions.

    Attributes
    ----------
    read : Joint
        The joint distribution (c, a) over what the channel reads.
    guarantee : SetGuarantee
    seen : ndarray of bool, shape (a,)
        The inputs that are told apart; all others get the marginal of these, so that they reveal nothing.
    image : ndarray, shape (d, inputs that are told apart), optional
        What the utility counts of a posterior, if not all of it.
    goal : Goal
        The convex function of what is counted.
    """

    read: Joint
    guarantee: SetGuarantee
    seen: Flags
    image: FloatArray | None = None
    goal: Goal = ENTROPY

    @classmethod
    def of(cls, read: Joint, guarantee: SetGuarantee, goal: Goal = ENTROPY) -> SetProblem:
        """Telling all inputs apart that occur, and counting them as they are."""
        return cls(read, guarantee, np.asarray(read.p_input > 0), None, goal)

    @cached_property
    def distribution(self) -> FloatArray:
        """What posteriors over the inputs that are told apart average to."""
        distribution = self.read.p_input[self.seen]
        return np.asarray(distribution / distribution.sum())

    @cached_property
    def near(self) -> Neighbourhood:
        """F around the counts, where the guarantee is over F."""
        assert isinstance(self.guarantee, RLDP)
        return self.guarantee.neighbourhood(self.read)

    def counts(self, posteriors: FloatArray) -> FloatArray:
        """What the utility counts of posteriors (k, seen); shape (k, d)."""
        return posteriors if self.image is None else np.asarray(posteriors @ self.image.T)

    def gains(self, posteriors: FloatArray) -> FloatArray:
        """g of posteriors (k, seen); shape (k,)."""
        return self.goal.gains(self.counts(posteriors))

    def region(self, rows: FloatArray) -> Region:
        """The posteriors of rows T (k, seen) of a channel with ``rows T <= 0``."""
        return Region.of(rows / self.distribution, self.distribution, self.image, self.goal)

    def channel(self, split: Split) -> FloatArray:
        """The channel (b, a) of a split over the inputs that are told apart."""
        return channel_of(split.posteriors, split.mass, self.distribution, self.seen)

    def value_of(self, weights: WeightArray) -> float:
        """``Σ P(y) g(v_y)`` of weights (b, a)."""
        return value_of(weights, self.read.p_input, self.seen, self.gains)

    def posteriors(self, weights: WeightArray) -> FloatArray:
        """Posteriors (b, seen) of the outputs of weights (b, a)."""
        masses = (weights / np.float64(DENOMINATOR))[:, self.seen] * self.distribution
        masses = masses[masses.any(axis=1)]
        return np.asarray(masses / masses.sum(axis=1, keepdims=True))

    def on_seen(self, spaces: FloatArray) -> FloatArray:
        """Half-spaces (m, a) as they are on rows over the inputs that are told apart: (m, seen)."""
        rest = spaces[:, ~self.seen].sum(axis=1, keepdims=True)
        return np.asarray(spaces[:, self.seen] + rest * self.distribution)

    def whole(self, rows: FloatArray) -> FloatArray:
        """Rows (k, seen) over all inputs: (k, a)."""
        full = np.empty((len(rows), len(self.seen)))
        full[:, self.seen] = rows
        full[:, ~self.seen] = (rows @ self.distribution)[:, None]
        return full


class Cuts(ABC):
    """Half-spaces that hold for every row that meets a guarantee over a set; more are added as rows break them.

    Parameters
    ----------
    problem : SetProblem
    """

    def __init__(self, problem: SetProblem) -> None:
        self.problem = problem

    @abstractmethod
    def __len__(self) -> int:
        """How many there are."""

    @abstractmethod
    def pricer(self, budget: Budget) -> Pricer | PartsPricer:
        """What finds and bounds columns of the relaxation that these cuts make."""

    @abstractmethod
    def add(self, rows: FloatArray) -> int:
        """Cut off the rows (k, seen) that break the guarantee; how many cuts that took."""

    def broken(self, rows: FloatArray, margin: float = 0.0) -> tuple[FloatArray, IntArray, FloatArray]:
        """Half-spaces (m, seen) that rows (k, seen) break, which row each is of, and by what share.

        Parameters
        ----------
        rows : ndarray, shape (k, seen)
        margin : float
            The half-spaces are those of a budget that is smaller by this share.
        """
        problem = self.problem
        guarantee = problem.guarantee.tightened(margin) if margin else problem.guarantee
        spaces, of, by = guarantee.half_spaces(problem.read, problem.whole(rows))
        apart = by > SPACED
        return problem.on_seen(spaces[apart]), of[apart], by[apart]

    def inside(self, posteriors: FloatArray) -> FloatArray:
        """Posteriors (k, seen) moved towards p_X until they meet the guarantee, not further; (k', seen), k' <= k.

        A half-space G of any distribution takes the same value at the average row, so ``(1 - t) T + t`` meets it from
        ``t = G T / (G T - G 1)`` on, and the distribution that is worst for T stays the worst.
        """
        moved, distribution = posteriors, self.problem.distribution
        for _ in range(_SHRINKINGS):
            spaces, of, by = self.broken(moved / distribution)
            if not len(of):
                return moved
            over, average = (spaces * (moved / distribution)[of]).sum(axis=1), spaces.sum(axis=1)
            # Over counts the worst distribution is not always found: what floats bound is taken for what it would
            # break.
            over = np.where(over > 0, over, (1 - average) * np.minimum(by, _FAR))
            share = np.zeros(len(moved))
            np.maximum.at(share, of, np.where(average < 0, over / np.maximum(over - average, 1e-300), 1.0))
            share = np.where(share > 0, np.minimum(share + _INSIDE, 1.0), 0.0)[:, None]
            moved = (1 - share) * moved + share * distribution
        _, of, _ = self.broken(moved / distribution)
        return np.asarray(np.delete(moved, np.unique(of), axis=0))


class PlainCuts(Cuts):
    """Cuts as half-spaces on rows, whatever the guarantee."""

    def __init__(self, problem: SetProblem) -> None:
        super().__init__(problem)
        self._spaces = problem.on_seen(problem.guarantee.starting_cone(problem.read))

    def __len__(self) -> int:
        return len(self._spaces)

    @property
    def region(self) -> Region:
        """The posteriors that these cuts allow."""
        return self.problem.region(self._spaces)

    def pricer(self, budget: Budget) -> Pricer:
        """Of one region."""
        return pricer_of(self.region, budget)

    def add(self, rows: FloatArray) -> int:
        """The half-spaces that each row breaks most."""
        spaces, of, by = self.broken(rows)
        cutting = (spaces * rows[of]).sum(axis=1) > SPACED * np.abs(spaces).max(axis=1, initial=0.0)
        spaces, of, by = spaces[cutting], of[cutting], by[cutting]
        order = np.lexsort((-by, of))
        rank = np.arange(len(order)) - np.searchsorted(of[order], of[order])
        worst = order[rank < _WORST]
        self._spaces = np.vstack([self._spaces, spaces[worst]])
        return len(worst)
