"""A box of laws: simultaneous Clopper–Pearson limits of P(u|s) and P(s), found again by incomplete beta functions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flint import arb, ctx, fmpq

from funnel.errors import FunnelError
from funnel.recount.count_box import CountBox
from funnel.recount.intervals import ball

# Limits are whole multiples of 1/UNIT, rounded outwards: that is part of what the set of laws is.
UNIT = 1 << 32
_FIRST_BITS, _LAST_BITS = 96, 1 << 14

Limits = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class LawBox:
    """Every law of (S, U) that the counts do not rule out.

    Attributes
    ----------
    inputs : tuple of c tuples of a pairs of int
        Limits of P(u|s), times UNIT.
    secrets : tuple of c pairs of int
        Limits of P(s), times UNIT.
    """

    inputs: tuple[Limits, ...]
    secrets: Limits


def law_box(counts: CountBox, alpha: Fraction) -> LawBox:
    """The laws that no table within the limits rules out, at ``alpha / (2 (c a + c))`` for each side of each limit."""
    return limits_at(counts, alpha / sides_of(counts))


def sides_of(counts: CountBox) -> int:
    """How many sides all limits of P(u|s) and of P(s) have: 2 (c a + c)."""
    c, a = len(counts.lower), len(counts.lower[0])
    return 2 * (c * a + c)


def limits_at(counts: CountBox, tail: Fraction) -> LawBox:
    """The laws that no table within the limits rules out, each side of each limit at ``tail``.

    For one table these are the limits of Clopper and Pearson (1934). For a box of tables each limit is the one of its
    worst table: few records of the cell among as many as may have the secret, or many among few.

    Notes
    -----
    O(c a) limits, each by about ten incomplete beta functions.
    """
    inputs = tuple(
        tuple(
            (lower_limit(low, most, tail), upper_limit(min(high, least), least, tail))
            for low, high in zip(lows, highs, strict=True)
        )
        for lows, highs, (least, most) in zip(counts.lower, counts.upper, counts.totals, strict=True)
    )
    fewest, all_of = (sum(pair[side] for pair in counts.totals) for side in (0, 1))
    secrets = tuple(
        (lower_limit(least, all_of - most + least, tail), upper_limit(most, fewest - least + most, tail))
        for least, most in counts.totals
    )
    return LawBox(inputs, secrets)


def upper_limit(successes: int, trials: int, tail: Fraction) -> int:
    """The least j with ``P(Bin(trials, j/UNIT) <= successes) <= tail``: failures are successes seen from below."""
    return UNIT - lower_limit(trials - successes, trials, tail)


@lru_cache(1 << 16)
def lower_limit(successes: int, trials: int, tail: Fraction) -> int:
    """The largest j with ``P(Bin(trials, j/UNIT) >= successes) <= tail``, which is ``I_{j/UNIT}(k, n - k + 1)``.

    Where to look is guessed: the root of the logarithm of the tail is nearly straight in j, so a secant through the
    last two places foretells the next. Which side a place is on is proven, and only that is relied on.

    Raises
    ------
    FunnelError
        If 16,384 bits do not decide a comparison, which no numbers of this size need.
    """
    if successes == 0:
        return 0
    low, high = 0, UNIT
    sought = _depth(ball(tail))
    share = successes / trials
    guess = int((share - sought * math.sqrt(share * (1 - share) / trials)) * UNIT)
    # At the share itself the tail is about a half.
    last = (UNIT * successes // trials, 1.0)
    while high - low > 1:
        if not low < guess < high:
            guess = (low + high) // 2
        within, depth = _compared(successes, trials, guess, tail)
        low, high = (guess, high) if within else (low, guess)
        slope = (depth - last[1]) / (guess - last[0]) if guess != last[0] else 0.0
        last = (guess, depth)
        # A step beyond the place that is foretold encloses it from the other side.
        beyond = 1 if within else -1
        guess = round(guess + (sought - depth) / slope) + beyond if math.isfinite(depth) and slope < 0 else low
    return low


def _compared(successes: int, trials: int, j: int, tail: Fraction) -> tuple[bool, float]:
    """Whether the tail at a place is at most what it may be, proven; and how deep it is, roughly."""
    bits = _FIRST_BITS
    while bits <= _LAST_BITS:
        with ctx.workprec(bits):
            reached, limit = arb(fmpq(j, UNIT)).beta_lower(successes, trials - successes + 1, regularized=1), ball(tail)
            if reached <= limit or reached > limit:
                return bool(reached <= limit), _depth(reached)
        bits *= 2
    raise FunnelError("an interval of 16,384 bits does not decide a limit; this is a defect, please report it")


def _depth(tail: arb) -> float:
    """``√(-2 ln tail)``: for a normal law about as many standard deviations."""
    return math.sqrt(max(0.0, -2 * float(tail.log().mid()))) if tail.is_finite() and tail > 0 else math.inf
