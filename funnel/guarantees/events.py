"""Events that an observer can know of a record, their exact distributions of the output, and where two differ most."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from funnel.guarantees.exact import half_sums
from funnel.joint import FloatArray, IntArray, Joint
from funnel.protocol import WeightArray

# Float ratios are accurate to about 1e-13; whatever comes this close to the largest is compared exactly.
CLOSE = 1e-9
# Ratios compared at once; and the roundings of a quotient of exact sums, with room to spare.
_STACK = 2**21
_ROUNDINGS = 16


@dataclass(frozen=True, eq=False)
class Comparisons:
    """Pairs of events (A, B), A a part of B, whose P(y|A)/P(y|B) a guarantee bounds.

    Attributes
    ----------
    counts : ndarray of int64, shape (m, a)
        Records of each event by what the channel reads; every event occurs.
    part, whole : ndarray of int, shape (k,)
        Places of A and B in ``counts``.
    secret : ndarray of int, shape (k,)
        The secret value of A.
    given : tuple of tuple of (column, value), length k
        What B says about a record.
    """

    counts: IntArray
    part: npt.NDArray[np.intp]
    whole: npt.NDArray[np.intp]
    secret: npt.NDArray[np.intp]
    given: tuple[tuple[tuple[str, str], ...], ...]

    def ratios(self, rows: FloatArray) -> FloatArray:
        """P(y|A)/P(y|B) of rows T of a channel, (k', a) to (k, k'); nan where B excludes the output."""
        sizes = self.counts.sum(axis=1).astype(np.float64)
        distribution = (self.counts / sizes[:, None]) @ rows.T
        part, whole = distribution[self.part], distribution[self.whole]
        return np.asarray(np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0))


def secret_comparisons(joint: Joint) -> Comparisons:
    """Each secret that occurs against all records: what LIP and its kind compare."""
    seen = np.flatnonzero(joint.counts.any(axis=1))
    counts = np.vstack([joint.counts[seen], joint.counts.sum(axis=0)])
    every = np.arange(len(seen))
    return Comparisons(counts, every, np.full(len(seen), len(seen)), seen, ((),) * len(seen))


@dataclass(frozen=True)
class Extreme:
    """Where a ratio is furthest from 1 on one side.

    Attributes
    ----------
    ratio : Fraction or None
        Exact, at least 1; None if infinite.
    output, pair : int
    """

    ratio: Fraction | None
    output: int
    pair: int


def extremes(comparisons: Comparisons, weights: WeightArray) -> tuple[Extreme, Extreme]:
    """The largest P(y|A)/P(y|B) and the largest P(y|B)/P(y|A) over outputs and pairs, exactly.

    Floats find the candidates within 1e-9 of the largest, exact sums in extended precision those that are left, whole
    numbers decide.

    Parameters
    ----------
    comparisons : Comparisons
        k pairs over a inputs.
    weights : ndarray of uint64, shape (b, a)

    Notes
    -----
    O((m + k) a b) in floats, and exact integers for few places.
    """
    rows = weights.astype(np.float64)
    ratios = comparisons.ratios(rows)
    outputs = np.flatnonzero((comparisons.counts.any(axis=0) & (weights > 0)).any(axis=1))
    # An output that occurs, and a pair that can see it: the witness of a channel that tells nothing.
    start = int(outputs[0])
    nothing = Extreme(Fraction(1), start, int(np.flatnonzero(~np.isnan(ratios[:, start]))[0]))
    unseen = np.isnan(ratios)
    upward = _largest(comparisons, weights, np.where(unseen, 0.0, ratios), nothing, up=True)
    with np.errstate(divide="ignore"):
        inverse = np.where(unseen, 0.0, 1.0 / ratios)
    return upward, _largest(comparisons, weights, inverse, nothing, up=False)


def _largest(comparisons: Comparisons, weights: WeightArray, gains: FloatArray, best: Extreme, up: bool) -> Extreme:
    largest = float(gains.max())
    if math.isinf(largest):
        pair, output = np.unravel_index(int(gains.argmax()), gains.shape)
        return Extreme(None, int(output), int(pair))
    # An output as likely from every input tells nothing: there is nothing to compare.
    uneven = (weights != weights[:, :1]).any(axis=1)
    near = (largest * (1 - CLOSE) <= gains) & uneven
    # Where next to nothing is told all of them are near: a stack of outputs at a time.
    outputs = np.flatnonzero(near.any(axis=0))
    step = max(1, _STACK // len(near))
    for start in range(0, len(outputs), step):
        some = outputs[start : start + step]
        best = _largest_of(comparisons, weights, some, near[:, some], best, up)
    return best


def _largest_of(
    comparisons: Comparisons,
    weights: WeightArray,
    outputs: npt.NDArray[np.intp],
    near: npt.NDArray[np.bool_],
    best: Extreme,
    up: bool,
) -> Extreme:
    """The first of these outputs (b,) and pairs (k, b) with the largest ratio, if that is above the best so far."""
    pairs, columns = np.nonzero(near)
    events, places = np.unique([comparisons.part[pairs], comparisons.whole[pairs]], return_inverse=True)
    part, whole = places.reshape(2, -1)
    high, low = half_sums(comparisons.counts[events], weights[outputs])
    sizes = comparisons.counts[events].sum(axis=1)
    # The sums are exact, so quotients in extended precision leave those alone that only whole numbers tell apart.
    masses = (high.astype(np.longdouble) * 2.0**32 + low) / sizes[:, None]
    ratios = masses[part, columns] / masses[whole, columns]
    if not up:
        ratios = 1 / ratios
    left = np.flatnonzero(ratios >= ratios.max() * (1 - _ROUNDINGS * np.finfo(np.longdouble).eps))

    def exact(event: int, column: int) -> Fraction:
        return Fraction((int(high[event, column]) << 32) + int(low[event, column]), int(sizes[event]))

    # Output by output: of equal ratios the first output is the witness.
    for place in left[np.lexsort((pairs[left], columns[left]))].tolist():
        ratio = exact(part[place], columns[place]) / exact(whole[place], columns[place])
        if not up:
            ratio = 1 / ratio
        if best.ratio is not None and ratio > best.ratio:
            best = Extreme(ratio, int(outputs[columns[place]]), int(pairs[place]))
    return best


def probability(counts: IntArray, row: WeightArray) -> Fraction:
    """P(y|A)·2^63 for the counts (a,) of an event and the weights (a,) of one output, exactly."""
    high, low = half_sums(counts[None], row[None])
    return Fraction((int(high[0, 0]) << 32) + int(low[0, 0]), int(counts.sum()))
