"""Rationals against exponentials and logarithms, decided by proven intervals of growing precision."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

from flint import arb, ctx, fmpq

from funnel.errors import FunnelError

T = TypeVar("T")

_FIRST, _LAST = 128, 1 << 16
_FLOAT_BITS = 60


def at_most_exp(ratio: Fraction, nats: Fraction) -> bool:
    """Whether ``ratio <= e^nats``, exactly.

    e to a rational power other than 0 is no rational (Lindemann), so an interval that is narrow enough decides.
    """
    return ratio <= 1 if nats == 0 else below(ratio, lambda: ball(nats).exp())


def below(value: Fraction, real: Callable[[], arb]) -> bool:
    """Whether a rational is below a real number that it does not equal, which is made anew at each precision."""

    def compared() -> bool | None:
        one, other = ball(value), real()
        return True if one < other else False if one > other else None

    return decided(compared)


def decided(ask: Callable[[], T | None], bits: int = _FIRST) -> T:
    """What intervals tell, asked anew at each precision, from so many bits on, until they do.

    Raises
    ------
    FunnelError
        If 65,536 bits do not suffice, which no numbers of this size need.
    """
    while bits <= _LAST:
        with ctx.workprec(bits):
            if (found := ask()) is not None:
                return found
        bits *= 2
    raise FunnelError("an interval of 65,536 bits does not decide a bound; this is a defect, please report it")


def log_above(ratio: Fraction) -> float:
    """ln(ratio) as a float that is not below it, and next to it; 0 for 1."""
    return 0.0 if ratio == 1 else float_above(lambda: ball(ratio).log())


def float_above(value: Callable[[], arb]) -> float:
    """A float that is not below a real number other than zero, made anew at each precision until 60 bits are known."""

    def compared() -> float | None:
        ball = value()
        known = ball.is_finite() and ball.rel_accuracy_bits() >= _FLOAT_BITS
        return fraction_above(exact_fraction(ball.upper())) if known else None

    return decided(compared)


def fraction_above(value: Fraction) -> float:
    """A float that is not below a rational, and next to it."""
    nearest = float(value)
    return math.nextafter(nearest, math.inf) if Fraction(nearest) < value else nearest


def ball(value: Fraction) -> arb:
    """A rational as an interval of the precision that is set."""
    return arb(fmpq(value.numerator, value.denominator))


def exact_fraction(point: arb) -> Fraction:
    """A point that is known exactly."""
    mantissa, exponent = (int(part) for part in point.man_exp())
    return Fraction(mantissa) * Fraction(2) ** exponent
