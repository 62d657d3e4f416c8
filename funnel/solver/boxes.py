"""Boxes: the open parts of a branch and bound search, kept in arrays, and how a part is cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from funnel.joint import FloatArray
from funnel.solver.batch import Bases
from funnel.solver.bounds import box_terms

Slots = npt.NDArray[np.intp]
# Tableaux of open boxes are kept up to this size; boxes beyond start from the root's.
_MEMORY = 1.5e8
# So many are kept however large they are.
_LEAST = 8
_HALVINGS = 14


class OpenBoxes:
    """Open boxes with the bounds and bases they inherit; the best are taken first.

    Parameters
    ----------
    root : Bases
        Basis of the whole region, N = 1: what a box starts from whose own basis was not kept.
    counted : int
        d, the dimension of a box.
    """

    def __init__(self, root: Bases, counted: int) -> None:
        self._lower = np.zeros((0, counted))
        self._upper = np.zeros((0, counted))
        self._bound = np.zeros(0)
        # The slot each box's basis is in; the root's is never given away.
        self._slot = np.zeros(0, dtype=np.intp)
        self._kept = root
        self._users = np.ones(1, dtype=np.intp)
        # The largest bound of a box that is not worth cutting any further.
        self.closed = -np.inf
        self._most = max(_LEAST, int(_MEMORY / (8 * root.table[0].size)))

    def __len__(self) -> int:
        return len(self._bound)

    @property
    def bound(self) -> float:
        """The largest bound of an open box; minus infinity if none is open."""
        return float(self._bound.max()) if len(self._bound) else -np.inf

    def close(self, bound: FloatArray) -> None:
        """Leave boxes with these bounds (N,) as they are."""
        self.closed = max(self.closed, float(bound.max(initial=-np.inf)))

    def put(self, lower: FloatArray, upper: FloatArray, bound: FloatArray, bases: Bases, of: Slots) -> None:
        """Add boxes, shape (N, d), with their bounds (N,); box k starts from basis ``of[k]`` of these."""
        used, which = np.unique(of, return_inverse=True)
        slots = self._room(len(used))
        stored = slots > 0
        for kept, new in zip(self._arrays(self._kept), self._arrays(bases), strict=True):
            kept[slots[stored]] = new[used[stored]]
        self._users += np.bincount(slots[which], minlength=len(self._users))
        self._lower = np.concatenate([self._lower, lower])
        self._upper = np.concatenate([self._upper, upper])
        self._bound = np.concatenate([self._bound, bound])
        self._slot = np.concatenate([self._slot, slots[which]])

    def take(self, most: int) -> tuple[FloatArray, FloatArray, FloatArray, Bases]:
        """Remove and return the boxes of largest bounds, of which some are open: lower, upper, bounds, bases."""
        number = min(most, len(self))
        # Of thousands of open boxes few are taken: they are found without sorting all, the first of equal ones first.
        first = len(self) - number
        least = np.partition(self._bound, first)[first]
        above, equal = np.flatnonzero(self._bound > least), np.flatnonzero(self._bound == least)
        best = np.sort(np.concatenate([above, equal[: number - len(above)]]))
        best = best[np.argsort(-self._bound[best], kind="stable")]
        rest = np.delete(np.arange(len(self)), best)
        slots = self._slot[best]
        taken = self._lower[best], self._upper[best], self._bound[best], self._kept[slots]
        self._users -= np.bincount(slots, minlength=len(self._users))
        self._lower, self._upper, self._bound = self._lower[rest], self._upper[rest], self._bound[rest]
        self._slot = self._slot[rest]
        return taken

    def _room(self, number: int) -> Slots:
        """Slots for so many bases: free ones, more as they are needed, the root's when memory is full."""
        free = np.flatnonzero(self._users == 0)
        size = len(self._users)
        if len(free) < number and size < self._most:
            more = min(max(size, number), self._most - size)
            arrays = self._arrays(self._kept)
            self._kept = Bases(*(np.concatenate([one, np.empty((more, *one.shape[1:]), one.dtype)]) for one in arrays))
            self._users = np.concatenate([self._users, np.zeros(more, dtype=np.intp)])
            free = np.flatnonzero(self._users == 0)
        slots = np.zeros(number, dtype=np.intp)
        slots[: len(free)] = free[:number]
        return slots

    @staticmethod
    def _arrays(bases: Bases) -> tuple[npt.NDArray[Any], ...]:
        return bases.table, bases.basic, bases.nonbasic


def trimmed(rho: FloatArray, lower: FloatArray, upper: FloatArray, slack: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Cut off the ends of boxes (N, d) that the multipliers prove to stay below the target.

    Moving one coordinate from its best end loses some of its term ``f(v) + ρ v``; where the loss exceeds the slack
    (N,), the bound is below the target. The chord lies above the convex term, so cutting where the chord does is safe.
    """
    at_low = xlogy(lower, lower) + rho * lower
    at_high = xlogy(upper, upper) + rho * upper
    loss = at_low - at_high
    width = upper - lower
    # The share of the width that may stay, from the better end; a hair more for rounding.
    share = slack[:, None] * (1 + 1e-9) / np.maximum(np.abs(loss), slack[:, None]) + 1e-12
    keep = np.minimum(share, 1.0) * width
    new_upper = np.where(loss > 0, np.minimum(lower + keep, upper), upper)
    new_lower = np.where(loss < 0, np.maximum(upper - keep, lower), lower)
    return new_lower, new_upper


def hole(
    rho: FloatArray, lower: FloatArray, upper: FloatArray, slack: FloatArray
) -> tuple[FloatArray, FloatArray, npt.NDArray[np.bool_]]:
    """Open intervals inside [l, u] where ``v ln v + ρ v`` is more than the slack below its best end; all shapes (N,).

    Returns the ends of the intervals and whether there is one.
    """
    level = box_terms(rho, lower, upper) - slack * (1 + 1e-9) - 1e-13
    bottom = np.clip(np.exp(np.minimum(-1.0 - rho, 1.0)), lower, upper)
    exists = (xlogy(bottom, bottom) + rho * bottom < level) & (bottom > lower) & (bottom < upper)
    # Both ends in one stack; the inside stays proven below the level, so the interval is never too wide.
    inside = np.concatenate([bottom, bottom])
    outside = np.concatenate([lower, upper])
    rho2, level2 = np.concatenate([rho, rho]), np.concatenate([level, level])
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        below = xlogy(middle, middle) + rho2 * middle < level2
        inside, outside = np.where(below, middle, inside), np.where(below, outside, middle)
    left, right = inside[: len(rho)], inside[len(rho) :]
    return left, right, exists & (left < right)
