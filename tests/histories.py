"""What somebody believes who keeps every version: a forward recursion of its own, which funnel's is held against.

Plain loops over people and small tables, in fractions or in long doubles; nothing of ``funnel.history`` is used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[Any]
History = tuple[tuple[int, int], ...]
# The weights (b, a) that people with a history were drawn from in a version.
Rows = Callable[[int, History], Table]


@dataclass(frozen=True)
class Wave:
    """One version: what everybody in it is, as places of secret and input, and how many of these there are."""

    people: Mapping[Hashable, tuple[int, int]]
    c: int
    a: int


@dataclass(frozen=True)
class Reader:
    """Knows how common everything is in every wave, and every change from one to another, and all that was published.

    ``number`` is `fractions.Fraction`, or ``numpy.longdouble`` for whole panels.
    """

    waves: tuple[Wave, ...]
    rows: Rows
    number: Any = Fraction
    _known: dict[Any, Any] = field(default_factory=dict)

    def distribution(self, t: int) -> Table:
        """P(s, x) in a wave, (c, a)."""
        wave = self.waves[t]
        return self._shares(Counter(wave.people.values()), (wave.c, wave.a))

    def change(self, v: int, t: int) -> Table:
        """P(s, x in t | s', x' in v), (c', a', c, a), of the people in both."""
        if (v, t) in self._known:
            return self._known[v, t]
        before, after = self.waves[v], self.waves[t]
        both = [(before.people[key], after.people[key]) for key in before.people if key in after.people]
        secrets = {now[0] for _, now in both}
        # Of what nobody in both was before, nothing is known but how common things are now.
        common = self.distribution(t)
        unseen = np.stack([row if s in secrets else row * 0 for s, row in enumerate(common)])
        unseen = unseen / unseen.sum()
        table = np.empty(
            (before.c, before.a, after.c, after.a), dtype=object if self.number is Fraction else self.number
        )
        went: dict[tuple[int, int], Counter[tuple[int, int]]] = {}
        for was, now in both:
            went.setdefault(was, Counter())[now] += 1
        for s in range(before.c):
            for x in range(before.a):
                found = went.get((s, x))
                table[s, x] = unseen if found is None else self._shares(found, (after.c, after.a))
        self._known[v, t] = table
        return table

    def prior(self, v: int | None, t: int) -> Table:
        """P(s) in t of those who were in v too; of everybody in t for v = None. Shape (c,)."""
        wave = self.waves[t]
        seen = [cell[0] for key, cell in wave.people.items() if v is None or key in self.waves[v].people]
        return self._shares(Counter((s, 0) for s in seen), (wave.c, 1))[:, 0]

    def before(self, history: History, t: int) -> Table:
        """P(s, x in t | history), (c, a)."""
        key = ("before", history, t)
        if key not in self._known:
            if not history:
                self._known[key] = self.distribution(t)
            else:
                last = history[-1][0]
                self._known[key] = np.tensordot(self.after(history), self.change(last, t), 2)
        return self._known[key]

    def after(self, history: History) -> Table:
        """P(s, x in the last version | history), (c, a)."""
        key = ("after", history)
        if key not in self._known:
            (t, y), earlier = history[-1], history[:-1]
            masses = self.before(earlier, t) * self._weights(t, earlier)[y]
            self._known[key] = masses / masses.sum()
        return self._known[key]

    def past_secret(self, history: History, v: int) -> Table:
        """P(secret in v | the whole history), for a version v of the history; shape (c of v,)."""
        return self.with_past(history, v).sum(axis=(1, 2))

    def with_past(self, history: History, v: int) -> Table:
        """P(secret in v, s, x in the last version | the whole history), (c of v, c, a)."""
        key = ("past", history, v)
        if key not in self._known:
            (t, y), earlier = history[-1], history[:-1]
            if t == v:
                now = self.after(history)
                secrets = np.arange(len(now))
                table = np.stack([np.where((secrets == s)[:, None], now, now * 0) for s in secrets])
            else:
                table = self.past_before(earlier, t, v) * self._weights(t, earlier)[y]
                table = table / table.sum()
            self._known[key] = table
        return self._known[key]

    def past_before(self, history: History, t: int, v: int) -> Table:
        """P(secret in v, s, x in t | history), (c of v, c, a)."""
        return np.tensordot(self.with_past(history, v), self.change(history[-1][0], t), 2)

    def lifts(self, posterior: Table, prior: Table) -> Table:
        """P(s | …) / P(s), (c,); 1 where P(s) is zero."""
        return np.array([p / q if q else 1 + 0 * p for p, q in zip(posterior, prior, strict=True)])

    def _weights(self, t: int, history: History) -> Table:
        key = ("rows", t, history)
        if key not in self._known:
            weights = self.rows(t, history)
            if self.number is Fraction:
                self._known[key] = np.array([[Fraction(int(w), 2**63) for w in row] for row in weights], dtype=object)
            else:
                self._known[key] = np.asarray(weights).astype(self.number) / self.number(2) ** 63
        return self._known[key]

    def _shares(self, counted: Counter[tuple[int, int]], shape: tuple[int, int]) -> Table:
        table = np.zeros(shape, dtype=object if self.number is Fraction else self.number)
        if self.number is Fraction:
            table += Fraction(0)
        for cell, count in counted.items():
            table[cell] = self.number(count)
        return table / self.number(counted.total())


def level(lifts: Table) -> float:
    """The LIP level of lifts, in nats: infinite where one is zero."""
    values = [float(abs(np.log(np.longdouble(float(lift))))) if lift > 0 else float("inf") for lift in lifts]
    return max(values, default=0.0)
