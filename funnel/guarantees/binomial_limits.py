"""Clopper–Pearson limits of a probability, as whole numbers over 2^32, rounded outwards and proven."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

# Limits are multiples of 1/UNIT: sums of 2^32 of them times 32-bit halves of weights stay below 2^64.
UNIT = 2**32
# Terms of a tail are left out below this share of the first; and digits of the first one, in bits.
_NEGLIGIBLE, _BITS = 2.0**-80, 128
# Where the two ways to see a tail do not decide, the second is asked with so many bits at most.
_MOST_BITS = 4096
_TERMS = 2**22


@lru_cache(maxsize=2**17)
def lower_limit(successes: int, trials: int, tail: Fraction) -> int:
    """The largest j with ``P(Bin(trials, j / 2^32) >= successes) <= tail``: the lower limit, rounded down.

    Parameters
    ----------
    successes, trials : int
        0 <= successes <= trials.
    tail : Fraction
        What the limit may miss the true probability with, above 0 and below 1/2.

    Returns
    -------
    int
        The exact limit of Clopper and Pearson (1934) times 2^32, rounded down; 0 without successes.

    Notes
    -----
    Floating point only says where to look; each side of the answer is proven (`_rare`). O(√trials) terms.
    """
    if successes == 0:
        return 0
    from scipy.special import betaincinv

    below, above = 0, UNIT * successes // trials + 1
    start = float(betaincinv(successes, trials - successes + 1, float(tail))) * UNIT
    guess = min(max(int(start), 0), above - 1) if math.isfinite(start) else above // 2
    # Mostly the first two questions settle it; steps double until the answer is enclosed.
    step = 1
    while below + 1 < above:
        if _rare(successes, trials, guess, tail):
            below, guess = guess, guess + step
        else:
            above, guess = guess, guess - step
        step *= 2
        if not below < guess < above:
            guess, step = (below + above) // 2, 1
    return below


def upper_limit(successes: int, trials: int, tail: Fraction) -> int:
    """The smallest j with ``P(Bin(trials, j / 2^32) <= successes) <= tail``: the upper limit, rounded up."""
    return UNIT - lower_limit(trials - successes, trials, tail)


def _rare(successes: int, trials: int, j: int, tail: Fraction) -> bool:
    """Whether ``P(Bin(trials, j / 2^32) >= successes) <= tail``; where no precision tells, no.

    The tail is its first term, an interval of 128 bits, times ``1 + r_1 + r_1 r_2 + …`` with falling ratios
    ``r_i = (n-k-i+1) x / ((k+i) (1-x))``: positive terms, so that m of them have a relative rounding error of at most
    6 m units, and what is left out is at most the last term times r / (1 - r).
    """
    if j <= 0:
        return True
    # At r_1 >= 1 the probability is at least successes / trials, where the tail is at least one half.
    if j >= UNIT or (trials - successes) * j >= (successes + 1) * (UNIT - j):
        return False
    first_ratio = (trials - successes) * j / ((successes + 1) * (UNIT - j))
    spread = math.sqrt(trials * (j / UNIT) * (1 - j / UNIT))
    # Terms fall at least as r_1^i, and as in a normal distribution.
    by_ratio = 60 / -math.log(first_ratio) if 0 < first_ratio < 1 else math.inf
    number = int(min(trials - successes, by_ratio + 2, 14 * spread + 60, _TERMS))
    place = np.arange(1, number + 1, dtype=np.float64)
    ratios = (trials - successes - place + 1) * float(j) / ((successes + place) * float(UNIT - j))
    terms = np.cumprod(ratios)
    kept = terms >= _NEGLIGIBLE
    total = 1.0 + float(terms[kept].sum())
    last = float(terms[kept][-1]) if kept.any() else 1.0
    # A sum this close to a geometric one without end is left to the other way of seeing it.
    rest = last * first_ratio / (1 - first_ratio) * (1 + 1e-9) if first_ratio < 1 - 1e-6 else math.inf
    error = 6.0 * (number + 10) * 2.0**-53
    return _decided(successes, trials, j, tail, total * (1 - error), (total + rest) * (1 + error))


def _decided(successes: int, trials: int, j: int, tail: Fraction, least: float, most: float) -> bool:
    from flint import arb, ctx, fmpq

    before = ctx.prec
    try:
        ctx.prec = _BITS
        share = arb(fmpq(j, UNIT))
        term = (
            arb(trials + 1).lgamma()
            - arb(successes + 1).lgamma()
            - arb(trials - successes + 1).lgamma()
            + successes * share.log()
            + (trials - successes) * (1 - share).log()
        ).exp()
        limit = arb(fmpq(tail.numerator, tail.denominator))
        if term * arb(most) <= limit:
            return True
        if term * arb(least) > limit:
            return False
        bits = 2 * _BITS
        while bits <= _MOST_BITS:
            ctx.prec = bits
            exact = arb(fmpq(j, UNIT)).beta_lower(successes, trials - successes + 1, regularized=True)
            limit = arb(fmpq(tail.numerator, tail.denominator))
            if exact <= limit:
                return True
            if exact > limit:
                return False
            bits *= 2
        return False
    finally:
        ctx.prec = before
