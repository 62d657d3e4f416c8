"""A box of laws: simultaneous Clopper–Pearson limits of P(u|s) and P(s), found again by incomplete beta functions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flint import arb, fmpq

from funnel.recount.count_box import CountBox
from funnel.recount.intervals import ball, decided

# Limits are whole multiples of 1/UNIT, rounded outwards: that is part of what the set of laws is.
UNIT = 1 << 32
_FIRST_BITS = 64
# Of doubles that say where to look: rounds, terms of a continued fraction, and what stands for zero in one.
_ROUNDS, _TERMS, _SMALLEST = 60, 10_000, 1e-300

Limits = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class DistributionBox:
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


def distribution_box(counts: CountBox, alpha: Fraction) -> DistributionBox:
    """The laws that no table within the limits rules out, at ``alpha / (2 (c a + c))`` for each side of each limit."""
    return limits_at(counts, alpha / count_sides(counts))


def count_sides(counts: CountBox) -> int:
    """How many sides all limits of P(u|s) and of P(s) have: 2 (c a + c)."""
    c, a = len(counts.lower), len(counts.lower[0])
    return 2 * (c * a + c)


def limits_at(counts: CountBox, tail: Fraction) -> DistributionBox:
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
    return DistributionBox(inputs, secrets)


def upper_limit(successes: int, trials: int, tail: Fraction) -> int:
    """The least j with ``P(Bin(trials, j/UNIT) <= successes) <= tail``: failures are successes seen from below."""
    return UNIT - lower_limit(trials - successes, trials, tail)


@lru_cache(1 << 16)
def lower_limit(successes: int, trials: int, tail: Fraction) -> int:
    """The largest j with ``P(Bin(trials, j/UNIT) >= successes) <= tail``, which is ``I_{j/UNIT}(k, n - k + 1)``.

    Doubles say where to look (`_near`). Which side a place is on is proven, and only that is relied on.
    """
    if successes == 0:
        return 0
    low, high = 0, UNIT
    place, step = max(1, round(UNIT * _near(successes, trials, tail))), 1
    # Mostly two questions enclose it; else steps double until it is enclosed, and halve then.
    while high - low > 1:
        place = place if low < place < high else (low + high) // 2
        if _is_within(successes, trials, place, tail):
            low, place = place, place + step
        else:
            high, place = place, place - step
        step *= 2
    return low


def _near(successes: int, trials: int, tail: Fraction) -> float:
    """About the x with ``I_x(k, n - k + 1) = tail``, in doubles, by Newton's method.

    ``√(-2 ln I_x)`` is nearly straight in x: for a normal distribution it is a number of standard deviations.
    """
    a, b, share = successes, trials - successes + 1, successes / trials
    constant = math.lgamma(a + b) - math.lgamma(a + 1) - math.lgamma(b)
    sought = math.sqrt(2 * (math.log(tail.denominator) - math.log(tail.numerator)))
    x = max(share - sought * math.sqrt(share * (1 - share) / trials), share / 8) * (1 - 2.0**-20)
    for _ in range(_ROUNDS):
        fraction = _continued_fraction(a, b, x)
        depth = math.sqrt(max(0.0, -2 * (constant + a * math.log(x) + b * math.log1p(-x) + math.log(fraction))))
        before, x = x, x + (depth - sought) * depth * x * (1 - x) * fraction / a
        x = min(max(x, before / 8), (7 + before) / 8)
        if abs(x - before) <= 1e-13 * x:
            break
    return x


def _continued_fraction(a: int, b: int, x: float) -> float:
    """``a B I_x(a, b) / (x^a (1-x)^b)`` by its continued fraction, from the front (Lentz)."""
    numerator, denominator = 1.0, 1 / _apart(1 - (a + b) * x / (a + 1))
    found = denominator
    for m in range(1, _TERMS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            denominator = 1 / _apart(1 + term * denominator)
            numerator = _apart(1 + term / numerator)
            found *= numerator * denominator
        if abs(numerator * denominator - 1) < 2.0**-52:
            break
    return max(found, _SMALLEST)


def _apart(value: float) -> float:
    return value if abs(value) > _SMALLEST else _SMALLEST


def _tail(successes: int, trials: int, j: int) -> arb:
    """``I_{j/UNIT}(k, n - k + 1)``, seen from the side with fewer records: from the other one it takes minutes."""
    failures = trials - successes + 1
    if 2 * successes <= trials:
        return arb(fmpq(j, UNIT)).beta_lower(successes, failures, regularized=1)
    return 1 - arb(fmpq(UNIT - j, UNIT)).beta_lower(failures, successes, regularized=1)


def _is_within(successes: int, trials: int, j: int, tail: Fraction) -> bool:
    """Whether the tail at a place is at most what it may be, proven."""

    def compared() -> bool | None:
        reached, limit = _tail(successes, trials, j), ball(tail)
        return bool(reached <= limit) if reached <= limit or reached > limit else None

    return decided(compared, _FIRST_BITS)
