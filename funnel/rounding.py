"""From a float channel to integer weights that provably meet a guarantee."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from funnel.alphabet import Alphabet
from funnel.errors import InfeasibleGuarantee, SolverError, SpecError
from funnel.guarantees.base import Guarantee
from funnel.guarantees.exact import secret_output
from funnel.joint import Joint
from funnel.protocol import DENOMINATOR, WORD_BITS, FloatArray, Protocol, WeightArray, exact_sums
from funnel.sparse_weights import Places, SparseWeights

# Repair by mixing is for misses by a hair; a channel that needs more was not made for this guarantee.
LARGEST_REPAIR = 2.0**-16
_FIRST_REPAIR = 2.0**-52
# Of probabilities that were written with a few digits.
_WRITTEN = 1e-3
_FEW_STEPS, _MANY_STEPS = 3, 30
# Entries a solver leaves at its own tolerance, and outputs so rare for every input that they are of no use.
_DUST = 1e-14
_FAINT = 1e-9


def integer_weights(matrix: FloatArray) -> WeightArray:
    """Round a channel to weights whose columns sum to exactly 2^63.

    Each entry keeps all the bits a float has; what a column lacks goes to its largest entry, a relative change
    of about 2^-50.

    Parameters
    ----------
    matrix : ndarray of float64, shape (b, a)
        Columns summing to 1 within 1e-6; zeros stay zeros.

    Raises
    ------
    SolverError
        If it is not a channel.
    """
    if not np.isfinite(matrix).all() or (matrix < -1e-9).any():
        raise SolverError("the optimiser returned a matrix that is not a channel (negative or not finite)")
    clipped = np.maximum(matrix, 0.0)
    sums = clipped.sum(axis=0)
    if (np.abs(sums - 1) > 1e-6).any():
        raise SolverError("the optimiser returned a matrix that is not a channel (a column does not sum to 1)")
    # No entry is above the sum of its column, rounded or not.
    weights = np.ldexp(clipped / sums, WORD_BITS).astype(np.uint64)
    return _balanced(weights)


def protocol_from_matrix(
    joint: Joint, matrix: FloatArray, mechanism: str = "pram", outputs: Alphabet | None = None
) -> Protocol:
    """A protocol from transition probabilities that others made, such as those of PRAM, so that it can be judged.

    Parameters
    ----------
    joint : Joint
        Counts (c, a) of the secret and of what the matrix reads.
    matrix : ndarray, shape (b, a)
        P(published y | true x) at row y and column x, in the order of ``joint.inputs``: the transpose of a PRAM matrix,
        whose rows are true values.
    mechanism : str
        A name for it.
    outputs : Alphabet, optional
        The b published values; by default those of ``joint.inputs``.

    Raises
    ------
    SpecError
        If it is no matrix of the outputs and inputs, or a column is no distribution.

    Examples
    --------
    >>> import funnel, numpy as np
    >>> from funnel.rounding import protocol_from_matrix
    >>> joint = funnel.Joint.from_counts([[300, 60], [100, 300]], inputs=["low", "high"])
    >>> pram = protocol_from_matrix(joint, np.array([[0.9, 0.2], [0.1, 0.8]]))
    >>> funnel.LIP(1.0).holds(joint, pram), pram.matrix.round(3).tolist()
    (True, [[0.9, 0.2], [0.1, 0.8]])
    """
    given, a, published = np.asarray(matrix, dtype=np.float64), len(joint.inputs), outputs or joint.inputs
    if given.shape != (shape := (len(published), a)):
        raise SpecError(f"a transition matrix of {a} values has the shape {shape}, and this one has {given.shape}")
    if not np.isfinite(given).all() or (given < 0).any() or (np.abs(given.sum(axis=0) - 1) > _WRITTEN).any():
        raise SpecError(
            "a column of a transition matrix is no distribution; transpose a matrix whose rows are true values"
        )
    weights = integer_weights(given / given.sum(axis=0))
    return Protocol(weights, marginal_weights(joint, weights), joint.inputs, published, mechanism)


def _balanced(weights: WeightArray) -> WeightArray:
    largest = weights.argmax(axis=0).tolist()
    for x, (place, total) in enumerate(zip(largest, exact_sums(weights), strict=True)):
        weights[place, x] = int(weights[place, x]) + DENOMINATOR - total
    return weights


def sparse_integer_weights(
    outputs: Places, inputs: Places, values: FloatArray, shape: tuple[int, int]
) -> SparseWeights:
    """`integer_weights` of a channel (b, a) given by its entries that are not zero, every pair once.

    Raises
    ------
    SolverError
        If it is not a channel.
    """
    if not np.isfinite(values).all() or (values < 0).any():
        raise SolverError("the optimiser returned a matrix that is not a channel (negative or not finite)")
    sums = np.bincount(inputs, weights=values, minlength=shape[1])
    if (np.abs(sums - 1) > 1e-6).any():
        raise SolverError("the optimiser returned a matrix that is not a channel (a column does not sum to 1)")
    weights = np.ldexp(values / sums[inputs], WORD_BITS).astype(np.uint64)
    # What a column lacks goes to its largest entry, the first of the entries in this order.
    order = np.lexsort((np.arange(len(weights)), -weights.astype(np.float64), inputs))
    _, first = np.unique(inputs[order], return_index=True)
    totals = SparseWeights.of_entries(outputs, inputs, weights, shape).sums_by_input()
    largest = order[first]
    weights[largest] = [
        int(weight) + DENOMINATOR - total for weight, total in zip(weights[largest].tolist(), totals, strict=True)
    ]
    return SparseWeights.of_entries(outputs, inputs, weights, shape)


def sparse_rounded_weights(
    joint: Joint, outputs: Places, inputs: Places, masses: FloatArray, number: int
) -> SparseWeights:
    """Integer weights (number, a) of a channel given by its masses P(x, y) that are not zero; every input occurs.

    Raises
    ------
    SolverError
        If it is not a channel.
    """
    return sparse_integer_weights(outputs, inputs, masses / joint.p_input[inputs], (number, len(joint.inputs)))


def marginal_weights(joint: Joint, weights: WeightArray | SparseWeights) -> WeightArray:
    """Distribution q of the output as weights summing to 2^63, shape (b,); exact up to one unit per output."""
    masses, counts = output_masses(joint, weights)
    distribution = [mass // sum(counts) for mass in masses]
    distribution[max(range(len(distribution)), key=distribution.__getitem__)] += DENOMINATOR - sum(distribution)
    return np.array(distribution, dtype=np.uint64)


def output_masses(joint: Joint, weights: WeightArray | SparseWeights) -> tuple[list[int], list[int]]:
    """Σ_x n(x) w(y, x) of every output, exactly, and the n(x): what is believed of inputs, in whole numbers."""
    if joint.parts is not None and not isinstance(weights, SparseWeights):
        believed = joint.believed.sum(axis=0)
        return (weights.astype(object) @ believed).tolist(), believed.tolist()
    counts = joint.counts.sum(axis=0)
    if isinstance(weights, SparseWeights):
        return [int(mass) for mass in weights.masses(counts)], counts.tolist()
    return [int(mass) for mass in secret_output(counts[None], weights)[0]], counts.tolist()


def silence_unseen(joint: Joint, weights: WeightArray) -> WeightArray:
    """Give inputs of probability zero the marginal as their column: they reveal nothing (METHOD section 8)."""
    unseen = joint.counts.sum(axis=0) == 0
    if not unseen.any():
        return weights
    silenced = weights.copy()
    silenced[:, unseen] = marginal_weights(joint, weights)[:, None]
    return silenced


def mix(weights: WeightArray, marginal: WeightArray, share: float) -> WeightArray:
    """(1 - share) Q + share q 1ᵀ in integers: every row moves towards one that says nothing, so every level falls."""
    part = round(share * DENOMINATOR)
    mixed = (weights.astype(object) * (DENOMINATOR - part) + marginal.astype(object)[:, None] * part) // DENOMINATOR
    return _balanced(mixed.astype(np.uint64))


def rounded_weights(joint: Joint, matrix: FloatArray) -> WeightArray:
    """Integer weights (b', a), b' <= b, of a channel (b, a) as a solver left it: without dust, unseen inputs silenced.

    Raises
    ------
    SolverError
        If it is not a channel.
    """
    return silence_unseen(joint, integer_weights(_without_dust(matrix, joint.p_input > 0)))


def proven_weights(
    joint: Joint,
    guarantee: Guarantee,
    matrix: FloatArray,
    largest_repair: float = LARGEST_REPAIR,
    holds: Callable[[WeightArray], bool] | None = None,
) -> WeightArray:
    """Integer weights near a channel for which the guarantee holds exactly (METHOD section 8).

    Parameters
    ----------
    joint : Joint
        The joint distribution (c, a) of secret and what the channel reads.
    guarantee : Guarantee
    matrix : ndarray of float64, shape (b, a)
        A channel that meets the guarantee up to numerical error.
    largest_repair : float
        Largest share of the marginal to mix in; with 1, every channel can be repaired, at the price of its utility.
    holds : callable, optional
        Decides whether weights meet the guarantee; it may say no where that would take too long to decide.

    Returns
    -------
    ndarray of uint64, shape (b', a), b' <= b
        Verified weights. A channel that misses by a hair is mixed with its marginal, by the smallest share that
        passes (up to an eighth, or to 2^-30 where it is large). For ε = 0 a channel that misses becomes one output.

    Raises
    ------
    InfeasibleGuarantee
        If the channel misses the guarantee by more than numerical error.
    """
    if holds is None:
        holds = partial(guarantee.holds_for, joint)
    weights = rounded_weights(joint, matrix)
    if holds(weights):
        return weights
    marginal = marginal_weights(joint, weights)
    if guarantee.is_perfect:
        # Perfect privacy is a set of equations: mixing comes closer to them for ever, and never arrives.
        return np.full((1, weights.shape[1]), DENOMINATOR, dtype=np.uint64)
    share, lower = _FIRST_REPAIR, 0.0
    while not holds(repaired := mix(weights, marginal, share)):
        if share >= largest_repair:
            level = guarantee.level_for(joint, weights).value
            raise InfeasibleGuarantee(f"the protocol reaches level {level:.9g}, not {guarantee}", level)
        lower, share = share, min(2 * share, largest_repair)
    for _ in range(_FEW_STEPS if share <= LARGEST_REPAIR else _MANY_STEPS):
        middle = (lower + share) / 2
        if holds(mixed := mix(weights, marginal, middle)):
            share, repaired = middle, mixed
        else:
            lower = middle
    if not guarantee.holds_for(joint, repaired):
        raise SolverError(f"the repaired protocol does not meet {guarantee}; this is a defect, please report it")
    return silence_unseen(joint, repaired)


def _without_dust(matrix: FloatArray, seen: npt.NDArray[np.bool_]) -> FloatArray:
    """Drop entries a solver left at its own tolerance: they would count as ways to produce an output.

    A whole output that faint is joined to another instead. Every guarantee is a convex cone, so the sum of two rows
    that meet it meets it too, while dropping some entries of a row could make it reveal a secret for certain.
    """
    faint = matrix[:, seen].max(axis=1) < _FAINT
    rows = matrix[~faint]
    for row in matrix[faint]:
        # Preferably to one that all its inputs can produce anyway.
        fits = ((rows > _DUST) | (row <= _DUST)).all(axis=1)
        rows[np.lexsort((rows.sum(axis=1), fits))[-1]] += row
    return np.where(rows < _DUST, 0.0, rows)
