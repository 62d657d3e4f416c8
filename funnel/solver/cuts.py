"""Cuts: what is known so far of a guarantee over infinitely many laws, as a region that the optimiser can search."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from funnel.guarantees.over_distributions import SetGuarantee
from funnel.joint import FloatArray, IntArray, Joint
from funnel.solver.budget import Budget
from funnel.solver.goal import ENTROPY, Goal
from funnel.solver.parts import PartsPricer
from funnel.solver.pricing import Pricer
from funnel.solver.region import Region
from funnel.solver.slopes import pricer_of
from funnel.solver.split import Split, channel_of

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


class Cuts(ABC):
    """Half-spaces that hold for every row that meets a guarantee over a set of laws; more are added as rows break them.

    Rows T are over the inputs that occur. An input that never occurred gets the marginal, so that it reveals nothing:
    its share of a law goes to the average row.

    Parameters
    ----------
    read : Joint
        The joint law (c, a) over what the channel reads.
    guarantee : SetGuarantee
    image : ndarray, shape (d, inputs that occur), optional
        What the utility counts of a posterior.
    seen : ndarray of bool, shape (a,), optional
        The inputs that are told apart, by default those that occur; all others get the marginal of these.
    goal : Goal
        The convex function of what is counted.
    """

    def __init__(
        self,
        read: Joint,
        guarantee: SetGuarantee,
        image: FloatArray | None,
        seen: Flags | None = None,
        goal: Goal = ENTROPY,
    ) -> None:
        self.read, self.guarantee, self.image, self.goal = read, guarantee, image, goal
        self.seen: Flags = np.asarray(read.p_input > 0) if seen is None else seen
        law = read.p_input[self.seen]
        self.law: FloatArray = law / law.sum()

    @abstractmethod
    def __len__(self) -> int:
        """How many there are."""

    def gains(self, posteriors: FloatArray) -> FloatArray:
        """g of posteriors (k, seen); shape (k,)."""
        return self.goal.gains(posteriors if self.image is None else posteriors @ self.image.T)

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
        guarantee = self.guarantee.tightened(margin) if margin else self.guarantee
        spaces, of, by = guarantee.half_spaces(self.read, self.whole(rows))
        apart = by > SPACED
        return self.on_seen(spaces[apart]), of[apart], by[apart]

    def channel(self, split: Split) -> FloatArray:
        """The channel (b, a) of a split over the inputs that are told apart."""
        return channel_of(split.posteriors, split.mass, self.law, self.seen)

    def whole(self, rows: FloatArray) -> FloatArray:
        """Rows over all inputs: (k, a)."""
        full = np.empty((len(rows), len(self.seen)))
        full[:, self.seen] = rows
        full[:, ~self.seen] = (rows @ self.law)[:, None]
        return full

    def on_seen(self, spaces: FloatArray) -> FloatArray:
        """Half-spaces (m, a) as they are on rows over the inputs that occur: (m, seen)."""
        rest = spaces[:, ~self.seen].sum(axis=1, keepdims=True)
        return np.asarray(spaces[:, self.seen] + rest * self.law)

    def inside(self, posteriors: FloatArray) -> FloatArray:
        """Posteriors (k, seen) moved towards p_X until they meet the guarantee, not further; (k', seen), k' <= k.

        A half-space G of any law takes the same value at the average row, so ``(1 - t) T + t`` meets it from
        ``t = G T / (G T - G 1)`` on, and the law that is worst for T stays the worst.
        """
        moved = posteriors
        for _ in range(_SHRINKINGS):
            spaces, of, by = self.broken(moved / self.law)
            if not len(of):
                return moved
            over, average = (spaces * (moved / self.law)[of]).sum(axis=1), spaces.sum(axis=1)
            # Over counts the worst law is not always found: what floats bound is taken for what it would break.
            over = np.where(over > 0, over, (1 - average) * np.minimum(by, _FAR))
            share = np.zeros(len(moved))
            np.maximum.at(share, of, np.where(average < 0, over / np.maximum(over - average, 1e-300), 1.0))
            share = np.where(share > 0, np.minimum(share + _INSIDE, 1.0), 0.0)[:, None]
            moved = (1 - share) * moved + share * self.law
        _, of, _ = self.broken(moved / self.law)
        return np.asarray(np.delete(moved, np.unique(of), axis=0))


class PlainCuts(Cuts):
    """Cuts as half-spaces on rows, whatever the guarantee."""

    def __init__(
        self,
        read: Joint,
        guarantee: SetGuarantee,
        image: FloatArray | None,
        seen: Flags | None = None,
        goal: Goal = ENTROPY,
    ) -> None:
        super().__init__(read, guarantee, image, seen, goal)
        self._spaces = self.on_seen(guarantee.starting_cone(read))

    def __len__(self) -> int:
        return len(self._spaces)

    @property
    def region(self) -> Region:
        """The posteriors that these cuts allow."""
        return Region.of(self._spaces / self.law, self.law, self.image, self.goal)

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
