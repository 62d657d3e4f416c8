"""Library: the channels that histories are drawn from, as whole numbers, and what they come to for all people."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from funnel.errors import SolverError
from funnel.history.exact_distribution import WholeNumbers
from funnel.history.observed import Observed
from funnel.joint import FloatArray, IntArray
from funnel.protocol import DENOMINATOR, WORD_BITS, WeightArray

# Entries that a solver leaves at its own tolerance, and outputs so rare for every input that they are of no use.
_DUST = 1e-14
_FAINT = 1e-7
# Numbers held at once while many channels are summed up.
_ENTRIES = 1 << 22


def integer_library(rows: FloatArray) -> WeightArray:
    """Channels as weights whose columns sum to exactly 2^63; (n, b, a) floats to (n, b, a).

    An output that is faint for every input joins the likeliest one of its channel: conditions on rows are cones, so the
    sum of two rows that meet them meets them too.

    Raises
    ------
    SolverError
        If something is no channel.
    """
    sums = rows.sum(axis=1)
    if not np.isfinite(rows).all() or (rows < -1e-6).any() or (np.abs(sums - 1) > 1e-6).any():
        raise SolverError("the programme of a history returned rows that are no channel; please report it")
    kept = np.where(rows < _DUST, 0.0, rows)
    faint = kept.max(axis=2) < _FAINT
    likeliest = kept.sum(axis=2).argmax(axis=1)
    every = np.arange(len(rows))
    kept[every, likeliest] += np.where(faint[:, :, None], kept, 0.0).sum(axis=1)
    kept[faint] = 0.0
    kept /= kept.sum(axis=1, keepdims=True)
    return balanced(np.ldexp(np.minimum(kept, 1.0), WORD_BITS).astype(np.uint64))


def balanced(weights: WeightArray) -> WeightArray:
    """Weights (n, b, a) whose columns miss 2^63 by little, with what is missing added to the largest of each column."""
    largest = weights.argmax(axis=1)[:, None, :]
    # Unsigned sums wrap around at 2^64, and so does what is missing: the difference is right nevertheless.
    missing = np.uint64(DENOMINATOR) - weights.sum(axis=1, keepdims=True, dtype=np.uint64)
    filled = weights.copy()
    np.put_along_axis(filled, largest, np.take_along_axis(filled, largest, axis=1) + missing, axis=1)
    return filled


def with_constants(weights: WeightArray, constants: FloatArray) -> WeightArray:
    """(R + q 1ᵀ) / (1 + Σ_y q_y) of channels (n, b, a) and q >= 0, (n, b), as whole numbers again.

    What an output says comes closer to what is known anyway, the more q it gets; others say what they said.
    """
    rows = np.ldexp(weights.astype(np.float64), -WORD_BITS)
    rows += constants[:, :, None]
    rows /= rows.sum(axis=1, keepdims=True)
    return balanced(np.ldexp(np.minimum(rows, 1.0), WORD_BITS).astype(np.uint64))


def constant_channels(outputs: IntArray, b: int, a: int) -> WeightArray:
    """Channels (n, b, a) that always publish one output each."""
    weights = np.zeros((len(outputs), b, a), dtype=np.uint64)
    weights[np.arange(len(outputs)), outputs] = DENOMINATOR
    return weights


def distinct_channels(library: WeightArray, drawn_from: IntArray) -> tuple[WeightArray, IntArray]:
    """Only the channels that are drawn from, each once, in the order of the histories; and which each history has."""
    numbers: dict[bytes, int] = {}
    kept: list[int] = []
    of_channel = np.full(len(library), -1, dtype=np.int64)
    for channel in dict.fromkeys(drawn_from.tolist()):
        content = library[channel].tobytes()
        if content not in numbers:
            numbers[content] = len(kept)
            kept.append(channel)
        of_channel[channel] = numbers[content]
    return library[kept], of_channel[drawn_from]


def effective_weights(observed: Observed, library: WeightArray, channels: IntArray) -> WeightArray:
    """W(y|x) = Σ_h P(h|x) R(y|x, h) with the shares that histories have among the people of each input, (b, a).

    Parameters
    ----------
    observed : Observed
        Counts of people by history and input: what they add up to counts here, whatever is published of it.
    library : ndarray of uint64, shape (m, b, a)
    channels : ndarray of int64
        The channel of every entry of ``observed``.

    Returns
    -------
    ndarray of uint64, shape (b, a)
        Rounded by less than a unit of 2^-63, but for the largest of a column, which has what is missing. Inputs that
        nobody has get the distribution of the output, and so do people who are forgotten; where noise hides who has
        what, they get what all people would be drawn from.
    """
    joint = observed.counted_joint
    n = joint.counts.sum(axis=0)
    silent = np.zeros(len(n), dtype=np.int64) if observed.silent is None else observed.silent
    sums = spoken_weights(observed, library, channels)
    sizes = np.maximum(n, 1).astype(object)
    speaking = joint.n - int(silent.sum())
    if silent.any() and speaking:
        # The distribution of the output of all others is that of everybody then: who is forgotten draws from it.
        distribution = np.asarray(balanced((sums.sum(axis=1) // speaking).astype(np.uint64)[None, :, None])[0, :, 0])
        sums = sums + distribution.astype(object)[:, None] * silent.astype(object)[None, :]
    elif silent.any():
        # Nobody else: any row that tells nothing will do.
        sums[0] = DENOMINATOR * n.astype(object)
    weights = (sums // sizes).astype(np.uint64)
    if (n == 0).any() and observed.totals is not None:
        # Noise hides that nobody has an input, and what its people would be drawn from is no more telling.
        shares = _people(observed, channels, len(library)).sum(axis=1).astype(object)
        for x in np.flatnonzero(n == 0).tolist():
            column = (library[:, :, x].astype(object) * shares[:, None]).sum(axis=0) // max(1, int(shares.sum()))
            weights[:, x] = column.astype(np.uint64)
    elif (n == 0).any():
        weights[:, n == 0] = (sums.sum(axis=1) // joint.n).astype(np.uint64)[:, None]
    return np.asarray(balanced(weights[None])[0])


def spoken_weights(observed: Observed, library: WeightArray, channels: IntArray) -> WholeNumbers:
    """The weights of what everybody draws from, added up by output and input; without those who are forgotten.

    Parameters
    ----------
    observed : Observed
    library : ndarray of uint64, shape (m, b, a)
    channels : ndarray of int64
        The channel of every entry of ``observed``.

    Returns
    -------
    ndarray of Python integers, shape (b, a)
    """
    m, b, a = library.shape
    people = _people(observed, channels, m)
    high = np.zeros((b, a), dtype=np.uint64)
    low = np.zeros((b, a), dtype=np.uint64)
    step = max(1, _ENTRIES // (b * a))
    # Fewer than 2^31 people and halves of 32 bits: sums fit 64 bits.
    for start in range(0, m, step):
        weights, here = library[start : start + step], people[start : start + step, None, :]
        high += ((weights >> np.uint64(32)) * here).sum(axis=0, dtype=np.uint64)
        low += ((weights & np.uint64(0xFFFFFFFF)) * here).sum(axis=0, dtype=np.uint64)
    return np.asarray(high.astype(object) * 2**32 + low.astype(object))


def _people(observed: Observed, channels: IntArray, m: int) -> npt.NDArray[np.uint64]:
    """How many draw from which of m channels, by input: shape (m, a); without those who are forgotten."""
    a = len(observed.joint.inputs)
    people = np.zeros((m, a), dtype=np.uint64)
    np.add.at(people, (channels, observed.inputs), observed.spoken.astype(np.uint64))
    return people
