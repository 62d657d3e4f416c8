"""Whether drawn records look like draws from their protocol, input symbol by input symbol."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, gammaincc

from funnel.joint import FloatArray, IntArray
from funnel.protocol import Protocol, WeightArray

# Outputs expected in fewer records are one class in the test of all outputs together: alone they would dilute it.
_RARE = 5
# Outweighs the error of a probability of 2^-52 in the exponent of up to 2^31 records, and that of the tails themselves.
_ROUNDING = 1 + 2.0**-20


@dataclass(frozen=True)
class Consistency:
    """Result of the test of drawn (input, output) counts against a protocol.

    Attributes
    ----------
    p_value : float
        Whatever the protocol and the inputs: draws from the protocol have one of at most t with a probability of at
        most t. 0 if an output was drawn that the protocol forbids.
    worst_input : int
        Index of the least likely input symbol; ``len(protocol.inputs)`` stands for records outside the alphabet.
    tests : int
        Number of tests the p-value is corrected for.
    impossible : int
        Number of records with an output of weight zero.
    """

    p_value: float
    worst_input: int
    tests: int
    impossible: int


def draw_consistency(pair_counts: IntArray, protocol: Protocol) -> Consistency:
    """Test counts of (input, output) against ``Multinomial(n_x, Q(.|x))`` for every input symbol x.

    Two kinds of test for each x, with Bonferroni's correction over all of them: for each output an exact binomial
    test, so that a fault in a rare output is not hidden among many common ones, and one for all outputs together, so
    that many small faults add up. A test on the output marginal alone could pass while the protocol of two inputs is
    exchanged.

    Parameters
    ----------
    pair_counts : ndarray of int64, shape (a + 1, b)
        Records by input and output symbol; the last row is for inputs outside the alphabet.
    protocol : Protocol

    Notes
    -----
    *Proof that P(p <= t) <= t*, for every number of records, however small, and with nothing asymptotic in it:

    1. An exact p-value is twice the smaller tail of a binomial law, at most 1. Each tail, as a function of the count,
       is at most t/2 with a probability of at most t/2.
    2. All outputs together: order them, the rare ones as one class at the end, by the weights alone. Given the counts
       before it, a count is binomial among the records that are left. So its p-value p_j satisfies (1) whatever came
       before, ``-ln p_j`` is stochastically at most exponential given the past, and the sum of k - 1 of them is at most
       a gamma variable of that order (Fisher's combination), whose tail is the p-value.
    3. Which tests are made, and how many, depends on the protocol and on the number of records of each input, never on
       what was drawn. So the smallest p-value times their number satisfies the same (Bonferroni).

    Probabilities are quotients of integer weights, the smaller one of an output and its complement, so that neither
    loses digits; tails are raised by a margin for rounding. O(a b).
    """
    weights: WeightArray = np.column_stack([protocol.weights, protocol.marginal]).T
    forbidden = np.where(weights == 0, pair_counts, 0)
    drawn = pair_counts - forbidden
    p_values: list[tuple[float, int]] = []
    for x in np.flatnonzero(drawn.any(axis=1)):
        p_values.extend((float(p), int(x)) for p in _p_values(drawn[x], weights[x]))
    impossible = int(forbidden.sum())
    if impossible:
        return Consistency(0.0, int(forbidden.sum(axis=1).argmax()), len(p_values), impossible)
    if not p_values:
        return Consistency(1.0, 0, 0, 0)
    smallest, worst = min(p_values)
    return Consistency(min(1.0, smallest * len(p_values)), worst, len(p_values), 0)


def _p_values(counts: IntArray, weights: WeightArray) -> FloatArray:
    """The p-value of each output of one input that can occur and need not, and that of all of them together."""
    total, whole = counts.sum(), weights.sum()
    open_ = (weights > 0) & (weights < whole)
    single = _two_sided(counts[open_], np.full(open_.sum(), total), weights[open_], np.full(open_.sum(), whole))
    common = weights >= _RARE * (whole / total)
    order = np.flatnonzero(common)[np.argsort(weights[common], kind="stable")[::-1]]
    classes, seen = weights[order], counts[order]
    if not common.all() and (rare := weights[~common].sum()) > 0:
        classes, seen = np.append(classes, rare), np.append(seen, counts[~common].sum())
    if len(classes) < 3:
        # One test of two classes, which is among the single ones.
        return single
    # What is left at each class: it and all after it.
    left, among = classes[::-1].cumsum()[::-1], seen[::-1].cumsum()[::-1]
    chain = _two_sided(seen[:-1], among[:-1], classes[:-1], left[:-1])
    with np.errstate(divide="ignore"):
        surprise = -np.log(chain).sum()
    together = 0.0 if np.isinf(surprise) else min(1.0, float(gammaincc(len(chain), surprise)) * _ROUNDING)
    return np.append(single, together)


def _two_sided(counts: IntArray, totals: IntArray, weights: WeightArray, wholes: WeightArray) -> FloatArray:
    """Twice the smaller tail of Binomial(total, weight/whole) at each count, at most 1; all shapes (k,)."""
    others = wholes - weights
    rest = totals - counts
    q = np.minimum(weights, others).astype(np.float64) / wholes.astype(np.float64)
    counts, rest = np.where(weights > others, rest, counts), np.where(weights > others, counts, rest)
    # P(K >= k) and P(K <= k) as incomplete beta functions, which are not defined where a tail is everything.
    at_least = np.where(counts > 0, betainc(np.maximum(counts, 1), rest + 1, q), 1.0)
    at_most = np.where(rest > 0, betainc(np.maximum(rest, 1), counts + 1, 1 - q), 1.0)
    return np.asarray(np.minimum(1.0, 2 * _ROUNDING * np.minimum(at_least, at_most)))
