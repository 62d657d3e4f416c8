"""Share limits: shares and weighted sums of counts that are only known within limits, each limited outwards.

Largest sums are linear programmes with one row: a price of the sum is never below the largest one, whatever it is, and
the module :mod:`funnel.recount.open_tables` says which is asked for. Shares are whole numbers of 2^-64.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from funnel.recount.distribution_box import UNIT, lower_limit, upper_limit
from funnel.recount.packed import divided_up

BITS = 64
ONE = 1 << BITS
# Bits of a share beyond those of a limit of Clopper and Pearson.
FINER = BITS - (UNIT.bit_length() - 1)

Limits = tuple[int, int]


def shares_of(counts: Sequence[Limits], total: Limits | None = None) -> list[Limits]:
    """Limits of the shares of counts that are between limits, in 2^-64; anything where all may be zero.

    Parameters
    ----------
    counts : sequence of pairs of int
    total : pair of int, optional
        Limits of their sum, where more is known of it than of them.
    """
    least, most = sum(low for low, _ in counts), sum(high for _, high in counts)
    if total is not None:
        least, most = max(least, total[0]), min(most, total[1])
    if not least:
        return [(0, ONE)] * len(counts)
    found = []
    for low, high in counts:
        # The others, where this one is as small or as large as it can be.
        many = min(sum(h for _, h in counts) - high, max(0, most - low))
        few = max(sum(one for one, _ in counts) - low, least - high)
        found.append(
            (
                ONE * low // (low + many) if low else 0,
                min(ONE, divided_up(ONE * high, high + few)) if high else 0,
            )
        )
    return found


def sampled_shares(counts: Sequence[Limits], tail: Fraction) -> list[Limits]:
    """Limits, in 2^-64, of the probabilities of values that so many of some people have, each side but for ``tail``."""
    found = []
    for place, (low, high) in enumerate(counts):
        others = [*counts[:place], *counts[place + 1 :]]
        many, few = low + sum(most for _, most in others), high + sum(least for least, _ in others)
        found.append((lower_limit(low, many, tail) << FINER, (upper_limit(high, few, tail) if few else UNIT) << FINER))
    return found


def largest_sum(weights: Sequence[int], limits: Sequence[Limits], sums: Limits) -> int:
    """Never below the largest ``Σ n w`` of n within limits, for w of either sign, whatever the price is.

    It is that of the cell where the best sum within its limits is reached: above 0 it is paid for the largest sum,
    below for the least, and there is none where the sum is free.
    """
    pairs = list(zip(weights, limits, strict=True))
    free = sum(high if weight > 0 else low for weight, (low, high) in pairs)
    goal = min(max(free, sums[0]), sums[1])
    price, room = 0, goal - sum(low for low, _ in limits)
    for weight, (low, high) in sorted(pairs, reverse=True) if goal != free else ():
        price, room = weight, room - (high - low)
        if room <= 0:
            break
    return price * sums[price > 0] + sum(max(low * (w - price), high * (w - price)) for w, (low, high) in pairs)


def extreme(weights: Sequence[int], limits: Sequence[Limits], sums: Limits, sign: int) -> int:
    """Never below the largest such sum (sign 1), or above the smallest one (-1)."""
    return sign * largest_sum([sign * weight for weight in weights], limits, sums)
