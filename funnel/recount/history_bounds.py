"""History bounds: whether what was published about people, with what is published now, keeps what the spec promises.

Given a history h and an output y, the posterior of the secret is ``v_s = N_s / Σ N`` with ``N_s = Σ_x P(s, x | h)
R(y | x, h)``. Of a posterior every promise asks for some inequalities ``A <= e^ε B``, with A and B linear in v and not
negative (METHOD sections 2 and 9):

    lift of s           A = v_s         B = p_s          e^ε of the upper budget
    inverse lift of s   A = p_s         B = v_s          e^ε of the lower budget
    odds of s and t     A = v_s / p_s   B = v_t / p_t    ldp

The level is the largest ``ln A/B``. A history that breaks one by itself is *moved*. Then no
output may be worse in any respect: ``A - e^ε B <= max(0, A' - e^ε B')`` with A' and B' of the history by itself, which
whole numbers meet up to `TOLERANCE`, by which a lift may be larger, or an inverse lift smaller, than that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from funnel.errors import FunnelError
from funnel.recount.chapters import BITS, Rows
from funnel.recount.intervals import at_most_exp, log_above
from funnel.recount.path_laws import HistoryDistribution
from funnel.recount.ratios import Side

TOLERANCE = Fraction(1, 10**9)
"""How much further than the history by itself an output may go, relatively, where weights are whole numbers."""

_ONE = 1 << BITS


@dataclass(frozen=True)
class Worst:
    """The largest ``A/B`` of a side: at most ``above/below``, and at least that times ``1 - 2^-BITS · excess``.

    Attributes
    ----------
    above, below : int
        ``below`` is 0 where it is infinite.
    excess : int
    """

    above: int = 1
    below: int = 1
    excess: int = 0

    @property
    def ratio(self) -> Fraction | None:
        """A number that it is at most; None if it is infinite."""
        if not self.below:
            return None
        return Fraction(self.above * _ONE, self.below * (_ONE - self.excess)) if self.excess < _ONE else None

    def within(self, side: Side) -> bool | None:
        """Whether it is at most e^nats; None if the limits do not tell."""
        if not self.below:
            return False
        if not self.excess:
            return at_most_exp(Fraction(self.above, self.below), side.nats)
        low, high = side.limits
        if self.excess >= _ONE:
            return None
        if self.above * _ONE * low.denominator <= low.numerator * self.below * (_ONE - self.excess):
            return True
        if self.above * (_ONE - self.excess) * high.denominator > high.numerator * self.below * _ONE:
            return False
        return None

    @property
    def nats(self) -> float:
        """Its logarithm, rounded up."""
        ratio = self.ratio
        return float("inf") if ratio is None else log_above(max(ratio, Fraction(1)))


@dataclass(frozen=True)
class HistoryFinding:
    """What an observer who knows a history learns from the next output.

    Attributes
    ----------
    worst : tuple of Worst
        By side: over all outputs that can be drawn.
    moved : bool
        Whether the history by itself is outside the bound.
    outside : bool
        Whether some output that can be drawn is.
    worse : bool
        Of a moved history: whether an output breaks an inequality by more than the history does.
    reserved : bool
        Whether a history that is inside of the smaller budget by itself stays there.
    """

    worst: tuple[Worst, ...]
    moved: bool
    outside: bool
    worse: bool
    reserved: bool

    @property
    def holds(self) -> bool:
        """Whether the promise is kept: inside the bound, or, where the history by itself is not, not worse than it."""
        return not self.worse if self.moved else not self.outside


class Undecided(FunnelError):
    """The limits on a law do not tell; its fractions do."""

    def __init__(self) -> None:
        super().__init__("limits on the law of a history do not decide a bound; this is a defect, please report it")


def judge_history(
    sides: Sequence[Side], inner: Sequence[Side], law: HistoryDistribution, rows: Rows, shares: Sequence[int]
) -> HistoryFinding:
    """What an observer learns who knows a history.

    Parameters
    ----------
    sides, inner : sequence of Side
        For the declared budget, and for the share of it that the reserve leaves.
    law : HistoryDistribution
    rows : Rows
        The channel that people with the history draw from.
    shares : sequence of int, length c
        The prior.

    Raises
    ------
    Undecided
        If the limits on the law are too wide to decide.

    Notes
    -----
    O(c w) products for w weights that are not zero, and O(b c) comparisons; O(b c²) for ldp.
    """
    c, excess = len(shares), law.excess
    masses = _by_secret(law.cells, c)
    posteriors = list(_posteriors(law.cells, rows, c))
    alone = tuple(_worst(side, shares, excess, [masses]) for side in sides)
    worst = tuple(_worst(side, shares, excess, posteriors) for side in sides)
    moved, outside = not _all_within(alone, sides), not _all_within(worst, sides)
    worse = moved and _worse(sides, shares, excess, masses, posteriors)
    reserved = inner == sides or not _all_within(alone, inner) or _all_within(worst, inner)
    return HistoryFinding(worst, moved, outside, worse, reserved)


def _all_within(worst: Sequence[Worst], sides: Sequence[Side]) -> bool:
    return all(_decided(one.within(side)) for one, side in zip(worst, sides, strict=True))


def _decided(found: bool | None) -> bool:
    if found is None:
        raise Undecided
    return found


def _by_secret(cells: Sequence[int], c: int) -> list[int]:
    a = len(cells) // c
    return [sum(cells[s * a : (s + 1) * a]) for s in range(c)]


def _posteriors(cells: Sequence[int], rows: Rows, c: int) -> Iterator[list[int]]:
    """N of the outputs that can be drawn."""
    a = len(cells) // c
    by_secret = [cells[start : start + a] for start in range(0, len(cells), a)]
    for row in rows:
        masses = [sum([part[x] * weight for x, weight in row]) for part in by_secret]
        if any(masses):
            yield masses


def _worst(side: Side, shares: Sequence[int], excess: int, posteriors: Sequence[Sequence[int]]) -> Worst:
    above, below = 1, 1
    for masses in posteriors:
        for up, down in side.terms(masses, shares):
            if up * below > above * down:
                above, below = up, down
                if not down:
                    return Worst(1, 0, excess)
    return Worst(above, below, excess)


def _worse(
    sides: Sequence[Side],
    shares: Sequence[int],
    excess: int,
    alone: Sequence[int],
    posteriors: Sequence[Sequence[int]],
) -> bool:
    """Whether an output breaks an inequality by more than the history by itself."""
    before = sum(alone)
    for side in sides:
        by_history = list(side.terms(alone, shares))
        for masses in posteriors:
            whole = sum(masses)
            for (up, down), (up_alone, down_alone) in zip(side.terms(masses, shares), by_history, strict=True):
                # Both as parts of one: those of the history times N, those of the output times the sum of the history.
                terms = (up * before, down * before, up_alone * whole, down_alone * whole)
                if not _decided(_no_worse(side, terms, excess)):
                    return True
    return False


def _no_worse(side: Side, terms: tuple[int, int, int, int], excess: int) -> bool | None:
    """Whether an output is no worse than the history, from limits on A, B, A' and B'; None if they do not tell.

    Each of the four, divided by the sum that it is a part of, is known up to a relative error of 4 excess.
    """
    up, down, up_alone, down_alone = terms
    low, high = side.limits
    if not excess and up * low.denominator <= low.numerator * down:
        return True
    if 4 * excess >= _ONE:
        return None
    room = 1 + TOLERANCE

    def allowed(by_history: bool, limit: Fraction, error: int) -> bool:
        # A lift is on the side of A, that of an inverse lift on the side of B; the other one has no room. Both sides
        # are linear in e^ε, so that what holds at either end of its limits holds between them. All in whole numbers:
        # times the denominators of the limit, of the error and of the room.
        p, q = limit.as_integer_ratio()
        own, others = up * (_ONE + error) * q, p * down * (_ONE - error)
        most = up_alone * q * (_ONE - error) - p * down_alone * (_ONE + error) if by_history else 0
        if side.name == "inverse":
            return (own - most) * room.denominator <= room.numerator * others
        return own * room.denominator <= room.numerator * (others + most)

    error = 4 * excess
    for by_history in (False, True):
        if allowed(by_history, low, error) and allowed(by_history, high, error):
            return True
    if any(allowed(by_history, limit, -error) for by_history in (False, True) for limit in (low, high)):
        return None
    return False
