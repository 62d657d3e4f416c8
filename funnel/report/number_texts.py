"""How the report writes numbers: shares, factors, nats and counts, never rounded to something untrue."""

from __future__ import annotations

import math
import unicodedata
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

NONE = "–"
ELLIPSIS = "…"
# Between a number and its unit, so that a line never breaks there.
_SPACE = "\N{NO-BREAK SPACE}"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# Sums of many probabilities miss 1 by this much or less.
_ROUNDING = 1e-12
# A forged share may be any number that a float is.
_WIDE = Context(prec=400)


def count(value: int) -> str:
    """A number of things, with thousands separators."""
    return f"{value:,}"


def things(value: int, one: str, many: str | None = None) -> str:
    """A number of things with their name in the right number: 1 record, 2 records."""
    return f"{value:,}{_SPACE}{plural(value, one, many)}"


def plural(value: int, one: str, many: str | None = None) -> str:
    """The name of so many things."""
    return one if value == 1 else many or f"{one}s"


def percent(share: float | None, rounding: str = ROUND_HALF_EVEN) -> str:
    """A share of one as a percentage with one decimal; what is not nothing or everything does not look like it."""
    if share is None or math.isnan(share):
        return NONE
    if share == 0:
        return f"0{_SPACE}%"
    if abs(share - 1) <= _ROUNDING:
        return f"100{_SPACE}%"
    rounded = (Decimal(share) * 100).quantize(Decimal("0.1"), rounding=rounding, context=_WIDE)
    if 0 < share < 1:
        if rounded < Decimal("0.1") or share < 0.001:
            return f"<{_SPACE}0.1{_SPACE}%"
        if rounded > Decimal("99.9"):
            return f">{_SPACE}99.9{_SPACE}%"
    return f"{rounded:,}{_SPACE}%"


def whole_percent(share: float) -> str:
    """A share in whole per cent, without the sign; empty for what is impossible, and nothing else is 0 or 100."""
    if share in (0, 1):
        return "100" if share else ""
    return "<1" if share <= 0.005 else ">99" if share >= 0.995 else f"{100 * share:.0f}"


def points(error: float) -> str:
    """A standard error of a share in percentage points, two digits."""
    return "0" if error == 0 else f"±{_SPACE}{significant(100 * error, 2)}"


def gain(share: float) -> str:
    """A rise of a share in percentage points, two digits."""
    return "0" if share < _ROUNDING else f"+{_SPACE}{significant(100 * share, 2)}"


def percent_in_detail(share: float | None) -> str:
    """A share as a percentage that is told to two digits however small it is, for comparing two of them."""
    if share is None:
        return NONE
    return f"{significant(100 * share, 2)}{_SPACE}%" if 0 < share < 0.01 else percent(share)


def percent_at_most(share: float) -> str:
    """An upper limit as a percentage, rounded up."""
    return percent(share, ROUND_CEILING)


def percent_at_least(share: float) -> str:
    """A lower limit as a percentage, rounded down."""
    return percent(share, ROUND_FLOOR)


def significant(value: float | str | None, digits: int = 4, rounding: str = ROUND_HALF_EVEN) -> str:
    """A number with this many significant digits; very large and very small ones as a power of ten."""
    if value is None or isinstance(value, str):
        return value or NONE
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


def factor(budget: float) -> str:
    """e to a budget in nats, rounded up."""
    return significant_at_most(math.exp(budget))


def superscript(value: int) -> str:
    """A whole number as an exponent."""
    return str(value).translate(_SUPERSCRIPTS)


def significant_at_most(value: float, digits: int = 3) -> str:
    """An upper limit with this many significant digits, rounded up."""
    return significant(value, digits, ROUND_CEILING)


def significant_at_least(value: float, digits: int = 3) -> str:
    """A lower limit with this many significant digits, rounded down."""
    return significant(value, digits, ROUND_FLOOR)


def level(value: float | str | None) -> str:
    """A level in nats that was rounded up to be published, with all the digits that are left."""
    if value is None or isinstance(value, str):
        return value or NONE
    return "infinite" if math.isinf(value) else plain(value)


def exact(value: float | str | None) -> str:
    """A number of the internal report, with all its digits."""
    if value is None or isinstance(value, str):
        return value or NONE
    return repr(value)


def plain(value: float) -> str:
    """A setting as a person would write it: 1 for 1.0."""
    return f"{value:.15g}"


def seconds(value: float) -> str:
    """A duration, two significant digits."""
    return f"<{_SPACE}0.01{_SPACE}s" if value < 0.01 else f"{significant(value, 2)}{_SPACE}s"


def written(value: float) -> str:
    """A figure for machines, next to its text: a whole number, or four significant digits, as public figures have."""
    return f"{value:.0f}" if math.isfinite(value) and value == int(value) else f"{value:.4g}"


def probability(value: float) -> str:
    """A p-value: two significant digits, and a limit below a millionth."""
    if value in (0, 1):
        return plain(value)
    return f"<{_SPACE}0.000001" if value < 1e-6 else significant(value, 2)


def short(label: str, length: int = 26) -> str:
    """A label that fits a chart: one line, without control characters, cut in its middle where it is too long."""
    visible = "".join(
        " " if unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp") else character for character in label
    )
    line = " ".join(visible.split()) or "(empty)"
    if len(line) <= length:
        return line
    # Long labels of one column often share their beginning: the end tells them apart.
    tail = length // 3
    return line[: length - tail - 1].rstrip() + ELLIPSIS + line[-tail:].lstrip()
