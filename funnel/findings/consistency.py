"""Whether drawn records look like draws from their protocol, by input and by secret; and what false alarms that has.

Whatever is judged without chance (counts, weights, levels, digests) is never a false alarm. The statistical checks of a
version have p-values that are at most t with a probability of at most t, whatever the release, so a release that was
drawn as declared is refused with a probability of at most the sum of their shares. The audit that is made right before
a publication adds as large a share for each of its other statistical checks (`funnel.audit.check`), of which there
are nine at most: noise, tables of the same people, order, row groups, two of whole records, and the counts of outputs
with the limits of counts and departures that they are held to. That is below 10⁻⁹ in all.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Final

import numpy as np
from pydantic import Field, NonNegativeInt

from funnel.drawn import DrawnCounts
from funnel.joint import FloatArray, IntArray
from funnel.protocol import Protocol, WeightArray
from funnel.tails import binomial_two_sided, fisher

FALSE_ALARM: Final = 2e-10
"""Of all tests of the drawing. A refused draw is drawn again, which is a selection: it has to be as good as never."""

_PARTS = MappingProxyType({"draws": 1, "independence": 1, "order": 1, "words": 1})
SHARES: Final = MappingProxyType({name: FALSE_ALARM * part / sum(_PARTS.values()) for name, part in _PARTS.items()})
"""The significance of each statistical check, that of draws in an audit too; they add up to `FALSE_ALARM`."""


# Outputs expected in fewer records are one class in the test of all outputs together: alone they would dilute it.
_RARE = 5


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

    p_value: Annotated[float, Field(ge=0, le=1)]
    worst_input: NonNegativeInt
    tests: NonNegativeInt
    impossible: NonNegativeInt


def draw_consistency(pair_counts: IntArray | DrawnCounts, protocol: Protocol) -> Consistency:
    """Test counts of (input, output) against ``Multinomial(n_x, Q(.|x))`` for every input symbol x.

    Two kinds of test for each x, with Bonferroni's correction over all of them: for each output an exact binomial
    test, so that a fault in a rare output is not hidden among many common ones, and one for all outputs together, so
    that many small faults add up. A test on the output marginal alone could pass while the protocol of two inputs is
    exchanged.

    Parameters
    ----------
    pair_counts : ndarray of int64, shape (a + 1, b), or DrawnCounts
        Records by input and output symbol; the last row is for inputs outside the alphabet.
    protocol : Protocol

    Notes
    -----
    *Proof that P(p <= t) <= t*, for every number of records, however small, and with nothing asymptotic in it:

    1. An exact p-value is twice the smaller tail of a binomial distribution, at most 1. Each tail, as a function of the
       count, is at most t/2 with a probability of at most t/2.
    2. All outputs together: order them, the rare ones as one class at the end, by the weights alone. Given the counts
       before it, a count is binomial among the records that are left. So its p-value p_j satisfies (1) whatever came
       before, ``-ln p_j`` is stochastically at most exponential given the past, and the sum of k - 1 of them is at most
       a gamma variable of that order (Fisher's combination), whose tail is the p-value.
    3. Which tests are made, and how many, depends on the protocol and on the number of records of each input, never on
       what was drawn. So the smallest p-value times their number satisfies the same (Bonferroni).

    Probabilities are quotients of integer weights, the smaller one of an output and its complement, so that neither
    loses digits; tails are raised by a margin for rounding. Time for the weights that are not zero.
    """
    p_values: list[tuple[float, int]] = []
    impossible, most, most_at = 0, 0, 0
    for _, x, outputs, records in DrawnCounts.of_pairs(pair_counts).rows():
        drawn, weights, forbidden = drawn_by_distribution(protocol, x, outputs, records)
        impossible += forbidden
        if forbidden > most:
            most, most_at = forbidden, x
        if not drawn.any():
            continue
        single, together, classes = distribution_p_values(drawn, weights)
        p_values.extend((float(p), x) for p in single)
        # One test of two classes is among the single ones, or as good as one of them.
        if classes > 2:
            p_values.append((together, x))
    if impossible:
        return Consistency(0.0, most_at, len(p_values), impossible)
    if not p_values:
        return Consistency(1.0, 0, 0, 0)
    smallest, worst = min(p_values)
    return Consistency(min(1.0, smallest * len(p_values)), worst, len(p_values), 0)


def drawn_by_distribution(
    protocol: Protocol, x: int, outputs: IntArray, records: IntArray
) -> tuple[IntArray, WeightArray, int]:
    """Records of an input by the outputs that it can become, their weights, and the records with any other output.

    Parameters
    ----------
    protocol : Protocol
    x : int
        The input; a stands for those outside the alphabet.
    outputs, records : ndarray of int64, shape (k,)
        What was drawn, outputs rising.
    """
    possible, weights = protocol.conditional(x)
    places = np.minimum(np.searchsorted(possible, outputs), len(possible) - 1)
    allowed = possible[places] == outputs
    drawn = np.zeros(len(possible), dtype=np.int64)
    drawn[places[allowed]] = records[allowed]
    return drawn, weights, int(records[~allowed].sum())


def distribution_p_values(counts: IntArray, weights: WeightArray) -> tuple[FloatArray, float, int]:
    """P-values of draws from one distribution: of each output that can occur and need not, and of all of them together.

    Parameters
    ----------
    counts : ndarray of int64, shape (b,)
        Draws by output; none of them of weight zero, and at least one.
    weights : ndarray of uint64, shape (b,)

    Returns
    -------
    tuple of ndarray, float and int
        The last is the number of classes of outputs that are told apart in the test of all of them together. See
        `draw_consistency` for the proof.
    """
    total, whole = counts.sum(), weights.sum()
    open_ = (weights > 0) & (weights < whole)
    single = binomial_two_sided(counts[open_], np.full(open_.sum(), total), weights[open_], np.full(open_.sum(), whole))
    common = weights >= _RARE * (whole / total)
    order = np.flatnonzero(common)[np.argsort(weights[common], kind="stable")[::-1]]
    classes, seen = weights[order], counts[order]
    if not common.all() and (rare := weights[~common].sum()) > 0:
        classes, seen = np.append(classes, rare), np.append(seen, counts[~common].sum())
    # What is left at each class: it and all after it.
    left, among = classes[::-1].cumsum()[::-1], seen[::-1].cumsum()[::-1]
    chain = binomial_two_sided(seen[:-1], among[:-1], classes[:-1], left[:-1])
    return single, fisher(chain), len(classes)


@dataclass(frozen=True)
class Independence:
    """Result of the test of counts of (secret, input, output).

    Attributes
    ----------
    p_value : float
        Draws from the protocol have one of at most t with a probability of at most t. 0 if an output was drawn that
        the protocol never gives for its input.
    worst_secret, worst_input : int
        Where draws are least likely; c and a stand for values outside their alphabets.
    groups : int
        Number of combinations of secret and input that were drawn for.
    impossible : int
        Records with an output of weight zero.
    """

    p_value: float
    worst_secret: int
    worst_input: int
    groups: int
    impossible: int


def independence(counts: DrawnCounts, protocol: Protocol) -> Independence:
    """Test ``Y independent of S given X``: the counts of every (s, x) against ``Multinomial(n[s, x], Q(.|x))``.

    Under the protocol the distribution of the output is the same, and known, for all records with input x, whatever
    their secret; where the protocol reads the secret, x says it. So an association of output and secret that the
    protocol does not make shows as a deviation of some (s, x) from the weights of x, which the sums over s need not
    show: a test of (x, y) alone passes where what one secret has too many of, another has too few.

    Parameters
    ----------
    counts : DrawnCounts
        Shape (c + 1, a + 1, b).
    protocol : Protocol
        Of a inputs and b outputs.

    Notes
    -----
    *Proof that P(p <= t) <= t.* Given the secrets and the inputs, rows of counts are independent and multinomial with
    the weights of their inputs. For each row, `funnel.findings.consistency.distribution_p_values` gives exact p-values
    of single outputs and one of all outputs together, each at most t with a probability of at most t. Three families
    are made: (1) all of these; (2) for every secret Fisher's combination of the latter over its inputs, which are
    independent; (3) one combination over all. Each family is corrected by the number of its tests, and the smallest of
    the three results by three. Which tests are made depends on the weights and on the numbers of records, not on the
    draws. ∎

    Time for the outputs that are possible in each of the combinations of secret and input.
    """
    smallest: list[tuple[float, int, int]] = []
    tests = impossible = 0
    together: dict[int, list[tuple[float, int]]] = {}
    worst_impossible: tuple[int, int, int] = (0, 0, 0)
    for s, x, outputs, records in counts.rows():
        drawn, weights, forbidden = drawn_by_distribution(protocol, x, outputs, records)
        impossible += forbidden
        worst_impossible = max(worst_impossible, (forbidden, s, x))
        if forbidden:
            continue
        p_values, combined, _ = distribution_p_values(drawn, weights)
        tests += len(p_values) + 1
        smallest.append((min(combined, float(p_values.min(initial=1.0))), s, x))
        together.setdefault(s, []).append((combined, x))
    groups = len(np.unique(counts.cells // counts.shape[2]))
    if impossible:
        return Independence(0.0, worst_impossible[1], worst_impossible[2], groups, impossible)
    if not smallest:
        return Independence(1.0, 0, 0, 0, 0)
    single, s, x = min(smallest)
    by_secret = [(fisher(np.array([p for p, _ in some])), t) for t, some in together.items()]
    every = fisher(np.array([p for some in together.values() for p, _ in some]))
    of_secret, t = min(by_secret)
    if of_secret * len(by_secret) < single * tests:
        s, x = t, min(together[t])[1]
    p_value = min(single * tests, of_secret * len(by_secret), every)
    return Independence(min(1.0, 3 * p_value), s, x, groups, 0)
