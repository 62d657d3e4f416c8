"""Pooling: which inputs of a channel share a row, so that no row is about people whom the rules of disclosure keep out.

A channel is made from a table of (secret, input) of those who draw from it. Inputs whose cells break a rule there are
pooled with others, and a pool has one row of weights: the channel is a function of sums that keep the rules. What a
pool is published as names all its values, so that everybody's own value is among them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from funnel.disclosure.rules import Rules
from funnel.joint import FloatArray, IntArray

Flags = npt.NDArray[np.bool_]

# Expected people are sums of products of doubles: cells keep a rule with so much to spare, unless they are counts.
_MARGIN = 1e-9


@dataclass(frozen=True, eq=False)
class ClassRules:
    """The rules of disclosure for tables of expected people.

    Parameters
    ----------
    rules : Rules
    common : ndarray of bool, shape (c,)
        Secrets that are a larger share of all records than `Rules.dominance`: of a combination that is no news.
    folds : int
        Inputs of a stage for one combination of values: classes of a later column.
    """

    rules: Rules
    common: Flags
    folds: int = 1

    @classmethod
    def of(cls, rules: Rules, sizes: FloatArray, folds: int) -> ClassRules:
        """The rules, where so many people have each secret, (c,)."""
        return cls(rules, rules.above(sizes.astype(np.int64), np.asarray(sizes.sum(), dtype=np.int64)), folds)

    def breaking(self, table: FloatArray) -> Flags:
        """Which inputs of a table (c, a) break a rule, shape (a,); those that nobody has do not."""
        whole = table.sum(axis=0)
        room = np.where((table == np.rint(table)).all(axis=0), 0.0, _MARGIN)
        small = (table > 0) & (table < self.rules.minimum_cell * (1 + room))
        share = self.rules.dominance * (1 - room) if self.rules.dominance < 1 else np.ones(len(whole))
        dominated = (table > share * whole) & ~self.common[:, None]
        found = np.asarray((small | dominated).any(axis=0))
        # Fewer than two people are expected: whoever it is, is alone.
        alone = (whole > 0) & (whole < 2)
        if whole[alone].sum() > self.rules.unique_share * whole.sum():
            found |= alone
        return found

    def pools(self, table: FloatArray) -> IntArray | None:
        """The pool of every input of a table (c, a): numbers from 0, (a,); None if no two pools keep the rules.

        First classes of a later column are pooled for one combination, which loses nothing of what is published. Then
        combinations that break a rule, the rarest first, with that pool which loses least of the entropy. Whether
        nobody has a combination or a few have it is not to be seen, so what nobody has is pooled as well. O(a²).
        """
        if not table.any():
            return None
        pool = np.arange(table.shape[1])
        sums = table.copy()
        bad = self.breaking(sums) | (sums.sum(axis=0) == 0)
        for x in np.unique(np.flatnonzero(bad) // self.folds).tolist() if self.folds > 1 else []:
            self._folded(x, sums, pool, bad)
        heads = np.flatnonzero(pool == np.arange(len(pool)))
        mass = sums.sum(axis=0)
        waiting = [int(head) for head in heads[np.argsort(mass[heads], kind="stable")] if bad[head] and mass[head] > 0]
        while waiting:
            head = waiting.pop(0)
            if pool[head] != head or not bad[head]:
                continue
            others = np.flatnonzero((pool == np.arange(len(pool))) & (mass > 0))
            others = others[others != head]
            if not len(others):
                return None
            lost = _entropic(mass[others] + mass[head]) - _entropic(mass[others])
            partner = int(others[lost.argmin()])
            self._join(head, partner, sums, pool, bad)
            mass[partner] += mass[head]
            mass[head] = 0
            if bad[partner]:
                waiting.append(partner)
                waiting.sort(key=lambda one: mass[one])
        self._with_absent(mass, pool)
        numbers = np.unique(pool, return_inverse=True)[1].reshape(-1)
        return numbers.astype(np.int64) if numbers.max() > 0 else None

    def holds(self, table: FloatArray, pool: IntArray) -> bool:
        """Whether all pools of a table (c, a) keep the rules."""
        sums: FloatArray = np.stack([np.bincount(pool, weights=row) for row in table]).astype(np.float64)
        return not self.breaking(sums).any()

    def _folded(self, x: int, sums: FloatArray, pool: IntArray, bad: Flags) -> None:
        """Pool the classes of one combination that break a rule, with each other and if need be with the rarest."""
        places = np.arange(x * self.folds, (x + 1) * self.folds)
        head, *others = places[bad[places]].tolist()
        for other in others:
            self._join(other, head, sums, pool, bad)
        fine = [place for place in places.tolist() if not bad[place] and pool[place] == place]
        fine.sort(key=lambda place: float(sums[:, place].sum()))
        while fine and (bad[head] or not sums[:, head].any()):
            self._join(fine.pop(0), head, sums, pool, bad)

    def _join(self, one: int, other: int, sums: FloatArray, pool: IntArray, bad: Flags) -> None:
        """Put a pool into another one, which are named by an input of theirs."""
        sums[:, other] += sums[:, one]
        sums[:, one] = 0
        pool[pool == one] = other
        bad[one] = False
        bad[other] = bool(self.breaking(sums[:, [other]])[0]) or not sums[:, other].any()

    def _with_absent(self, mass: FloatArray, pool: IntArray) -> None:
        """Put what nobody has into the nearest pool of several combinations; if there is none, into the rarest."""
        symbols = np.arange(len(pool)) // self.folds
        heads = np.unique(pool)
        empty = heads[mass[heads] == 0]
        if not len(empty):
            return
        there = heads[mass[heads] > 0]
        several = [head for head in there.tolist() if len(np.unique(symbols[pool == head])) > 1]
        if not several:
            pool[np.isin(pool, empty)] = int(there[mass[there].argmin()])
            return
        known = np.flatnonzero(np.isin(pool, several))
        for head in empty.tolist():
            nearest = int(np.abs(symbols[known] - symbols[head]).argmin())
            pool[pool == head] = pool[known[nearest]]


def rows_of(weights: IntArray) -> IntArray:
    """Numbers of the different columns of a channel (b, a), (a,): inputs with one number share a row."""
    return np.unique(weights, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)


def shared_rows(weights: IntArray, folds: int) -> Flags:
    """Which inputs of a channel (b, a) share their row with another combination of values, (a,)."""
    rows = rows_of(weights)
    combinations = np.arange(len(rows)) // folds
    pairs = np.unique(np.stack([rows, combinations]), axis=1)
    return np.asarray(np.bincount(pairs[0])[rows] > 1)


def _entropic(masses: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(masses > 0, masses * np.log(masses), 0.0)
