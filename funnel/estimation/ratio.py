"""Ratios of two linear functions of shares, such as means and shares within a part, with errors and intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from funnel.estimation.combined import CombinedFit
from funnel.estimation.fit import Fit, normal_quantile
from funnel.estimation.linear import Aimed
from funnel.joint import FloatArray, IntArray


class Ratio(NamedTuple):
    """An estimated ratio, its standard error and an interval; ratio and error are nan where it cannot be told."""

    value: float
    error: float
    lower: float
    upper: float


def ratio(aimed: Aimed, above: int, below: int, z: float, least: float, most: float) -> Ratio:
    """Of two functions that were estimated together.

    The interval is Fieller's (1954): all ratios from which the estimated difference is not significant. It holds also
    where few records are in the part, and is everything possible where it is not known that there are any.

    Parameters
    ----------
    aimed : Aimed
    above, below : int
        Which of its functions are divided.
    z : float
        Quantile of a standard normal distribution.
    least, most : float
        Between which the ratio is, whatever the shares are.
    """
    share = float(aimed.fitted[below])
    if not (aimed.told[above] and aimed.told[below]) or share <= 0:
        return Ratio(np.nan, np.nan, least, most)
    value = float(np.clip(aimed.fitted[above] / share, least, most))
    # What is above less this ratio of what is below, over that, is what the ratio is off.
    count: FloatArray = np.zeros(len(aimed.told))
    count[below] = 1.0
    difference = -value * count
    difference[above] += 1.0
    error = aimed.error(difference) / share
    x, y = float(difference @ aimed.unbiased), float(count @ aimed.unbiased)
    vxx, vxy, vyy = (
        float(u @ aimed.covariance @ v) for u, v in ((difference, difference), (difference, count), (count, count))
    )
    square = y * y - z * z * vyy
    surely = y - z * np.sqrt(max(0.0, vyy)) - aimed.off(count)
    if square <= 0 or surely <= 0:
        return Ratio(value, error, least, most)
    middle = x * y - z * z * vxy
    root = np.sqrt(max(0.0, middle * middle - square * (x * x - z * z * vxx)))
    off = aimed.off(difference) / surely + 1e-12 * (most - least)
    low, up = min(0.0, (middle - root) / square) - off, max(0.0, (middle + root) / square) + off
    return Ratio(value, error, float(np.clip(value + low, least, most)), float(np.clip(value + up, least, most)))


def shares_within(
    fit: Fit | CombinedFit,
    counts: IntArray,
    cell_of: IntArray,
    part_of_cell: IntArray,
    sampling: bool,
    confidence: float,
) -> list[Ratio]:
    """The share of every cell among the records of its part.

    Parameters
    ----------
    fit : Fit or CombinedFit
    counts : ndarray of int, shape (b,)
    cell_of : ndarray of int, shape (a,)
        The cell of every value.
    part_of_cell : ndarray of int, shape (cells,)
    sampling : bool
    confidence : float

    Notes
    -----
    O((cells + parts) a b), and the square of one part's cells at a time.
    """
    cells, z = len(part_of_cell), normal_quantile(confidence)
    found: list[Ratio | None] = [None] * cells
    for part in range(int(part_of_cell.max()) + 1):
        (inside,) = np.nonzero(part_of_cell == part)
        aims: FloatArray = np.zeros((len(inside) + 1, len(cell_of)))
        for row, cell in enumerate(inside):
            aims[row, cell_of == cell] = 1.0
        aims[-1] = aims.sum(axis=0)
        aimed = fit.aimed(counts, aims, sampling)
        for row, cell in enumerate(inside):
            found[cell] = ratio(aimed, row, len(inside), z, 0.0, 1.0)
    return [one for one in found if one is not None]
