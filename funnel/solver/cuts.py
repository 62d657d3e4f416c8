"""Cuts: what is known so far of a guarantee over infinitely many laws, as a region that the optimiser can search."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
import numpy.typing as npt

from funnel.guarantees.binomial_limits import UNIT
from funnel.guarantees.exact import capped_exp
from funnel.guarantees.law_box import LawBox
from funnel.guarantees.over_laws import SetGuarantee
from funnel.guarantees.reading import reads_secret, stacked
from funnel.joint import FloatArray, IntArray, Joint
from funnel.solver.budget import Budget
from funnel.solver.cells import Limits
from funnel.solver.goal import ENTROPY, Entropy, Goal
from funnel.solver.parts import PartsPricer
from funnel.solver.pricing import Pricer
from funnel.solver.region import Region
from funnel.solver.slopes import pricer_of
from funnel.solver.threshold_pricing import ThresholdPricer

Flags = npt.NDArray[np.bool_]

# A row that breaks a half-space by less than this share meets it: what is left is moved inside at the end.
_SPACED = 1e-9
# How far inside a row is moved besides, as a share of the average row: more than rounding takes.
_INSIDE = 1e-10
_SHRINKINGS = 8
# Half-spaces added for one output and round: those that it breaks most.
_WORST = 3
# More than any ratio that more than rounding apart from the average row needs to be moved by.
_FAR = 1e6
# Where limits leave more of a law open, and there are so many inputs, rows are searched by its thresholds: boxes of
# posteriors of fewer inputs close soon.
_OPEN, _MANY_INPUTS = 0.5, 8
# Laws nearer than this are one.
_SAME = 1e-12


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
        apart = by > _SPACED
        return self.on_seen(spaces[apart]), of[apart], by[apart]

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
        cutting = (spaces * rows[of]).sum(axis=1) > _SPACED * np.abs(spaces).max(axis=1, initial=0.0)
        spaces, of, by = spaces[cutting], of[cutting], by[cutting]
        order = np.lexsort((-by, of))
        rank = np.arange(len(order)) - np.searchsorted(of[order], of[order])
        worst = order[rank < _WORST]
        self._spaces = np.vstack([self._spaces, spaces[worst]])
        return len(worst)


class LevelCuts(Cuts):
    """Cuts of robust LDP, law by law instead of pair by pair.

    ``hi_s <= e^ε lo_t`` for all s ≠ t, where hi_s is the largest P(y|s) over the set and lo_t the least. Let t* have
    the least lo, m, and let n be the least of the others. Then the conditions say no more than ``hi_s <= e^ε m`` for
    s ≠ t* and ``hi_t* <= e^ε n``, with ``lo_t >= n`` for t ≠ t*. So the cone is the union, over t*, of regions with the
    levels m and n as variables, in which a law of one secret is one condition, not one with every law of every other.
    A secret whose laws are all laws of another one never has a lo below that one's: it needs no region.
    """

    def __init__(
        self,
        read: Joint,
        guarantee: SetGuarantee,
        image: FloatArray | None,
        seen: Flags | None = None,
        goal: Goal = ENTROPY,
    ) -> None:
        super().__init__(read, guarantee, image, seen, goal)
        self._limit = capped_exp(guarantee.sides.pairs)
        self._pricer: PartsPricer | None = None
        self._laws = guarantee.laws(read)
        self._secrets = np.flatnonzero(self._laws.possible)
        self._high: list[list[FloatArray]] = [[] for _ in range(self._laws.shape[0])]
        self._low: list[list[FloatArray]] = [[] for _ in range(self._laws.shape[0])]
        # Some law of each to begin with: those of a row that says nothing.
        average = np.ones((1, len(self.law)))
        for s in self._secrets.tolist():
            self._add(self._high[s], average, s, True)
            self._add(self._low[s], average, s, False)

    def __len__(self) -> int:
        return sum(len(laws) for laws in (*self._high, *self._low))

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

    @cached_property
    def _widest(self) -> tuple[int, Limits] | None:
        """The secret whose limits leave most open, and these; None where others are searched by boxes."""
        # Thresholds bound the entropy; the square of a mean has a search of its own.
        if not isinstance(self._laws, LawBox) or not isinstance(self.goal, Entropy) or reads_secret(self.read):
            return None
        if len(self.law) < _MANY_INPUTS:
            return None
        secret = int(self._secrets[self._laws.lower[self._secrets].sum(axis=1).argmin()])
        lower, upper = self._laws.lower[secret] / UNIT, self._laws.upper[secret] / UNIT
        if not self.seen.all():
            lower, upper = (np.append(side[self.seen], side[~self.seen].sum()) for side in (lower, upper))
        limits = Limits(lower, upper)
        return (secret, limits) if limits.ordered and limits.free > _OPEN else None

    @property
    def least(self) -> list[int]:
        """The secrets that may have the least lo: all but those whose laws another one has too."""
        secrets = self._secrets.tolist()
        if reads_secret(self.read):
            # Each secret has entries of its own then.
            return secrets
        wider = self._laws.wider
        # Of several with the same laws the first.
        return [t for t in secrets if not any(wider[s, t] and (s < t or not wider[t, s]) for s in secrets if s != t)]

    def _region(self, least: int, but: int | None = None) -> Region:
        """The region where lo of one secret is at most the others': levels m, and n in units of e^ε.

        but: a secret whose laws are left out.
        """
        rows = []
        for s in self._secrets.tolist():
            if s == but:
                continue
            for law in self._high[s]:
                rows.append(np.concatenate([law / self.law, self._levels(s == least, -self._limit)]))
            for law in self._low[s]:
                rows.append(np.concatenate([-law / self.law, self._levels(s != least, 1.0)]))
        rows.append(np.concatenate([np.zeros(len(self.law)), [1.0, -self._limit]]))
        return Region.with_levels(np.array(rows), self.law, 2, self.image, self.goal)

    def _levels(self, second: bool, by: float) -> FloatArray:
        return np.array([0.0, by * self._limit] if second else [by, 0.0])

    def add(self, rows: FloatArray) -> int:
        """The laws of the pair that each row breaks most."""
        high, low = self._laws.given(stacked(self.read, self.whole(rows)))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.nan_to_num(high[:, :, None] / low[:, None, :], nan=0.0, posinf=np.inf)
        same = np.arange(ratios.shape[1])
        ratios[:, same, same] = 0.0
        ratios[:, ~self._laws.possible] = 0.0
        ratios[:, :, ~self._laws.possible] = 0.0
        added = 0
        for row, apart in zip(rows, ratios, strict=True):
            s, t = np.unravel_index(int(apart.argmax()), apart.shape)
            if apart[s, t] > self._limit * (1 + _SPACED):
                added += self._add(self._high[s], row[None], int(s), True)
                added += self._add(self._low[t], row[None], int(t), False)
        return added

    def _add(self, known: list[FloatArray], row: FloatArray, secret: int, upward: bool) -> int:
        stack = stacked(self.read, self.whole(row))
        law = self._laws.given_laws(stack, np.array([secret]), upward)[0]
        full = np.zeros(len(self.seen))
        if reads_secret(self.read):
            full.reshape(self._laws.shape)[secret] = law
        else:
            full[:] = law
        new = self.on_seen(full[None])[0]
        if any(float(np.abs(new - old).max()) < _SAME for old in known):
            return 0
        known.append(new)
        return 1


def cuts_for(
    read: Joint,
    guarantee: SetGuarantee,
    image: FloatArray | None,
    seen: Flags | None = None,
    goal: Goal = ENTROPY,
) -> Cuts:
    """Law by law where only pairs of secrets are compared, else as half-spaces."""
    sides = guarantee.sides
    pairs = sides.up == sides.down == np.inf and 0 < sides.pairs < np.inf
    return (LevelCuts if pairs else PlainCuts)(read, guarantee, image, seen, goal)
