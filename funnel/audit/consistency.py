"""Whether drawn records look like draws from their protocol, input symbol by input symbol."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc

from funnel.joint import IntArray
from funnel.protocol import DENOMINATOR, FloatArray, Protocol


@dataclass(frozen=True)
class Consistency:
    """Result of the test of drawn (input, output) counts against a protocol.

    Attributes
    ----------
    p_value : float
        Probability of counts at least as unlikely as these somewhere, Bonferroni over all tests made; 0 if an
        output was drawn that the protocol forbids.
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

    For each x a χ² test over its outputs, those with an expected count below 5 pooled, and for each output an exact
    binomial test, so that a fault in a rare output is not hidden among many common ones. A test on the output
    marginal alone could pass while the protocol of two inputs is exchanged.

    Parameters
    ----------
    pair_counts : ndarray of int64, shape (a + 1, b)
        Records by input and output symbol; the last row is for inputs outside the alphabet.
    protocol : Protocol
    """
    weights = np.column_stack([protocol.weights, protocol.marginal])
    law = (weights.astype(np.float64) / float(DENOMINATOR)).T
    impossible = int(pair_counts[weights.T == 0].sum())
    totals = pair_counts.sum(axis=1)
    p_values: list[tuple[float, int]] = []
    for x in np.flatnonzero(totals):
        p_values.append((_chi_square(pair_counts[x], law[x], int(totals[x])), int(x)))
        p_values.extend((p, int(x)) for p in _binomial(pair_counts[x], law[x], int(totals[x])))
    smallest, worst = min(p_values, default=(1.0, 0))
    corrected = 0.0 if impossible else min(1.0, smallest * len(p_values))
    if impossible:
        worst = int(np.argmax(np.where(weights.T == 0, pair_counts, 0).sum(axis=1)))
    return Consistency(corrected, worst, len(p_values), impossible)


def _chi_square(counts: IntArray, law: FloatArray, total: int) -> float:
    expected = law * total
    common = expected >= 5
    observed, likely = counts[common].astype(np.float64), expected[common]
    pooled = float(expected[~common].sum())
    if len(likely) and pooled > 0:
        # A pool that is itself rare joins the smallest common output, so that its records still count somewhere.
        place = int(likely.argmin())
        if pooled >= 5:
            observed, likely, place = np.append(observed, 0.0), np.append(likely, 0.0), len(likely)
        observed[place] += counts[~common].sum()
        likely[place] += pooled
    if len(likely) < 2:
        return 1.0
    return float(chdtrc(len(likely) - 1, ((observed - likely) ** 2 / likely).sum()))


def _binomial(counts: IntArray, law: FloatArray, total: int) -> npt.NDArray[np.float64]:
    """Two-sided exact p-values (twice the smaller tail) of every output that could occur."""
    from scipy.stats import binom

    open_cells = (law > 0) & (law < 1)
    k, q = counts[open_cells], law[open_cells]
    return np.asarray(np.minimum(1.0, 2 * np.minimum(binom.cdf(k, total, q), binom.sf(k - 1, total, q))))
