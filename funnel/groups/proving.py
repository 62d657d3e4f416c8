"""Proving: every output of a tree rehearsed by people who did not make it, and what they say of the secret after it.

The words of people are uniform and independent of all else, so that a person is among those who stand for an output,
``word / 2^64 < w(output | record) / most``, with a probability that is proportional to how likely the record shows it.
Their secrets are independent draws from P(S | output) in the population, however many they are: whole people, of whom
limits of Clopper and Pearson (1934) are valid. Means of weights are no shares, and their limits would be wider.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from funnel.groups.growing import Prefix, Tree
from funnel.groups.halves import WORD_BITS, Halves
from funnel.groups.posteriors import Bound, Limits, Ratios
from funnel.groups.protocol import UNIT
from funnel.history.exact_law import WholeNumbers
from funnel.joint import IntArray


@dataclass(frozen=True)
class Cell:
    """What was found of an output, or of several that were joined.

    Attributes
    ----------
    people : tuple of int
        By secret, who stand for it of those who prove.
    ratios : Ratios
        The largest over the limits.
    counted : Ratios
        The same for the counts of everybody, without limits.
    holds : bool
        Whether none is beyond the bound.
    """

    people: tuple[int, ...]
    ratios: Ratios
    counted: Ratios
    holds: bool


@dataclass(frozen=True, eq=False)
class Provers:
    """People who prove, and what they have to.

    Attributes
    ----------
    halves : Halves
    everybody : ndarray of int64, shape (c, r)
        Counts.
    bound : Bound
        Its tail is that of every limit.
    """

    halves: Halves
    everybody: IntArray
    bound: Bound

    def judged(self, rows: IntArray, ways: WholeNumbers, most: int) -> Cell:
        """An output by the weights of the records that may show it, none above ``most``."""
        # word / 2^64 < way / most is word <= ⌈2^64 way / most⌉ - 1; who has no way is not among the rows.
        last = np.array([((way << WORD_BITS) + most - 1) // most - 1 for way in ways.tolist()], dtype=np.uint64)
        starts = np.searchsorted(self.halves.record, rows, side="left")
        lengths = np.searchsorted(self.halves.record, rows, side="right") - starts
        person = np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(int(lengths.sum()))
        standing = self.halves.word[person] <= np.repeat(last, lengths)
        people = np.bincount(self.halves.secret[person[standing]], minlength=len(self.everybody))
        posterior = Limits(tuple(people.tolist()), self.bound.prior.tail)
        ratios = self.bound.over(posterior)
        counted = self.bound.of_counts(_by_secret(self.everybody, rows, ways))
        return Cell(posterior.counts, ratios, counted, self.bound.holds(ratios) and self.bound.holds(counted))


def cells_of(tree: Tree, provers: Provers) -> dict[int, list[Cell]]:
    """What is found of every cell of a tree, by ``id`` of the prefix: its outputs first, then what was joined of them.

    A product of whole weights for every prefix, record that may show it, and cell.
    """
    found: dict[int, list[Cell]] = {}
    there = tree.root.rows
    start = np.array([1] * len(there), dtype=object)
    left: list[tuple[Prefix, int, IntArray, WholeNumbers, int]] = [(tree.root, 0, there, start, 1)]
    while left:
        prefix, number, rows, ways, most = left.pop()
        if prefix.weights is None:
            left += [(one, number + 1, rows, ways * UNIT, most * UNIT) for one in prefix.after if one is not None]
            continue
        inputs = tree.readings[number].inputs[rows]
        cells: list[Cell] = []
        for y in range(prefix.cells):
            outputs = members(prefix, y)
            weights = prefix.weights[outputs].sum(axis=0)
            some = np.flatnonzero(weights[inputs])
            shown = ways[some] * weights[inputs[some]].astype(object)
            largest = most * max(int(weights.max()), rare_weight(prefix, outputs))
            cells.append(provers.judged(rows[some], shown, largest))
            if y < len(prefix.after) and (after := prefix.after[y]) is not None:
                left.append((after, number + 1, rows[some], shown, largest))
        found[id(prefix)] = cells
    return found


def rare_weight(prefix: Prefix, outputs: list[int]) -> int:
    """The weight of some outputs for inputs that nobody had who made the channel, and that nobody may have at all."""
    assert prefix.rare is not None
    return int(prefix.rare[outputs].sum())


def members(prefix: Prefix, cell: int) -> list[int]:
    """The outputs that a cell joins."""
    assert prefix.weights is not None
    if cell < len(prefix.weights):
        return [cell]
    one, other = prefix.joins[cell - len(prefix.weights)]
    return [*members(prefix, one), *members(prefix, other)]


def _by_secret(counts: IntArray, rows: IntArray, ways: WholeNumbers) -> list[int]:
    """``Σ_r n(s, r) w(r)`` of every secret."""
    sums = []
    for of_secret in counts[:, rows]:
        some = np.flatnonzero(of_secret)
        sums.append(int((of_secret[some].astype(object) * ways[some]).sum()) if len(some) else 0)
    return sums
