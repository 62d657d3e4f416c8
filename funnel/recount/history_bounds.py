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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from funnel.errors import FunnelError
from funnel.recount.channel import by_secret
from funnel.recount.chapters import WHOLE, Rows, Tree
from funnel.recount.packed import ONE, packed, unpacked, width_for
from funnel.recount.path_distributions import HistoryDistribution
from funnel.recount.promise import Group, Promise
from funnel.recount.ratios import Ratio, Side, largest, level_above, worse

TOLERANCE = Fraction(1, 10**9)
"""How much further than the history by itself an output may go, relatively, where weights are whole numbers."""


@dataclass(frozen=True)
class HistoryFinding:
    """What an observer who knows a history learns from the next output.

    Attributes
    ----------
    worst : tuple of Ratio
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

    worst: tuple[Ratio, ...]
    moved: bool
    outside: bool
    worse: bool
    reserved: bool

    @property
    def holds(self) -> bool:
        """Whether the promise is kept: inside the bound, or, where the history by itself is not, not worse than it."""
        return not self.worse if self.moved else not self.outside


class Undecided(FunnelError):
    """The limits on a distribution do not tell; its fractions do."""

    def __init__(self) -> None:
        super().__init__(
            "limits on the distribution of a history do not decide a bound; this is a defect, please report it"
        )


def judge_history(
    sides: Sequence[Side], inner: Sequence[Side], distribution: HistoryDistribution, rows: Rows, shares: Sequence[int]
) -> HistoryFinding:
    """What an observer learns who knows a history.

    Parameters
    ----------
    sides, inner : sequence of Side
        For the declared budget, and for the share of it that the reserve leaves.
    distribution : HistoryDistribution
    rows : Rows
        The channel that people with the history draw from.
    shares : sequence of int, length c
        The prior.

    Raises
    ------
    Undecided
        If the limits on the distribution are too wide to decide.

    Notes
    -----
    O(w) products for w weights that are not zero, and O(b c) comparisons; O(b c²) for ldp.
    """
    by_cell, excess = by_secret(distribution.cells, len(distribution.cells) // len(shares)), distribution.excess
    masses, posteriors = list(map(sum, by_cell)), list(_posteriors(by_cell, rows))
    alone = tuple(replace(largest(side, [masses], shares), excess=excess) for side in sides)
    worst = tuple(replace(largest(side, posteriors, shares), excess=excess) for side in sides)
    moved, outside = not _all_within(alone, sides), not _all_within(worst, sides)
    worse = moved and _worse(sides, shares, excess, masses, posteriors)
    reserved = inner == sides or not _all_within(alone, inner) or _all_within(worst, inner)
    return HistoryFinding(worst, moved, outside, worse, reserved)


def _all_within(worst: Sequence[Ratio], sides: Sequence[Side]) -> bool:
    return all(_decided(_is_within(one, side)) for one, side in zip(worst, sides, strict=True))


def _is_within(one: Ratio, side: Side) -> bool | None:
    """Whether a ratio is at most e^nats; None if its limits do not tell."""
    if one.value is None or not one.excess:
        return one.within(side.nats)
    (low, high), upper = side.limits, one.upper
    if upper is None or upper <= low:
        return None if upper is None else True
    return False if one.value * (ONE - one.excess) > high * ONE else None


def _decided(found: bool | None) -> bool:
    if found is None:
        raise Undecided
    return found


def _posteriors(by_cell: Sequence[Sequence[int]], rows: Rows) -> Iterator[list[int]]:
    """N of the outputs that can be drawn; all secrets side by side in one product."""
    width = width_for(max(map(sum, by_cell)) * WHOLE)
    cells = [packed(column, width) for column in zip(*by_cell, strict=True)]
    for row in rows:
        if masses := sum([cells[x] * weight for x, weight in row]):
            yield unpacked(masses, len(by_cell), width)


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
    if 4 * excess >= ONE:
        return None
    room = 1 + TOLERANCE

    def allowed(by_history: bool, limit: Fraction, error: int) -> bool:
        # A lift is on the side of A, that of an inverse lift on the side of B; the other one has no room. Both sides
        # are linear in e^ε, so that what holds at either end of its limits holds between them. All in whole numbers:
        # times the denominators of the limit, of the error and of the room.
        p, q = limit.as_integer_ratio()
        own, others = up * (ONE + error) * q, p * down * (ONE - error)
        most = up_alone * q * (ONE - error) - p * down_alone * (ONE + error) if by_history else 0
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


class Tally:
    """What was found of the histories of a version so far."""

    def __init__(self, tree: Tree, promise: Promise, sides: Sequence[Side]) -> None:
        self._tree, self._promise, self._sides = tree, promise, sides
        self._worst = [Ratio()] * len(sides)
        self._moved_worst: list[Ratio] | None = None
        self._failed: dict[str, list[int]] = {}
        # Of one history there may be several secrets, of the rows of a person: by row, and of each group that is known
        # of it, some people.
        self._moved: dict[tuple[int, int, Group | None], float] = {}
        self._outside: dict[tuple[int, int, Group | None], float] = {}

    def add(self, distribution: HistoryDistribution, found: HistoryFinding, people: float) -> None:
        """One history more, that so many people have."""
        node = distribution.node
        for of, counts in ((self._moved, found.moved), (self._outside, found.outside)):
            if counts:
                of[node, distribution.row, distribution.group] = people * distribution.share
        if found.moved:
            self._moved_worst = [*map(worse, self._moved_worst or found.worst, found.worst)]
        else:
            self._worst = [*map(worse, self._worst, found.worst)]
        if not found.holds:
            what = "is outside the bound by itself, and an output tells more than it does"
            self.fail(what if found.moved else "leaves the bound with some output", node)
        elif not found.reserved:
            self.fail("uses up the reserve", node)

    def fail(self, what: str, node: int) -> None:
        """A history that breaks the bound, and how."""
        self._failed.setdefault(what, []).append(node)

    @property
    def moved(self) -> float:
        """People whose history is outside by itself."""
        return _people(self._moved)

    @property
    def outside(self) -> float:
        """People with an output outside."""
        return _people(self._outside)

    def level(self) -> float:
        """Of histories that are not moved."""
        return level_above(self._promise, self._sides, self._worst)

    @property
    def moved_level(self) -> float | None:
        """Of histories that are moved; None if there is none."""
        return None if self._moved_worst is None else level_above(self._promise, self._sides, self._moved_worst)

    def broken(self) -> Iterator[str]:
        """Sentences about histories that break the bound."""
        for what, nodes in self._failed.items():
            more = f" (and so do {len(nodes) - 1:,} more)" if len(nodes) > 1 else ""
            versions = len(self._tree.history(nodes[0]))
            yield f"the history of number {nodes[0]}, of {versions} versions, {what}{more}"


def _people(found: Mapping[tuple[int, int, Group | None], float]) -> float:
    """Those with any of some histories, each by the row that most are found by."""
    by_row: dict[tuple[int, int], float] = {}
    for (node, row, _), people in found.items():
        by_row[node, row] = by_row.get((node, row), 0) + people
    most: dict[int, float] = {}
    for (node, _), people in by_row.items():
        most[node] = max(most.get(node, 0), people)
    return sum(most.values())
