"""Partitions of a column of numbers into intervals that tell much of it and little of the secret."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import xlogy

from funnel.joint import FloatArray, IntArray

# Cells of quantiles that intervals are made of, at most.
MOST_CELLS = 64
# How much a nat of the secret costs.
WEIGHTS = (0.0, 0.25, 1.0, 4.0, 16.0)


@dataclass(frozen=True, eq=False)
class Cells:
    """Records of every secret in consecutive cells of numbers.

    Attributes
    ----------
    counts : ndarray of int64, shape (c, m)
    sums : ndarray, shape (m,)
        Sum of the numbers of the records of each cell.
    squares : float
        Sum of the squared differences of all numbers from their mean.
    firsts : tuple of numbers, length m
        The least number of each cell.
    """

    counts: IntArray
    sums: FloatArray
    squares: float
    firsts: tuple[int | float, ...]

    @classmethod
    def of(cls, numbers: tuple[int | float, ...], counts: IntArray, most: int = MOST_CELLS) -> Self:
        """Quantile cells of rising numbers (k) with counts (c, k).

        A cell begins at the least number below which there are at least j of ``most`` equal parts of the records, for
        every j; so no cell is empty.
        """
        below = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
        n = int(below[-1])
        begins = np.unique([np.searchsorted(below[:-1] * most, j * n) for j in range(most)])
        begins = begins[begins < len(numbers)]
        values = np.array(numbers, dtype=np.float64)
        records = counts.sum(axis=0)
        mean = float(values @ records) / n
        return cls(
            np.add.reduceat(counts, begins, axis=1),
            np.add.reduceat((values - mean) * records, begins),
            float((values - mean) ** 2 @ records),
            tuple(numbers[place] for place in begins.tolist()),
        )

    def __len__(self) -> int:
        return len(self.firsts)

    def edges(self, cuts: tuple[int, ...]) -> tuple[int | float, ...]:
        """The edges of intervals that begin at these cells."""
        return tuple(self.firsts[cut] for cut in cuts)

    def scores(self, weight: float, by_variance: bool) -> FloatArray:
        """What an interval of cells i to j - 1 adds, shape (m + 1, m + 1); -inf where there is none.

        ``told - weight · q D(p(S|interval) ‖ p(S))``, where told is ``-q ln q``, or the interval's part of the variance
        between intervals. Summed over intervals that is I(X;B) - weight · I(S;B), or the share of the variance that B
        explains less the same: the Lagrangian of the privacy funnel, whose first term is what is told where the bound
        does not bind, and whose second is why it would.
        """
        ends = np.concatenate([np.zeros((len(self.counts), 1)), np.cumsum(self.counts, axis=1)], axis=1)
        n = ends[:, -1].sum()
        inside = (ends[:, None, :] - ends[:, :, None]) / n
        q = inside.sum(axis=0)
        prior = self.counts.sum(axis=1) / n
        known = prior > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            secret = xlogy(inside, inside)[known].sum(axis=0) - xlogy(q, q)
            secret -= (inside[known] * np.log(prior[known])[:, None, None]).sum(axis=0)
            sums = np.concatenate([[0.0], np.cumsum(self.sums)])
            between = (sums[None, :] - sums[:, None]) ** 2 / (q * n) / max(self.squares, 1e-300)
            told = between if by_variance else -xlogy(q, q)
            found = told - weight * secret
        return np.asarray(np.where(q > 0, found, -np.inf))


def best_cuts(scores: FloatArray, number: int) -> tuple[int, ...]:
    """Where all but the first of so many intervals begin, with the largest sum of scores; dynamic programming, O(k m²).

    Parameters
    ----------
    scores : ndarray, shape (m + 1, m + 1)
    number : int
        Of intervals, at most m.
    """
    best, froms = scores[0].copy(), []
    for _ in range(number - 1):
        through = best[:, None] + scores
        froms.append(through.argmax(axis=0))
        best = through.max(axis=0)
    place, cuts = len(scores) - 1, []
    for came in reversed(froms):
        place = int(came[place])
        cuts.append(place)
    return tuple(reversed(cuts))


def partitions(cells: Cells, number: int, by_variance: bool) -> Iterator[tuple[int, ...]]:
    """Partitions into so many intervals, the best for every weight of the secret, each once."""
    found: set[tuple[int, ...]] = set()
    for weight in WEIGHTS:
        cuts = best_cuts(cells.scores(weight, by_variance), number)
        if cuts not in found:
            found.add(cuts)
            yield cuts
