"""Open tables: what histories say under every set of tables that noise leaves open, limited a second time.

True counts are within limits of noisy ones, but for a probability of β. What a row T of a channel says of a history is

    N_s = Σ_s' D(s|s') Σ_x' u(s', x') w(x'),   w(x') = ρ(s') T(x') + (1 - ρ(s')) Σ_x A(x|s) T(x)

with D, ρ and A shares of true counts, and u what the outputs before say. Each has limits, and sums over them are linear
programmes with one row: a straight line in its price λ is never below the largest one,

    Σ n w <= λ M + Σ max(l (w - λ), u (w - λ))    for l <= n <= u, Σ n <= M, λ >= 0,

whatever λ is, and never above the smallest with the signs turned. So no order of filling is relied on: it only says
which λ is worth trying. Shares are whole numbers of 2^-64 and histories of 160 bits, each rounded outwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from funnel.recount.channel import Channel
from funnel.recount.chapters import WHOLE, Chapter, Tree
from funnel.recount.count_box import CountBox
from funnel.recount.history_bounds import Side
from funnel.recount.noise import cell_limit, limits_of, possible_counts, scale_of
from funnel.recount.noisy_moves import NoisyChanges, Since
from funnel.recount.packed import divided_up
from funnel.recount.worst_counts import largest_lifts_over_counts, largest_odds_over_counts

BITS = 64
ONE = 1 << BITS
_KEPT = 160

Limits = tuple[int, int]


@dataclass(frozen=True)
class OpenTables:
    """What noise leaves open of a version.

    Attributes
    ----------
    beta : Fraction
    noisy : tuple of tuple of int, c × a
        Counts with noise.
    epsilon : float
        Of that noise (nats).
    changes : NoisyChanges or None
        Since earlier versions.
    """

    beta: Fraction
    noisy: tuple[tuple[int, ...], ...]
    epsilon: float
    changes: NoisyChanges | None

    @cached_property
    def counts(self) -> CountBox:
        """All tables of counts that are left."""
        c, a = len(self.noisy), len(self.noisy[0])
        return possible_counts(self.noisy, *limits_of(scale_of(self.epsilon), self.beta, c, a))

    @cached_property
    def most(self) -> int:
        """How far noise moved a count of changes at most."""
        changes = self.changes
        if changes is None:
            return 0
        tables = [table for one in changes.since for table in (one.secrets, one.stayed, one.left)]
        return cell_limit(changes.scale, self.beta / sum(len(row) for table in tables for row in table))


@dataclass(frozen=True)
class _Reach:
    """Limits of what the outputs of a history say, by cell and by secret, all up to one factor."""

    cells: list[list[Limits]]
    sums: list[Limits]


class _Step:
    """From an earlier version to one: limits of D, ρ and A, and of how common secrets are among people in both."""

    def __init__(self, since: Since, most: int, chapter: Chapter, box: CountBox, same: Sequence[int | None]) -> None:
        def around(count: int) -> Limits:
            return max(0, count - most), max(0, count + most)

        secrets = [[around(count) for count in row] for row in since.secrets]
        self.secrets = [shares_of(row) for row in secrets]
        pairs = [(around(stay), around(left)) for (stay,), (left,) in zip(since.stayed, since.left, strict=True)]
        self.stays = [shares_of(pair)[0] for pair in pairs]
        cells = [list(zip(*rows, strict=True)) for rows in zip(box.lower, box.upper, strict=True)]
        self.inputs = [shares_of(row, total) for row, total in zip(cells, box.totals, strict=True)]
        columns = [(sum(one[s][0] for one in secrets), sum(one[s][1] for one in secrets)) for s in range(chapter.c)]
        self.prior = shares_of(columns)
        self.same = same

    def told(self, reach: _Reach, row: Sequence[int]) -> list[Limits]:
        """Limits of N_s for a row, by secret now."""
        kept = [None if x is None else row[x] << BITS for x in self.same]
        ends: list[list[int]] = []
        for sign in (-1, 1):
            found = []
            for s, limits in enumerate(self.inputs):
                going = extreme(row, limits, (ONE, ONE), sign)
                total = 0
                for before, (cells, sums) in enumerate(zip(reach.cells, reach.sums, strict=True)):
                    share = self.secrets[before][s][sign > 0]
                    if not share or not sums[1]:
                        continue
                    of_ends = []
                    for rho in self.stays[before]:
                        weights = [ONE * going if k is None else rho * k + (ONE - rho) * going for k in kept]
                        of_ends.append(extreme(weights, cells, sums, sign))
                    total += share * (max(of_ends) if sign > 0 else min(of_ends))
                found.append(total)
            ends.append(found)
        return list(zip(*ends, strict=True))


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


def extreme(weights: Sequence[int], limits: Sequence[Limits], sums: Limits, sign: int) -> int:
    """Never below the largest ``Σ n w`` (sign 1), or above the smallest one (-1), of w >= 0 and n within limits."""
    order = sorted(range(len(weights)), key=lambda place: -sign * weights[place])
    room = sums[sign > 0] - sum(low for low, _ in limits)
    price = 0
    for place in order:
        low, high = limits[place]
        if room <= high - low:
            price = weights[place]
            break
        room -= high - low
    total = price * sums[sign > 0]
    for weight, (low, high) in zip(weights, limits, strict=True):
        more = weight - price
        total += more * (high if (more > 0) == (sign > 0) else low)
    return total


class OpenHistories:
    """The histories of a register, under every set of tables that noise leaves open.

    Parameters
    ----------
    tree : Tree
    tables : sequence of OpenTables or None
        Of every version, in their order; None where nothing is said of what is open.
    """

    def __init__(self, tree: Tree, tables: Sequence[OpenTables | None]) -> None:
        self._tree, self._tables = tree, tables
        self._reached: dict[int, _Reach] = {}
        self._steps: dict[tuple[int, int], _Step] = {}

    def holds(self, node: int, chapter: Chapter, sides: Sequence[Side], alone: bool = False) -> bool:
        """Whether no output of a history leaves the bound in a version; what tells nothing never does.

        ``alone``: whether the history by itself does not, before the version says anything.
        """
        if alone:
            before = self._tree.versions[node]
            if before is None:
                return True
            step = self._step(before, chapter.ordinal)
            return _holds(step.told(self._reach(node), [1] * chapter.a), step.prior, sides)
        rows = chapter.channels[chapter.followed[node]]
        dense = [_dense(row, chapter.a) for row in rows]
        if all(len(set(row)) == 1 for row in dense):
            return True
        earlier = self._tree.versions[node]
        if earlier is None:
            return _new_hold(self._table(chapter.ordinal).counts, dense, chapter, sides)
        step = self._step(earlier, chapter.ordinal)
        reach = self._reach(node)
        return all(_holds(step.told(reach, row), step.prior, sides) for row in dense if any(row))

    def _table(self, version: int) -> OpenTables:
        found = self._tables[version]
        if found is None:
            raise ValueError("nothing is known of what noise leaves open of a version")
        return found

    def _step(self, earlier: int, version: int) -> _Step:
        if (earlier, version) not in self._steps:
            table, chapter, before = self._table(version), self._tree.chapters[version], self._tree.chapters[earlier]
            assert table.changes is not None
            since = next(one for one in table.changes.since if one.version == before.name)
            same = chapter.laws[earlier].same
            self._steps[earlier, version] = _Step(since, table.most, chapter, table.counts, same)
        return self._steps[earlier, version]

    def _reach(self, node: int) -> _Reach:
        """Once its last output is known."""
        if node in self._reached:
            return self._reached[node]
        version = self._tree.versions[node]
        assert version is not None
        chapter, parent = self._tree.chapters[version], self._tree.parents[node]
        row = _dense(chapter.channels[chapter.followed[parent]][self._tree.outputs[node]], chapter.a)
        earlier = self._tree.versions[parent]
        if earlier is None:
            box = self._table(version).counts
            cells = [list(zip(*one, strict=True)) for one in zip(box.lower, box.upper, strict=True)]
            sums = [
                (extreme(row, limits, total, -1), extreme(row, limits, total, 1))
                for limits, total in zip(cells, box.totals, strict=True)
            ]
        else:
            step, before = self._step(earlier, version), self._reach(parent)
            units = [step.told(before, [int(x == place) for x in range(chapter.a)]) for place in range(chapter.a)]
            cells = [[one[s] for one in units] for s in range(chapter.c)]
            sums = step.told(before, row)
        weighed = [[(low * w, high * w) for (low, high), w in zip(limits, row, strict=True)] for limits in cells]
        shift = max(0, max(high for limits in weighed for _, high in limits).bit_length() - _KEPT)
        self._reached[node] = _Reach(
            [[_coarser(one, shift) for one in limits] for limits in weighed], [_coarser(one, shift) for one in sums]
        )
        return self._reached[node]


def _coarser(limits: Limits, shift: int) -> Limits:
    return max(0, limits[0]) >> shift, -(-limits[1] >> shift)


def _dense(row: Sequence[tuple[int, int]], a: int) -> list[int]:
    known = dict(row)
    return [known.get(x, 0) for x in range(a)]


def _holds(told: Sequence[Limits], prior: Sequence[Limits], sides: Sequence[Side]) -> bool:
    """Whether an output keeps every inequality under the worst of what is open."""
    possible = [s for s, (_, most) in enumerate(prior) if most]
    for side in sides:
        limit = side.limits[0]
        for s in possible:
            others = [t for t in possible if t != s]
            if side.name == "lift":
                whole = told[s][1] + sum(told[t][0] for t in others)
                pairs = [(told[s][1] * ONE, prior[s][0] * whole)]
            elif side.name == "inverse":
                whole = told[s][0] + sum(told[t][1] for t in others)
                pairs = [(prior[s][1] * whole, told[s][0] * ONE)]
            else:
                pairs = [(told[s][1] * prior[t][1], told[t][0] * prior[s][0]) for t in others]
            if any(above * limit.denominator > limit.numerator * below for above, below in pairs):
                return False
    return True


def _new_hold(box: CountBox, dense: Sequence[Sequence[int]], chapter: Chapter, sides: Sequence[Side]) -> bool:
    """The same for new people, over tables of counts alone."""
    counts = [chapter.beginning[s * chapter.a : (s + 1) * chapter.a] for s in range(chapter.c)]
    channel = Channel.of(counts, [row for row in dense if any(row)], WHOLE)
    found = {}
    if any(side.name == "odds" for side in sides):
        found["odds"] = largest_odds_over_counts(channel, box)
    else:
        found["lift"], found["inverse"] = largest_lifts_over_counts(channel, box)
    return all(found[side.name].within(side.nats) for side in sides)
