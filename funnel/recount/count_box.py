"""Count boxes: every table of counts, and every distribution, published frequencies allow; shares of what is in them.

Limits of P(u|s) and P(s) are simultaneous ones of Clopper and Pearson, found by tails of binomial distributions.
Largest sums are linear programmes with one row: a price of the sum is never below the largest one, whatever it is, and
the module :mod:`funnel.recount.open_tables` says which is asked for. Shares are whole numbers of 2^-64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import chain

from flint import arb, ctx, fmpq

from funnel.errors import DataError
from funnel.recount.intervals import ball, decided
from funnel.recount.packed import divided_up

Table = tuple[tuple[int, ...], ...]
Limits = tuple[int, int]


@dataclass(frozen=True)
class CountBox:
    """Limits of every count and of the total of every secret.

    Attributes
    ----------
    lower, upper : tuple of tuple of int, c × a
        Least and largest number of records with secret s and published input u.
    totals : tuple of pairs of int, length c
        Least and largest number of records with each secret; already as narrow as the cells make them.

    Raises
    ------
    DataError
        If no table is within these limits.
    """

    lower: Table
    upper: Table
    totals: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        shapes = [[len(row) for row in table] for table in (self.lower, self.upper)]
        fits = shapes[0] == shapes[1] and len(set(shapes[0])) == 1 and len(self.totals) == len(self.lower)
        if not fits or any(
            not 0 <= low <= high for low, high in zip(chain(*self.lower), chain(*self.upper), strict=True)
        ):
            raise DataError("the limits of the counts do not fit each other")
        totals = tuple(
            (max(least, sum(lows)), min(most, sum(highs)))
            for (least, most), lows, highs in zip(self.totals, self.lower, self.upper, strict=True)
        )
        if any(least > most for least, most in totals):
            raise DataError("no table of counts is within the limits of its cells and of its totals")
        object.__setattr__(self, "totals", totals)

    @classmethod
    def of(
        cls, lower: Sequence[Sequence[int]], upper: Sequence[Sequence[int]], totals: Sequence[Sequence[int]]
    ) -> CountBox:
        """A box of any sequences of numbers, arrays of numpy among them."""
        pairs = tuple((int(least), int(most)) for least, most in totals)
        return cls(_table(lower), _table(upper), pairs)

    @classmethod
    def exactly(cls, counts: Sequence[Sequence[int]]) -> CountBox:
        """The box of one table."""
        table = _table(counts)
        return cls(table, table, tuple((sum(row), sum(row)) for row in table))

    def part(self, inputs: Sequence[int]) -> CountBox:
        """Every table of some inputs alone that is part of a table in the box.

        The others take from a total what their cells allow: between the sum of their least and of their largest.
        """
        inside = set(inputs)
        others = [u for u in range(len(self.lower[0])) if u not in inside]
        totals = tuple(
            (least - sum(highs[u] for u in others), most - sum(lows[u] for u in others))
            for (least, most), lows, highs in zip(self.totals, self.lower, self.upper, strict=True)
        )
        lower, upper = (tuple(tuple(row[u] for u in inputs) for row in table) for table in (self.lower, self.upper))
        return CountBox(lower, upper, totals)

    def hold(self, counts: Sequence[Sequence[int]]) -> bool:
        """Whether a table is within the limits."""
        table = _table(counts)
        if [len(row) for row in table] != [len(row) for row in self.lower]:
            return False
        cells = zip(*(chain(*rows) for rows in (self.lower, table, self.upper)), strict=True)
        totals = zip(self.totals, map(sum, table), strict=True)
        return all(low <= n <= high for low, n, high in cells) and all(low <= n <= high for (low, high), n in totals)


def _table(rows: Sequence[Sequence[int]]) -> Table:
    return tuple(tuple(int(value) for value in row) for row in rows)


# Limits are whole multiples of 1/UNIT, rounded outwards: that is part of what the set of distributions is.
UNIT = 1 << 32
_FIRST_BITS = 64
# Of doubles that say where to look: rounds, terms of a continued fraction, and what stands for zero in one.
_ROUNDS, _TERMS, _SMALLEST = 60, 10_000, 1e-300
# Bits of terms beyond those of an interval, for what is rounded of thousands of them; and from how many records on a
# function of intervals is faster than some ten times their square root of terms.
_GUARD, _MANY = 40, 100_000


@dataclass(frozen=True)
class DistributionBox:
    """Every distribution of (S, U) that the counts do not rule out.

    Attributes
    ----------
    inputs : tuple of c tuples of a pairs of int
        Limits of P(u|s), times UNIT.
    secrets : tuple of c pairs of int
        Limits of P(s), times UNIT.
    """

    inputs: tuple[tuple[Limits, ...], ...]
    secrets: tuple[Limits, ...]


def distribution_box(counts: CountBox, alpha: Fraction) -> DistributionBox:
    """The distributions that limits of tables allow, at ``alpha / (2 (c a + c))`` for each side of each limit."""
    return limits_at(counts, alpha / count_sides(counts))


def count_sides(counts: CountBox) -> int:
    """How many sides all limits of P(u|s) and of P(s) have: 2 (c a + c)."""
    c, a = len(counts.lower), len(counts.lower[0])
    return 2 * (c * a + c)


def limits_at(counts: CountBox, tail: Fraction) -> DistributionBox:
    """The distributions that no table within the limits rules out, each side of each limit at ``tail``.

    For one table these are the limits of Clopper and Pearson (1934). For a box of tables each limit is the one of its
    worst table: few records of the cell among as many as may have the secret, or many among few.

    Notes
    -----
    O(c a) limits, each by two tails of binomial distributions or a few more.
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
    """The largest j with ``P(Bin(trials, j/UNIT) >= successes) <= tail``.

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
    """``P(Bin(n, j/UNIT) >= k)``, or 1 less that of as many failures, whichever has terms that fall."""
    if j * (trials + 1) >= (successes + 1) * UNIT:
        return 1 - _tail(trials - successes + 1, trials, UNIT - j)
    failures = trials - successes
    if min(successes, failures) > _MANY:
        return arb(fmpq(j, UNIT)).beta_lower(successes, failures + 1, regularized=1)
    share = arb(fmpq(j, UNIT))
    ways = arb(trials + 1).lgamma() - arb(successes + 1).lgamma() - arb(failures + 1).lgamma()
    first = (ways + successes * share.log() + failures * (1 - share).log()).exp()
    # The terms over the first one, in units of 2^-bits and rounded down: the one at place m by less than m units.
    bits = ctx.prec + _GUARD
    term = total = 1 << bits
    over, under, places = failures * j, (successes + 1) * (UNIT - j), 0
    while term and over:
        term = term * over // under
        total, over, under, places = total + term, over - j, under + UNIT - j, places + 1
    # Those after the last one fall at least as fast as it.
    error = places * (places + 1) // 2 + divided_up(max(places, 1) * over, under - over)
    return first * arb(fmpq(total, 1 << bits)).union(arb(fmpq(total + error, 1 << bits)))


def _is_within(successes: int, trials: int, j: int, tail: Fraction) -> bool:
    """Whether the tail at a place is at most what it may be, proven."""

    def compared() -> bool | None:
        reached, limit = _tail(successes, trials, j), ball(tail)
        return bool(reached <= limit) if reached <= limit or reached > limit else None

    return decided(compared, _FIRST_BITS)


BITS = 64
ONE = 1 << BITS
# Bits of a share beyond those of a limit of Clopper and Pearson.
FINER = BITS - (UNIT.bit_length() - 1)


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
