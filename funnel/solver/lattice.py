"""Channels that meet equations exactly: rows of whole numbers from the lattice of all solutions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from flint import fmpz_mat, nmod_mat

from funnel.guarantees.base import ConeGuarantee, Guarantee
from funnel.guarantees.events import secret_comparisons
from funnel.guarantees.several import parts_of
from funnel.guarantees.srlip import SRLIP
from funnel.joint import FloatArray, Joint
from funnel.protocol import DENOMINATOR, WORD_BITS, WeightArray
from funnel.rounding import silence_unseen

# Rows move towards one that says nothing by this share at first, and at most: far above the distance to a point of
# the lattice where the lattice is fine, and nothing that utility shows.
_FIRST_SHARE, _LARGEST_SHARE = 2.0**-52, 2.0**-10
# Rows whose entries are all this small join another, if nothing else helps.
_FAINT = (0.0, 1e-8, 1e-6, 1e-4)
_PRIME = 2**61 - 1
# Makes a combination that does not solve the equations longer than any that does.
_PENALTY_BITS = 80


def exact_channel(joint: Joint, guarantee: ConeGuarantee, matrix: FloatArray) -> WeightArray:
    """Integer weights near a channel, every row of which makes the secret and the output independent exactly.

    Perfect privacy is a set of linear equations with integer coefficients (PF, ε = 0): ``Σ_x n[s,x] T_x / n_s =
    Σ_x n_x T_x / n``, for SRLIP also given x_J. Their integer solutions form a lattice, whose reduced basis (LLL) is
    short against 2^63 unless there are many secrets; each row is moved to a point of it nearby. The row with all
    weights equal is a solution, so the last row, what the others leave of 2^63, is one as well.

    Parameters
    ----------
    joint : Joint
        Counts of (S, X), shape (c, a).
    guarantee : ConeGuarantee
        With budget 0.
    matrix : ndarray, shape (b, a)
        A channel that meets the equations up to rounding.

    Returns
    -------
    ndarray of uint64, shape (b', a)
        Weights that meet the guarantee exactly; one output that says nothing where no finer channel fits 2^63.
    """
    seen = np.flatnonzero(joint.counts.any(axis=0))
    basis = _reduced(_independent(_equations(joint, guarantee)[:, seen]), len(seen))
    rows = matrix[:, seen]
    distribution = joint.p_input[seen]
    keep = rows @ distribution > 0
    rows = rows[keep]
    # The most probable output takes what the others leave.
    rows = rows[np.argsort(rows @ distribution, kind="stable")]
    weights = (
        _channel_on(rows, distribution, basis) if len(basis) > 1 else np.full((1, len(seen)), DENOMINATOR, dtype=object)
    )
    full = np.full((len(weights), joint.counts.shape[1]), 0, dtype=np.uint64)
    full[:, seen] = weights.astype(np.uint64)
    # Any channel column will do for an input that never occurs; it is replaced by the marginal.
    full[-1, [x for x in range(full.shape[1]) if x not in set(seen.tolist())]] = DENOMINATOR
    return silence_unseen(joint, full)


def exact_rows(joint: Joint, guarantee: ConeGuarantee, matrix: FloatArray) -> WeightArray | None:
    """`exact_channel` for an invariant channel T (n, n) over the values that occur: every row keeps its place.

    No row can join another, since each keeps its share of the records up to the distance to a point of the lattice.

    Returns
    -------
    ndarray of uint64, shape (n, n) or None
        None where no channel nearby fits 2^63.
    """
    counts = joint.counts.sum(axis=0)
    seen = np.flatnonzero(counts)
    distribution = joint.p_input[seen]
    order = np.argsort(distribution, kind="stable")
    basis = _reduced(_independent(_equations(joint, guarantee)[:, seen]), len(seen))
    points = _moved_points(matrix[order], distribution, basis, np.ones(len(seen) - 1, dtype=bool))
    if points is None:
        return None
    weights = np.empty_like(points)
    weights[order] = points
    return weights.astype(np.uint64)


def _equations(joint: Joint, guarantee: ConeGuarantee) -> np.ndarray[tuple[int, ...], np.dtype[np.object_]]:
    """Integer rows E, shape (k, a), such that a row T of a channel tells nothing iff E T = 0."""
    return np.vstack([_part_equations(joint, part) for part in parts_of(guarantee)])


def _part_equations(joint: Joint, guarantee: Guarantee) -> np.ndarray[tuple[int, ...], np.dtype[np.object_]]:
    compared = guarantee.comparisons(joint) if isinstance(guarantee, SRLIP) else secret_comparisons(joint)
    counts = compared.counts.astype(object)
    sizes = counts.sum(axis=1)
    part, whole = compared.part, compared.whole
    equations = counts[part] * sizes[whole, None] - counts[whole] * sizes[part, None]
    labels = guarantee.label_equations(joint) if isinstance(guarantee, SRLIP) else equations[:0]
    return np.vstack([equations, labels.astype(object)])


def _independent(
    equations: np.ndarray[tuple[int, ...], np.dtype[np.object_]],
) -> np.ndarray[tuple[int, ...], np.dtype[np.object_]]:
    """As many of the equations as are linearly independent, found modulo a large prime (never too few solutions)."""
    if not len(equations):
        return equations
    residues = [[int(value) % _PRIME for value in column] for column in equations.T]
    reduced, rank = nmod_mat(residues, _PRIME).rref()
    pivots = [next(k for k in range(reduced.ncols()) if int(reduced[i, k])) for i in range(rank)]
    chosen = equations[pivots]
    return np.asarray(chosen)


def _reduced(
    equations: np.ndarray[tuple[int, ...], np.dtype[np.object_]], size: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.object_]]:
    """A reduced basis of the integer vectors that solve the equations, shape (d, a)."""
    identity = np.eye(size, dtype=np.int64).astype(object)
    if not len(equations):
        return identity
    largest = max(abs(int(value)) for value in equations.ravel())
    stacked = np.hstack([identity, equations.T * 2 ** (_PENALTY_BITS + largest.bit_length())])
    reduced = fmpz_mat([[int(value) for value in row] for row in stacked]).lll()
    rows = np.array([[int(value) for value in row] for row in reduced.tolist()], dtype=object)
    return np.asarray(rows[~(rows[:, size:] != 0).any(axis=1), :size])


def _channel_on(
    rows: FloatArray, distribution: FloatArray, basis: np.ndarray[tuple[int, ...], np.dtype[np.object_]]
) -> np.ndarray[tuple[int, ...], np.dtype[np.object_]]:
    """Non-negative points of the lattice, summing to 2^63, near the rows of a channel; faint rows join the last.

    A row that is known to fewer digits than it is small has no point of the lattice nearby that is not negative.
    """
    for faint in _FAINT:
        points = _moved_points(rows, distribution, basis, rows[:-1].max(axis=1) > faint)
        if points is not None:
            return np.asarray(points[(points > 0).any(axis=1)])
    return np.full((1, len(distribution)), DENOMINATOR, dtype=object)


def _moved_points(
    rows: FloatArray,
    distribution: FloatArray,
    basis: np.ndarray[tuple[int, ...], np.dtype[np.object_]],
    kept: npt.NDArray[np.bool_],
) -> np.ndarray[tuple[int, ...], np.dtype[np.object_]] | None:
    """The kept rows (b - 1,) moved towards constant ones until points of the lattice nearby are not negative.

    The last row is what they leave of 2^63; None where they would have to move too far.
    """
    short = basis.astype(np.float64)
    ones = np.ones((1, len(distribution)))
    coordinates, constant = (np.linalg.lstsq(short.T, part.T, rcond=None)[0].T for part in (rows, ones))
    average = rows @ distribution
    share = _FIRST_SHARE
    while share <= _LARGEST_SHARE:
        moved = np.asarray((1 - share) * coordinates + share * average[:, None] * constant, dtype=np.float64)[:-1][kept]
        # Most shares are ruled out without big integers.
        if (moved @ short >= 0).all():
            candidate = _points(moved, basis)
            if (candidate >= 0).all():
                return candidate
        share *= 4
    return None


def _points(
    coordinates: FloatArray, basis: np.ndarray[tuple[int, ...], np.dtype[np.object_]]
) -> np.ndarray[tuple[int, ...], np.dtype[np.object_]]:
    """The points of the lattice nearest to 2^63 times these, and what they leave of 2^63 as the last."""
    whole = np.array(
        [[int(value) for value in row] for row in np.rint(np.ldexp(coordinates, WORD_BITS))], dtype=object
    ).reshape(len(coordinates), len(basis))
    points = whole @ basis if len(whole) else np.zeros((0, basis.shape[1]), dtype=object)
    return np.vstack([points, DENOMINATOR - points.sum(axis=0, keepdims=True)])
