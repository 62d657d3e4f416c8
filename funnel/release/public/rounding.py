"""How precisely numbers are told: the steps of shares, lifts and levels, and the digits of everything else."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any

import numpy as np

from funnel.guarantees import Guarantee
from funnel.joint import FloatArray

# A share is told no finer than this many records, and never finer than to a thousandth.
RECORDS = 10
FINEST_SHARE = 0.001
_COARSEST_SHARE = 0.5
TEXT_DIGITS = 3
# No figure of a public document has more digits.
MOST_DIGITS = 4
P_VALUE_DIGITS = LEVEL_DIGITS = LIFT_DIGITS = SECONDS_DIGITS = 2
# Levels beyond the budget are told on a grid of a tenth of it, or of the next larger of .1, .2, .5, 1, 2, 5, … nats.
LEVEL_STEPS = 10
_FLOAT = re.compile(r"(\blevel (?:at most )?)?(?<![:,.\d])(\d+\.\d+(?:e[-+]?\d+)?)")


def share_step(n: int) -> float:
    """The step of every public share of n records: the least of .001, .002, .005, .01, … that is RECORDS of them."""
    return min(_COARSEST_SHARE, max(FINEST_SHARE, step_above(RECORDS / n)))


def share_at_most(share: float, step: float) -> float:
    """A share up to the next step, at least one: that it is nothing is not told."""
    return min(1.0, round(max(1, math.ceil(share / step)) * step, 12))


def lift_step(lift: float, expected: float) -> float:
    """The step of a public lift: two digits, and no finer than RECORDS of the records expected of this secret and y."""
    return max(10.0 ** (math.floor(math.log10(lift)) + 1 - LIFT_DIGITS), step_above(RECORDS / expected))


def level_step(budget: float) -> float:
    """The step of public levels beyond a budget, in nats: a tenth of it, or a little more; zero without a budget."""
    return step_above(budget / LEVEL_STEPS) if 0 < budget < math.inf else 0.0


def public_shares(shares: FloatArray, step: float) -> FloatArray:
    """Shares as multiples of a step, half to even, at least one step for what is not nothing."""
    # 177 of 6,000 are 29.5 steps of .002, and 29.499999999999996 as floats.
    multiples = np.round(np.round(shares / step, 9))
    return np.asarray(np.round(np.where(shares > 0, np.maximum(multiples, 1), 0) * step, 12))


def distribution_of_rare(shares: FloatArray, step: float) -> FloatArray:
    """A distribution from public shares that are mostly one step, as of a wide table: what others leave, equally.

    Ten thousand values of a step each add up to ten, so that to divide by their sum would make common values rare. What
    is left by those of more than a step follows from public numbers, and so does how many others there are.
    """
    rare = (shares > 0) & (shares <= step * (1 + 1e-9))
    left = 1.0 - float(shares[~rare].sum())
    if not 0 < left < float(shares[rare].sum()):
        return np.asarray(shares / shares.sum())
    return np.where(rare, left / max(1, int(rare.sum())), shares)


def rounded(value: float, digits: int) -> float:
    """A number to so many significant digits."""
    return _to_digits(value, digits, ROUND_HALF_EVEN)


def rounded_up(value: float, digits: int = TEXT_DIGITS) -> float:
    """A level to so many significant digits, never below itself."""
    nearest = _to_digits(value, digits, ROUND_HALF_EVEN)
    # A level that was rounded up before stays as it is: as a float it can be a hair above its own digits.
    return nearest if nearest >= value else _to_digits(value, digits, ROUND_CEILING)


def rounded_down(value: float, digits: int = TEXT_DIGITS) -> float:
    """A limit to so many significant digits, never above itself."""
    return _to_digits(value, digits, ROUND_FLOOR)


def public_level(value: float, guarantee: Guarantee, holds: bool) -> float:
    """What is told of a level, never below it: the budget where that holds, else a step of the grid (`level_step`).

    How far below its budget a level is would tell those who know everybody else what the last one has (decision 0032).
    """
    if holds and value <= guarantee.budget:
        return guarantee.budget
    # One of the two grids is a part of the other, so that both together tell no more than the coarser.
    coarse, step = rounded_up(value, LEVEL_DIGITS), level_step(guarantee.budget)
    if value <= 0 or not math.isfinite(value) or step == 0:
        return coarse
    multiple = math.ceil(value / step)
    # The quotient of two floats may be below the true one.
    multiple += round(multiple * step, 12) < value
    return max(coarse, round(multiple * step, 12))


def p_value(value: float) -> float:
    """A p-value to two significant digits."""
    return rounded(value, P_VALUE_DIGITS)


def count_of_records(count: int) -> str:
    """How many records were treated in some way, in words: to the nearest ten, or to two digits."""
    if count < RECORDS:
        return "no" if count == 0 else f"fewer than {RECORDS}"
    step = max(RECORDS, 10 ** (len(str(count)) - 2))
    return f"about {round(count / step) * step:,}"


def public_text(text: str, step: float = 0.0, guarantee: Guarantee | None = None) -> str:
    """A sentence about figures, but for those of a guarantee: each decimal in it to three digits, a level upwards.

    Where there is a step, anything but a level is told to multiples of it; where there is a guarantee, a level is told
    as under it.
    """

    def rounded_number(found: re.Match[str]) -> str:
        value = float(found[2])
        if found[1] is not None:
            level = rounded_up(value) if guarantee is None else public_level(value, guarantee, False)
            return f"{found[1]}{level:.15g}"
        return f"{rounded(to_multiple(value, step) if step else value, TEXT_DIGITS):.15g}"

    return _FLOAT.sub(rounded_number, text)


def to_multiple(value: float, step: float) -> float:
    """The nearest multiple of a step."""
    return round(round(value / step) * step, 12)


def nats_step(value: float, step: float) -> float:
    """The step of an entropy: that of public shares, but for ten nats and more, where it would have too many digits."""
    return max(step, 10.0 ** (math.floor(math.log10(value)) + 1 - MOST_DIGITS)) if value >= 10 else step


def step_above(least: float) -> float:
    """The least of …, .1, .2, .5, 1, 2, 5, … that is not below a number."""
    power = 10.0 ** math.floor(math.log10(least))
    for factor in (1, 2, 5):
        if factor * power >= least * (1 - 1e-12):
            return round(factor * power, 12)
    return round(10 * power, 12)


def _to_digits(value: float, digits: int, rounding: str) -> float:
    if value == 0 or not math.isfinite(value):
        return value
    exact = Decimal(value)
    # Reading the decimal as a double is monotone, so what was rounded up is not below the value.
    return float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - digits + 1), rounding=rounding))


def in_digits(value: Any, declared: Collection[float] = ()) -> Any:
    """A JSON value with every float in it to `MOST_DIGITS` significant digits, but for numbers that are declared.

    Those are told as they are: no data are in them, and other documents tell them so.
    """
    if isinstance(value, float):
        return value if value in declared else rounded(value, MOST_DIGITS)
    if isinstance(value, dict):
        return {key: in_digits(part, declared) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [in_digits(part, declared) for part in value]
    return value
