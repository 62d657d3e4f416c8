"""The largest ratios of probabilities over boxes of counts and of distributions, by duals of worst cases."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from funnel.recount.channel import Channel
from funnel.recount.count_box import UNIT, CountBox, DistributionBox, extreme
from funnel.recount.ratios import Ratio, Side, larger, largest

# What probabilities add up to.
_WHOLE = UNIT, UNIT

Possible = CountBox | DistributionBox | None
"""What may be true: tables in a box of counts, distributions in a box, or the counts of a channel alone."""


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


@dataclass(frozen=True)
class _Side:
    """One secret under one output: the largest sums of ``values`` for every total that it may have.

    Attributes
    ----------
    sums : Envelope
    least, most : int
        Limits of the total, the first at least 1: without a record nothing is said about the secret.
    corners : tuple of pairs of int
        (total, largest sum) between which the largest sum is straight, from no record on if there may be none.
    """

    sums: Envelope
    least: int
    most: int
    corners: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, box: CountBox, s: int, row: Sequence[int], sign: int) -> _Side:
        least, most = box.totals[s]
        sums = Envelope([sign * weight for weight in row], box.lower[s], box.upper[s])
        return cls(sums, max(1, least), most, tuple(sums.corners(least, most)))

    def peak(self) -> tuple[int, int]:
        """The smallest (total, sum) with the largest mean: where A is straight A/N is monotonous, so at a corner."""
        best = self.least, self.sums(self.least)
        for total, weighed in self.corners:
            if total and weighed * best[0] > best[1] * total:
                best = total, weighed
        return best

    def furthest(self, above: int, below: int) -> tuple[int, int]:
        """The corner (N, A) with the largest ``A - N above/below``; A is concave, so bisection finds it."""
        corners = self.corners
        place = bisect_left(
            range(len(corners) - 1),
            True,
            key=lambda k: (corners[k + 1][1] - corners[k][1]) * below <= (corners[k + 1][0] - corners[k][0]) * above,
        )
        return corners[place]


def largest_odds_over_counts(channel: Channel, box: CountBox) -> Ratio:
    """The largest ``P(y|s)/P(y|t)`` over outputs, secrets s other than t, and tables of counts in the box.

    Counts of two secrets vary by themselves, so it is the largest mean of s over the smallest of t.
    """
    worst = Ratio()
    for rows in _rows(channel):
        means = {s: [_Side.of(box, s, rows[s], sign).peak() for sign in (1, -1)] for s in _possible(box)}
        for s, ((of, most), _) in means.items():
            for t, (_, (among, least)) in means.items():
                if s != t:
                    worst = larger(worst, most * among, -least * of)
    return worst


def largest_lifts_over_counts(channel: Channel, box: CountBox) -> tuple[Ratio, Ratio]:
    """The largest ``P(y|s)/P(y)`` and ``P(y)/P(y|s)`` over outputs, secrets and tables of counts in the box.

    Notes
    -----
    With N records of s, whose weights add up to A = ρ N, and R others whose weights add up to B, the first ratio is
    ``ρ (N + R) / (ρ N + B)``. For given ρ and N it exceeds g where ``Σ (ρ - g T_u) n_tu`` over the others exceeds
    ``ρ N (g - 1)``: linear in every count, so its largest value is at corners, and raising g to what was found until it
    stays finds it. It grows with ρ, and falls with N where it is above 1; beyond the N with the largest ρ both make it
    smaller. Up to there an interval of N is ruled out by its largest ρ at its smallest N, or halved. The second ratio
    is the same with the signs of the weights turned round. Every number is whole; no corner of s itself is assumed to
    be the worst.
    """
    up = down = Ratio()
    for rows in _rows(channel):
        above = {s: _Side.of(box, s, rows[s], 1) for s in _possible(box)}
        below = {s: _Side.of(box, s, rows[s], -1) for s in _possible(box)}
        for s in above:
            up = _searched(up, above[s], [below[t] for t in below if t != s], True)
            down = _searched(down, below[s], [above[t] for t in above if t != s], False)
    return up, down


def _searched(best: Ratio, own: _Side, others: list[_Side], rises: bool) -> Ratio:
    """The best ratio so far, or the largest one of a secret if that is larger."""
    intervals = [(own.least, own.peak()[0])]
    while intervals and best.value is not None:
        first, last = intervals.pop()
        # Up to the peak means only get further from the others', so the last one is the furthest of the interval.
        found = _raised(best, abs(own.sums(last)), last, first, others, rises)
        if found == best:
            continue
        if first == last:
            best = found
        else:
            middle = (first + last) // 2
            intervals += [(first, middle), (middle + 1, last)]
    return best


def _raised(best: Ratio, weighed: int, among: int, total: int, others: list[_Side], rises: bool) -> Ratio:
    """The best ratio so far, or if that is larger the largest one where ``total`` records of s have a given mean.

    Parameters
    ----------
    weighed, among : int
        The mean ρ as a fraction.
    others : list of _Side
        Of the other secrets: the smallest sums where the first ratio is sought (``rises``), else the largest.
    """
    while best.value is not None:
        g = best.value
        # The largest of Σ (ρ/g - T_u) n_u for the first ratio, and of Σ (T_u - g ρ) n_u for the second.
        price = (
            (-weighed * g.denominator, among * g.numerator) if rises else (weighed * g.numerator, among * g.denominator)
        )
        corners = [side.furthest(*price) for side in others]
        rest, theirs = sum(records for records, _ in corners), sum(abs(part) for _, part in corners)
        alone, together = weighed * (total + rest), weighed * total + theirs * among
        found = larger(best, alone, together) if rises else larger(best, together, alone)
        if found == best:
            break
        best = found
    return best


def _rows(channel: Channel) -> Iterator[list[tuple[int, ...]]]:
    """The weights by secret of every output that is not as likely from all inputs."""
    for y, weights in enumerate(channel.weights):
        if len(set(weights)) > 1:
            yield [tuple(channel.row(y, s)) for s in range(channel.c)]


def _possible(box: CountBox) -> list[int]:
    """Secrets that some table in the box has a record of."""
    return [s for s, (_, most) in enumerate(box.totals) if most > 0]


def largest_odds_over_distributions(channel: Channel, box: DistributionBox) -> Ratio:
    """The largest ``P(y|s)/P(y|t)`` over outputs, secrets s other than t, and distributions in the box.

    The conditional distributions of two secrets vary by themselves, so it is the most that s allows over the least that
    t does.
    """
    worst = Ratio()
    for lows, highs in _reaches(channel, box):
        for s, most in enumerate(highs):
            for t, least in enumerate(lows):
                if s != t:
                    worst = larger(worst, most, least)
    return worst


def largest_lifts_over_distributions(channel: Channel, box: DistributionBox) -> tuple[Ratio, Ratio]:
    """The largest ``P(y|s)/P(y)`` and ``P(y)/P(y|s)`` over outputs, secrets and distributions in the box.

    ``P(y|s)/P(y) = m_s / Σ_t p_t m_t`` grows with m_s and falls with every other m_t, whatever p is: so m_s is as large
    as it can be, the others as small, and p makes the mean smallest. The other ratio is the other way round.
    """
    up = down = Ratio()
    for lows, highs in _reaches(channel, box):
        for s in range(channel.c):
            high = [*lows[:s], highs[s], *lows[s + 1 :]]
            low = [*highs[:s], lows[s], *highs[s + 1 :]]
            up = larger(up, high[s] * UNIT, extreme(high, box.secrets, _WHOLE, -1))
            down = larger(down, extreme(low, box.secrets, _WHOLE, 1), low[s] * UNIT)
    return up, down


def _reaches(channel: Channel, box: DistributionBox) -> Iterator[tuple[list[int], list[int]]]:
    """How likely an output can be given each secret: limits of P(y|s), attained, times UNIT and the denominator."""
    for y in range(len(channel.weights)):
        rows = [channel.row(y, s) for s in range(channel.c)]
        most = [extreme(row, limits, _WHOLE, 1) for row, limits in zip(rows, box.inputs, strict=True)]
        if any(most):
            yield [extreme(row, limits, _WHOLE, -1) for row, limits in zip(rows, box.inputs, strict=True)], most


def worst_of(sides: Sequence[Side], channel: Channel, possible: Possible) -> list[Ratio]:
    """The largest ratio of every side, over outputs and all that may be true."""
    if possible is None:
        return [largest(side, channel.outputs(), channel.sizes) for side in sides]
    if any(side.name == "odds" for side in sides):
        if isinstance(possible, CountBox):
            return [largest_odds_over_counts(channel, possible)]
        return [largest_odds_over_distributions(channel, possible)]
    if isinstance(possible, CountBox):
        up, down = largest_lifts_over_counts(channel, possible)
    else:
        up, down = largest_lifts_over_distributions(channel, possible)
    return [up if side.name == "lift" else down for side in sides]
