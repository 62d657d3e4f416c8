"""The best grouping of the values of one column, the others being as they are: exact, or greedy with repairs.

What a grouping keeps is a sum over its groups, and whether it meets the rules is asked of each group alone. So the best
one is a best partition: of an interval where only neighbours may be grouped (dynamic programming, O(m²) groups), and of
a set elsewhere (dynamic programming over subsets, O(3^m)), up to `EXACT` values.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from funnel.joint import FloatArray
from funnel.settings.disclosure_rules import BoolArray, IntArray, Rules

# Values of a column without order of which all partitions are searched, and cells of all its groups together.
EXACT = 16
# The same where a search asks for many partitions: a fiftieth of the work.
QUICK = 12
_MOST_CELLS = 1 << 26
_CHUNK = 1 << 22
# Information is a sum of logarithms; what differs by less is the same, and the first one found is taken.
TIE = 1e-12


@dataclass(frozen=True, eq=False)
class Blocks:
    """Groups of values of one axis, judged one by one.

    Parameters
    ----------
    cells : ndarray of int64, shape (m, r, c)
        As `Table.cells` gives them.
    secret : bool
        Whether the axis is secret.
    rules : Rules
    ordered : bool
        Whether only neighbours may be grouped.
    exact : int
        Values up to which all partitions of a set are searched.
    """

    cells: IntArray
    secret: bool
    rules: Rules
    ordered: bool = False
    exact: int = EXACT

    @property
    def m(self) -> int:
        """Number of values."""
        return len(self.cells)

    @cached_property
    def n(self) -> int:
        """Number of records."""
        return int(self.cells.sum())

    @cached_property
    def _known(self) -> BoolArray:
        """Secrets that are dominant in the whole table, shape (c,)."""
        return self.rules.above(self.cells.sum(axis=(0, 1)), np.asarray(self.n))

    @cached_property
    def _of_combination(self) -> IntArray:
        """Records of each published combination, shape (a,); for a secret axis."""
        return np.asarray(self.cells.sum(axis=(0, 1)))

    def assess(self, sums: IntArray) -> tuple[BoolArray, FloatArray]:
        """Of groups (k, r, c), part of r perhaps: whether they meet the rules, and what they keep in nats."""
        return self.lacking(sums) == 0, self.kept(sums)

    def lacking(self, sums: IntArray) -> FloatArray:
        """By how many records groups miss the rules, shape (k,); zero where they meet them."""
        least = self.rules.minimum_cell
        missing = np.where(self.rules.small(sums), least - sums, 0).sum(axis=(1, 2)).astype(np.float64)
        totals = sums.sum(axis=2)
        if self.secret:
            whole = np.broadcast_to(self._of_combination, sums.shape)
            free = self.rules.above(totals, np.asarray(self.n))[:, :, None]
        else:
            whole = np.broadcast_to(totals[:, :, None], sums.shape)
            free = np.broadcast_to(self._known, sums.shape)
            if self.rules.unique_share < 1:
                missing += (totals == 1).sum(axis=1)
        dominated = self.rules.above(sums, whole) & ~free
        missing += np.where(dominated, np.maximum(sums - self.rules.dominance * whole, 1e-6), 0.0).sum(axis=(1, 2))
        return np.asarray(missing, dtype=np.float64)

    def kept(self, sums: IntArray) -> FloatArray:
        """Information that groups contribute, in nats, shape (k,)."""
        p = sums.sum(axis=2) / self.n
        return np.asarray(-(p * np.log(np.where(p > 0, p, 1.0))).sum(axis=1))

    def least_loss(self) -> float:
        """A loss, in nats, that no grouping which meets the rules stays below.

        Merging values one after another, each into a group that has the first, loses at least what the pairs with that
        first one would lose alone; the first may be the one of least loss. So a group loses at least half the sum of
        what its values lose in their cheapest pairs, and a value that misses the rules is in a group of several.
        """
        missing = np.flatnonzero(self.lacking(self.cells))
        kept = self.kept(self.cells)
        total = 0.0
        for j in missing.tolist():
            # Across an order too: the other values of a group need not be neighbours of the first.
            others = np.delete(np.arange(self.m), j)
            lost = kept[j] + kept[others] - self.kept(self.cells[j] + self.cells[others])
            total += float(lost.min()) if len(others) else 0.0
        return total / 2

    def best(self) -> list[list[int]] | None:
        """Groups of values that keep most and meet the rules, by their first value; None if there are none.

        Of a secret axis there are at least two. Certain where `is_exact`.
        """
        if self.ordered:
            return self._best_intervals()
        return self._best_sets() if self.is_exact else self._by_merging()

    @property
    def is_exact(self) -> bool:
        """Whether `best` is certain to be best."""
        return self.ordered or (self.m <= self.exact and self.cells[0].size << self.m <= _MOST_CELLS)

    def _best_intervals(self) -> list[list[int]] | None:
        m = self.m
        upto = np.concatenate([np.zeros((1, *self.cells.shape[1:]), dtype=np.int64), self.cells.cumsum(axis=0)])
        best = np.full(m + 1, -np.inf)
        best[0] = 0.0
        begin = np.zeros(m + 1, dtype=np.int64)
        for end in range(1, m + 1):
            fits, kept = self.assess(upto[end][None] - upto[:end])
            if self.secret and end == m:
                fits[0] = False
            total = np.where(fits, best[:end] + kept, -np.inf)
            begin[end] = first = _first_best(total)
            best[end] = total[first]
        if best[m] == -np.inf:
            return None
        groups = []
        end = m
        while end:
            groups.append(list(range(int(begin[end]), end)))
            end = int(begin[end])
        return groups[::-1]

    def _best_sets(self) -> list[list[int]] | None:
        m = self.m
        fits, kept = self._all_sets()
        if self.secret:
            fits[-1] = False
        worth = np.where(fits, kept, -np.inf)
        best = np.full(1 << m, -np.inf)
        best[0] = 0.0
        block = np.zeros(1 << m, dtype=np.int64)
        # Every partition of a set has one group with its lowest value.
        for members in range(1, 1 << m):
            lowest = members & -members
            candidates = lowest | _subsets(members ^ lowest)
            total = worth[candidates] + best[members ^ candidates]
            first = _first_best(total)
            best[members], block[members] = total[first], candidates[first]
        if best[-1] == -np.inf:
            return None
        groups = []
        members = (1 << m) - 1
        while members:
            taken = int(block[members])
            groups.append([j for j in range(m) if taken >> j & 1])
            members ^= taken
        return groups

    def _all_sets(self) -> tuple[BoolArray, FloatArray]:
        """Of every set of values, by its bits: whether it meets the rules as one group, and what it keeps."""
        m, r, c = self.cells.shape
        fits = np.ones(1 << m, dtype=np.bool_)
        kept = np.zeros(1 << m)
        step = max(1, _CHUNK // ((1 << m) * c))
        for start in range(0, r, step):
            part = self.cells[:, start : start + step]
            sums = np.zeros((1, *part.shape[1:]), dtype=np.int64)
            for j in range(m):
                sums = np.concatenate([sums, sums + part[j]])
            met, worth = self.assess(sums)
            fits &= met
            kept += worth
        return fits, kept

    def _by_merging(self) -> list[list[int]] | None:
        """Groups by merging what misses the rules at the least loss a record, then by moving values while it helps."""
        groups = [[j] for j in range(self.m)]
        sums = self.cells.copy()
        missing, kept = self.lacking(sums), self.kept(sums)
        # Of every pair of groups what merging them wins and loses: a merger changes that of the new one alone.
        won, lost = np.zeros((2, self.m, self.m))
        for i in range(self.m):
            won[i], lost[i] = self._merged_with(i, sums, missing, kept)
        least = 2 if self.secret else 1
        while missing.any():
            if len(groups) <= least:
                return None
            i, j = _cheapest(won, lost, missing > 0)
            groups[i] += groups.pop(j)
            sums[i] += sums[j]
            sums, missing, kept = np.delete(sums, j, axis=0), np.delete(missing, j), np.delete(kept, j)
            missing[i], kept[i] = self.lacking(sums[i : i + 1])[0], self.kept(sums[i : i + 1])[0]
            won, lost = (np.delete(np.delete(of, j, axis=0), j, axis=1) for of in (won, lost))
            won[i], lost[i] = self._merged_with(i, sums, missing, kept)
            won[:, i], lost[:, i] = won[i], lost[i]
        return sorted(sorted(group) for group in self._moved(groups, least))

    def _merged_with(
        self, i: int, sums: IntArray, missing: FloatArray, kept: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Of one group with every other: by how many records merging brings them nearer to the rules, and the loss."""
        won, lost = missing[i] + missing, kept[i] + kept
        step = max(1, _CHUNK // sums[i].size)
        for start in range(0, len(sums), step):
            both = sums[i] + sums[start : start + step]
            won[start : start + step] -= self.lacking(both)
            lost[start : start + step] -= self.kept(both)
        return won, lost

    def _moved(self, groups: list[list[int]], least: int) -> list[list[int]]:
        """Groups after every move of one value, to another group or out alone, that keeps more and the rules."""
        sums = np.stack([self.cells[group].sum(axis=0) for group in groups])
        moved = True
        while moved:
            moved = False
            for value in range(self.m):
                here = next(k for k, group in enumerate(groups) if value in group)
                alone = len(groups[here]) == 1
                if alone and len(groups) <= least:
                    continue
                others = [k for k in range(len(groups)) if k != here]
                there = self._better(value, sums[here], sums[others], alone)
                if there is None:
                    continue
                left = [] if alone else [[j for j in groups[here] if j != value]]
                to = [] if there == len(others) else groups[others.pop(there)]
                groups = [*(groups[k] for k in others), *left, [*to, value]]
                sums = np.stack([self.cells[group].sum(axis=0) for group in groups])
                moved = True
        return groups

    def _better(self, value: int, here: IntArray, others: IntArray, alone: bool) -> int | None:
        """The first of the other groups, or the number of these for out alone, where a value keeps more; else None."""
        cells = self.cells[value]
        joined = others + cells if alone else np.concatenate([others + cells, cells[None]])
        left = (here - cells)[None]
        gains = self.kept(joined) + self.kept(left) - self.kept(here[None])
        gains[: len(others)] -= self.kept(others)
        better = np.flatnonzero(gains > TIE).tolist()
        if not better or self.lacking(left).any():
            return None
        return next((k for k in better if not self.lacking(joined[k : k + 1]).any()), None)


def assignment(groups: list[list[int]], m: int) -> IntArray:
    """Of each of m values the number of its group, shape (m,); groups are numbered by their first values."""
    of = np.zeros(m, dtype=np.int64)
    for number, group in enumerate(sorted(groups, key=min)):
        of[group] = number
    return of


def _first_best(total: FloatArray) -> int:
    """The first of those that are as good as the best."""
    best = total.max()
    return int(np.flatnonzero(total >= best - TIE)[0]) if best > -np.inf else 0


def _subsets(members: int) -> IntArray:
    """All subsets of a set of bits, itself and none among them."""
    found = np.zeros(1, dtype=np.int64)
    while members:
        bit = members & -members
        found = np.concatenate([found, found | bit])
        members ^= bit
    return found


def _cheapest(won: FloatArray, lost: FloatArray, is_missing: BoolArray) -> tuple[int, int]:
    """The first pair of groups, of which one misses the rules, that costs least for each record won, of shape (k, k).

    What brings nothing nearer to the rules is merged last, and then at the least loss.
    """
    candidates = np.triu(is_missing[:, None] | is_missing, 1)
    wins = candidates & (won > 0)
    price = (
        np.where(wins, lost / np.where(wins, won, 1.0), np.inf) if wins.any() else np.where(candidates, lost, np.inf)
    )
    i, j = np.unravel_index(int(price.argmin()), price.shape)
    return int(i), int(j)
