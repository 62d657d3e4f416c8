"""Groups of values with which a table meets the rules of disclosure control and keeps most information.

What is kept is H(secret) + H(published) of the grouped table, in nats: what a release could tell, and what the
guarantee tells apart. A grouped secret is a weaker promise: nothing bounds what a record tells between the values of a
group. So only rare values of a secret are grouped, those of less than `RARE` of the records or fewer than the minimum
of a cell; of the others no two become one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product

import numpy as np

from funnel.disclosure.partition import EXACT, QUICK, TIE, Blocks, assignment
from funnel.disclosure.table import Table
from funnel.errors import DataError
from funnel.joint import FloatArray
from funnel.settings.disclosure_rules import BoolArray, IntArray, Rules

# Share of the records below which a value of the secret is rare.
RARE = 0.01
# Values of one secret column, and groupings of all of them, up to which these are all tried; else those of a chain.
_FEW, _ALL_SECRETS = 50, 256


@dataclass(frozen=True, eq=False)
class Grouping:
    """Which values of each column become one.

    Attributes
    ----------
    table : Table
    of : tuple of ndarray of int64, shape (values,)
        For each axis, of each value the number of its group; groups are numbered by their first values.
    kept : float
        H(secret) + H(published) after grouping, nats.
    before : float
        The same before.
    bound : float
        No grouping that meets the rules keeps more than this; `kept` itself where that is certain.
    """

    table: Table
    of: tuple[IntArray, ...]
    kept: float
    before: float
    bound: float

    @property
    def changes(self) -> bool:
        """Whether any values are grouped."""
        return any(int(group.max()) + 1 < len(group) for group in self.of)

    @property
    def is_best(self) -> bool:
        """Whether it is certain that no other grouping which meets the rules keeps more."""
        return self.kept >= self.bound

    def groups(self) -> dict[str, tuple[tuple[str, ...], ...]]:
        """By column the groups of several values, each with its values in order; of columns that have some."""
        found = {}
        for axis, of in zip(self.table.axes, self.of, strict=True):
            members = [
                tuple(value for value, number in zip(axis.values, of.tolist(), strict=True) if number == group)
                for group in range(int(of.max()) + 1)
            ]
            if several := tuple(one for one in members if len(one) > 1):
                found[axis.column] = several
        return found

    @property
    def counts(self) -> IntArray:
        """Counts (c, a) of the grouped combinations that occur."""
        return self.table.grouped(self.of)


def best_grouping(table: Table, rules: Rules) -> Grouping:
    """The grouping that keeps most under the rules, as far as it is found.

    One published and one secret column of few values: the best one (every grouping of the secret, and for each the best
    partition of the published values). Otherwise the best that ascent by columns finds: every published column grouped
    to one value, then column by column the best partition given the others, from every column as the first and for
    every grouping of the secret in a chain; with a bound on what any other grouping could keep.

    Raises
    ------
    DataError
        If no grouping meets the rules and leaves at least two published and two secret values.
    """
    best = _best(table, rules)
    if best is None:
        raise DataError(
            f"no grouping of {', '.join(axis.column for axis in table.axes)} leaves two values and meets the rules of "
            f"[disclosure] on {table.n:,} records; {_remedy(table, rules)}"
        )
    return best


def _remedy(table: Table, rules: Rules) -> str:
    """What would help: the one rule without which there is a grouping, or else other records or columns."""
    for name, looser in (
        ("dominance", replace(rules, dominance=1.0)),
        ("minimum_cell", replace(rules, minimum_cell=1)),
    ):
        if looser != rules and _best(table, looser) is not None:
            verb = "raise" if name == "dominance" else "lower"
            return f"{verb} {name} of [disclosure], which is {getattr(rules, name):g}, or publish fewer columns"
    return "take more records, publish fewer columns, or loosen both minimum_cell and dominance"


def _best(table: Table, rules: Rules) -> Grouping | None:
    finest = tuple(np.arange(len(axis.values), dtype=np.int64) for axis in table.axes)
    before = information(table, finest)
    if meets(table, finest, rules):
        return Grouping(table, finest, before, before, before)
    secrets, every = _groupings_of_secret(table, rules)
    best: Grouping | None = None
    certain = every and len(table.axes_of(False)) == 1
    for secret in secrets:
        start = _with(finest, table.axes_of(True), secret)
        if best is not None and _at_most(table, rules, start) <= best.kept + TIE:
            continue
        for found, exact in _ascents(table, rules, start):
            certain = certain and exact
            if not any(found[j].any() for j in table.axes_of(False)):
                continue
            kept = information(table, found)
            if best is None or kept > best.kept + TIE:
                best = Grouping(table, found, kept, before, math.inf)
    if best is None:
        return None
    return replace(best, bound=best.kept if certain else max(best.kept, before - _least_loss(table, rules)))


def information(table: Table, grouped: Sequence[IntArray]) -> float:
    """H(secret) + H(published) of the grouped table, nats."""
    total = 0.0
    for secret in (True, False):
        code, size = table.codes(table.axes_of(secret), grouped)
        p = np.bincount(code, weights=table.counts, minlength=size) / table.n
        total -= float((p[p > 0] * np.log(p[p > 0])).sum())
    return max(total, 0.0)


def meets(table: Table, grouped: Sequence[IntArray], rules: Rules) -> bool:
    """Whether the grouped table breaks no rule."""
    return not _breaking(table.grouped(grouped), table.n, rules).any()


def _breaking(counts: IntArray, n: int, rules: Rules) -> BoolArray:
    """Cells (c, a) of n records that break a rule; of a combination that is alone in it every one that somebody has."""
    totals = counts.sum(axis=0)
    dominated = rules.above(counts, totals[None, :]) & ~rules.above(counts.sum(axis=1), np.asarray(n))[:, None]
    lone = (totals == 1)[None, :] & (counts > 0) & (rules.unique_share < 1)
    return np.asarray(rules.small(counts) | dominated | lone)


def _at_most(table: Table, rules: Rules, start: Sequence[IntArray]) -> float:
    """What a grouping of the published columns can keep at most with this grouping of the secret, nats."""
    published = table.axes_of(False)
    most = information(table, start)
    if len(published) > 1:
        return most
    return most - Blocks(table.cells(published[0], start), False, rules).least_loss()


def _ascents(table: Table, rules: Rules, start: Sequence[IntArray]) -> Iterator[tuple[tuple[IntArray, ...], bool]]:
    """Groupings of the published columns with this grouping of the secret, from every column as the first."""
    published = table.axes_of(False)
    coarsest = _with(start, published, [np.zeros_like(start[j]) for j in published])
    if not meets(table, coarsest, rules):
        return
    for first in published:
        yield _ascent(table, rules, coarsest, first)


def _ascent(table: Table, rules: Rules, start: tuple[IntArray, ...], first: int) -> tuple[tuple[IntArray, ...], bool]:
    """Column by column the best partition, the one that gains most first, until none gains; whether each was exact."""
    published = table.axes_of(False)
    state, kept, exact = start, information(table, start), True
    axes: tuple[int, ...] = (first,)
    last: int | None = None
    while True:
        best, gain, grouped = state, TIE, last
        for j in axes:
            # What was grouped last is at its best as long as the others are as they were.
            if j == last:
                continue
            groups, is_exact = _best_of(table, rules, state, j)
            exact = exact and is_exact
            after = _with(state, [j], [groups])
            if (more := information(table, after) - kept) > gain:
                best, gain, grouped = after, more, j
        if best is state and axes == published:
            return state, exact
        last, state, kept = grouped, best, information(table, best)
        # One column alone is at its best at once.
        axes = published
        if len(published) == 1:
            return state, exact


def _best_of(table: Table, rules: Rules, state: tuple[IntArray, ...], axis: int) -> tuple[IntArray, bool]:
    """The best partition of one axis given the others; as it is where there is none."""
    one = table.axes[axis]
    limit = EXACT if len(table.axes_of(False)) == 1 else QUICK
    blocks = Blocks(table.cells(axis, state), one.secret, rules, one.ordered, limit)
    groups = blocks.best()
    return (state[axis] if groups is None else assignment(groups, len(one.values))), blocks.is_exact


def _groupings_of_secret(table: Table, rules: Rules) -> tuple[list[tuple[IntArray, ...]], bool]:
    """Groupings of the secret columns to try, those that keep most first, and whether these are all."""
    axes = table.axes_of(True)
    common = [common_values(table, j, rules) for j in axes]
    if all(len(one) <= _FEW for one in common):
        choices = [
            list(islice(_partitions(one, table.axes[j].ordered), _ALL_SECRETS + 1))
            for j, one in zip(axes, common, strict=True)
        ]
        if math.prod(len(choice) for choice in choices) <= _ALL_SECRETS:
            found = [tuple(one) for one in product(*choices)]
            return sorted(found, key=lambda one: -_of_secret(table, one)), True
    return list(_chain(table, common)), False


def common_values(table: Table, axis: int, rules: Rules) -> BoolArray:
    """Which values of an axis are not rare, shape (values,)."""
    records = np.bincount(table.places[:, axis], weights=table.counts, minlength=len(table.axes[axis].values))
    return np.asarray((records >= RARE * table.n) & (records >= rules.minimum_cell))


def keeps_apart(of: IntArray, common: BoolArray) -> bool:
    """Whether no group has two values that are not rare."""
    return bool(np.bincount(of, weights=common).max() <= 1)


def _of_secret(table: Table, secret: Sequence[IntArray]) -> float:
    """H of the grouped secret, nats."""
    published = [np.zeros(len(table.axes[j].values), dtype=np.int64) for j in table.axes_of(False)]
    return information(table, [*secret, *published])


def _chain(table: Table, common: Sequence[BoolArray]) -> Iterator[tuple[IntArray, ...]]:
    """From all values apart on: those two groups of a column become one whose merging loses least."""
    axes = table.axes_of(True)
    state = tuple(np.arange(len(table.axes[j].values), dtype=np.int64) for j in axes)
    while True:
        yield state
        candidates = [
            _with(state, [k], [merged])
            for k, j in enumerate(axes)
            for merged in _mergers(state[k], table.axes[j].ordered)
            if keeps_apart(merged, common[k])
        ]
        if not candidates:
            return
        kept = [_of_secret(table, candidate) for candidate in candidates]
        state = candidates[max(range(len(kept)), key=lambda i: (round(kept[i], 12), -i))]


def _mergers(of: IntArray, ordered: bool) -> Iterator[IntArray]:
    """Groupings with two groups made one, of at least two groups left."""
    k = int(of.max()) + 1
    if k <= 2:
        return
    for low in range(k):
        for high in range(low + 1, min(low + 2, k) if ordered else k):
            merged = np.where(of == high, low, of)
            yield np.where(merged > high, merged - 1, merged)


def _partitions(common: BoolArray, ordered: bool) -> Iterator[IntArray]:
    """All partitions into at least two groups of which none has two common values, as restricted growth strings."""
    m = len(common)

    def grow(prefix: list[int], full: frozenset[int]) -> Iterator[list[int]]:
        if len(prefix) == m:
            yield prefix
            return
        place, last = len(prefix), max(prefix, default=-1)
        for group in range(last if ordered and prefix else 0, last + 2):
            if not (common[place] and group in full):
                yield from grow([*prefix, group], full | {group} if common[place] else full)

    for found in grow([], frozenset()):
        if max(found) >= min(1, m - 1):
            yield np.array(found, dtype=np.int64)


def _least_loss(table: Table, rules: Rules) -> float:
    """A loss that no grouping which meets the rules stays below, nats.

    Whoever groups more loses more. A cell that breaks a rule has, in any grouping that meets them, one of its values
    grouped with another; so the loss is at least that of the cheapest pair with one of its values. Of all cells the
    largest of these counts.
    """
    finest = tuple(np.arange(len(axis.values), dtype=np.int64) for axis in table.axes)
    cheapest = []
    for j, axis in enumerate(table.axes):
        cells = table.cells(j, finest).sum(axis=2)
        own = _loss_terms(cells, table.n)
        losses = np.full(len(axis.values), np.inf)
        for one in range(len(axis.values)):
            others = [one - 1, one + 1] if axis.ordered else range(len(axis.values))
            for other in others:
                if other != one and 0 <= other < len(axis.values):
                    merged = _loss_terms((cells[one] + cells[other])[None], table.n)[0]
                    losses[one] = min(losses[one], own[one] + own[other] - merged)
        cheapest.append(losses)
    secret, combination = (table.codes(table.axes_of(is_secret), finest)[0] for is_secret in (True, False))
    breaking = _breaking(table.grouped(finest), table.n, rules)[secret, combination]
    by_cell = np.min(
        np.stack([losses[table.places[:, j]] for j, losses in enumerate(cheapest)], axis=1), axis=1, initial=np.inf
    )
    return float(by_cell[breaking].max(initial=0.0))


def _loss_terms(cells: IntArray, n: int) -> FloatArray:
    p = cells / n
    return np.asarray(-(p * np.log(np.where(p > 0, p, 1.0))).sum(axis=1))


def _with(grouped: Sequence[IntArray], axes: Sequence[int], groups: Sequence[IntArray]) -> tuple[IntArray, ...]:
    """The same with other groups of some axes."""
    after = list(grouped)
    for j, of in zip(axes, groups, strict=True):
        after[j] = of
    return tuple(after)
