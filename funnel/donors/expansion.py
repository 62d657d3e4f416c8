"""Expansion: from the channel over posterior classes to one over records, in whole units of a respondent."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from funnel.donors.equal_means import equal_means
from funnel.donors.pairing import paired
from funnel.donors.posterior_classes import PosteriorClasses
from funnel.errors import SolverError
from funnel.joint import IntArray, Joint
from funnel.protocol import DENOMINATOR, WORD_BITS, WeightArray
from funnel.sparse_weights import SparseWeights

# All records are at least 2^42 units, so that a few units are less than 10^-12 of them, and at most 2^60, which sums of
# masses need. A respondent is at least 2^28, so that a few units hardly change most posteriors.
_COARSE, _LEAST, _FINE = 43, 28, 60
# Of every mass that moves the share stays that 2^5 units are of a respondent: rounding must not let more leave a
# record than there is.
_KEPT_UNITS = 5


def expanded(
    joint: Joint, classes: PosteriorClasses, weights: WeightArray, codes: IntArray, further_bits: int = 0
) -> SparseWeights:
    """The channel over records in which masses move between classes as in the one over classes.

    Every record keeps the share that its class keeps, and takes masses of other classes whose mean posterior is that of
    all that its class takes: so the posterior after a record is that after its class. Whose masses these are is left
    open, so they come from records as close as there are. What leaves a record is what comes to it, in whole units:
    balance is exact, but for the rounding of quotients to 2^-63.

    Parameters
    ----------
    joint : Joint
        Counts (c, a); every input occurs.
    classes : PosteriorClasses
    weights : ndarray of uint64, shape (g, g)
        Of the invariant channel over classes.
    codes : ndarray of int64, shape (a, columns)
        As `funnel.donors.pairing.paired` has them.
    further_bits : int
        How many times units are halved, as far as 64 bits allow: where some secrets are rare. Weights take more room.

    Returns
    -------
    SparseWeights, shape (a, a)

    Raises
    ------
    SolverError
        If rounding moves more of a record than there is.
    """
    counts = joint.counts.sum(axis=0)
    bits = unit_bits(joint.n, further_bits)
    flows = class_flows(classes.joint.counts.sum(axis=0), weights, bits)
    into, sources, masses = _taken(flows, classes, counts)
    moved = np.zeros(len(counts), dtype=np.int64)
    np.add.at(moved, into, masses)
    movers = np.flatnonzero(moved)
    left, taken, mass = (
        paired(codes, (movers, classes.of_record[movers], moved[movers]), (into, sources, masses))
        if len(movers)
        else (movers, movers, moved[movers])
    )
    drawn = _quotients(mass, counts[left], bits)
    gone = np.zeros(len(counts), dtype=np.uint64)
    np.add.at(gone, left, drawn)
    if (gone > np.uint64(DENOMINATOR)).any():
        raise SolverError("rounding moves more of a record than there is; choose epsilon slightly larger")
    every = np.arange(len(counts))
    return SparseWeights.of_entries(
        np.concatenate([taken, every]),
        np.concatenate([left, every]),
        np.concatenate([drawn, np.uint64(DENOMINATOR) - gone]),
        (len(counts), len(counts)),
    )


def unit_bits(n: int, further: int = 0) -> int:
    """k, where a unit is 2^-k of a respondent: the fewer respondents, the finer."""
    return min(_FINE - n.bit_length(), max(_LEAST, _COARSE - n.bit_length()) + further)


def class_flows(sizes: IntArray, weights: WeightArray, bits: int) -> IntArray:
    """Units that move from class g to class h at [g, h], (g, g): what leaves a class is what comes to it."""
    shares = weights.T.astype(np.float64) / float(DENOMINATOR)
    flows = np.rint(np.ldexp(sizes[:, None] * shares * (1 - 2.0 ** (_KEPT_UNITS - bits)), bits)).astype(np.int64)
    np.fill_diagonal(flows, 0)
    # A few units are off by rounding: they go through the largest class.
    hub, off = int(sizes.argmax()), flows.sum(axis=1) - flows.sum(axis=0)
    off[hub] = 0
    flows[hub] += np.maximum(off, 0)
    flows[:, hub] += np.maximum(-off, 0)
    return flows


def _taken(flows: IntArray, classes: PosteriorClasses, counts: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """What records take: record, the class that it comes from, and units; of one posterior for all of a class."""
    found: list[tuple[IntArray, IntArray, IntArray]] = []
    posteriors = classes.joint.secret_given_input
    order = np.argsort(classes.of_record, kind="stable")
    ends = np.searchsorted(classes.of_record[order], np.arange(len(flows) + 1))
    for target in np.flatnonzero(flows.any(axis=0)).tolist():
        members = order[ends[target] : ends[target + 1]]
        upto = np.cumsum(counts[members])
        sources = np.flatnonzero(flows[:, target])
        units = flows[sources, target]
        # Records of the class lie end to end, and each takes of the part of the flows that lies at its place.
        parts = equal_means(posteriors[:, sources], units.astype(np.float64))
        places = np.cumsum(parts.sum(axis=1)) / parts.sum() * upto[-1]
        for source, total, of_parts in zip(sources.tolist(), units.tolist(), parts.T, strict=True):
            taken = np.rint(np.interp(upto, np.r_[0.0, places], np.r_[0.0, np.cumsum(of_parts)])).astype(np.int64)
            taken = np.minimum(taken, total)
            taken[-1] = total
            mass = np.diff(taken, prepend=0)
            there = np.flatnonzero(mass)
            found.append((members[there], np.full(len(there), source), mass[there]))
    if not found:
        return (np.zeros(0, dtype=np.int64),) * 3
    into, sources, masses = (np.concatenate(part) for part in zip(*found, strict=True))
    return into, sources, masses


def _quotients(mass: IntArray, counts: IntArray, bits: int) -> npt.NDArray[np.uint64]:
    """``mass · 2^63 / (count · 2^bits)``, rounded down."""
    scaled = mass.astype(object) << (WORD_BITS - bits)
    return np.array(scaled // counts.astype(object), dtype=np.uint64)
