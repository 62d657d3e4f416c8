"""The strongest unary encoding that a guarantee allows, in closed form and in whole numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from funnel.guarantees.base import Guarantee
from funnel.guarantees.exact import exp_below
from funnel.joint import Joint
from funnel.mechanisms.unary.encoding import UnaryEncoding
from funnel.mechanisms.unary.limits import Limits, event_limits, is_unlimited
from funnel.protocol import DENOMINATOR

_CHUNK_CELLS = 1 << 20


def unary_encoding(joint: Joint, guarantee: Guarantee) -> UnaryEncoding:
    """The unary encoding with the smallest q, of the multiples of 2^-63, for which the guarantee holds exactly.

    A set A of symbols that are likelier under event E than under F by more than R is the worst output:
    ``P(A|E) <= R P(A|F)`` for all A means ``1 + k p(A|E) <= R (1 + k p(A|F))``, and so
    ``k max_A (p(A|E) - R p(A|F)) = k Σ_x max(0, p(x|E) - R p(x|F)) <= R - 1``. No output is listed and nothing is
    searched: the largest k is a quotient of whole numbers.

    Parameters
    ----------
    joint : Joint
        Counts of (S, X), shape (c, a), for any a.
    guarantee : Guarantee
        LIP, ALIP, LDP, SRLIP or perfect privacy.

    Returns
    -------
    UnaryEncoding
        Where the inputs tell nothing that the guarantee forbids: q = 2^-63.

    Raises
    ------
    SpecError
        For any other guarantee: it needs a list of all outputs.

    Notes
    -----
    O(pairs · a): c pairs for LIP, c² for LDP. Floats find the pairs that may bind, integers decide.
    """
    weight = 1
    for limits in event_limits(joint, guarantee):
        if is_unlimited(limits):
            continue
        growth = exp_below(limits.budget)
        beyond = _largest_excess(limits, growth)
        if beyond > 0:
            # k = 2^63/w - 2 <= (R - 1)/beyond.
            most = (growth - 1) / beyond
            weight = max(weight, -int(-DENOMINATOR // (most + 2)))
    return UnaryEncoding.of(joint, min(weight, UnaryEncoding.own_weight))


def _largest_excess(limits: Limits, growth: Fraction) -> Fraction:
    """max over pairs of Σ_x max(0, p(x|A) - R p(x|B)), exactly."""
    counts = limits.counts
    given = counts / counts.sum(axis=1, keepdims=True)
    factor = float(growth)
    step = max(1, _CHUNK_CELLS // counts.shape[1])
    found = np.concatenate(
        [
            np.maximum(0.0, given[limits.first[i : i + step]] - factor * given[limits.second[i : i + step]]).sum(axis=1)
            for i in range(0, len(limits.first), step)
        ]
    )
    # Each difference errs by a few units of 2^-53 of its two terms, and their sum over x is at most 1 + R.
    error = (1 + factor) * (counts.shape[1] + 8) * 2.0**-52
    near = np.flatnonzero(found >= found.max() - 2 * error)
    return max(_excess(counts[limits.first[pair]], counts[limits.second[pair]], growth) for pair in near)


def _excess(first: np.ndarray, second: np.ndarray, growth: Fraction) -> Fraction:
    """Σ_x max(0, p(x|A) - R p(x|B)) for counts (a,) of A and B."""
    used = np.flatnonzero(first)
    ours, theirs = int(first.sum()), int(second.sum())
    gain, loss = theirs * growth.denominator, ours * growth.numerator
    total = sum(max(0, u * gain - v * loss) for u, v in zip(first[used].tolist(), second[used].tolist(), strict=True))
    return Fraction(total, ours * theirs * growth.denominator)
