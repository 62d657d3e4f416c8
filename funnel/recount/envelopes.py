"""Envelopes: the largest weighted sum over a box with a given total, by its dual instead of by filling the box."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise


class Envelope:
    """``A(N) = max Σ_u m_u T_u`` over ``l_u <= m_u <= u_u`` with ``Σ m = N``, as the lowest of straight lines.

    For every price t of a unit, ``A(N) <= t N + Σ_u max((T_u - t) l_u, (T_u - t) u_u)`` (weak duality); among the
    prices that are entries of T one attains it, so that A is the lowest of these lines in N. Each of them proves a
    bound by itself: nothing is filled, and no order of filling is relied on.

    Parameters
    ----------
    values : sequence of int
        T, of any sign.
    lower, upper : sequence of int

    Notes
    -----
    Time O(a log a). N may be any whole number from ``Σ l`` to ``Σ u``; where limits and N are whole, so are the m of a
    largest sum, and A is concave.
    """

    __slots__ = ("_lines", "least", "most")

    def __init__(self, values: Sequence[int], lower: Sequence[int], upper: Sequence[int]) -> None:
        self.least, self.most = sum(lower), sum(upper)
        cells = sorted(zip(values, lower, upper, strict=True), reverse=True)
        # Σ over T > t of (T - t) u, and over T <= t of (T - t) l, are kept as sums of the parts.
        above = records = 0
        below = sum(value * low for value, low, _ in cells)
        left = self.least
        lines = []
        for value, low, high in cells:
            above, records = above + value * high, records + high
            below, left = below - value * low, left - low
            lines.append((value, above + below - value * (records + left)))
        self._lines = lines

    def __call__(self, total: int) -> int:
        """A(total); O(a)."""
        return min(price * total + rest for price, rest in self._lines)

    def corners(self, least: int, most: int) -> list[tuple[int, int]]:
        """The points (N, A(N)) from ``least`` to ``most`` between which A is straight; O(a)."""
        points = {least: self(least), most: self(most)}
        for (first, one), (second, other) in pairwise(self._lines):
            if first != second:
                # Whole: there all cells of the higher price are full. Both lines are as low there.
                place = (other - one) // (first - second)
                if least < place < most:
                    points[place] = first * place + one
        return sorted(points.items())


def largest_mean(values: Sequence[int], limits: Sequence[tuple[int, int]], unit: int) -> int:
    """``max Σ p_u T_u`` times ``unit``, over laws p with ``unit p_u`` within its limits."""
    return Envelope(values, [low for low, _ in limits], [high for _, high in limits])(unit)


def smallest_mean(values: Sequence[int], limits: Sequence[tuple[int, int]], unit: int) -> int:
    """``min Σ p_u T_u`` times ``unit``, over the same laws."""
    return -largest_mean([-value for value in values], limits, unit)
