"""Shares within parts of the records that the protocol itself draws, such as degrees among women."""

from __future__ import annotations

import numpy as np

from funnel.estimation.combined import CombinedFit
from funnel.estimation.fit import Fit, normal_quantile
from funnel.estimation.ratio import Ratio, ratio
from funnel.joint import FloatArray, IntArray


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
