"""Extreme distributions over boxes: what may be moved goes to the largest or the smallest entries first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.guarantees.exact import half_sums
from funnel.joint import FloatArray, IntArray
from funnel.protocol import WeightArray

Places = npt.NDArray[np.intp]
Rows = npt.NDArray[np.floating[Any]] | npt.NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True, eq=False)
class Filled:
    """Whole numbers n with ``lower <= n <= upper`` along each row of entries, filled in one order of the entries.

    Attributes
    ----------
    order : ndarray of int, shape (..., u)
        Places of the entries, first to be filled first.
    required : ndarray of int64, shape (..., u)
        Along the order: what there is when the total is the least that is allowed.
    optional : ndarray of int64, shape (..., u)
        Along the order: what may be added besides until the total is the largest that is allowed.
    """

    order: Places
    required: IntArray
    optional: IntArray

    def table(self, taken: Places | int) -> IntArray:
        """The numbers at their places, with the optional part of the first ``taken`` (...) entries along the order."""
        first = np.arange(self.order.shape[-1]) < np.asarray(taken)[..., None]
        along = self.required + np.where(first, self.optional, 0)
        table = np.zeros(along.shape, dtype=np.int64)
        np.put_along_axis(table, np.broadcast_to(self.order, along.shape), along, axis=-1)
        return table


def filled(order: Places, lower: IntArray, upper: IntArray, least: npt.ArrayLike, most: npt.ArrayLike) -> Filled:
    """Fill up to the least total, and see what may follow up to the largest.

    Parameters
    ----------
    order : ndarray of int, shape (..., u)
    lower, upper : ndarray of int64, shape (..., u)
        At the places, not along the order; ``Σ lower <= least <= most <= Σ upper``.
    least, most : int64, shape (...)
    """
    shape = np.broadcast_shapes(order.shape, lower.shape)
    order = np.broadcast_to(order, shape)
    base = np.take_along_axis(np.broadcast_to(lower, shape), order, axis=-1)
    room = np.take_along_axis(np.broadcast_to(upper, shape), order, axis=-1) - base
    before = np.cumsum(room, axis=-1) - room
    start = base.sum(axis=-1)
    needed = (np.asarray(least) - start)[..., None]
    allowed = (np.asarray(most) - start)[..., None]
    taken = np.clip(needed - before, 0, room)
    return Filled(order, base + taken, np.clip(allowed - before, 0, room) - taken)


def ranked(rows: Rows, downwards: bool) -> Places:
    """Places of the entries of each row (..., u) by size; equal ones in any order."""
    order = np.argsort(rows, axis=-1, kind="stable")
    return np.ascontiguousarray(order[..., ::-1]) if downwards else order


def along(rows: Rows, order: Places) -> FloatArray:
    """Entries of rows (..., u) along an order, as floats."""
    return np.take_along_axis(np.broadcast_to(rows, order.shape), order, axis=-1).astype(np.float64)


def exact_sum(numbers: IntArray, weights: WeightArray) -> int:
    """``Σ numbers weights`` of whole numbers (u,) that add up to at most 2^32, and weights (u,) of at most 2^63."""
    high, low = half_sums(numbers[None], weights[None])
    return (int(high[0, 0]) << 32) + int(low[0, 0])
