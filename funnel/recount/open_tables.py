"""Open tables: what histories say under every set of tables that noise or a sample leaves open, limited a second time.

True counts are within limits of noisy ones, but for a probability of β, and probabilities in a population within limits
of Clopper and Pearson around counts, but for α. What a row T of a channel says of a history is

    N_s = Σ_s' D(s|s') Σ_x' u(s', x') w(x'),   w(x') = ρ(s') T(x') + (1 - ρ(s')) Σ_x A(x|s) T(x)

with D, ρ and A these shares, and u what the outputs before say. Each has limits, and sums over them are linear
programmes with one row: a straight line in its price λ is never below the largest one,

    Σ n w <= λ M + Σ max(l (w - λ), u (w - λ))    for l <= n <= u, Σ n <= M, λ >= 0,

whatever λ is, and never above the smallest with the signs turned. So no order of filling is relied on: it only says
which λ is worth trying. Shares are whole numbers of 2^-64 and histories of 160 bits, each rounded outwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from funnel.errors import DataError
from funnel.recount.channel import Channel, by_secret
from funnel.recount.chapters import WHOLE, Chapter, Tree
from funnel.recount.count_box import (
    BITS,
    FINER,
    ONE,
    DistributionBox,
    Limits,
    count_sides,
    extreme,
    largest_sum,
    limits_at,
    sampled_shares,
    shares_of,
)
from funnel.recount.left_open import Tables, around
from funnel.recount.noisy_moves import Since
from funnel.recount.promise import Group
from funnel.recount.ratios import Side
from funnel.recount.worst_boxes import Possible, worst_of

_KEPT = 160

Shares = Callable[[Sequence[Limits]], list[Limits]]


@dataclass(frozen=True)
class _Reach:
    """Limits of what the outputs of a history say, by cell and by secret, all up to one factor."""

    cells: list[list[Limits]]
    sums: list[Limits]


@dataclass(frozen=True)
class _Step:
    """From an earlier version or row: limits of D, ρ and A, and of how common secrets are among people in both.

    Attributes
    ----------
    secrets : list of list of pairs of int, c' × c
    stays : list of pairs of int, length c'
    inputs : sequence of sequences of pairs of int, c × a
    prior : sequence of pairs of int, length c
    same : sequence of int or None
        Where each input of before is among those of now.
    """

    secrets: list[list[Limits]]
    stays: list[Limits]
    inputs: Sequence[Sequence[Limits]]
    prior: Sequence[Limits]
    same: Sequence[int | None]

    @classmethod
    def since(
        cls, since: Since, most: int, shares: Shares, inputs: Sequence[Sequence[Limits]], same: Sequence[int | None]
    ) -> _Step:
        """Of people whose last version an earlier one is."""
        secrets = [[around(count, most) for count in row] for row in since.secrets]
        pairs = zip(since.stayed, since.left, strict=True)
        prior = shares(
            [(sum(low for low, _ in rows), sum(high for _, high in rows)) for rows in zip(*secrets, strict=True)]
        )
        stays = [shares((around(stay, most), around(left, most)))[0] for (stay,), (left,) in pairs]
        return cls([shares(row) for row in secrets], stays, inputs, prior, same)

    @classmethod
    def of_rows(
        cls,
        second: Sequence[tuple[Limits, Limits]],
        shares: Shares,
        inputs: Sequence[Sequence[Limits]],
        prior: Sequence[Limits],
    ) -> _Step:
        """From a row of a person to the next: the secret stays, and is as common as before the first one."""
        secrets = [[(ONE, ONE) if s == t else (0, 0) for t in range(len(second))] for s in range(len(second))]
        return cls(secrets, [shares(pair)[0] for pair in second], inputs, prior, range(len(inputs[0])))

    def holds(self, reach: _Reach, row: Sequence[int], sides: Sequence[Side]) -> bool:
        """Whether an output keeps every inequality under the worst of what is open.

        Each is ``Σ_s a_s N_s <= 0``. It holds where it does for the limits of every N_s by itself, or else where a
        straight line in the price of u is never above 0, whatever u is: the same one in every N_s.
        """
        told = self.told(reach, row)
        for side, s, t in _inequalities(self.prior, sides):
            weights = _weights(self.prior, side, s, t)
            apart = sum(weight * limits[weight > 0] for weight, limits in zip(weights, told, strict=True))
            if apart > 0 and self._largest(reach, row, weights) > 0:
                return False
        return True

    def _largest(self, reach: _Reach, row: Sequence[int], weights: Sequence[int]) -> int:
        """Never below the largest ``Σ_s a_s N_s``, for whole numbers a of either sign."""
        signs = {s: 1 if weight > 0 else -1 for s, weight in enumerate(weights) if weight}
        ends = {s: extreme(row, self.inputs[s], (ONE, ONE), sign) for s, sign in signs.items()}
        kept = [None if x is None else row[x] << BITS for x in self.same]
        total = 0
        for before, (cells, sums) in enumerate(zip(reach.cells, reach.sums, strict=True)):
            shares = {s: weights[s] * self.secrets[before][s][weights[s] > 0] for s in ends}
            if not any(shares.values()) or not sums[1]:
                continue
            stay, going = sum(shares.values()), sum(share * ends[s] for s, share in shares.items())
            total += max(
                largest_sum(
                    [ONE * going if k is None else rho * k * stay + (ONE - rho) * going for k in kept], cells, sums
                )
                for rho in self.stays[before]
            )
        return total

    def told(self, reach: _Reach, row: Sequence[int]) -> list[Limits]:
        """Limits of N_s for a row, by secret now."""
        units = [[int(s == one) for s in range(len(self.inputs))] for one in range(len(self.inputs))]
        return [
            (-self._largest(reach, row, [-weight for weight in unit]), self._largest(reach, row, unit))
            for unit in units
        ]


def _tail_of_changes(alpha: Fraction, ordinal: int, c_before: int, c: int, of_units: bool = False) -> Fraction:
    """What one side of a limit of changes may miss with: half of what a version has of α, in equal parts.

    These are for all versions before it, and for D, ρ and the prior of each; and for its own rows, of people who may
    have several.
    """
    t = ordinal + 1
    return alpha / (2 * t * (t + 1) * (ordinal + of_units)) / (2 * (c_before * c + c_before + c))


def _tail_of_rows(alpha: Fraction, ordinal: int, c: int) -> Fraction:
    """The same of its own rows: for ρ alone."""
    t = ordinal + 1
    return alpha / (2 * t * (t + 1) * t) / (2 * c)


class _Begun:
    """What is left open of who is new in a version, and of its published inputs given the secret.

    Under noise all tables of counts; in a population the limits of Clopper and Pearson around these, for a part of α.
    Limits among people of whom something is known share that part.
    """

    def __init__(self, table: Tables, ordinal: int, alpha: Fraction | None, known: Sequence[Group] = ()) -> None:
        self.counts, self.box = table.counts, None
        self.known: list[tuple[list[int], DistributionBox]] = []
        lower, upper, totals = table.counts.lower, table.counts.upper, table.counts.totals
        if alpha is None:
            self.cells = [list(zip(*rows, strict=True)) for rows in zip(lower, upper, strict=True)]
            self.sums: Sequence[Limits] = totals
            self.inputs = [shares_of(row, total) for row, total in zip(self.cells, totals, strict=True)]
            return
        # Version t has a share 1 / (t (t + 1)) of α, which add up to 1; half of it is for its counts.
        t = ordinal + 1
        places = [sorted(group.inside) for group in known]
        parts = [table.counts.part(some) for some in places]
        tail = alpha / (2 * t * (t + 1) * sum(map(count_sides, [table.counts, *parts])))
        self.box = limits_at(table.counts, tail)
        self.known = [(some, limits_at(part, tail)) for some, part in zip(places, parts, strict=True)]
        self.cells = [
            [(low * least, high * most) for low, high in row]
            for row, (least, most) in zip(self.box.inputs, self.box.secrets, strict=True)
        ]
        self.sums = [(least << FINER, most << FINER) for least, most in self.box.secrets]
        self.inputs = [[(low << FINER, high << FINER) for low, high in row] for row in self.box.inputs]


class OpenHistories:
    """The histories of a register, under every set of tables that noise, or a sample, leaves open.

    Parameters
    ----------
    tree : Tree
    tables : sequence of Tables or None
        Of every version, in their order; None where nothing is said of what is open.
    alpha : Fraction, optional
        Of a bound in a population that all versions are samples of, for all of them together.
    known : sequence of sequence of Group
        By version, what observers may know of people besides, for whom the bound is too; nothing, if it is empty.
    """

    def __init__(
        self,
        tree: Tree,
        tables: Sequence[Tables | None],
        alpha: Fraction | None = None,
        known: Sequence[Sequence[Group]] = (),
    ) -> None:
        self._tree, self._tables, self._alpha, self._known = tree, tables, alpha, known
        self._reached: dict[int, _Reach] = {}
        self._steps: dict[tuple[int, int, int | None], _Step] = {}
        self._new: dict[int, _Begun] = {}

    def holds(self, node: int, chapter: Chapter, sides: Sequence[Side], alone: bool = False) -> bool:
        """Whether no output of a history leaves the bound in a version; what tells nothing never does.

        ``alone``: whether the history by itself does not, before the version says anything.
        """
        if alone:
            before = self._tree.versions[node]
            if before is None:
                return True
            step = self._step(before, chapter.ordinal, node)
            return step.holds(self._reach(node), [1] * chapter.a, sides)
        rows = chapter.channels[chapter.followed[node]]
        dense = [_dense(row, chapter.a) for row in rows]
        if all(len(set(row)) == 1 for row in dense):
            return True
        earlier = self._tree.versions[node]
        if earlier is None:
            return _new_hold(self._begun(chapter.ordinal), dense, chapter, sides)
        return self._kept(node, earlier, chapter, dense, sides)

    def _kept(
        self, node: int, earlier: int, chapter: Chapter, dense: Sequence[Sequence[int]], sides: Sequence[Side]
    ) -> bool:
        """The same of outputs of a history with an earlier version, for observers of all that may be known besides."""
        step, reach = self._step(earlier, chapter.ordinal, node), self._reach(node)
        if not all(step.holds(reach, row, sides) for row in dense if any(row)):
            return False
        for inside, box in self._begun(chapter.ordinal).known:
            prior = [(least << FINER, most << FINER) for least, most in box.secrets]
            given, some = replace(step, prior=prior), set(inside)
            # An observer who knows it learns nothing from a row that is the same for all with it.
            telling = [row for row in dense if len({row[x] for x in inside}) > 1]
            rows = [[weight if x in some else 0 for x, weight in enumerate(row)] for row in telling]
            if not all(given.holds(reach, row, sides) for row in rows if any(row)):
                return False
        return True

    def _table(self, version: int) -> Tables:
        found = self._tables[version]
        if found is None:
            raise ValueError("nothing is known of what noise leaves open of a version")
        return found

    def _step(self, earlier: int, version: int, node: int) -> _Step:
        """For a history that ends in an earlier version, or in a row of the version itself."""
        origin = self._tree.origin(node, version)
        if (earlier, version, origin) not in self._steps:
            found = self._since(earlier, version) if earlier < version else self._next_row(version, origin)
            self._steps[earlier, version, origin] = found
        return self._steps[earlier, version, origin]

    def _since(self, earlier: int, version: int) -> _Step:
        table, chapter, before = self._table(version), self._tree.chapters[version], self._tree.chapters[earlier]
        shares: Shares = shares_of
        if self._alpha is not None:
            tail = _tail_of_changes(self._alpha, version, before.c, chapter.c, table.of_units)
            shares = partial(sampled_shares, tail=tail)
        same = table.same[before.name] if before.name in table.same else chapter.distributions[earlier].same
        return _Step.since(table.since[before.name], table.most, shares, self._begun(version).inputs, same)

    def _next_row(self, version: int, origin: int | None) -> _Step:
        second, begun = self._table(version).second, self._begun(version)
        if second is None or self._alpha is None:
            name = self._tree.chapters[version].name
            raise DataError(f"version {name!r} does not say how many people have which second row; release it again")
        prior = begun.sums if origin is None else self._since(origin, version).prior
        shares = partial(sampled_shares, tail=_tail_of_rows(self._alpha, version, len(second)))
        return _Step.of_rows(second, shares, begun.inputs, prior)

    def _begun(self, version: int) -> _Begun:
        if version not in self._new:
            known = self._known[version] if self._known else ()
            self._new[version] = _Begun(self._table(version), version, self._alpha, known)
        return self._new[version]

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
            begun = self._begun(version)
            cells = begun.cells
            sums = [
                (extreme(row, limits, total, -1), extreme(row, limits, total, 1))
                for limits, total in zip(cells, begun.sums, strict=True)
            ]
        else:
            step, before = self._step(earlier, version, parent), self._reach(parent)
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


def _inequalities(prior: Sequence[Limits], sides: Sequence[Side]) -> Iterator[tuple[Side, int, int]]:
    """Every inequality, by its side and the secrets that it is about: one of a lift, twice, or two."""
    possible = [s for s, (_, most) in enumerate(prior) if most]
    for side in sides:
        for s in possible:
            others = [t for t in possible if t != s] if side.name == "odds" else [s]
            yield from ((side, s, t) for t in others)


def _weights(prior: Sequence[Limits], side: Side, s: int, t: int) -> list[int]:
    """Whole numbers a with ``Σ_s a_s N_s <= 0`` where an inequality holds, for the prior that is worst for it."""
    up, down = side.limits[0].numerator, side.limits[0].denominator
    found = [0] * len(prior)
    if side.name == "odds":
        found[s], found[t] = down * prior[t][1], -up * prior[s][0]
        return found
    for one, (_, most) in enumerate(prior):
        if most:
            found[one] = -up * prior[s][0] if side.name == "lift" else down * prior[s][1]
    found[s] += down * ONE if side.name == "lift" else -up * ONE
    return found


def _new_hold(begun: _Begun, dense: Sequence[Sequence[int]], chapter: Chapter, sides: Sequence[Side]) -> bool:
    """The same for new people: over tables of counts alone, or over all that these leave open of a population."""
    channel = Channel.of(by_secret(chapter.beginning, chapter.a), [row for row in dense if any(row)], WHOLE)
    if not _within(sides, channel, begun.counts if begun.box is None else begun.box):
        return False
    for inside, among in begun.known:
        rows = [[row[x] for x in inside] for row in dense]
        # Counts only say where to start, so one record of each cell will do.
        given = Channel.of([[1] * len(inside)] * chapter.c, [row for row in rows if any(row)], WHOLE)
        if not _within(sides, given, among):
            return False
    return True


def _within(sides: Sequence[Side], channel: Channel, possible: Possible) -> bool:
    """Whether the worst of all that is possible keeps every inequality."""
    return all(one.within(side.nats) for one, side in zip(worst_of(sides, channel, possible), sides, strict=True))
