"""Expected: how many people public tables lead one to expect with which history, and the channel that these come to.

Before a version, M(h) people are expected whose last answers so far are h. Of those whose last version is v the same
share is in the next one, T_v over the sum of their M, at most all of them: T_v is how many people the noisy table of
their secrets then and now has, at least none. The others of the next version are new, and so are those whom T_v has
beyond all that there could be. Of att(h) people with the history h,

    M(hy) = att(h) Σ_x P(x | h) R(y | x, h),      W(y | x) = Σ_h att(h) P(x | h) R(y | x, h) / Σ_h att(h) P(x | h)

Histories of less than a hundredth of a person are not *predicted*, before a version or after it, nor are more than the
2^14 likeliest, by six digits of how many people, and of those alike the first: of those who have one nothing is known
but the distribution of the version, and they count in W as people who are given the distribution of the output.

Where people have several rows, T_k of them have a k-th one: by the noisy numbers of people with so many rows, clipped
at 0, up to the last of them that noise alone explains with less than `CHANCE`. In the first wave people are expected as
in any version. Of the predicted histories of a wave T_{k+1} / T_k of the people go on to the next one; the others stand
where they are. The effective channel is

    W = Σ_k T_k W_k / Σ_k T_k,    W_k = (1 - λ_k) V_k + λ_k v_k,

V_k what predicted histories come to, v_k its distribution of the output for first rows, λ_k the share of those in the
wave whose history is not predicted (0 in the first one, where V_k counts them as people who are given the distribution
of the output). People with one row each are one wave.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from funnel.recount.chapters import NEW, WHOLE, Chapter, Tree
from funnel.recount.noisy_moves import NoisyRows
from funnel.recount.path_distributions import HistoryDistribution

LEAST, MOST = 0.01, 1 << 14
# Expected people are counted in parts of so many where W is made of them: by secret, input and history.
PARTS = 1 << 30
# Of sums of some thousand floats.
_CLOSE = 1e-9
# With at most this probability noise alone is taken for people with so many rows, of all numbers of rows together.
CHANCE = 1e-3


@dataclass
class Expected:
    """After some versions, how many people are expected with which history as their last one so far.

    Attributes
    ----------
    people : mapping of node to float
        Predicted histories.
    lost : mapping of ordinal to float
        By version, those whose last version it is and whose history is not predicted.
    """

    people: dict[int, float] = field(default_factory=dict)
    lost: dict[int, float] = field(default_factory=dict)

    def differs(self, other: Expected) -> bool:
        """Whether the other one says anything else, but for the rounding of sums."""
        return any(
            not math.isclose(mine.get(key, 0.0), theirs.get(key, 0.0), rel_tol=_CLOSE, abs_tol=_CLOSE)
            for mine, theirs in ((self.people, other.people), (self.lost, other.lost))
            for key in mine.keys() | theirs.keys()
        )

    def attending(
        self, tree: Tree, arrived: Mapping[int, int], everybody: int, rows: NoisyRows | None = None
    ) -> Attending:
        """Who is expected in the next version; they are no longer among those who are here.

        Parameters
        ----------
        tree : Tree
        arrived : mapping of ordinal to int
            T_v.
        everybody : int
            People in the version.
        rows : NoisyRows, optional
            Where they have several rows.
        """
        there: dict[int, float] = {}
        others = came = 0.0
        for version, count in arrived.items():
            here = [node for node in self.people if tree.versions[node] == version]
            could = math.fsum([*(self.people[node] for node in here), self.lost.get(version, 0.0)])
            share = min(1.0, count / could) if could > 0 else 0.0
            came += min(float(count), could)
            others += share * self.lost.get(version, 0.0)
            self.lost[version] = self.lost.get(version, 0.0) * (1 - share)
            for node in here:
                there[node] = share * self.people[node]
                self.people[node] -= there[node]
                # Of so few nothing is expected any more.
                if self.people[node] < LEAST:
                    self.lost[version] += self.people.pop(node)
        people = _likeliest(there, MOST - 1)
        others += math.fsum(there.values()) - math.fsum(people.values())
        return Attending({NEW: max(0.0, everybody - came), **people}, others, tree, rows, self)


class Attending:
    """Who is expected in a version, and what becomes of them, given the distributions of their histories by row.

    Parameters
    ----------
    people : mapping of node to float
        In the first wave, by predicted history; new people are among them.
    others : float
        There, with histories that are not predicted.
    tree : Tree
    rows : NoisyRows or None
        Where people have several rows.
    after : Expected
        Who is expected not to be in the version; whoever stands at a history after it is added.
    """

    def __init__(
        self, people: Mapping[int, float], others: float, tree: Tree, rows: NoisyRows | None, after: Expected
    ) -> None:
        self.people, self.others = dict(people), others
        self.everybody = math.fsum([*people.values(), others])
        # How many are expected to go on with an output.
        self.answered: dict[tuple[int, int], float] = {}
        self._drawing: dict[tuple[int, int], float] = {}
        self._histories: dict[int, int] = {}
        self._tree, self._waves, self._after = tree, (1,) if rows is None else waves_of(rows), after
        # Shares of several waves are in parts too.
        self._parts = 0.0 if rows is None else 4 / PARTS
        # Of the wave that is being read: its number, and those in it with a history that is not predicted.
        self._row, self._unknown = 1, 0.0
        self._here = dict(people)
        self._sums: list[list[float]] = []
        self._room: list[float] = []
        self._weight = 0
        self._lost = 0.0
        self._is_last = False
        self._misplaced = False

    def add(self, distribution: HistoryDistribution, chapter: Chapter) -> None:
        """Take up one history, of those that are predicted; another row of people comes after all rows before it."""
        row = 1 if distribution.node < chapter.first else self._tree.rows[distribution.node] + 1
        while self._row < row and not self._is_last:
            self._advance(chapter)
        if row != self._row or distribution.node not in self._here:
            return
        channel, whole = chapter.followed[distribution.node], sum(distribution.cells)
        shares = [sum(distribution.cells[x :: chapter.a]) / whole for x in range(chapter.a)]
        for y, weights in enumerate(chapter.channels[channel]):
            found = math.fsum(shares[x] * (weight / WHOLE) for x, weight in weights)
            self.answered[distribution.node, y] = self.people[distribution.node] * found
        # Somebody may always be new.
        people = max(self.people[distribution.node], LEAST)
        for x, share in enumerate(shares):
            if share:
                self._drawing[channel, x] = self._drawing.get((channel, x), 0.0) + people * share
                self._histories[x] = self._histories.get(x, 0) + 1

    def complaints(self, chapter: Chapter, effective: Sequence[Sequence[int]]) -> Iterator[str]:
        """What of a version is not what is expected; and who is expected after it is noted.

        Parameters
        ----------
        chapter : Chapter
        effective : b × a whole numbers
        """
        while not self._is_last:
            self._advance(chapter)
        if missing := len(self.people.keys() - chapter.followed.keys()):
            yield f"it has no channels for {missing:,} histories that people are expected to have"
        if self._misplaced:
            yield "histories that are expected of its people are not the first that it has"
        self._after.lost[chapter.ordinal] = self._lost
        wrong = sum(
            abs(effective[y][x] / WHOLE - total / self._weight) > room / self._weight
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
        on = _likeliest(there, MOST)
        stay = {node: (1 - share) * n for node, n in found.items() if not share or (1 - share) * n >= LEAST}
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
            self._room[x] += units * (one + widest + self._parts)
        self._weight += units

    def _mean(self, chapter: Chapter, others: float) -> tuple[list[list[float]], list[float]]:
        """What those who were taken up draw from on average, and others; and how far rounding may go, by input."""
        a, b = chapter.a, chapter.b
        told = [[0.0] * a for _ in range(b)]
        of_channel: dict[int, float] = {}
        people = [0.0] * a
        for (k, x), number in self._drawing.items():
            people[x] += number
            of_channel[k] = of_channel.get(k, 0.0) + number
        for k in of_channel:
            for y, row in enumerate(chapter.channels[k]):
                for x, weight in row:
                    told[y][x] += self._drawing.get((k, x), 0.0) * (weight / WHOLE)
        speaking = math.fsum(people)
        counts = chapter.beginning
        silent = [others * sum(counts[x::a]) / sum(counts) for x in range(a)]
        distribution = [math.fsum(row) / speaking for row in told]
        # Parts are rounded down, or up to one; those of all secrets, of all histories with an input, and of the others.
        unit = (speaking + others) / PARTS
        # Of what everybody draws from: all cells of all histories.
        least = _CLOSE + 2 * len(counts) * (len(self.people) + 1) * unit / speaking
        mean = [[0.0] * a for _ in range(b)]
        rooms = []
        for x in range(a):
            whole = people[x] + silent[x]
            rooms.append(least + (2 * chapter.c * (self._histories.get(x, 0) + 1) * unit / whole if whole else 0.0))
            for y in range(b):
                if whole:
                    mean[y][x] = (told[y][x] + silent[x] * distribution[y]) / whole
                else:
                    # An input that nobody can have gets what everybody draws from.
                    mean[y][x] = math.fsum(
                        number * dict(chapter.channels[k][y]).get(x, 0) for k, number in of_channel.items()
                    ) / (speaking * WHOLE)
        return mean, rooms


def _likeliest(there: Mapping[int, float], most: int) -> dict[int, float]:
    """The predicted histories among those that people are expected to have: so many, and none of too few people."""
    likeliest = sorted(sorted(there), key=lambda node: -float(f"{there[node]:.5e}"))[:most]
    return {node: there[node] for node in sorted(likeliest) if there[node] >= LEAST}


def waves_of(rows: NoisyRows) -> tuple[int, ...]:
    """T_k, of as many waves as are expected; the first one at least 1."""
    most = rows.scale * math.log(len(rows.sizes) / CHANCE)
    sure = [k for k, people in enumerate(rows.sizes) if people > most]
    sizes = [max(0, people) for people in rows.sizes[: sure[-1] + 1 if sure else 1]]
    found = [sum(sizes[k:]) for k in range(len(sizes))]
    return (max(1, found[0]), *found[1:])


def lost_by_version(tree: Tree, lost: dict[int, float]) -> dict[int, float]:
    """Numbers of people by version, from those by chapter: every row of a version with several is a chapter."""
    heads = {sum(tree.depths[:ordinal]): ordinal for ordinal in range(len(tree.depths))}
    # What is told of another row than the first of a version is told of none.
    return {heads.get(number, -1 - number): people for number, people in lost.items() if people or number in heads}


def first_nodes(chapter: Chapter, answered: Mapping[tuple[int, int], float], start: int = 0) -> dict[int, float] | None:
    """People by node, of the histories that are predicted: in their order these are the first; None if they are not.

    From the place ``start`` on, where they are about another row of people.

    Where it is a matter of rounding whether one is, what is there decides.
    """
    nodes = list(zip(chapter.parents, chapter.drawn, strict=True))
    found: dict[int, float] = {}
    for pair in sorted(answered):
        if answered[pair] < LEAST * (1 - _CLOSE):
            continue
        place = start + len(found)
        if place < len(nodes) and nodes[place] == pair:
            found[chapter.first + place] = answered[pair]
        elif answered[pair] > LEAST * (1 + _CLOSE):
            return None
    return found
