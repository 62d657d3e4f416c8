"""Expected: how many people public tables lead one to expect with which history, and the channel that these come to.

Before a version, M(h) people are expected whose last answers so far are h. Of those whose last version is v the same
share is in the next one, T_v over the sum of their M, at most all of them: T_v is how many people the noisy table of
their secrets then and now has, at least none. The others of the next version are new, and so are those whom T_v has
beyond all that there could be. Of att(h) people with the history h,

    M(hy) = att(h) Σ_x P(x | h) R(y | x, h),      W(y | x) = Σ_h att(h) P(x | h) R(y | x, h) / Σ_h att(h) P(x | h)

Histories of less than a hundredth of a person are not *predicted*, before a version or after it, nor are more than
2^14: of those who have one nothing is known but the law of the version, and they count in W as people who are given the
law of the output.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from funnel.recount.chapters import NEW, WHOLE, Chapter, Tree
from funnel.recount.path_laws import HistoryDistribution

LEAST, MOST = 0.01, 1 << 14
# Expected people are counted in parts of so many where W is made of them: by secret, input and history.
PARTS = 1 << 30
# Of sums of some thousand floats.
_CLOSE = 1e-9


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

    def attending(self, tree: Tree, arrived: Mapping[int, int], everybody: int) -> Attending:
        """Who is expected in the next version; they are no longer among those who are here.

        Parameters
        ----------
        tree : Tree
        arrived : mapping of ordinal to int
            T_v.
        everybody : int
            People in the version.
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
        likeliest = sorted(sorted(there), key=lambda node: -there[node])[: MOST - 1]
        people = {node: there[node] for node in sorted(likeliest) if there[node] >= LEAST}
        others += math.fsum(there.values()) - math.fsum(people.values())
        return Attending({NEW: max(0.0, everybody - came), **people}, others)


@dataclass
class Attending:
    """Who is expected in a version, and what becomes of them: to be given the laws of all their histories.

    Attributes
    ----------
    people : mapping of node to float
        By predicted history; new people are among them.
    others : float
        With histories that are not predicted.
    answered : dict of (node, output) to float
        How many are expected to go on so.
    """

    people: Mapping[int, float]
    others: float
    answered: dict[tuple[int, int], float] = field(default_factory=dict)
    _drawing: dict[tuple[int, int], float] = field(default_factory=dict)
    _histories: dict[int, int] = field(default_factory=dict)

    def add(self, law: HistoryDistribution, chapter: Chapter) -> None:
        """Take up one history; of those that are not predicted nothing."""
        if law.node not in self.people:
            return
        channel, whole = chapter.followed[law.node], sum(law.cells)
        shares = [sum(law.cells[x :: chapter.a]) / whole for x in range(chapter.a)]
        for y, row in enumerate(chapter.channels[channel]):
            found = math.fsum(shares[x] * (weight / WHOLE) for x, weight in row)
            self.answered[law.node, y] = self.people[law.node] * found
        # Somebody may always be new.
        people = max(self.people[law.node], LEAST)
        for x, share in enumerate(shares):
            if share:
                self._drawing[channel, x] = self._drawing.get((channel, x), 0.0) + people * share
                self._histories[x] = self._histories.get(x, 0) + 1

    @property
    def everybody(self) -> float:
        """All of them."""
        return math.fsum([*self.people.values(), self.others])

    def complaints(self, chapter: Chapter, effective: Sequence[Sequence[int]], after: Expected) -> Iterator[str]:
        """What of a version is not what is expected; and who is expected after it.

        Parameters
        ----------
        chapter : Chapter
        effective : b × a whole numbers
        after : Expected
            Without those who are in the version; they are added to it.
        """
        if missing := len(self.people.keys() - chapter.followed.keys()):
            yield f"it has no channels for {missing:,} histories that people are expected to have"
        found = first_nodes(chapter, self.answered)
        if found is None:
            yield "histories that are expected of its people are not the first that it has"
            found = {}
        after.people.update(found)
        everybody = math.fsum([*self.answered.values(), self.others])
        after.lost[chapter.ordinal] = max(0.0, everybody - math.fsum(found.values()))
        mean, room = self._mean(chapter, self.others)
        wrong = sum(
            abs(effective[y][x] / WHOLE - share) > room[x] for y, row in enumerate(mean) for x, share in enumerate(row)
        )
        if wrong:
            yield f"{wrong:,} weights of the effective channel are not the mean that people are expected to draw from"

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
        law = [math.fsum(row) / speaking for row in told]
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
                    mean[y][x] = (told[y][x] + silent[x] * law[y]) / whole
                else:
                    # An input that nobody can have gets what everybody draws from.
                    mean[y][x] = math.fsum(
                        number * dict(chapter.channels[k][y]).get(x, 0) for k, number in of_channel.items()
                    ) / (speaking * WHOLE)
        return mean, rooms


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
