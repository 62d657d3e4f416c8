"""What observers believe who know that some people never change: recursions of their own, by plain loops over people.

Nothing of ``funnel.history`` is used. One counts changes among those who never changed and those who did; the other
fits, by EM, how many of those who never changed never will.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from tests.histories import History, Reader, Table, Wave


@dataclass(frozen=True)
class ClassReader(Reader):
    """Tells apart people of two classes; what they are is the sum over both."""

    @abstractmethod
    def of_classes(self, history: History, t: int) -> Table:
        """P(class, s, x in t | history), (2, c, a)."""

    def classes_after(self, history: History) -> Table:
        """P(class, s, x in the last version | history), (2, c, a)."""
        key = ("classes after", history)
        if key not in self._known:
            (t, y), earlier = history[-1], history[:-1]
            masses = self.of_classes(earlier, t) * self._weights(t, earlier)[y]
            self._known[key] = masses / masses.sum()
        return self._known[key]

    def before(self, history: History, t: int) -> Table:
        """P(s, x in t | history), (c, a)."""
        return self.of_classes(history, t).sum(axis=0)

    def after(self, history: History) -> Table:
        """P(s, x in the last version | history), (c, a)."""
        return self.classes_after(history).sum(axis=0)


@dataclass(frozen=True)
class MoverStayerReader(ClassReader):
    """Knows how common every change is among those who changed before, and among those who never did.

    Cells are places of secret and input, the same in all waves; tables of classes have those who never changed first.
    """

    def changed(self, t: int) -> dict[Hashable, int]:
        """Who of a wave was ever something else, in it or before."""
        cells: dict[Hashable, set[tuple[int, int]]] = {}
        for wave in self.waves[: t + 1]:
            for key, cell in wave.people.items():
                cells.setdefault(key, set()).add(cell)
        return {key: int(len(cells[key]) > 1) for key in self.waves[t].people}

    def of_classes(self, history: History, t: int) -> Table:
        """P(class, s, x in t | history), (2, c, a)."""
        key = ("classes", history, t)
        if key not in self._known:
            distribution = self.distribution(t)
            if not history:
                self._known[key] = np.stack([distribution, distribution * self.number(0)])
            else:
                v = history[-1][0]
                went = self._went(v, t)
                secrets = self.prior(v, t) > 0
                common = distribution * secrets[:, None]
                unseen = np.stack([common / common.sum(), distribution * self.number(0)])
                table = unseen * self.number(0)
                for state, share in np.ndenumerate(self.classes_after(history)):
                    counts = went.get(state)
                    if counts is None:
                        table = table + share * unseen
                        continue
                    for now, count in counts.items():
                        table[now] += share * self.number(count) / self.number(sum(counts.values()))
                self._known[key] = table
        return self._known[key]

    def _went(self, v: int, t: int) -> dict[Any, Counter[Any]]:
        """How many of each class and cell in one wave are of which in another."""
        key = ("went", v, t)
        if key not in self._known:
            before, after, found = self.changed(v), self.changed(t), {}
            for person, was in self.waves[v].people.items():
                if person in after:
                    now = (after[person], *self.waves[t].people[person])
                    found.setdefault((before[person], *was), Counter())[now] += 1
            self._known[key] = found
        return self._known[key]


@dataclass(frozen=True)
class FittedReader(ClassReader):
    """Knows all that `Reader` knows, and what share of those who never changed are stayers.

    Cells are places of secret and input, the same in all waves.
    """

    stayers: Mapping[tuple[tuple[int, int], tuple[int, ...]], Any] = field(default_factory=dict)

    @classmethod
    def fitted(cls, waves: tuple[Wave, ...], rows: Any, number: Any, rounds: int = 3000) -> FittedReader:
        """By rounds of EM, from a half."""
        reader = cls(waves, rows, number, stayers={})
        never = Counter(person for person in map(reader.never_changed, reader.somebody()) if person is not None)
        pairs = [(v, t, Counter(_both(waves, v, t))) for v in range(len(waves)) for t in range(v + 1, len(waves))]
        first = Counter(cell for _, cell in map(reader.first, reader.somebody()) if cell is not None)
        found = {person: 0.5 * count for person, count in never.items()}
        share = {cell: 0.5 for cell in first}
        for _ in range(rounds):
            staying: Counter[Any] = Counter()
            of_first: Counter[Any] = Counter()
            for (cell, versions), count in found.items():
                of_first[cell] += count
                for place, v in enumerate(versions):
                    for t in versions[place + 1 :]:
                        staying[v, t, cell] += count
            kept = {}
            for v, t, counted in pairs:
                left: Counter[Any] = Counter()
                for (was, _), count in counted.items():
                    left[was] += count
                for cell, count in left.items():
                    movers = count - staying[v, t, cell]
                    kept[v, t, cell] = max(0.0, counted[cell, cell] - staying[v, t, cell]) / movers if movers > 0 else 0
            share = {cell: of_first[cell] / count for cell, count in first.items()}
            for cell, versions in never:
                moving = 1 - share[cell]
                for v, t in pairwise(versions):
                    moving *= kept[v, t, cell]
                found[cell, versions] = never[cell, versions] * share[cell] / max(share[cell] + moving, 1e-300)
        return cls(waves, rows, number, stayers=found)

    def somebody(self) -> list[Hashable]:
        """Everybody who is in some wave."""
        return list(dict.fromkeys(key for wave in self.waves for key in wave.people))

    def first(self, key: Hashable) -> tuple[int, Any]:
        """In how many waves somebody is, and what they are at first; None where that is one wave."""
        cells = [wave.people[key] for wave in self.waves if key in wave.people]
        return len(cells), cells[0] if len(cells) > 1 else None

    def never_changed(self, key: Hashable) -> Any:
        """What somebody is in all waves that they are in, and in which; None if they changed, or are in one."""
        there = tuple(t for t, wave in enumerate(self.waves) if key in wave.people)
        cells = {self.waves[t].people[key] for t in there}
        return (cells.pop(), there) if len(cells) == 1 and len(there) > 1 else None

    def distribution(self, t: int) -> Table:
        """P(stayer or not, s, x) of somebody whose first wave this is, (2, c, a)."""
        key = ("distribution", t)
        if key not in self._known:
            everybody = Counter(cell for _, cell in map(self.first, self.somebody()) if cell is not None)
            staying: Counter[Any] = Counter()
            for (cell, _), count in self.stayers.items():
                staying[cell] += count
            known = sum(everybody.values())
            pooled = Fraction(sum(staying.values())) / known if known else 0
            distribution = super().distribution(t)
            stayers = distribution * self.number(0)
            counted = Counter(self.waves[t].people.values())
            # Told in parts of 1/1024 of a record, rounded down.
            parts = 1024 * len(self.waves[t].people)
            for (s, x), count in counted.items():
                of = everybody[s, x]
                share = Fraction(staying[s, x]) / of if of else Fraction(pooled)
                stayers[s, x] = self.number(int(1024 * count * share)) / self.number(parts)
            self._known[key] = np.stack([stayers, distribution - stayers])
        return self._known[key]

    def movers(self, v: int, t: int) -> Table:
        """P(s, x in t | s', x' in v) of movers, (c', a', c, a); 0 where nobody moves from."""
        key = ("movers", v, t)
        if key not in self._known:
            before, after = self.waves[v], self.waves[t]
            table = np.zeros((before.c, before.a, after.c, after.a)) * self.number(0)
            for (was, now), count in Counter(_both(self.waves, v, t)).items():
                table[(*was, *now)] += self.number(count)
            for (cell, versions), count in self.stayers.items():
                if v in versions and t in versions:
                    table[(*cell, *cell)] -= self.number(count)
            total = table.sum(axis=(2, 3), keepdims=True)
            self._known[key] = table / np.where(total > 0, total, self.number(1))
        return self._known[key]

    def staying(self, v: int, t: int) -> Table:
        """Whether a stayer in v is known to be in t, (c, a)."""
        table = np.zeros((self.waves[v].c, self.waves[v].a)) * self.number(0)
        for (cell, versions), count in self.stayers.items():
            if v in versions and t in versions and count > 0:
                table[cell] = self.number(1)
        return table

    def of_classes(self, history: History, t: int) -> Table:
        """P(stayer or not, s, x in t | history), (2, c, a)."""
        key = ("classes", history, t)
        if key not in self._known:
            if not history:
                self._known[key] = self.distribution(t)
            else:
                v = history[-1][0]
                stayers, movers = self.classes_after(history)
                known = self.staying(v, t)
                kernel = self.movers(v, t)
                table = np.stack([stayers * known, np.tensordot(movers, kernel, 2)])
                # What nobody in both was before tells nothing but how common things are now.
                lost = (stayers * (1 - known)).sum() + (movers * (1 - kernel.sum(axis=(2, 3)))).sum()
                secrets = self.prior(v, t) > 0
                unseen = self.distribution(t) * secrets[None, :, None]
                self._known[key] = table + lost * unseen / unseen.sum()
        return self._known[key]


def _both(waves: Sequence[Wave], v: int, t: int) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """What people in two waves are in both."""
    before, after = waves[v].people, waves[t].people
    return [(before[key], after[key]) for key in before if key in after]
