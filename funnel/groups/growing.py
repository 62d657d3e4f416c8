"""Growing: a tree of outputs that is made from some of the people, to be cut back to what the others prove.

An inner node is a prefix with its channel, which reads the inputs of a stage. What follows an output is the prefix of
the next stage. Besides, outputs of a channel are joined two by two, the doubtful ones first, until all are one: where
an output is not proven, a union that has it may be. Everything here is a function of the people who make, and is said
of every input, also of those that none of them has: these have one row of weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from funnel.disclosure.rules import Rules
from funnel.groups.aims import INFORMATION, Aim, Numbers, aim_of
from funnel.groups.foreseen import Foreseen
from funnel.groups.library import whole_numbers
from funnel.groups.local import best_channel, joined
from funnel.groups.making import Schedule
from funnel.groups.pooling import ClassRules, Flags
from funnel.groups.protocol import BITS, UNIT
from funnel.groups.reading import Reading
from funnel.groups.records import Records
from funnel.joint import FloatArray, IntArray
from funnel.progress import Progress
from funnel.solver.budget import Budget

# Channels are made for outputs that this share of the people of a prefix would prove, and the best of them is taken.
_SHARES = (1.0, 0.2, 0.08, 0.03, 0.012, 0.005)
# Of whom there may be few, of all, where there are none of those who make.
_FEW = 1e-6
# Fewer people prove next to nothing.
_FEWEST = 30
# Outputs at most that are joined one by one.
_OUTPUTS = 200
# People who make, at least, for an output to begin with.
_RARE = 5.0


@dataclass(eq=False)
class Prefix:
    """Records that may show a prefix, (k,), and how likely each does; its channel and what follows.

    Attributes
    ----------
    rows : ndarray of int64, shape (k,)
    shows : ndarray, shape (k,)
    most : float
        How likely the prefix is for anybody, at most.
    weights : ndarray of int64, shape (b, a), or None
        Whole weights of every input; columns sum to 2^44. None where nothing is said of this stage.
    rare : ndarray of int64, shape (b,), or None
        The weights of inputs that nobody has who made the channel.
    joins : tuple of (int, int)
        Cells that are one: 0 … b-1 are the outputs, b, b+1, … what was joined. The last one is all of the prefix.
    after : tuple of Prefix or None
        By output, or one for all where nothing is said.
    """

    rows: IntArray
    shows: FloatArray
    most: float
    weights: IntArray | None = None
    rare: IntArray | None = None
    joins: tuple[tuple[int, int], ...] = ()
    after: tuple[Prefix | None, ...] = ()

    @property
    def cells(self) -> int:
        """Outputs and what was joined of them, but for all of them."""
        return 0 if self.weights is None else 2 * len(self.weights) - 2

    def below(self) -> Iterator[Prefix]:
        """All prefixes from here on."""
        yield self
        for one in self.after:
            if one is not None:
                yield from one.below()


@dataclass(frozen=True, eq=False)
class Tree:
    """What may be said, before anybody was asked to prove it.

    Attributes
    ----------
    root : Prefix
    readings : tuple of Reading
        By stage.
    """

    root: Prefix
    readings: tuple[Reading, ...]

    @property
    def cells(self) -> int:
        """All that limits are stated for."""
        return sum(prefix.cells for prefix in self.root.below())


def grow(
    records: Records,
    making: IntArray,
    some: Records,
    groups: Sequence[Sequence[str]],
    foreseen: Foreseen,
    schedule: Schedule,
    people: int,
    budget: Budget,
    progress: Progress,
    rules: Rules | None = None,
    numbers: Numbers = MappingProxyType({}),
) -> Tree:
    """Make the tree, stage after stage.

    Parameters
    ----------
    records : Records
        Of everybody, for what they are called; no count of them is looked at.
    making : ndarray of int64, shape (c, r)
        Counts of the people it is made from.
    some : Records
        The records of these people alone.
    groups : sequence of sequence of str
    foreseen : Foreseen
    schedule : Schedule
    people : int
        Expected ones, of those who make, for a channel.
    budget : Budget
    progress : Progress
    rules : Rules, optional
        That the table of the secret and what a channel reads has to keep, of those who make it.
    numbers : mapping, optional
        Of the columns whose variance is to be explained; stages without any of them tell information.
    """
    counts = making.astype(np.float64)
    sizes = counts.sum(axis=1)
    there = np.flatnonzero(records.joint.counts.any(axis=0))
    root = Prefix(there, np.ones(len(there)), 1.0)
    level, readings = [root], []
    later = [column for group in groups for column in group]
    for number, (group, radius) in enumerate(zip(groups, schedule.radii(len(groups)), strict=True)):
        later = later[len(group) :]
        reading = Reading.known_from(records, some, group, later, schedule.classes)
        readings.append(reading)
        part = budget.part(1 / (len(groups) - number))
        asked = None if rules is None else ClassRules.of(rules, sizes, reading.folds)
        laws = [_law(prefix, counts, reading) for prefix in level]
        aim = aim_of(some, reading, numbers)
        expected = [float(law.sum()) for law in laws]
        total = sum(expected)
        for prefix, law, mine in zip(level, laws, expected, strict=True):
            if mine >= people:
                _speak(prefix, law, radius, foreseen, part.part(mine / total if total else 1.0), asked, aim)
                total -= mine
        level = _next_level(level, reading, counts, people, last=number == len(groups) - 1)
        progress(f"channels for {', '.join(group)}", number + 1, len(groups))
    return Tree(root, tuple(readings))


def _law(prefix: Prefix, counts: FloatArray, reading: Reading) -> FloatArray:
    """People by secret and input that are expected to have a prefix, (c, a)."""
    inputs = reading.inputs[prefix.rows]
    return np.stack(
        [np.bincount(inputs, weights=row, minlength=reading.size) for row in counts[:, prefix.rows] * prefix.shows]
    )


def _speak(
    prefix: Prefix,
    law: FloatArray,
    radius: float,
    foreseen: Foreseen,
    budget: Budget,
    rules: ClassRules | None,
    aim: Aim = INFORMATION,
) -> None:
    """Give a prefix the channel that tells most of those that will probably be proven, if there is one."""
    seen = law.sum(axis=0) > 0
    # Where rules ask for that, inputs share a row, and the channel is made of sums.
    pool = np.arange(law.shape[1]) if rules is None else _pooled(law, seen, rules)
    if pool is None or not seen.any():
        return
    # Named by their first inputs: no name follows from inputs that nobody here has.
    _, first, pool = np.unique(pool[seen], return_index=True, return_inverse=True)
    pool = np.argsort(np.argsort(first))[pool.reshape(-1)]
    inside = np.stack([np.bincount(pool, weights=row[seen]) for row in law]).astype(np.float64)
    people, aim = inside.sum(axis=0), aim.taken(seen).pooled(pool)
    standing = float(people.sum()) * foreseen.provers / prefix.most
    shares = [share for share in _SHARES if share * standing >= _FEWEST]
    best: tuple[float, FloatArray, tuple[tuple[int, int], ...]] | None = None
    for number, share in enumerate(shares):
        part = budget.part(1 / (len(shares) - number))
        found = best_channel(inside, foreseen.cone(share * standing, radius), part, aim)
        if found is None:
            continue
        # Of an output that hardly anybody has nothing is proven.
        rows = joined(found, people / people.sum(), min(0.5, max(1 / _OUTPUTS, _RARE / people.sum())), aim)
        kept, joins = _joined_until_proven(rows, inside, prefix, foreseen, aim)
        if len(kept) > 1:
            told = float(aim.told(kept, people[None])[0])
            if best is None or told > best[0]:
                best = told, kept, joins
    if best is None:
        return
    _, rows, prefix.joins = best
    weights = whole_numbers(rows)
    if rules is None:
        # Whoever has what nobody had is published as widely as anybody.
        widest = int(np.lexsort((rows @ people, (rows > 0).sum(axis=1)))[-1])
        prefix.rare = np.where(np.arange(len(rows)) == widest, UNIT, 0).astype(np.int64)
    else:
        prefix.rare = weights[:, int(people.argmax())]
    prefix.weights = np.repeat(prefix.rare[:, None], law.shape[1], axis=1)
    prefix.weights[:, seen] = weights[:, pool]


def _pooled(law: FloatArray, seen: Flags, rules: ClassRules) -> IntArray | None:
    """Pools that keep the rules for those who make, and will probably keep them for everybody.

    A cell that none of them has may be one that few of all have, so it is taken for one, if that leaves two pools.
    """
    doubtful = rules.pools(np.where(seen & (law == 0), _FEW, law))
    return rules.pools(law) if doubtful is None else doubtful


def _joined_until_proven(
    rows: FloatArray, law: FloatArray, prefix: Prefix, foreseen: Foreseen, aim: Aim
) -> tuple[FloatArray, tuple[tuple[int, int], ...]]:
    """Outputs joined until all will probably be proven; and how those that are left are joined to one.

    The output furthest beyond the bound, or closest to it, is joined to the one with which least is lost
    of those that make a union within it. O(b² c a).
    """
    people = law.sum(axis=0)
    cells = [row for row in rows if row.any()]
    excess = list(_excess(np.array(cells), law, prefix, foreseen))
    kept: FloatArray | None = None
    names: list[int] = []
    joins: list[tuple[int, int]] = []
    while True:
        if kept is None and max(excess) <= 1:
            kept, names = np.array(cells), list(range(len(cells)))
        if len(cells) == 1:
            break
        worst = int(np.argmax(excess))
        row = cells.pop(worst)
        excess.pop(worst)
        others = np.array(cells)
        unions = others + row
        beyond = _excess(unions, law, prefix, foreseen)
        loss = aim.worths(others * people) - aim.worths(unions * people)
        within = beyond <= 1
        place = int(np.where(within, loss, np.inf).argmin() if within.any() else beyond.argmin())
        if kept is not None:
            name = names.pop(worst)
            joins.append((names[place], name))
            names[place] = len(kept) + len(joins) - 1
        cells[place], excess[place] = unions[place], float(beyond[place])
    return (np.array(cells), ()) if kept is None else (kept, tuple(joins))


def _excess(rows: FloatArray, law: FloatArray, prefix: Prefix, foreseen: Foreseen) -> FloatArray:
    return foreseen.excess(rows @ law.T, prefix.most * rows.max(axis=1))


def _next_level(level: list[Prefix], reading: Reading, counts: FloatArray, people: int, last: bool) -> list[Prefix]:
    """The prefixes that follow; where people are too few, or nothing is left to publish, there is none."""
    following: list[Prefix] = []
    for prefix in level:
        after: list[Prefix | None] = []
        weights = prefix.weights
        for y in range(1 if weights is None else len(weights)):
            longer = prefix if weights is None else _longer(prefix, y, reading)
            enough = float((counts[:, longer.rows] * longer.shows).sum()) >= people
            child = Prefix(longer.rows, longer.shows, longer.most) if enough and not last else None
            after.append(child)
            if child is not None:
                following.append(child)
        prefix.after = tuple(after)
    return following


def _longer(prefix: Prefix, y: int, reading: Reading) -> Prefix:
    assert prefix.weights is not None
    assert prefix.rare is not None
    row = np.ldexp(prefix.weights[y].astype(np.float64), -BITS)
    shows = row[reading.inputs[prefix.rows]] * prefix.shows
    some = shows > 0
    most = max(float(row.max()), float(np.ldexp(float(prefix.rare[y]), -BITS)))
    return Prefix(prefix.rows[some], shows[some], prefix.most * most)
