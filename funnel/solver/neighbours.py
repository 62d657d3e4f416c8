"""Neighbours: vertices of a region with all vertices next to them, weighed at once by what they are worth.

A programme along the tangent of g moves from vertex to vertex by what the tangent promises. Since g is convex it
promises too little: vertices that no tangent leads to may gain. A vertex of a region of m conditions has one neighbour
for each input and each condition, whose few entries that are not zero follow from one small inverse; so all of them
are weighed by g itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from funnel.joint import FloatArray
from funnel.solver.budget import CALL, Budget
from funnel.solver.pricing import Pricer
from funnel.solver.region import Region

Places = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]

# A pivot smaller than this is none; how far a vertex may be outside the region.
_PIVOT, _OUTSIDE = 1e-9, 1e-9
# Room that there always is; a speed at which nothing ends, and a step that none is as long as.
_HAIR, _NEVER, _ENDLESS = 1e-14, 1e-300, 2.0
# What is less of a posterior is nothing.
_DUST = 1e-13
# Entries of all neighbours that are weighed at once, and that are kept: memory.
_AT_ONCE, _KEPT = 2**19, 2**26
# Neighbours of a vertex that are taken at most in one round; the least that one must gain, nats.
_TAKEN, _GAINS = 3, 1e-7
# Units of work of an entry of a neighbour, of one that is known, and of a vertex.
_BY_ENTRY, _BY_PRICED, _BY_VERTEX = 25.0, 2.0, 5_000.0


@dataclass(frozen=True, eq=False)
class Vertices:
    """Vertices of a region by their bases.

    Attributes
    ----------
    basis : ndarray of int, shape (k, m + 1)
        Numbers of the variables that are not at an end: inputs, then levels, then the m activities of the conditions.
    top : ndarray of bool, shape (k, n)
        Which of all n variables are at their upper end, where they are not in the basis.
    """

    basis: Places
    top: Flags

    def __len__(self) -> int:
        return len(self.basis)

    def __getitem__(self, chosen: Places | Flags | slice) -> Vertices:
        return Vertices(self.basis[chosen], self.top[chosen])

    def joined(self, other: Vertices) -> Vertices:
        """These and those."""
        return Vertices(np.vstack([self.basis, other.basis]), np.vstack([self.top, other.top]))


class Neighbourhood:
    """All vertices next to vertices of one region.

    Parameters
    ----------
    region : Region
        What is counted is v itself.
    budget : Budget
        Charged for every neighbour.
    """

    def __init__(self, region: Region, budget: Budget) -> None:
        m, a = len(region.rows), region.inputs
        whole = region.rows.shape[1]
        self._region, self._budget = region, budget
        self._inputs, self._size, self._number = a, m + 1, whole + m
        # Activities are variables: rows (v, levels) - t = 0, and Σv = 1.
        self._system = np.zeros((m + 1, self._number))
        self._system[:m, :whole], self._system[:m, whole:] = region.rows, -np.eye(m)
        self._system[m, :a] = 1.0
        self._target = np.zeros(m + 1)
        self._target[m] = 1.0
        self._low = np.concatenate([np.zeros(whole), region.least])
        self._high = np.concatenate([np.full(a, np.inf), np.ones(region.levels), np.zeros(m)])
        self._kept = self._around(self.none, np.zeros(0, dtype=np.intp))

    @property
    def none(self) -> Vertices:
        """No vertex."""
        return Vertices(np.zeros((0, self._size), dtype=np.intp), np.zeros((0, self._number), dtype=np.bool_))

    def vertices(self, pricer: Pricer, starts: FloatArray, prices: FloatArray) -> Vertices:
        """The best vertices along the tangents at posteriors (k, a), those that a linear programme finds."""
        a, whole = self._inputs, self._region.rows.shape[1]
        found = self.none
        for answers in pricer.along_tangents(starts, prices):
            activity = answers.points @ self._region.rows.T
            # Row 0 of the system of a programme is Σv = 1, which is no variable here.
            plain = answers.solved & (answers.bases.basic != whole).all(axis=1)
            numbers = answers.bases.basic[plain].astype(np.intp)
            at = np.hstack([answers.points, activity])[plain]
            at_top = np.zeros(at.shape, dtype=np.bool_)
            at_top[:, a:] = at[:, a:] > (self._low[a:] + self._high[a:]) / 2
            found = found.joined(Vertices(np.where(numbers > whole, numbers - 1, numbers), at_top))
        return found

    def posteriors(self, vertices: Vertices) -> tuple[FloatArray, Flags]:
        """The posteriors (k, a) of vertices, and which of them are in the region."""
        plain, _, values = self._solved(vertices)
        inside = (values >= self._low[vertices.basis] - _OUTSIDE) & (values <= self._high[vertices.basis] + _OUTSIDE)
        whole = np.zeros((len(vertices), self._number))
        np.put_along_axis(whole, vertices.basis, values, 1)
        found = whole[:, : self._inputs]
        found = np.where(found < _DUST, 0.0, found)
        totals = found.sum(axis=1, keepdims=True)
        found = found / np.where(totals > 0, totals, 1.0)
        return found, plain & inside.all(axis=1) & (np.abs(totals[:, 0] - 1) < _OUTSIDE)

    def best(self, vertices: Vertices, numbers: Places, prices: FloatArray) -> tuple[Vertices, float]:
        """Neighbours that are worth something at these prices, a few of each vertex, and the most that one is worth.

        Parameters
        ----------
        vertices : Vertices
            k of them.
        numbers : ndarray of int, shape (k,)
            The same number for the same vertex in every call: its neighbours are known from then on, until a call
            without it.
        prices : ndarray, shape (a,)
            λ.
        """
        known = self._kept.chosen(np.isin(self._kept.numbers, numbers))
        found, most = known.most_useful(prices, self._budget)
        rest = np.flatnonzero(~np.isin(numbers, known.numbers))
        kept, each = [known], self._size * self._number
        step, room = max(1, _AT_ONCE // each), _KEPT // each - len(known.numbers)
        for first in range(0, len(rest), step):
            if self._budget.expired:
                break
            here = rest[first : first + step]
            self._budget.spend(60 * CALL + len(here) * (_BY_VERTEX + _BY_ENTRY * each))
            new = self._around(vertices[here], numbers[here])
            better, largest = new.most_useful(prices, self._budget)
            found, most = found.joined(better), max(most, largest)
            if len(here) <= room:
                kept, room = [*kept, new], room - len(here)
        self._kept = _Around.all_of(kept)
        return found, most

    def _solved(self, vertices: Vertices) -> tuple[Flags, FloatArray, FloatArray]:
        """Which bases are any, their inverses (k, m + 1, m + 1) and the values of what is in them (k, m + 1)."""
        columns = self._system[:, vertices.basis].transpose(1, 0, 2)
        sign, size = np.linalg.slogdet(columns)
        plain = (sign != 0) & np.isfinite(size)
        columns[~plain] = np.eye(self._size)
        inverse = np.linalg.inv(columns)
        outside = np.where(vertices.top, np.where(np.isfinite(self._high), self._high, 0.0), self._low)
        np.put_along_axis(outside, vertices.basis, 0.0, 1)
        target = self._target - outside @ self._system.T
        values = np.matmul(inverse, target[:, :, None])[:, :, 0]
        # A singular basis can have a determinant that is rounding; what it is solved by is no solution then.
        left = np.matmul(columns, values[:, :, None])[:, :, 0] - target
        return plain & (np.abs(left).max(axis=1) < _OUTSIDE), inverse, values

    def _around(self, vertices: Vertices, numbers: Places) -> _Around:
        """The neighbours of vertices, from one small inverse for each."""
        a = self._inputs
        plain, inverse, values = self._solved(vertices)
        # How fast what is in the basis falls as a variable leaves its end.
        falls = np.matmul(inverse, self._system)
        falls[:, :, a:] *= np.where(vertices.top[:, a:], -1.0, 1.0)[:, None]
        # A hair more room and a hair less speed: where nothing falls, a step has no end, and what is at its end already
        # takes a step of next to nothing. Steps tell which neighbour to look at, no more.
        room = values - self._low[vertices.basis] + _HAIR
        steps = room[:, :, None] / np.maximum(falls - _PIVOT, _NEVER)
        bounded = np.nonzero(vertices.basis >= a)
        above = (self._high[vertices.basis] - values + _HAIR)[bounded]
        steps[bounded] = np.minimum(steps[bounded], above[:, None] / np.maximum(-falls[bounded] - _PIVOT, _NEVER))
        leaves = steps.argmin(axis=1)
        length = np.maximum(np.take_along_axis(steps, leaves[:, None], 1)[:, 0], 0.0)
        up = np.take_along_axis(falls, leaves[:, None], 1)[:, 0] < 0
        own = self._high - self._low
        flips = own <= length
        length, leaves = np.where(flips, own, length), np.where(flips, -1, leaves)
        endless = length > _ENDLESS
        length[endless] = 0.0
        single = np.float32
        counted = (vertices.basis < a)[:, :, None]
        moved = np.maximum((values[:, :, None] - falls * length[:, None]).astype(single), single(0)) * counted
        entering = length[:, :a].astype(single)
        gains = _negative_entropy(moved).sum(axis=1).astype(np.float64)
        gains[:, :a] += _negative_entropy(entering)
        # What is in the basis does not come into it.
        np.put_along_axis(gains, vertices.basis, -np.inf, 1)
        gains[endless | ~plain[:, None]] = -np.inf
        return _Around(numbers, vertices, moved, entering, gains, leaves, up)


@dataclass(frozen=True, eq=False)
class _Around:
    """All neighbours of some vertices; the sizes are those of `Neighbourhood`.

    Shares are in single precision: they tell which neighbour to look at, no more.
    """

    numbers: Places
    vertices: Vertices
    moved: npt.NDArray[np.float32]
    entering: npt.NDArray[np.float32]
    gains: FloatArray
    leaves: Places
    up: Flags

    def chosen(self, which: Flags) -> _Around:
        """The neighbours of some of them."""
        return _Around(
            self.numbers[which],
            self.vertices[which],
            self.moved[which],
            self.entering[which],
            self.gains[which],
            self.leaves[which],
            self.up[which],
        )

    @classmethod
    def all_of(cls, parts: list[_Around]) -> _Around:
        """The neighbours of all of them."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([part.numbers for part in parts]),
            Vertices(
                np.concatenate([part.vertices.basis for part in parts]),
                np.concatenate([part.vertices.top for part in parts]),
            ),
            np.concatenate([part.moved for part in parts]),
            np.concatenate([part.entering for part in parts]),
            np.concatenate([part.gains for part in parts]),
            np.concatenate([part.leaves for part in parts]),
            np.concatenate([part.up for part in parts]),
        )

    def most_useful(self, prices: FloatArray, budget: Budget) -> tuple[Vertices, float]:
        """Those neighbours whose ``g - λ·v`` is positive, a few of each vertex, and the largest there is."""
        a, every = len(prices), np.arange(len(self.numbers))
        found, most = self.vertices[:0], 0.0
        if not len(every):
            return found, most
        budget.spend(20 * CALL + _BY_PRICED * self.moved.size)
        basis = self.vertices.basis
        price = np.where(basis < a, prices[np.minimum(basis, a - 1)], 0.0).astype(np.float32)
        worth = self.gains - np.matmul(price[:, None], self.moved)[:, 0]
        worth[:, :a] -= self.entering * prices
        for _ in range(_TAKEN):
            enters = worth.argmax(axis=1)
            gain = worth[every, enters]
            most = max(most, float(gain.max(initial=0.0)))
            there = np.flatnonzero(gain > _GAINS)
            into = enters[there]
            found = found.joined(_exchanged(self.vertices[there], into, self.leaves[there, into], self.up[there, into]))
            worth[every, enters] = -np.inf
        return found, most


def _negative_entropy(v: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """v ln v, entry by entry."""
    return np.asarray(v * np.log(np.maximum(v, np.float32(1e-30))))


def _exchanged(vertices: Vertices, enters: Places, leaves: Places, up: Flags) -> Vertices:
    """The vertices after one variable of each came into the basis, or went to its other end."""
    basis, top = vertices.basis.copy(), vertices.top.copy()
    flips = np.flatnonzero(leaves < 0)
    top[flips, enters[flips]] ^= True
    others = np.flatnonzero(leaves >= 0)
    top[others, basis[others, leaves[others]]] = up[others]
    basis[others, leaves[others]] = enters[others]
    return Vertices(basis, top)
