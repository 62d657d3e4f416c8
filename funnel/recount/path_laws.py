"""Path laws: P(secret, input | everything published about a person), for every history, between proven limits.

The law of a history is a product of sums of non-negative numbers. It is kept as whole numbers of at least 160 bits that
are never below it (up to a factor common to all cells, which no condition on a law depends on), with a proven bound on
how far above: every step rounds up, so that what is possible stays possible, and adds at most one unit of the smallest
number to the relative error. Hundreds of histories are carried from version to version at once, side by side in one
whole number. No floating point takes part. Where the limits do not decide, `exact_law` has the law in fractions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from funnel.errors import DataError
from funnel.recount.chapters import NEW, Carrying, Chapter, Tree
from funnel.recount.move_law import MoveDistribution
from funnel.recount.packed import divided_up, packed, scaled_up, unpacked, width_for

BITS = 160
# Histories that are carried on at once.
_BATCH = 512


@dataclass(frozen=True)
class HistoryDistribution:
    """The law of (secret, input) given a history, before a version.

    Attributes
    ----------
    node : int
        The history.
    earlier : int or None
        The version that it ends in.
    cells : list of int, length c a
        Numbers in proportion to P(s, x | h), rounded up.
    excess : int
        Every number u stands for one in ``[u (1 - excess / 2^BITS), u]``; 0 where they are exact. Zeros are exact.
    """

    node: int
    earlier: int | None
    cells: list[int]
    excess: int


class PathDistributions:
    """Laws of all histories of a register, version by version.

    Parameters
    ----------
    tree : Tree

    Notes
    -----
    A version costs O(h k) products for h histories and k different changes, some nanoseconds each, and holds the laws
    of the histories that later versions go on from: 20 bytes a cell.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._last = tree.last_used()
        # Of histories that somebody goes on from later: numbers of BITS bits by cell, and their excess.
        self._ends: dict[int, tuple[bytes, int]] = {}

    def versions(self) -> Iterator[tuple[Chapter, Iterator[HistoryDistribution]]]:
        """Every version with the laws of the histories that its people had; each has to be read to its end."""
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
        # Another row of a person comes after all rows before it.
        for (earlier, _), nodes in sorted(groups.items(), key=lambda group: group[0][1]):
            for law in self._of_group(chapter, earlier, nodes):
                rows = chapter.channels[chapter.followed[law.node]]
                for child, y in children.get(law.node, ()):
                    self._ends[child] = _ended(law, rows[y], chapter.a)
                yield law

    def _of_group(self, chapter: Chapter, earlier: int | None, nodes: Sequence[int]) -> Iterator[HistoryDistribution]:
        if earlier is None:
            yield HistoryDistribution(NEW, None, list(chapter.beginning), 0)
            return
        carrying = chapter.carrying(earlier)
        cells = len(self._tree.chapters[earlier].counts)
        for start in range(0, len(nodes), _BATCH):
            batch = nodes[start : start + _BATCH]
            yield from _carried(carrying, earlier, batch, [self._ends[n] for n in batch], cells, len(chapter.counts))


def _ended(law: HistoryDistribution, row: Sequence[tuple[int, int]], a: int) -> tuple[bytes, int]:
    """The law of those who got an output: numbers of BITS bits as bytes, and their excess."""
    after = [0] * len(law.cells)
    for x, weight in row:
        for cell in range(x, len(after), a):
            after[cell] = law.cells[cell] * weight
    if not any(after):
        raise DataError("the register is damaged: it has a history that nobody can have; restore it from a backup")
    shifted = max(after).bit_length() > BITS
    numbers = scaled_up(after, BITS)
    width = width_for(1 << BITS)
    return b"".join(n.to_bytes(width, "little") for n in numbers), law.excess + (_unit(numbers) if shifted else 0)


def _carried(
    carrying: Carrying | MoveDistribution,
    earlier: int,
    nodes: Sequence[int],
    ends: Sequence[tuple[bytes, int]],
    n_before: int,
    n_after: int,
) -> Iterator[HistoryDistribution]:
    """Laws of some histories that end in one version, before another one."""
    narrow = width_for(1 << BITS)
    # A cell of the law is at most the sum of all that is carried, and of what each division rounded up.
    slot = width_for((n_before + 1) * ((carrying.common << BITS) + carrying.largest))
    parts: list[list[int]] = []
    excesses = []
    for content, excess in ends:
        numbers = [int.from_bytes(content[at : at + narrow], "little") for at in range(0, len(content), narrow)]
        divided = carrying.divided(numbers)
        parts.append(divided)
        excesses.append(excess + _unit(divided))
    totals = carrying.carried([packed(column, slot) for column in zip(*parts, strict=True)], n_after)
    laws = zip(*(unpacked(total, len(nodes), slot) for total in totals), strict=True)
    for node, cells, excess in zip(nodes, laws, excesses, strict=True):
        yield HistoryDistribution(node, earlier, list(cells), excess)


def _unit(numbers: Sequence[int]) -> int:
    """One unit of the smallest positive number, as a share of 2^BITS, rounded up."""
    return divided_up(1 << BITS, min(n for n in numbers if n))


class ExactDistributions:
    """Laws of histories in fractions, for the few that limits do not decide.

    Parameters
    ----------
    tree : Tree

    Notes
    -----
    O(versions · changes) products of fractions for a history; the numbers grow by some 64 bits a version.
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._end = lru_cache(4096)(self._ended)
        self._carrying = lru_cache(64)(lambda version, earlier: tree.chapters[version].carrying(earlier))

    def law(self, node: int, version: int) -> list[Fraction]:
        """P(s, x | h) before a version, up to a factor, length c a."""
        chapter = self.tree.chapters[version]
        earlier = self.tree.versions[node]
        if earlier is None:
            return [Fraction(count) for count in chapter.beginning]
        carrying = self._carrying(version, earlier)
        found = [Fraction()] * len(chapter.counts)
        for before, share in enumerate(self._end(node)):
            if share:
                row, size = carrying.row(before)
                for after, count in row.items():
                    found[after] += share * count / size
        return found

    def _ended(self, node: int) -> tuple[Fraction, ...]:
        version = self.tree.versions[node]
        assert version is not None
        chapter, parent = self.tree.chapters[version], self.tree.parents[node]
        weights = dict(chapter.channels[chapter.followed[parent]][self.tree.outputs[node]])
        law = self.law(parent, version)
        return tuple(share * weights.get(cell % chapter.a, 0) for cell, share in enumerate(law))
