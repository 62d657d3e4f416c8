"""Hinges: families of half-spaces in a linear programme solved by interior points, without one row for each of them.

The largest ``g · R`` of a family over all it holds is, by duality, the least ``least · R + Σ_k rest_k λ_k + Σ_j width_j
v_j`` over levels λ and hinges ``v_j >= 0``, ``v_j >= sign_j R_x(j) - λ_k(j)``. So a family is one condition, with a
variable for every term and every open entry. In a Newton step these are eliminated one by one: what is left is one row
for the family, one for each term, and a diagonal.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from funnel.guarantees.families import Families
from funnel.guarantees.greedy import Places
from funnel.joint import FloatArray

_TINY = 1e-300


class Pull(NamedTuple):
    """What the conditions ask of rows R (n, m), eliminated: ``Σ rows rowsᵀ - Σ less lessᵀ + diag(own)`` of each.

    Attributes
    ----------
    rows, less : ndarray, shape (F, m), (K, m)
        By family and by term.
    own : ndarray, shape (n, m)
    """

    rows: FloatArray
    less: FloatArray
    own: FloatArray


class State(NamedTuple):
    """Slack and price of every family; level of every term; hinges, their distance and both prices of every entry.

    The price of an entry's distance is how much of the table is there: ``room + load = width price`` of the family.
    """

    slack: FloatArray
    price: FloatArray
    level: FloatArray
    hinge: FloatArray
    room: FloatArray
    distance: FloatArray
    load: FloatArray


class Hinges:
    """Families over rows of m entries.

    Parameters
    ----------
    families : Families
        In the order of their rows.
    outputs : int
        n.

    Attributes
    ----------
    of_output, terms_of_output : list of slice
        The families of every output, and their terms.
    """

    def __init__(self, families: Families, outputs: int) -> None:
        self.families, self.shape = families, (outputs, families.least.shape[1])
        self.of_output = _slices(families.of, outputs)
        self.terms_of_output = _slices(families.of[families.family], outputs)
        # Of every open entry: its family, its place in all rows laid end to end, its sign.
        self.entry_family = families.family[families.term]
        self.entry_place = families.of[self.entry_family] * self.shape[1] + families.place
        self.entry_sign = families.sign[families.term]

    def start(self, product: float) -> State:
        """Strictly inside for rows of ones, every variable with a price of the same product."""
        families = self.families
        level = families.sign.copy()
        room = np.maximum(-families.least.sum(axis=1) - self.by_family(families.rest * level), _TINY)
        size = _sums(self.entry_family, families.width, len(families))
        hinge = (room / 2 / np.where(size > 0, size, 1.0))[self.entry_family]
        ones = np.ones(self.shape)
        slack = np.maximum(-self.values(ones, level, hinge), room / 4)
        price = product / hinge
        return State(slack, product / slack, level, hinge, price, hinge.copy(), price)

    def loads(self, state: State) -> tuple[FloatArray, FloatArray]:
        """What the conditions take at their prices, shape (n, m), by tables that are exactly within their widths.

        With the margin, and without it.
        """
        families = self.families
        width = families.width * state.price[self.entry_family]
        load = np.minimum(state.load, width)
        wanted = families.rest * state.price[families.family]
        there, open_ = self.by_term(load), self.by_term(width - load)
        over = there > wanted
        down = np.where(over, wanted / np.where(over, there, 1.0), 1.0)
        up = np.where(over, 0.0, (wanted - there) / np.where(open_ > 0, open_, 1.0))
        load *= down[families.term]
        load += (width - load) * up[families.term]
        eased = load * families.ease[families.term]
        return self.asked(state.price, families.least, load), self.asked(state.price, families.proven, eased)

    def by_output(self, amounts: FloatArray, rows: FloatArray) -> FloatArray:
        """Sums (n, m) over the families of each output of rows (F, m), so much of each."""
        sums = np.empty(self.shape)
        for y, own in enumerate(self.of_output):
            np.dot(amounts[own], rows[own], out=sums[y])
        return sums

    def at(self, spaces: FloatArray, rows: FloatArray) -> FloatArray:
        """What the functional (F, m) of every family is at the row of its output (n, m)."""
        values = np.empty(len(spaces))
        for y, own in enumerate(self.of_output):
            np.dot(spaces[own], rows[y], out=values[own])
        return values

    def by_term(self, entries: FloatArray) -> FloatArray:
        """Sums (K,) over the open entries (J,) of each term."""
        return _sums(self.families.term, entries, len(self.families.rest))

    def by_family(self, terms: FloatArray) -> FloatArray:
        """Sums (F,) over the terms (K,) of each family."""
        return _sums(self.families.family, terms, len(self.families))

    def by_place(self, entries: FloatArray) -> FloatArray:
        """Sums (n, m) over the open entries (J,) at each place."""
        n, m = self.shape
        return _sums(self.entry_place, entries, n * m).reshape(n, m)

    def values(self, rows: FloatArray, level: FloatArray, hinge: FloatArray) -> FloatArray:
        """What every family is at rows (n, m): <= 0 where it is met."""
        families = self.families
        return np.asarray(
            self.at(families.least, rows) + self.by_family(families.rest * level + self.by_term(families.width * hinge))
        )

    def asked(self, price: FloatArray, least: FloatArray, load: FloatArray) -> FloatArray:
        """What families take at these prices (F,), with so much of each open entry (J,); shape (n, m)."""
        return self.by_output(price, least) + self.by_place(self.entry_sign * load)

    def newton(self, rows: FloatArray, state: State) -> NewtonHinges:
        """The equations of a Newton step at rows R (n, m)."""
        return NewtonHinges(self, rows, state)


class NewtonHinges:
    """One Newton step: what it asks of rows, and what follows for the rest from a change of rows."""

    def __init__(self, hinges: Hinges, rows: FloatArray, state: State) -> None:
        self._hinges, self._state = hinges, state
        families, by_term, by_family = hinges.families, hinges.by_term, hinges.by_family
        family, term = hinges.entry_family, families.term
        slack, price, level, hinge, room, distance, load = state
        self.asked = hinges.asked(price, families.least, load)
        # What is not met yet: zero but for rounding and until dual conditions hold.
        self._off_slack = -hinges.values(rows, level, hinge) - slack
        self._off_distance = hinge - hinges.entry_sign * rows.ravel()[hinges.entry_place] + level[term] - distance
        self._off_width = room + load - families.width * price[family]
        self._off_rest = by_term(load) - families.rest * price[families.family]
        self._stiff = load / distance
        self._both = room / hinge + self._stiff
        share = self._stiff / self._both
        self._share = share
        self._bend = room / hinge * share
        self._bends = by_term(self._bend)
        self._lack = families.rest - by_term(families.width * share)
        turned = self._lack / self._bends
        width = _sums(family, families.width**2 / self._both, len(families))
        self._size = slack / price + width + by_family(self._lack * turned)
        table = hinges.entry_sign * (families.width * share + turned[term] * self._bend)
        m, number = hinges.shape[1], len(families.rest)
        at_family, at_term = family * m + families.place, term * m + families.place
        self._rows = families.least + _sums(at_family, table, families.least.size).reshape(families.least.shape)
        less = _sums(at_term, self._bend / np.sqrt(self._bends)[term], number * m).reshape(number, m)
        own = hinges.by_place(self._bend)
        self.pull = Pull(self._rows / np.sqrt(self._size)[:, None], less, own)

    def target(self, goals: State, off: float) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """For wanted changes of prices what is asked of rows, shape (n, m), and what `change` needs.

        Parameters
        ----------
        goals : State
            By how much every price is to change where its variable does not; of these ``price``, ``room``, ``load``.
        off : float
            1 to meet what is not met yet, 0 to leave it.
        """
        hinges, state = self._hinges, self._state
        families, family = hinges.families, hinges.entry_family
        load = goals.load - off * self._stiff * self._off_distance
        pushed = goals.room + off * self._off_width
        moved = load - self._share * (load + pushed)
        level = off * self._off_rest + hinges.by_term(moved)
        slack = state.slack / state.price * goals.price
        along = _sums(family, families.width * (pushed + load) / self._both, len(families))
        row = slack - off * self._off_slack + along + hinges.by_family(self._lack * level / self._bends)
        entries = hinges.entry_sign * (moved - self._bend * (level / self._bends)[families.term])
        asked = hinges.by_place(entries)
        return asked + hinges.by_output(row / self._size, self._rows), row, level, pushed + load

    def change(self, goals: State, off: float, rows: FloatArray, target: tuple[FloatArray, ...]) -> State:
        """The changes of all variables that go with a change of rows (n, m)."""
        hinges, state = self._hinges, self._state
        families, family, term = hinges.families, hinges.entry_family, hinges.families.term
        _, row, level, pushed = target
        price = (row + hinges.at(self._rows, rows)) / self._size
        moved = hinges.entry_sign * rows.ravel()[hinges.entry_place]
        levels = (level + hinges.by_term(self._bend * moved) - self._lack * price[families.family]) / self._bends
        rise = moved - levels[term]
        hinge = (pushed - families.width * price[family] + self._stiff * rise) / self._both
        distance = hinge - rise + off * self._off_distance
        room = goals.room - state.room / state.hinge * hinge
        load = goals.load - self._stiff * distance
        slack = state.slack / state.price * (goals.price - price)
        return State(slack, price, levels, hinge, room, distance, load)


def _slices(of: Places, number: int) -> list[slice]:
    """Where each of so many is, in ascending places (k,)."""
    edges = np.searchsorted(of, np.arange(number + 1)).tolist()
    return [slice(first, end) for first, end in itertools.pairwise(edges)]


def _sums(places: Places, amounts: FloatArray, number: int) -> FloatArray:
    return np.asarray(np.bincount(places, amounts, number), dtype=np.float64)
