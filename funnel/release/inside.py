"""Inside: a channel moved so far inside its bound that weights on a grid provably keep it, and how far that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from funnel.guarantees.base import ConeGuarantee
from funnel.guarantees.sided import over_set
from funnel.joint import FloatArray, IntArray, Joint
from funnel.protocol import DENOMINATOR, WORD_BITS, WeightArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Coefficients of the linear programme that is still tried: counted, so that every machine tries the same.
_LARGEST = 4_000_000
# How often half-spaces of the worst tables are added.
_ROUNDS = 20
# Of a programme whose rows are at most 1: below a step of the finest grid.
_PRECISE = 1e-10
# What a solver leaves so little below a whole step of the grid is that step.
_LEFT_BY_SOLVER = 2.0**-20
# The coarsest grid that weights are told on, and what of the distribution of the output may be mixed in beside its
# steps.
COARSEST_BITS, _MIXED_IN = 8, 2.0**-10


def moved_inside(joint: Joint, guarantee: ConeGuarantee, weights: WeightArray, bits: int) -> WeightArray | None:
    """The nearest channel of which every rounding to a grid keeps a bound, rounded to it; None where there is none.

    Parameters
    ----------
    joint : Joint
        Counts of (S, X), shape (c, a); with bounds where they are known up to noise.
    guarantee : ConeGuarantee
    weights : ndarray of uint64, shape (b, a)
        Of the channel W. What is zero stays zero, and what is not stays above.
    bits : int
        The grid is u = 2^-bits.

    Returns
    -------
    ndarray of uint64, shape (b, a), or None
        Whether it keeps the bound is for exact arithmetic to decide: the programme is solved in floats.

    Notes
    -----
    The linear programme: the least d such that some V has ``|V - W| <= d`` and, with columns that sum to one and on
    the support of W, ``V >= u`` and ``g V_y <= -u Σ_x |g_x|`` for every output y and row g of the cone, over the inputs
    that y may come from; and so for the gradient γ of I(X;Y) at W, ``Σ γ (V - W) <= -u Σ |γ|``: to first order no
    rounding tells more than W. Where the bound is one over all tables that noise leaves open, half-spaces of the worst
    of them are added for outputs that break it, and the programme is solved again.

    *Theorem 1.* The rounding of V by largest remainders has the support of W, meets every row of the cone, and is
    within d + u of W. *Proof.* Every entry becomes the step below or above, so it moves by less than u; a zero does not
    move, and what is u at least stays so. A row of the cone moves by ``|g E_y| <= u Σ |g_x|``, which V has in hand. ∎

    *Theorem 2.* Let δ be the depth of the support: the largest number such that some V* on it has ``V* >= δ``,
    ``g V*_y <= -δ Σ |g_x|`` and ``Σ γ (V* - W) <= -δ Σ |γ|``. If W keeps the bound and u <= δ, the programme has a
    solution, and d <= u / δ. *Proof.* ``(1 - u/δ) W + (u/δ) V*`` meets all conditions, since ``g W_y <= 0``, and is
    within u / δ of W. ∎

    So it ends on a fine grid wherever the support has any depth. It need not have: `far_inside`. The
    programme has O(b a c) coefficients, O(b a c²) under LDP.
    """
    cone = guarantee.cone(joint)
    ys, xs = np.nonzero(weights)
    if not cone.size or len(ys) * len(cone) > _LARGEST or (np.bincount(xs) > 2**bits).any():
        return None
    open_distributions = over_set(guarantee, joint)
    exact, step = weights[ys, xs] / np.float64(DENOMINATOR), 2.0**-bits
    rows = [_Rows(np.repeat(np.arange(len(weights)), len(cone)), np.tile(cone, (len(weights), 1)))]
    gradient = _gradient(joint, weights)[ys, xs]
    for _ in range(_ROUNDS):
        found = _nearest(ys, xs, exact, rows, gradient, step)
        if found is None:
            return None
        moved = np.zeros(weights.shape)
        moved[ys, xs] = found
        rounded = on_grid(moved, bits, _LEFT_BY_SOLVER)
        if open_distributions is None:
            return rounded
        spaces, of, _ = open_distributions.half_spaces(joint, rounded / np.float64(DENOMINATOR))
        if not len(of):
            return rounded
        rows.append(_Rows(of, spaces))
    return None


@dataclass(frozen=True, eq=False)
class _Rows:
    """Conditions ``g T_y <= 0``: outputs of shape (m,) and half-spaces of shape (m, a)."""

    outputs: IntArray
    spaces: FloatArray


def _nearest(
    ys: IntArray, xs: IntArray, exact: FloatArray, rows: Sequence[_Rows], gradient: FloatArray, step: float
) -> FloatArray | None:
    """The entries (k,) nearest to the exact ones for which every condition has a step of the grid in hand."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array, csr_array, diags_array, hstack, identity, vstack

    k, a = len(exact), int(xs.max()) + 1
    of, spaces = np.concatenate([one.outputs for one in rows]), np.vstack([one.spaces for one in rows])
    # The last condition is that on information.
    conditions = vstack([_by_entries(of, spaces, ys, xs), csr_array(gradient[np.newaxis])], format="csr")
    most = np.append(np.zeros(len(of)), gradient @ exact)
    size = abs(conditions).sum(axis=1)
    met = size > 0
    inside = hstack([diags_array(1 / size[met]) @ conditions[met], csr_array((int(met.sum()), 1))])
    one, off = identity(k, format="csr"), csr_array(-np.ones((k, 1)))
    # Stubs of scipy know no sparse conditions.
    solve: Any = linprog
    found = solve(
        np.append(np.zeros(k), 1.0),
        A_ub=vstack([inside, hstack([one, off]), hstack([-one, off])], format="csr"),
        b_ub=np.concatenate([most[met] / size[met] - step, exact, -exact]),
        A_eq=coo_array((np.ones(k), (xs, np.arange(k))), shape=(a, k + 1)).tocsr(),
        b_eq=np.ones(a),
        bounds=[*((step, 1.0) for _ in range(k)), (0.0, 1.0)],
        options={"primal_feasibility_tolerance": _PRECISE, "dual_feasibility_tolerance": _PRECISE},
    )
    return np.asarray(found.x[:k]) if found.status == 0 else None


def far_inside(
    joint: Joint, guarantee: ConeGuarantee, weights: WeightArray, bits: int, times: int
) -> WeightArray | None:
    """A channel of which a little is one constant distribution, on a grid; None where that would be all of it.

    Parameters
    ----------
    joint, guarantee, weights, bits
        As of `moved_inside`.
    times : int
        How often the share that theorem 3 asks for; more of it where information asks for more.

    Notes
    -----
    The result is ``m u + R``: R is ``(1 - b m u) W`` rounded down, with one step at least where W is not zero, and the
    largest weight of a column has what is left. What was zero is m steps then, everywhere the same.

    *Theorem 3.* Let κ be the largest ``Σ_x |g_x| / -Σ_x g_x`` of rows of a cone that has constant channels inside. With
    ``m >= b κ`` the bound holds for *every* channel W that keeps it, and the result is within ``b (m + 1) u`` of W.
    *Proof.* R is off by at most b u in each entry, so that with ``g W_y <= 0`` for each row
    ``g T_y <= m u Σ g_x + b u Σ |g_x| <= 0``. Entries move by at most ``b m u + b u``. ∎

    Of lifts between e^-ε and e^ε, and of ratios of two secrets up to e^ε, κ is at most ``(e^ε + 1) / (e^ε - 1)``,
    under every table of counts. On the finest grid a channel of b outputs is off by about ``b² 2^-27 / ε``.
    """
    cone = guarantee.cone(joint)
    cone = cone[np.abs(cone).any(axis=1)]
    inward = -cone.sum(axis=1)
    b, whole = len(weights), 1 << bits
    if not len(cone) or not (inward > 0).all():
        return None
    steps = math.ceil(b * float((np.abs(cone).sum(axis=1) / inward).max())) * times
    rest = whole - b * steps
    if rest <= b:
        return None
    exact = weights.astype(object)
    rounded = np.maximum(exact * rest // DENOMINATOR, (exact > 0).astype(object))
    columns, largest = np.arange(weights.shape[1]), weights.argmax(axis=0)
    rounded[largest, columns] += rest - rounded.sum(axis=0)
    if (rounded[largest, columns] < 1).any():
        return None
    return np.asarray(((rounded + steps) << (WORD_BITS - bits)).astype(np.uint64))


def steps_off(told: WeightArray, exact: WeightArray) -> float:
    """By how much weights differ at most, as a share: in whole steps of the grid that they are told on, rounded up.

    More of it would tell of the exact weights what the grid keeps back. Weights of fewer bits than the coarsest grid
    are so by chance, and no coarser ones.
    """
    furthest, unit = int(np.abs(told.astype(object) - exact.astype(object)).max()), _unit(told)
    return float(-(-furthest // unit) * unit / DENOMINATOR)


def is_near(told: WeightArray, exact: WeightArray) -> bool:
    """Whether weights are as near as a rounding to their grid would be, so that public counts can be held to them."""
    return bool(steps_off(told, exact) <= (len(told) + 1) * _unit(told) / DENOMINATOR + _MIXED_IN)


def _unit(told: WeightArray) -> int:
    return math.gcd(1 << (WORD_BITS - COARSEST_BITS), *told.ravel().tolist())


def _by_entries(of: IntArray, spaces: FloatArray, ys: IntArray, xs: IntArray) -> csr_array:
    """Conditions (m, a) on single outputs as conditions (m, k) on the entries of all."""
    from scipy.sparse import coo_array

    blocks = [np.ix_(np.flatnonzero(of == y), np.flatnonzero(ys == y)) for y in np.unique(of)]
    i, j = (np.concatenate([np.broadcast_arrays(*block)[axis].ravel() for block in blocks]) for axis in (0, 1))
    return coo_array((spaces[i, xs[j]], (i, j)), shape=(len(of), len(ys))).tocsr()


def _gradient(joint: Joint, weights: WeightArray) -> FloatArray:
    """Of I(X;Y) by the weights that are not zero, shape (b, a)."""
    matrix = weights / np.float64(DENOMINATOR)
    distribution = np.broadcast_to((matrix @ joint.p_input)[:, np.newaxis], matrix.shape)
    ratio = np.divide(matrix, distribution, out=np.ones_like(matrix), where=(matrix > 0) & (distribution > 0))
    return np.asarray(joint.p_input * np.log(ratio))


def on_grid(matrix: FloatArray, bits: int, below: float = 0.0) -> WeightArray:
    """Columns (b, a) that sum to one as multiples of 2^(63-bits) that sum to 2^63, by largest remainders.

    What is no more than a part ``below`` under a whole step is that step.
    """
    scaled = matrix * 2.0**bits
    steps = np.floor(scaled + below)
    for x, column in enumerate((scaled - steps).T):
        missing = round(2**bits - float(steps[:, x].sum()))
        steps[np.argsort(-column, kind="stable")[:missing], x] += 1
    return weights_of_steps(steps, bits)


def weights_of_steps(steps: FloatArray, bits: int) -> WeightArray:
    """Whole steps of a grid as weights."""
    return np.asarray(steps.astype(np.uint64) * np.uint64(2 ** (WORD_BITS - bits)))
