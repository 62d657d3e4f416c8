"""Path distributions: P(secret, input | everything published about a person), for every history, between proven limits.

The distribution of a history is a product of sums of non-negative numbers. It is kept as whole numbers of at least 160
bits that are never below it (up to a factor common to all cells, which no condition on a distribution depends on), with
a proven bound on how far above: every step rounds up, so that what is possible stays possible, and adds at most one
unit of the smallest number to the relative error. Hundreds of histories are carried from version to version at once,
side by side in one whole number. No floating point takes part. Where the limits do not decide, `ExactDistributions` has
fractions.

What was secret of people in an earlier version is carried along: from that version on, a history has as many such
distributions as there were secrets, each of the people who had one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any

from funnel.errors import DataError
from funnel.recount.chapters import NEW, Carrying, Chapter, Tree
from funnel.recount.move_distribution import MoveDistribution
from funnel.recount.packed import BITS, ONE, divided_up, packed, scaled_up, unpacked, width_for
from funnel.recount.promise import Group

# Numbers that are carried on at once, of each cell.
_BATCH = 512
# Bytes of a number that is kept.
_WIDTH = width_for(1 << BITS)
# The version and row from which a secret is told apart, and the group that is known then.
_Begins = tuple[int, int, Group | None]


@dataclass(frozen=True)
class HistoryDistribution:
    """The distribution of (secret, input) given a history, before a version.

    Attributes
    ----------
    node : int
        The history.
    cells : list of int, length c a
        Numbers in proportion to P(s, x | h), rounded up.
    excess : int
        Every number u stands for one in ``[u (1 - excess / 2^BITS), u]``; 0 where they are exact. Zeros are exact.
    secret_of : int or None
        The earlier version, of those in the history, whose c secrets s are; None for the secret now. Or the version
        itself, for another row of the person in it.
    row : int
        Whose secret it is where rows of a person in that version have secrets of their own; else 1.
    group : Group or None
        The inputs that the observer knows a person to have one of, in the version whose secret it is.
    share : float
        Of how many of the people with the history that is expected.
    """

    node: int
    cells: list[int]
    excess: int
    secret_of: int | None = None
    row: int = 1
    group: Group | None = None
    share: float = 1.0

    def within(self, group: Group, a: int) -> HistoryDistribution:
        """The same for an observer who knows more of the version that is to come."""
        cells = _within(self.cells, group, a)
        return replace(self, cells=cells, group=group, share=sum(cells) / sum(self.cells))


@dataclass(frozen=True)
class _Known:
    """What is known of a history, by the secret in one version or as a whole.

    Attributes
    ----------
    secret_of : int or None
    parts : list of list of int, or of Fraction
        Numbers in proportion to P(s, cell | h), by the secret s of that version; one part where there is none. Of a
        history in its last version the numbers of a part are packed into one.
    excess : int
    group : Group or None
        What is known besides of the version whose secret it is.
    power : int
        Numbers times 2^power have the same scale for all that is known of a history.
    """

    secret_of: int | None
    parts: list[Any]
    excess: int
    row: int = 1
    group: Group | None = None
    power: int = 0

    def of_people(self, whole: _Known) -> float:
        """Of how many of the people with a history what is known besides is expected."""
        found = Fraction(sum(map(sum, self.parts)), sum(map(sum, whole.parts)))
        return float(found * Fraction(2) ** (self.power - whole.power))

    def distribution(self, node: int, c: int, row: int = 1) -> HistoryDistribution:
        """Before a version of c secrets, or a row in it with a secret of its own."""
        if self.secret_of is None:
            return HistoryDistribution(node, self.parts[0], self.excess, row=row)
        a = len(self.parts[0]) // c
        cells = [sum(part[x::a]) for part in self.parts for x in range(a)]
        return HistoryDistribution(node, cells, self.excess, self.secret_of, self.row, self.group)

    def to_come(
        self, node: int, chapter: Chapter, row: int, ahead: list[list[Any]], excess: int, group: Group | None = None
    ) -> HistoryDistribution:
        """What is known as a whole, by the secret of a later row of the person: of `Chapter.secrets_ahead`.

        Numbers add up to those of the whole, times 2^BITS, where no group is known of that row.
        """
        (whole,), a = self.parts, chapter.a
        cells = [
            sum(whole[cell] * ahead[cell][s] for cell in range(x, len(whole), a))
            for s in range(chapter.c)
            for x in range(a)
        ]
        share = 1.0 if group is None else float(Fraction(sum(cells), ONE * sum(whole)))
        return HistoryDistribution(node, cells, self.excess + excess, chapter.ordinal, row, group, share)

    def split(self, chapter: Chapter, row: int, group: Group | None = None) -> _Known:
        """What is known as a whole, by the secret in the version, or the row of a person in it, that it is of."""
        (whole,), a = self.parts, chapter.a
        whole = whole if group is None else _within(whole, group, a)
        of_secret = [[n if cell // a == s else 0 for cell, n in enumerate(whole)] for s in range(chapter.c)]
        return _Known(chapter.ordinal, of_secret, self.excess, row, group, self.power)

    def drawn(self, row: Sequence[tuple[int, int]], a: int) -> list[list[Any]]:
        """The numbers of those who got an output."""
        after = []
        for part in self.parts:
            got = [0] * len(part)
            for x, weight in row:
                for cell in range(x, len(part), a):
                    got[cell] = part[cell] * weight
            after.append(got)
        return after

    def ended(self, row: Sequence[tuple[int, int]], a: int) -> _Known | None:
        """The same of those who got an output, packed; None if nobody of a known group can get it."""
        after = [n for got in self.drawn(row, a) for n in got]
        if not any(after) and self.group is not None:
            return None
        if not any(after):
            raise DataError("the register is damaged: it has a history that nobody can have; restore it from a backup")
        shift = max(after).bit_length() - BITS
        numbers, size = scaled_up(after, BITS), len(self.parts[0])
        parts = [packed(numbers[at : at + size], _WIDTH) for at in range(0, len(numbers), size)]
        excess = self.excess + (_unit(numbers) if shift > 0 else 0)
        return replace(self, parts=parts, excess=excess, power=self.power + shift)


class PathDistributions:
    """Distributions of all histories of a register by version; of each by the secret now, then by earlier ones.

    Parameters
    ----------
    tree : Tree
    known : mapping of int to sequence of Group
        What observers may know of everybody in a version besides, by ordinal.

    Notes
    -----
    A version costs O(h k) products for h histories and k different changes, some nanoseconds each, and holds the
    distributions of the histories that later versions go on from: 20 bytes a cell. All that once more for every secret
    of every earlier version, and for everything that may be known besides.
    """

    def __init__(self, tree: Tree, known: Mapping[int, Sequence[Group]] | None = None) -> None:
        self._tree, self._groups = tree, known or {}
        self._last = tree.last_used()
        # Of histories that somebody goes on from later.
        self._ends: dict[int, list[_Known]] = {}

    def versions(self) -> Iterator[tuple[Chapter, Iterator[HistoryDistribution]]]:
        """Every version with the distributions of the histories that its people had; each has to be read to its end."""
        for chapter in self._tree.chapters:
            yield chapter, self._distributions(chapter)
            self._ends = {n: end for n, end in self._ends.items() if self._last[n] > chapter.ordinal}

    def _distributions(self, chapter: Chapter) -> Iterator[HistoryDistribution]:
        children: dict[int, list[tuple[int, int]]] = {}
        for place, (parent, y) in enumerate(zip(chapter.parents, chapter.drawn, strict=True)):
            if chapter.first + place in self._last:
                children.setdefault(parent, []).append((chapter.first + place, y))
        groups: dict[tuple[int | None, int], list[int]] = {}
        for node in chapter.followed:
            earlier = self._tree.versions[node]
            groups.setdefault((earlier, self._tree.rows[node] if earlier == chapter.ordinal else 0), []).append(node)
        may_know, depth = self._groups.get(chapter.ordinal, ()), self._tree.depths[chapter.ordinal]
        members = self._are_apart(chapter)
        ahead = {
            (rows, group): chapter.secrets_ahead(rows, None if group is None else group.inside)
            for rows in range(depth if members else 1)
            for group in (None, *may_know)
        }
        # Another row of a person comes after all rows before it.
        for (earlier, _), nodes in sorted(groups.items(), key=lambda group: group[0][1]):
            for node, known in self._of_group(chapter, earlier, nodes):
                rows, row = chapter.channels[chapter.followed[node]], self._tree.next_row(node, chapter.ordinal)
                for child, y in children.get(node, ()):
                    # The secret of a version begins with the first row of a person in it, unless each has its own.
                    begun = [known[0].split(chapter, row, group) for group in (None, *may_know)]
                    every = [*known, *(begun if row == 1 or members else ())]
                    ended = [one.ended(rows[y], chapter.a) for one in every]
                    self._ends[child] = [one for one in ended if one is not None]
                for one in known:
                    # Where all rows of a person in a version have one secret, the distribution now is by that.
                    if one.secret_of != chapter.ordinal or members:
                        distribution = one.distribution(node, chapter.c, row if members else 1)
                        yield (
                            distribution if one.group is None else replace(distribution, share=one.of_people(known[0]))
                        )
                whole = known[0].distribution(node, chapter.c, row if members else 1)
                for group in may_know:
                    found = whole.within(group, chapter.a)
                    if any(found.cells):
                        yield found
                for later, known_then in product(range(row + 1, depth + 1) if members else (), (None, *may_know)):
                    found = known[0].to_come(node, chapter, later, *ahead[later - row, known_then], known_then)
                    if any(found.cells):
                        yield found

    def _are_apart(self, chapter: Chapter) -> bool:
        """Whether rows of a person are judged one by one: for their own secrets, or for who knows columns of one."""
        several = self._tree.depths[chapter.ordinal] > 1
        return chapter.has_members or (several and bool(self._groups.get(chapter.ordinal)))

    def _of_group(
        self, chapter: Chapter, earlier: int | None, nodes: Sequence[int]
    ) -> Iterator[tuple[int, list[_Known]]]:
        if earlier is None:
            yield NEW, [_Known(None, [list(chapter.beginning)], 0)]
            return
        carrying = chapter.carrying(earlier)
        cells = len(self._tree.chapters[earlier].counts)
        most = 1 + sum(
            one.c
            * (self._tree.depths[one.ordinal] if self._are_apart(one) else 1)
            * (1 + len(self._groups.get(one.ordinal, ())))
            for one in self._tree.chapters[: chapter.ordinal + 1]
        )
        step = max(1, _BATCH // most)
        for start in range(0, len(nodes), step):
            batch = [(node, self._ends[node]) for node in nodes[start : start + step]]
            yield from _carried(carrying, batch, cells, len(chapter.counts))


def _carried(
    carrying: Carrying | MoveDistribution, ends: Sequence[tuple[int, Sequence[_Known]]], n_before: int, n_after: int
) -> Iterator[tuple[int, list[_Known]]]:
    """What is known of some histories that end in one version, before another one."""
    # A cell of the distribution is at most the sum of all that is carried, and of what each division rounded up.
    slot = width_for((n_before + 1) * ((carrying.common << BITS) + carrying.largest))
    kept = [part for _, known in ends for end in known for part in end.parts]
    parts = [carrying.divided(unpacked(part, n_before, _WIDTH)) for part in kept]
    totals = carrying.carried([packed(column, slot) for column in zip(*parts, strict=True)], n_after)
    distributions = zip(*(unpacked(total, len(parts), slot) for total in totals), strict=True)
    divided = iter(parts)
    for node, known in ends:
        found = []
        for end in known:
            carried = [list(next(distributions)) for _ in end.parts]
            unit = _unit([n for _ in end.parts for n in next(divided)])
            found.append(replace(end, parts=carried, excess=end.excess + unit))
        yield node, found


def _within(cells: Sequence[int], group: Group, a: int) -> list[int]:
    """Numbers by cell of the inputs of a group; 0 of others."""
    return [n if cell % a in group.inside else 0 for cell, n in enumerate(cells)]


def _unit(numbers: Sequence[int]) -> int:
    """One unit of the smallest positive number, as a share of 2^BITS, rounded up."""
    return divided_up(1 << BITS, min(n for n in numbers if n))


class ExactDistributions:
    """Distributions of histories in fractions, for the few that limits do not decide.

    Parameters
    ----------
    tree : Tree

    Notes
    -----
    O(versions · changes) products of fractions for a history; the numbers grow by some 64 bits a version.
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._known = lru_cache(4096)(self._before)

    def distribution(
        self, node: int, version: int, secret_of: int | None = None, row: int = 1, group: Group | None = None
    ) -> list[Fraction]:
        """P(s, x | h) before a version, up to a factor, length c a; s now, or in an earlier version of the history.

        Or, where rows of a person have secrets of their own, in another row. For an observer who knows a group, of the
        inputs of it alone in the version whose secret it is.
        """
        chapter = self.tree.chapters[version]
        whole, *begun = self._known(node, version, None if secret_of is None else (secret_of, row, group))
        if begun:
            found = begun[0].distribution(node, chapter.c)
        elif secret_of is None:
            found = whole.distribution(node, chapter.c)
            found = found if group is None else found.within(group, chapter.a)
        else:
            rows = row - self.tree.next_row(node, version)
            ahead = chapter.secrets_ahead(rows, None if group is None else group.inside, exactly=True)
            found = whole.to_come(node, chapter, row, *ahead, group)
        cells: list[Any] = found.cells
        return cells

    def exactly(self, known: HistoryDistribution, version: int) -> HistoryDistribution:
        """The same before a version in whole numbers that are exact."""
        cells = self.distribution(known.node, version, known.secret_of, known.row, known.group)
        common = math.lcm(*(cell.denominator for cell in cells))
        return replace(known, cells=[int(cell * common) for cell in cells], excess=0)

    def _before(self, node: int, version: int, of: _Begins | None) -> list[_Known]:
        """What is known of a history before a version: as a whole, and once it began by the secret that is meant."""
        chapter, earlier = self.tree.chapters[version], self.tree.versions[node]
        if earlier is None:
            return [_Known(None, [[Fraction(count) for count in chapter.beginning]], 0)]
        ended, parent = self.tree.chapters[earlier], self.tree.parents[node]
        known, place = self._known(parent, earlier, of), (earlier, self.tree.rows[node])
        if of is not None and of[:2] == place:
            known = [*known, known[0].split(ended, of[1], of[2])]
        output, carrying = ended.channels[ended.followed[parent]][self.tree.outputs[node]], chapter.carrying(earlier)
        cells = len(chapter.counts)
        return [
            replace(one, parts=[carrying.carried(carrying.divided(got, Fraction), cells) for got in got_it])
            for one, got_it in ((one, one.drawn(output, ended.a)) for one in known)
        ]
