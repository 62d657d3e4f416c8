"""Expected waves: people with several rows whom public tables lead one to expect, row by row, computed a second time.

T_k people have a k-th row: by the noisy numbers of people with so many rows, clipped at 0, up to the last of them that
is above eight scales of its noise. In the first wave people are expected as in any version. Of the predicted histories
of a wave T_{k+1} / T_k of the people go on to the next one; the others stand where they are. The effective channel is

    W = Σ_k T_k W_k / Σ_k T_k,    W_k = (1 - λ_k) V_k + λ_k v_k,

V_k what predicted histories come to, v_k its law of the output for first rows, λ_k the share of those in the wave whose
history is not predicted (0 in the first one, where V_k counts them as people who are given the law of the output).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from funnel.recount.chapters import Chapter, Tree
from funnel.recount.expected import LEAST, MOST, PARTS, Attending, Expected, first_nodes
from funnel.recount.noisy_moves import NoisyRows
from funnel.recount.path_laws import HistoryDistribution

SURE = 8


def waves_of(rows: NoisyRows) -> tuple[int, ...]:
    """T_k, of as many waves as are expected; the first one at least 1."""
    sure = [k for k, people in enumerate(rows.sizes) if people > SURE * rows.scale]
    sizes = [max(0, people) for people in rows.sizes[: sure[-1] + 1 if sure else 1]]
    found = [sum(sizes[k:]) for k in range(len(sizes))]
    return (max(1, found[0]), *found[1:])


def lost_by_version(tree: Tree, lost: dict[int, float]) -> dict[int, float]:
    """Numbers of people by version, from those by chapter: every row of a version with several is a chapter."""
    deepest = [1] * len(tree.chapters)
    for version, row in zip(tree.versions, tree.rows, strict=True):
        if version is not None:
            deepest[version] = max(deepest[version], row)
    heads = {sum(deepest[:ordinal]): ordinal for ordinal in range(len(deepest))}
    # What is told of another row than the first of a version is told of none.
    return {heads.get(number, -1 - number): people for number, people in lost.items() if people or number in heads}


class ExpectedWaves(Attending):
    """Who is expected in the waves of a version: to be given the laws of its histories, row by row.

    Parameters
    ----------
    first : Attending
        In the first wave.
    tree : Tree
    rows : NoisyRows
    after : Expected
        Who is expected not to be in the version; whoever stands at a history after it is added.
    """

    def __init__(self, first: Attending, tree: Tree, rows: NoisyRows, after: Expected) -> None:
        super().__init__(dict(first.people), first.others)
        self._everybody = first.everybody
        self._tree, self._waves, self._after = tree, waves_of(rows), after
        # Of the wave that is being read: its number, and those in it with a history that is not predicted.
        self._row, self._unknown = 1, 0.0
        self._here = dict(first.people)
        self._sums: list[list[float]] = []
        self._room: list[float] = []
        self._weight = 0
        self._lost = 0.0
        self._is_last = False
        self._misplaced = False

    @property
    def everybody(self) -> float:
        """All who are expected in the first wave."""
        return self._everybody

    def add(self, law: HistoryDistribution, chapter: Chapter) -> None:
        """Take up one history; another row of people comes after all rows before it."""
        row = 1 if law.node < chapter.first else self._tree.rows[law.node] + 1
        while self._row < row and not self._is_last:
            self._advance(chapter)
        if row == self._row and law.node in self._here:
            super().add(law, chapter)

    def complaints(self, chapter: Chapter, effective: Sequence[Sequence[int]], after: Expected) -> Iterator[str]:
        """As of people with one row each."""
        while not self._is_last:
            self._advance(chapter)
        if missing := len(self.people.keys() - chapter.followed.keys()):
            yield f"it has no channels for {missing:,} histories that people are expected to have"
        if self._misplaced:
            yield "histories that are expected of its people are not the first that it has for their row"
        after.lost[chapter.ordinal] = self._lost
        wrong = sum(
            abs(effective[y][x] / 2**63 - total / self._weight) > room / self._weight
            for y, row in enumerate(self._sums)
            for x, (total, room) in enumerate(zip(row, self._room, strict=True))
        )
        if wrong:
            yield f"{wrong:,} weights of the effective channel are not the mean that people are expected to draw from"

    def _advance(self, chapter: Chapter) -> None:
        """What becomes of the people in a wave, and who is in the next one."""
        self._add_channel(chapter)
        rows = self._tree.rows[chapter.first : chapter.first + len(chapter.parents)]
        start = sum(row < self._row for row in rows)
        found = first_nodes(chapter, self.answered, start)
        self._misplaced |= found is None
        found = found or {}
        others = self.others if self._row == 1 else self._unknown
        unpredicted = max(0.0, math.fsum([*self.answered.values(), others]) - math.fsum(found.values()))
        share = 0.0
        if self._row < len(self._waves) and self._waves[self._row - 1]:
            share = self._waves[self._row] / self._waves[self._row - 1]
        there = {node: share * people for node, people in found.items()}
        likeliest = sorted(sorted(there), key=lambda node: -there[node])[:MOST]
        on = {node: there[node] for node in sorted(likeliest) if there[node] >= LEAST}
        stay = {node: (1 - share) * people for node, people in found.items() if (1 - share) * people >= LEAST}
        self._after.people.update(stay)
        left = (1 - share) * math.fsum(found.values())
        self._lost += (1 - share) * unpredicted + left - math.fsum(stay.values())
        self._unknown = share * unpredicted + math.fsum(there.values()) - math.fsum(on.values())
        self._row += 1
        self._here = on
        self.people = {**self.people, **on}
        for numbers in (self.answered, self._drawing, self._histories):
            numbers.clear()
        if not on or self._row > len(self._waves):
            self._is_last = True
            self._lost += self._unknown

    def _add_channel(self, chapter: Chapter) -> None:
        units = self._waves[self._row - 1]
        others = self.others if self._row == 1 else 0.0
        mean, room = self._mean(chapter, others)
        counts = chapter.beginning
        everybody = sum(counts)
        first = [sum(counts[x :: chapter.a]) / everybody for x in range(chapter.a)]
        unknown = 0.0
        if self._row > 1:
            unknown = self._unknown / (math.fsum(self._here.values()) + self._unknown)
        if not self._sums:
            self._sums = [[0.0] * chapter.a for _ in range(chapter.b)]
            self._room = [0.0] * chapter.a
        for y, row in enumerate(mean):
            alike = math.fsum(share * p for share, p in zip(row, first, strict=True))
            for x, share in enumerate(row):
                self._sums[y][x] += units * ((1 - unknown) * share + unknown * alike)
        # Shares of people who are not predicted are in parts too.
        widest = max(room) if unknown else 0.0
        for x, one in enumerate(room):
            self._room[x] += units * (one + widest + 4 / PARTS)
        self._weight += units
