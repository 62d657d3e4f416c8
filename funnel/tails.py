"""Binomial and hypergeometric tails, never below the exact ones, p-values, and how alike counts are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, gammaincc, gammaln

from funnel.joint import FloatArray, IntArray

Whole = npt.NDArray[np.integer[Any]]

# Outweighs the error of a probability of 2^-52 in the exponent of up to 2^31 records, and that of the tails themselves.
ROUNDING = 1 + 2.0**-20
# Terms of a tail that are added up at a time, and how small what is left has to be to be bounded instead.
_TERMS = 64
_NEGLIGIBLE = 1e-6
# How likeness is weighed: for a fifth, a thirtieth and a 250th of the spread of counts of different records.
_TILTS = (2.0, 16.0, 128.0)
# Counts of fewer records are put together, as are those of more than so many groups; and where a sum over them ends.
_GROUP, _GROUPS, _SPREADS = 50, 20_000, 8.0


def binomial_two_sided(counts: Whole, totals: Whole, weights: Whole, wholes: Whole) -> FloatArray:
    """Twice the smaller tail of Binomial(total, weight/whole) at each count, at most 1; all of shape (k,)."""
    others = wholes - weights
    rest = totals - counts
    q = np.minimum(weights, others).astype(np.float64) / wholes.astype(np.float64)
    counts, rest = np.where(weights > others, rest, counts), np.where(weights > others, counts, rest)
    # P(K >= k) and P(K <= k) as incomplete beta functions, which are not defined where a tail is everything.
    at_least = np.where(counts > 0, betainc(np.maximum(counts, 1), rest + 1, q), 1.0)
    at_most = np.where(rest > 0, betainc(np.maximum(rest, 1), counts + 1, 1 - q), 1.0)
    return np.asarray(np.minimum(1.0, 2 * ROUNDING * np.minimum(at_least, at_most)))


def hypergeometric_two_sided(counts: IntArray, marked: IntArray, drawn: IntArray, total: IntArray) -> FloatArray:
    """Twice the smaller tail of a hypergeometric distribution at each count, at most 1; all of shape (k,).

    Parameters
    ----------
    counts : ndarray of int64
        Marked ones among those drawn.
    marked, drawn, total : ndarray of int64
        Marked ones in all, how many are drawn, and out of how many.

    Notes
    -----
    A tail is its first term, by logarithms of factorials, times a sum of products of ratios of neighbouring terms. The
    ratios fall, so what is left after some terms is at most a geometric series, which is added: the tail is never below
    the exact one but for rounding, which the last factor outweighs.
    """
    above = _upper_tail(counts, marked, drawn, total)
    below = _upper_tail(drawn - counts, total - marked, drawn, total)
    return np.asarray(np.minimum(1.0, 2 * np.minimum(above, below)))


def _upper_tail(numbers: IntArray, special: IntArray, taken: IntArray, whole: IntArray) -> FloatArray:
    """P(K >= k) for the number K of special ones among those taken out of the whole; 1 up to the mode."""
    k, marked, drawn, total = (part.astype(np.float64) for part in (numbers, special, taken, whole))
    lowest, highest = np.maximum(0.0, marked + drawn - total), np.minimum(marked, drawn)
    tail = np.where(k <= lowest, 1.0, 0.0)
    # Below the mode a tail is no small one, and its terms rise: it is not needed.
    mode = np.floor((marked + 1) * (drawn + 1) / (total + 2))
    tail[(k > lowest) & (k <= mode)] = 1.0
    left = np.flatnonzero((k > lowest) & (k > mode) & (k <= highest))
    k, marked, drawn, total = k[left], marked[left], drawn[left], total[left]
    first = _log_choose(marked, k) + _log_choose(total - marked, drawn - k) - _log_choose(total, drawn)
    # Nine logarithms of factorials, each right to some units of its last place.
    error = 64 * 2.0**-52 * gammaln(total + 2)
    summed, last = np.ones(len(left)), np.ones(len(left))
    going = np.arange(len(left))
    while len(going):
        steps = k[going, np.newaxis] + np.arange(_TERMS)
        m, d, n = (part[going, np.newaxis] for part in (marked, drawn, total))
        ratios = np.maximum(0.0, (m - steps) * (d - steps)) / ((steps + 1) * np.maximum(1.0, n - m - d + steps + 1))
        terms = last[going, np.newaxis] * np.cumprod(ratios, axis=1)
        summed[going] += terms.sum(axis=1)
        last[going] = terms[:, -1]
        k[going] += _TERMS
        # All further ratios are at most the last one, and that is below one beyond the mode.
        rest = terms[:, -1] * ratios[:, -1] / np.maximum(1 - ratios[:, -1], 1e-300)
        done = rest <= _NEGLIGIBLE * summed[going]
        summed[going[done]] += rest[done]
        going = going[~done]
    tail[left] = np.exp(np.minimum(0.0, first + np.log(summed) + error)) * ROUNDING
    return tail


def _log_choose(n: FloatArray, k: FloatArray) -> FloatArray:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def fisher(p_values: FloatArray) -> float:
    """Fisher's combination: the tail of a gamma variable of order k at ``-Σ ln p``; 1 for no p-value at all.

    It is at most t with a probability of at most t if each p-value is at most t with a probability of at most t
    whatever the ones before it are: ``-ln p`` is then at most exponential given the past.
    """
    if not len(p_values):
        return 1.0
    with np.errstate(divide="ignore"):
        surprise = -np.log(p_values).sum()
    return 0.0 if np.isinf(surprise) else min(1.0, float(gammaincc(len(p_values), surprise)) * ROUNDING)


def likeness(strata: Sequence[tuple[IntArray, IntArray]]) -> float:
    """A p-value, never below the exact one, of two tables of counts being as alike as they are; 1 for no table.

    If the records of both were drawn independently from one population, it is at most t with a probability of at most
    t, whatever that population is, and however many records of each stratum a design takes: tables of the same people
    are more alike than those of others.

    Parameters
    ----------
    strata : sequence of pairs of ndarray of int64, shape (k,)
        Of each stratum the counts of the same k values in both tables.

    Notes
    -----
    Given both sums of a stratum, its first counts are hypergeometric, one value after another given those before; those
    of several strata are independent given their sums. With z the
    distance of a count from its expectation in standard deviations, ``Π exp(-λ z²) / E exp(-λ z²)``, each expectation
    given the values before, has the expectation 1 for every λ > 0, so it is above 1/t with a probability of at most t
    (Markov). Three λ are tried, so the least of the bounds is times three.
    Values of few records are put together first, by the sums alone.
    """
    enough = max(_GROUP, -(-sum(int((first + second).sum()) for first, second in strata) // _GROUPS))
    exponents = np.zeros(len(_TILTS))
    for first, second in strata:
        total, drawn = int((first + second).sum()), int(first.sum())
        marked = found = 0
        for count, of_first in zip((first + second).tolist(), first.tolist(), strict=True):
            marked, found = marked + count, found + of_first
            if marked >= enough and total > marked:
                exponents += _tilted(found, marked, drawn, total)
                total, drawn, marked, found = total - marked, drawn - found, 0, 0
    return float(min(1.0, len(_TILTS) * ROUNDING * np.exp(min(0.0, exponents.min()))))


def _tilted(found: int, marked: int, drawn: int, total: int) -> FloatArray:
    """``ln exp(λ z²) E exp(-λ z²)`` of one hypergeometric count, for every λ; 0 where the count is certain."""
    mean = drawn * marked / total
    variance = mean * (total - drawn) / total * (total - marked) / (total - 1)
    if variance == 0:
        return np.zeros(len(_TILTS))
    reach = _SPREADS * variance**0.5 + 1
    k = np.arange(max(0, marked + drawn - total, int(mean - reach)), min(marked, drawn, int(mean + reach)) + 1.0)
    of_marked, of_others, of_all = (np.full(1, float(whole)) for whole in (marked, total - marked, total))
    log_p = (
        _log_choose(of_marked, k) + _log_choose(of_others, drawn - k) - _log_choose(of_all, np.full(1, float(drawn)))
    )
    error = 64 * 2.0**-52 * gammaln(total + 2)
    tilts = np.array(_TILTS)
    within = np.exp(log_p + error - tilts[:, np.newaxis] * (k - mean) ** 2 / variance).sum(axis=1)
    # What is beyond the sum is that far from the mean, and certain at most.
    return np.asarray(tilts * (found - mean) ** 2 / variance + np.log(within + np.exp(-tilts * _SPREADS**2)))
