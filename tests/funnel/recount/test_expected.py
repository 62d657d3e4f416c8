"""Expected people by history, and the channel that these come to: against all paths of people, in fractions."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import pytest

from funnel.recount.chapters import WHOLE, Chapter, Rows, Tree
from funnel.recount.expected import Attending, Expected
from funnel.recount.move_distribution import distribution_since
from funnel.recount.noisy_moves import NoisyChanges, Since
from funnel.recount.path_distributions import PathDistributions

C = A = B = 2
CELLS = C * A
SECRET, INPUTS, OUTPUTS = ((("no",), ("yes",)), (("a",), ("b",)), (("a",), ("b",)))
LEAST = Fraction(0.01)
Masses = tuple[Fraction, ...]


@dataclass
class Brute:
    """People of some versions by all that they were and answered: how many are expected with each history and cell.

    Attributes
    ----------
    chapters : list of Chapter
    channels : list of lists of tuple
        The effective channel of every version, exactly: b × a.
    waiting : dict of node to tuple of Fraction, length c a
        Of histories that are predicted: people by what they were in their last version.
    lost : dict of ordinal to Fraction
    expected : list of (dict, dict)
        People by node, and lost ones by version, after every version.
    moves : list of NoisyChanges or None
    """

    chance: random.Random
    chapters: list[Chapter] = field(default_factory=list)
    channels: list[list[tuple[Fraction, ...]]] = field(default_factory=list)
    waiting: dict[int, Masses] = field(default_factory=dict)
    lost: dict[int, Fraction] = field(default_factory=dict)
    expected: list[tuple[dict[int, Fraction], dict[int, Fraction]]] = field(default_factory=list)
    moves: list[NoisyChanges | None] = field(default_factory=list)
    last: dict[int, int] = field(default_factory=dict)

    def table(self, rows: int, columns: int, most: int) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(self.chance.randint(-2, most) for _ in range(columns)) for _ in range(rows))

    def channel(self) -> Rows:
        first = [self.chance.randrange(WHOLE + 1) for _ in range(A)]
        return tuple(
            tuple((x, w) for x, w in enumerate(row) if w) for row in (first, [WHOLE - weight for weight in first])
        )

    def publish(self, people: int) -> None:
        number = len(self.chapters)
        counts = tuple(max(0, n) for row in self.table(C, A, people) for n in row)
        counts = counts if any(counts) else (people, 0, 0, 0)
        since = tuple(
            Since(one.name, self.table(C, C, people), self.table(C, A, people // 2), self.table(C, A, people // 3))
            for one in self.chapters
        )
        distributions = {
            ordinal: distribution_since(one, (SECRET, INPUTS), (SECRET, INPUTS), counts, alike=True)
            for ordinal, one in enumerate(since)
        }
        moves = NoisyChanges(0.25, 8.0, since) if since else None
        arrived = moves.arrived if moves else ()
        # What everybody is, by history, who is there.
        here: dict[int, list[Fraction]] = {}
        others = together = Fraction()
        for version, count in enumerate(arrived):
            nodes = [node for node in self.waiting if self.last[node] == version]
            could = sum((sum(self.waiting[node]) for node in nodes), self.lost[version])
            share = min(Fraction(1), count / could) if could else Fraction()
            others += share * self.lost[version]
            self.lost[version] *= 1 - share
            for node in nodes:
                coming = [share * mass for mass in self.waiting[node]]
                self.waiting[node] = tuple(mass - part for mass, part in zip(self.waiting[node], coming, strict=True))
                if sum(self.waiting[node]) < LEAST:
                    self.lost[version] += sum(self.waiting.pop(node))
                if sum(coming) < LEAST:
                    others += sum(coming)
                    continue
                now = [Fraction()] * CELLS
                for (before, after), records in distributions[version].pairs().items():
                    now[after] += coming[before] * Fraction(records, distributions[version].row(before)[1])
                here[node] = now
            together += min(Fraction(count), could)
        new = max(Fraction(), sum(counts) - together)
        here[0] = [new * Fraction(n, sum(counts)) for n in counts]
        library = {k: self.channel() for k in range(3)}
        followed = {node: self.chance.randrange(3) for node in sorted(here)}
        after = {
            (node, y): tuple(
                mass * Fraction(dict(library[followed[node]][y]).get(cell % A, 0), WHOLE)
                for cell, mass in enumerate(masses)
            )
            for node, masses in here.items()
            for y in range(B)
        }
        predicted = sorted(pair for pair, masses in after.items() if sum(masses) >= LEAST)
        first = 1 + sum(len(one.parents) for one in self.chapters)
        for place, pair in enumerate(predicted):
            self.waiting[first + place], self.last[first + place] = after[pair], number
        self.lost[number] = others + sum(sum(masses) for pair, masses in after.items() if pair not in predicted)
        self.channels.append(self.effective(here, new, counts, library, followed, others))
        self.expected.append(({node: sum(masses) for node, masses in self.waiting.items()}, dict(self.lost)))
        self.moves.append(moves)
        self.chapters.append(
            Chapter(
                ordinal=number,
                name=f"people/1.{number}.0",
                secret=SECRET,
                inputs=INPUTS,
                outputs=OUTPUTS,
                counts=counts,
                changes={},
                channels=library,
                followed=followed,
                first=first,
                parents=tuple(node for node, _ in predicted),
                drawn=tuple(y for _, y in predicted),
                guarantee="lip:1.0",
                distributions=distributions,
            )
        )

    def effective(
        self,
        here: dict[int, list[Fraction]],
        new: Fraction,
        counts: Sequence[int],
        library: dict[int, Rows],
        followed: dict[int, int],
        others: Fraction,
    ) -> list[tuple[Fraction, ...]]:
        """The mean over people; if nobody is new, a hundredth of a person is taken to be."""
        if new < LEAST:
            here = {**here, 0: [LEAST * Fraction(n, sum(counts)) for n in counts]}
        spoken = [[Fraction() for _ in range(A)] for _ in range(B)]
        size = [Fraction() for _ in range(A)]
        for node, masses in here.items():
            for cell, mass in enumerate(masses):
                size[cell % A] += mass
                for y in range(B):
                    spoken[y][cell % A] += mass * Fraction(dict(library[followed[node]][y]).get(cell % A, 0), WHOLE)
        distribution = [sum(row) / sum(size) for row in spoken]
        silent = [others * Fraction(sum(counts[x::A]), sum(counts)) for x in range(A)]
        drawn = {k: sum(sum(masses) for node, masses in here.items() if followed[node] == k) for k in library}

        def mean(y: int, x: int) -> Fraction:
            if size[x] + silent[x]:
                return (spoken[y][x] + silent[x] * distribution[y]) / (size[x] + silent[x])
            # An input that nobody can have: what all people would draw with it.
            weights = sum(people * dict(library[k][y]).get(x, 0) for k, people in drawn.items())
            return Fraction(weights) / sum(drawn.values()) / WHOLE

        return [tuple(mean(y, x) for x in range(A)) for y in range(B)]


def made(seed: int, versions: int = 4, people: int = 4) -> Brute:
    brute = Brute(random.Random(seed))
    for _ in range(versions):
        brute.publish(people)
    return brute


def whole(channel: Sequence[Sequence[Fraction]]) -> list[list[int]]:
    found = [[int(share * WHOLE) for share in row] for row in channel]
    found[0] = [WHOLE - sum(row[x] for row in found[1:]) for x in range(A)]
    return found


def begun(brute: Brute, number: int, before: Expected | None = None) -> tuple[Attending, Expected, Chapter]:
    """What is expected in a version, with the distributions of all of its histories taken up."""
    if before is None:
        people, lost = brute.expected[number - 1] if number else ({}, {})
        before = Expected({node: float(n) for node, n in people.items()}, {v: float(n) for v, n in lost.items()})
    tree = Tree(brute.chapters)
    moves = brute.moves[number]
    arrived = dict(enumerate(moves.arrived)) if moves else {}
    attending = before.attending(tree, arrived, sum(brute.chapters[number].counts))
    for chapter, distributions in PathDistributions(tree).versions():
        for distribution in distributions:
            if chapter.ordinal == number and distribution.secret_of is None:
                attending.add(distribution, chapter)
    return attending, before, brute.chapters[number]


@pytest.mark.parametrize("seed", range(12))
def test_people_are_expected_as_their_paths_say(seed: int) -> None:
    brute = made(seed)
    after = Expected()
    for number, channel in enumerate(brute.channels):
        attending, after, chapter = begun(brute, number, after)
        assert list(attending.complaints(chapter, whole(channel))) == []
        people, lost = brute.expected[number]
        told = Expected({node: float(n) for node, n in people.items()}, {v: float(n) for v, n in lost.items()})
        assert not after.differs(told)
        assert {node for node, n in people.items() if n} <= after.people.keys()


def test_some_histories_are_not_predicted() -> None:
    brutes = [made(seed) for seed in range(12)]
    assert any(any(lost.values()) for brute in brutes for _, lost in brute.expected)
    assert any(len(one.parents) < len(one.followed) * B for brute in brutes for one in brute.chapters)


@pytest.mark.parametrize("number", [0, 2, 3])
def test_another_effective_channel_is_told(number: int) -> None:
    brute = made(3)
    attending, _, chapter = begun(brute, number)
    told = whole(brute.channels[number])
    # A thousandth of the people of one input had another answer.
    told[0][1] += WHOLE // 1000 if told[0][1] < WHOLE // 2 else -WHOLE // 1000
    told[1][1] = WHOLE - told[0][1]
    assert any("effective channel" in one for one in attending.complaints(chapter, told))


def test_expected_histories_without_a_channel_or_a_number_are_told() -> None:
    brute = made(3)
    attending, _, chapter = begun(brute, 2)
    node = max(attending.people)
    without = replace(chapter, followed={k: v for k, v in chapter.followed.items() if k != node}, parents=(), drawn=())
    assert any("no channels for 1 histories" in one for one in attending.complaints(without, [[0] * A] * B))
    attending, _, chapter = begun(brute, 2)
    turned = replace(chapter, parents=chapter.parents[::-1], drawn=chapter.drawn[::-1])
    found = list(attending.complaints(turned, whole(brute.channels[2])))
    assert found == ["histories that are expected of its people are not the first that it has"]


def test_attendance_is_the_same_share_of_all_whose_last_version_it_is() -> None:
    tree = Tree(made(3, versions=1).chapters)
    one, other = sorted(node for node in range(1, len(tree.parents)))[:2]
    expected = Expected({one: 30.0, other: 10.0}, {0: 10.0})
    attending = expected.attending(tree, {0: 20}, 25)
    assert attending.people == {0: 5.0, one: 12.0, other: 4.0}
    assert attending.others == 4.0
    assert (expected.people, expected.lost) == ({one: 18.0, other: 6.0}, {0: 6.0})
    # More than there can be, by the noise: they are new.
    expected = Expected({one: 30.0, other: 0.003}, {0: 0.0})
    attending = expected.attending(tree, {0: 40}, 75)
    assert attending.people == {0: pytest.approx(75 - 30.003), one: 30.0}
    assert attending.others == pytest.approx(0.003)
    assert (expected.people, expected.lost) == ({}, {0: 0.0})


def test_expected_people_differ_by_more_than_rounding_alone() -> None:
    one = Expected({1: 2.0}, {0: 1.0})
    assert not one.differs(Expected({1: 2.0 + 1e-12, 2: 0.0}, {0: 1.0}))
    assert one.differs(Expected({1: 2.0}, {0: 1.1}))
    assert one.differs(Expected({1: 2.0, 2: 0.5}, {0: 1.0}))
