"""Donor draws: what a donor channel reads of a row, what a word gives, and whose record is published then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from funnel.errors import DataError
from funnel.history.distributions import BoolArray
from funnel.joint import IntArray
from funnel.protocol import WeightArray
from funnel.sampling.donors import uniform_below
from funnel.sampling.draw import ChannelSampler
from funnel.sampling.random_words import WordArray


def read_by(of_class: IntArray, standing: IntArray, classes: int) -> IntArray:
    """What the channel of every row reads: the class of an own record, that of a donor's, or that the donor is gone.

    Parameters
    ----------
    of_class : ndarray of int64, shape (rows,)
    standing : ndarray of int64, shape (rows,)
        The row whose record was published last; -1 where it is gone.
    classes : int
    """
    is_own = standing == np.arange(len(standing))
    return np.where(standing < 0, 2 * classes, of_class[standing] + np.where(is_own, 0, classes))


def begun_as(outputs: IntArray, read: IntArray, later: BoolArray, classes: int) -> IntArray:
    """The class as which another record begins, -1 where the same one goes on; (rows,).

    Who keeps the class in a first version is published as they are.
    """
    begins = (outputs >= classes) & (later | (outputs != classes + read))
    return np.where(begins, outputs - classes, -1)


def interleaved(weights: WeightArray) -> WeightArray:
    """The rows (2k, …) of a donor channel class by class: the same person goes on, and another one begins.

    Drawn in this order, what a word gives is of the class that it gives when the two are one.
    """
    k = len(weights) // 2
    return np.ascontiguousarray(weights.reshape(2, k, *weights.shape[1:]).swapaxes(0, 1).reshape(weights.shape))


def draw_outputs(columns: WeightArray, codes: IntArray, words: WordArray) -> IntArray:
    """An output for every row by a word each, given columns (2k, m) of donor channels and which one each draws from."""
    in_order = interleaved(columns)
    drawn = ChannelSampler(in_order, in_order[:, -1]).draw(codes, words).astype(np.int64)
    return np.asarray(drawn // 2 + drawn % 2 * (len(columns) // 2))


@dataclass(frozen=True, eq=False)
class StandIns:
    """Whose record is published for whom.

    Attributes
    ----------
    of_class : ndarray of int64, shape (rows,)
    order : ndarray of int64, shape (candidates,)
        Rows whose records may begin as those of others, in an order that does not depend on that of the table.
    words : callable
        Uniform words for the rows, (rows,), given how many times they were asked for before.
    """

    of_class: IntArray
    order: IntArray
    words: Callable[[int], WordArray]

    def drawn(self, standing: IntArray, begins: IntArray, later: BoolArray) -> IntArray:
        """The row whose record is published for each: of who is followed, or where another one begins of anybody else.

        ``begins`` has the class of which another one begins, -1 where nobody does. In a first version it is anybody of
        the class, evenly. In later ones, where the record is known not to be the person's own in any case, it is one of
        those who are not published otherwise: so that everybody is published about once.
        """
        everybody = [self.order[self.of_class[self.order] == k] for k in range(int(begins.max(initial=0)) + 1)]
        stands_for = standing.copy()
        first, last = np.flatnonzero((begins >= 0) & ~later), np.flatnonzero((begins >= 0) & later)
        stands_for[first] = self._others([everybody], begins[first], first, standing)
        published = np.zeros(len(standing), dtype=bool)
        published[stands_for[(begins < 0) | ~later]] = True
        left = [some[~published[some]] for some in everybody]
        stands_for[last] = self._others([left, everybody], begins[last], last, standing)
        return stands_for

    def _others(self, choices: list[list[IntArray]], classes: IntArray, rows: IntArray, standing: IntArray) -> IntArray:
        """For each of some rows another one of a class, each as likely, of the first choice with others there; (k,).

        Others are neither the row itself nor the one that stood for it: numbers are drawn among them, and those from
        the place of either on are one more.
        """
        limits, taken = np.zeros((2, len(rows)), dtype=np.int64)
        skipped = np.zeros((2, len(rows)), dtype=np.int64)
        for choice, pools in enumerate(choices):
            # Nobody, where nobody stood for a row, has the last place.
            place = np.full(len(standing) + 1, -1)
            for pool in pools:
                place[pool] = np.arange(len(pool))
            known = np.stack([rows, np.where(standing[rows] == rows, -1, standing[rows])])
            there = np.where(np.append(self.of_class, -1)[known] == classes, place[known], -1)
            others = np.array([len(pool) for pool in pools])[classes] - (there >= 0).sum(axis=0)
            new = (limits == 0) & (others > 0)
            limits[new], taken[new], skipped[:, new] = others[new], choice, there[:, new]
        if (limits == 0).any():
            raise DataError("a class of records has nobody but the person who is published; use fewer, larger classes")
        if not len(rows):
            return limits
        drawn = uniform_below(limits, rows, self.words)
        for place in np.sort(skipped, axis=0):
            drawn += (place >= 0) & (drawn >= place)
        return np.array([choices[c][k][number] for c, k, number in zip(taken, classes, drawn, strict=True)])
