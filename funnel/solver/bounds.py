"""Upper bounds that hold whatever the linear programming solver's tolerances were, with margins for rounding."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from funnel.joint import FloatArray
from funnel.solver.region import DATA_ERROR, Region

_UNIT = 2.0**-53


def rounding_margin(region: Region, duals: FloatArray, prices: FloatArray) -> FloatArray:
    """What rounding, of the arithmetic and of the data, can take off bounds evaluated with these multipliers.

    A sum of k products is off by at most k unit roundoffs times the sum of their sizes; the coordinates of w and of v
    each sum to 1, so the largest coordinate's error counts once (twice with an image). An error of `DATA_ERROR` in a
    scaled condition shifts the bound by that much times its multiplier.

    Parameters
    ----------
    region : Region
    duals : ndarray, shape (N, rows of the system)
    prices : ndarray
        The linear part of the objective.
    """
    sizes = np.abs(duals)
    columns = sizes @ np.abs(region.system)
    last = columns.shape[1] - region.levels
    # Levels are at most 1 each, not together.
    terms = columns[:, :last].max(axis=1) + columns[:, last:].sum(axis=1)
    terms += float(np.abs(prices).max()) + sizes.sum(axis=1) + 40.0
    operations = duals.shape[1] + region.inputs + region.counted + 8
    return np.asarray(2 * operations * _UNIT * terms + DATA_ERROR * sizes[:, region.equalities :].sum(axis=1))


def conditions_value(region: Region, duals: FloatArray) -> FloatArray:
    """Σ_k max(y_k floor_k, y_k ceiling_k): the most that multipliers y of any sign leave of the conditions; (N,)."""
    return np.asarray(np.maximum(duals * region.ceiling, duals * region.floor).sum(axis=1))


def box_terms(rho: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """max over [l, u] of v ln v + ρ v, coordinate by coordinate: convex, so at an end."""
    return np.maximum(xlogy(lower, lower) + rho * lower, xlogy(upper, upper) + rho * upper)


def priced_bounds(
    region: Region, prices: FloatArray, duals: FloatArray, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Numbers that g(w) - λ·v does not exceed on the region where l <= w <= u (METHOD section 8, third bullet).

    For any multipliers y of the conditions the Lagrangian separates into one convex term ``w ln w + ρ w`` per
    coordinate, whose maximum over the box is at an end. The chord of METHOD section 3 takes the same value there, so
    with optimal multipliers this is the value of the chord programme; with others it is larger, never wrong.

    Parameters
    ----------
    region : Region
    prices : ndarray, shape (a,)
        λ.
    duals : ndarray, shape (N, rows of the system)
    lower, upper : ndarray, shape (N, d)
        Boxes of w.

    Returns
    -------
    bounds : ndarray, shape (N,)
    rho : ndarray, shape (N, d)
    margins : ndarray, shape (N,)
        What of the bounds is there for rounding only.
    """
    pulled = duals @ region.system
    d = region.counted
    value = conditions_value(region, duals)
    pulled, of_levels = pulled[:, : pulled.shape[1] - region.levels], pulled[:, pulled.shape[1] - region.levels :]
    if region.levels:
        value = value + np.maximum(-of_levels, 0.0).sum(axis=1)
    if region.image is None:
        rho = -prices - pulled
    else:
        rho = -pulled[:, :d]
        value = value + np.maximum(-prices - pulled[:, d:], 0.0).sum(axis=1)
    margins = rounding_margin(region, duals, prices)
    return value + box_terms(rho, lower, upper).sum(axis=1) + margins, rho, margins


def linear_bounds(
    region: Region, costs: FloatArray, duals: FloatArray, lower: FloatArray, upper: FloatArray
) -> FloatArray:
    """Numbers that cost·(w, v) does not exceed on the region within boxes of the variables, all (N, n); shape (N,)."""
    residual = costs - duals @ region.system
    value = conditions_value(region, duals) + np.maximum(residual * lower, residual * upper).sum(axis=1)
    return np.asarray(value + rounding_margin(region, duals, costs))


def proven_empty(region: Region, rays: FloatArray, lower: FloatArray, upper: FloatArray) -> npt.NDArray[np.bool_]:
    """Which multipliers (Farkas) prove that no point of the region is in their box of the variables; shape (N,)."""
    size = np.abs(rays).sum(axis=1)
    usable = np.isfinite(size) & (size > 0)
    scaled = np.where(usable[:, None], rays, 0.0) / np.where(usable, size, 1.0)[:, None]
    none = np.zeros_like(lower)
    return np.asarray(usable & (linear_bounds(region, none, scaled, lower, upper) < 0))
