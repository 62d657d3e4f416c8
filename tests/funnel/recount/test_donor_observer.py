"""Beliefs in followed donors: both computations against a sum over all that may be hidden, one by one, in fractions."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from funnel.alphabet import Alphabet
from funnel.history.changes import Changes
from funnel.history.donor_beliefs import Belief
from funnel.joint import Joint
from funnel.recount.chapters import WHOLE
from funnel.recount.donor_observer import Cell, DonorObserver, History, PlainMoves
from funnel.recount.promise import read_promise
from funnel.recount.ratios import sides_of

SECRETS, K = ("no", "yes"), 2
CELLS: list[Cell] = [*product(SECRETS, range(K))]
Shares = dict[tuple[int, str, int], Fraction]


class Panel:
    """Three versions of people by cell, how they change, who leaves, channels, and the outputs of one history."""

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.sizes = [Counter(dict(zip(CELLS, random.integers(9, 14, 4).tolist(), strict=True))) for _ in range(3)]
        self.both = [
            Counter({(a, b): int(n) for a, b in product(CELLS, repeat=2) if (n := random.integers(0, 3))})
            for _ in range(2)
        ]
        weights = random.integers(1, 50, (3, 2 * K, 2 * K + 1)).astype(object)
        weights[0, :K] = 0
        for y, x in product(range(K), range(2 * K + 1)):
            # Who goes on is of the class that is read.
            weights[:, y, x] *= x in (y, K + y)
        totals = weights.sum(axis=1)
        weights = weights * WHOLE // totals[:, None]
        weights[:, -1] += WHOLE - weights.sum(axis=1)
        self.weights = weights.tolist()
        self.outputs = (K + int(random.integers(K)), int(random.integers(2 * K)))

    @property
    def history(self) -> History:
        return tuple((f"v{t}", y) for t, y in enumerate(self.outputs))

    def moves(self, v: int, t: int) -> PlainMoves:
        return PlainMoves(self.both[v], self.sizes[v], self.sizes[t])

    def kernel(self, t: int, before: Cell, after: Cell) -> Fraction:
        """P(cell in the version t + 1 | in t); who changes to nothing is like anybody of the later one."""
        of = {b: n for (a, b), n in self.both[t].items() if a == before}
        kept = {b[0] for _, b in self.both[t]}
        of = of or {cell: n for cell, n in self.sizes[t + 1].items() if cell[0] in kept}
        return Fraction(of.get(after, 0), sum(of.values()))

    def stays(self, t: int, c: int) -> Fraction:
        there = sum(n for (a, _), n in self.both[t].items() if a[1] == c)
        return Fraction(there, sum(n for cell, n in self.sizes[t].items() if cell[1] == c))


def one_by_one(panel: Panel) -> Shares:
    """P(secret of a version, what the third channel reads, h), up to a factor: a sum over all paths of two people."""
    (first, second), found = panel.outputs, defaultdict[tuple[int, str, int], Fraction](Fraction)
    of_class = [
        {cell: n for cell, n in panel.sizes[t].items() if cell[1] == y % K} for t, y in enumerate(panel.outputs)
    ]

    def donors(t: int) -> list[tuple[Cell, Fraction]]:
        total = sum(of_class[t].values())
        return [(cell, Fraction(n, total)) for cell, n in of_class[t].items()]

    for path in product(CELLS, repeat=3):
        chance = Fraction(panel.sizes[0][path[0]]) * panel.weights[0][first][path[0][1]]
        chance *= panel.kernel(0, path[0], path[1]) * panel.kernel(1, path[1], path[2])
        owns: list[tuple[Cell | None, Fraction]] = [(None, Fraction(1))] if path[0][1] == first - K else [*donors(0)]
        for donor, share in owns:
            # What the second channel reads, and who stands for the person then.
            then: list[tuple[Cell | None, int, Fraction]] = [(None, path[1][1], share)]
            if donor is not None:
                stay = panel.stays(0, donor[1])
                then = [(to, K + to[1], share * stay * panel.kernel(0, donor, to)) for to in CELLS]
                then.append((None, 2 * K, share * (1 - stay)))
            for who, x, p in then:
                told = chance * p * panel.weights[1][second][x]
                last = [(who, told)] if second < K else [(cell, told * q) for cell, q in donors(1)]
                for now, mass in last:
                    reads = [(path[2][1], mass)]
                    if now is not None:
                        stay = panel.stays(1, now[1])
                        reads = [(K + to[1], mass * stay * panel.kernel(1, now, to)) for to in CELLS]
                        reads.append((2 * K, mass * (1 - stay)))
                    for x, one in reads:
                        for u in range(3):
                            found[u, path[u][0], x] += one
    total = sum(mass for (u, _, _), mass in found.items() if u == 2)
    return {key: mass / total for key, mass in found.items() if mass}


def again(panel: Panel) -> Shares:
    """The same by the second computation."""
    observer = DonorObserver(K, SECRETS, panel.sizes, panel.moves)
    for t, (name, y) in enumerate(panel.history):
        observer.begins(name)
        history = panel.history[:t]
        observer.publish(history, observer.states(history), panel.weights[t], [y])
    observer.begins("v2")
    sides = sides_of(read_promise("lip:9.0"))
    states, found = observer.states(panel.history), {}
    for place, _, distribution in observer.judged(panel.history, states, panel.weights[2], sides):
        cells, inputs = distribution.cells, 2 * K + 1
        for number, mass in enumerate(cells):
            if mass:
                found[place, SECRETS[number // inputs], number % inputs] = Fraction(mass, sum(cells))
    return found


def made(panel: Panel) -> Shares:
    """The same by the beliefs that releases are decided by."""
    classes = Alphabet(("class",), (("a",), ("b",)))

    def joint(t: int) -> Joint:
        counts = [[panel.sizes[t][s, c] for c in range(K)] for s in SECRETS]
        return Joint(np.array(counts), Alphabet(("ill",), tuple((s,) for s in SECRETS)), classes)

    number = {cell: z for z, cell in enumerate(CELLS)}
    belief, stays = Belief.of_new(joint(0).counts.reshape(-1), 2, 0), Fraction(1)
    for t, y in enumerate(panel.outputs):
        belief = belief.published(stays, y, panel.weights[t][y])
        rows = sorted((number[a], number[b], n) for (a, b), n in panel.both[t].items())
        belief = belief.at(t + 1, joint(t + 1), Changes(*np.array(rows).T))
        stays = panel.stays(t, y % K)
    read = belief.read(stays)
    return {
        (u, SECRETS[s], x): Fraction(int(read[u, s, x]), int(read[u].sum()))
        for u, s, x in np.ndindex(*read.shape)
        if read[u, s, x]
    }


@pytest.mark.parametrize("seed", range(12))
def test_beliefs_are_those_of_a_sum_over_all_that_is_hidden(seed: int) -> None:
    panel = Panel(seed)
    found = one_by_one(panel)
    assert again(panel) == found
    assert made(panel) == found
