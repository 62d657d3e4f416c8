"""How the report writes numbers: shares, factors, nats and counts, never rounded to something untrue."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

NONE = "–"
# Between a number and its unit, so that a line never breaks there.
_SPACE = "\N{NO-BREAK SPACE}"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# Sums of many probabilities miss 1 by this much or less.
_ROUNDING = 1e-12


def count(value: int) -> str:
    """A number of things, with thousands separators."""
    return f"{value:,}"


def percent(share: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """A share of one as a percentage with one decimal; what is not nothing or everything does not look like it."""
    if math.isnan(share):
        return NONE
    if share == 0:
        return f"0{_SPACE}%"
    if abs(share - 1) <= _ROUNDING:
        return f"100{_SPACE}%"
    rounded = (Decimal(share) * 100).quantize(Decimal("0.1"), rounding=rounding)
    if 0 < share < 1:
        if rounded < Decimal("0.1") or share < 0.001:
            return f"<{_SPACE}0.1{_SPACE}%"
        if rounded > Decimal("99.9"):
            return f">{_SPACE}99.9{_SPACE}%"
    return f"{rounded:,}{_SPACE}%"


def percent_in_detail(share: float) -> str:
    """A share as a percentage that is told to two digits however small it is, for comparing two of them."""
    return f"{significant(100 * share, 2)}{_SPACE}%" if 0 < share < 0.01 else percent(share)


def percent_at_most(share: float) -> str:
    """An upper limit as a percentage, rounded up."""
    return percent(share, ROUND_CEILING)


def percent_at_least(share: float) -> str:
    """A lower limit as a percentage, rounded down."""
    return percent(share, ROUND_FLOOR)


def significant(value: float, digits: int = 4, rounding: str = ROUND_HALF_EVEN) -> str:
    """A number with this many significant digits; very large and very small ones as a power of ten."""
    if math.isnan(value):
        return NONE
    if math.isinf(value):
        return "infinite" if value > 0 else "−infinite"
    if value == 0:
        return "0"
    exact = Decimal(value)
    rounded = exact.quantize(Decimal(1).scaleb(exact.adjusted() - digits + 1), rounding=rounding)
    power = rounded.adjusted()
    if -4 <= power < 7:
        text = f"{rounded.quantize(Decimal(1).scaleb(min(0, power - digits + 1))):,f}"
    else:
        mantissa = rounded.scaleb(-power).quantize(Decimal(1).scaleb(1 - digits))
        text = f"{mantissa}{_SPACE}×{_SPACE}10{superscript(power)}"
    return text.replace("-", "−")


def superscript(value: int) -> str:
    """A whole number as an exponent."""
    return str(value).translate(_SUPERSCRIPTS)


def significant_at_most(value: float, digits: int = 3) -> str:
    """An upper limit with this many significant digits, rounded up."""
    return significant(value, digits, ROUND_CEILING)


def significant_at_least(value: float, digits: int = 3) -> str:
    """A lower limit with this many significant digits, rounded down."""
    return significant(value, digits, ROUND_FLOOR)


def level(value: float) -> str:
    """A level in nats that was rounded up to be published, with all the digits that are left."""
    return "infinite" if math.isinf(value) else plain(value)


def plain(value: float) -> str:
    """A setting as a person would write it: 1 for 1.0."""
    return f"{value:.15g}"


def seconds(value: float) -> str:
    """A duration, two significant digits."""
    return f"<{_SPACE}0.01{_SPACE}s" if value < 0.01 else f"{significant(value, 2)}{_SPACE}s"


def probability(value: float) -> str:
    """A p-value: two significant digits, and a limit below a millionth."""
    if value in (0, 1):
        return plain(value)
    return f"<{_SPACE}0.000001" if value < 1e-6 else significant(value, 2)
