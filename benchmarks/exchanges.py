"""Exchanges: what can stay for observers of any one column if donors share one value with the record, whichever it is.

A record stays, or is exchanged in one of several ways: with the record of a person who has the same value of the first
column, of the second and so on, of anybody, by flows between classes that are the same in both directions; or at
random. In every way the donor is drawn evenly from those of a class who share the value. So published records have the
distribution of the true ones, and what an observer concludes is linear in flows. `benchmarks.single_columns` has the
figures, and ``docs/columns.md`` the theorem.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import csr_array

from funnel.joint import FloatArray, IntArray

if TYPE_CHECKING:
    from benchmarks.single_columns import Records

# Shares of all people that are exchanged at random, to be tried.
_AT_RANDOM = (0.01, 0.07)
# What a record that may stay is worth beside one that is exchanged.
_STAYS, _LEAVES = 3.0, 1.0
# Of a share of people: so little is nothing, and so much more than a bound is an error.
_NOTHING, _ERROR = 1e-15, 1e-9
_INFEASIBLE = 2


@dataclass(frozen=True, eq=False)
class Exchange:
    """A protocol that exchanges records.

    Attributes
    ----------
    stays : ndarray, shape (a,)
        Of every record the share of its people who are published as they are.
    flows : ndarray, shape (values + 1, classes, classes)
        People of one class with a value who are published as a person of another class with that value; as many come
        back. The last are those who need not share any.
    at_random : ndarray, shape (a, 2)
        Shares of the people of every record who are exchanged at random among all who are, in two separate lots.
    """

    stays: FloatArray
    flows: FloatArray
    at_random: FloatArray

    def kept(self, records: Records) -> float:
        """The share of all records that stay."""
        return float(self.stays @ records.counts / records.counts.sum())


class _Values:
    """Values of columns, the last being none at all: people by class, and how far beliefs are beyond the bound."""

    def __init__(self, records: Records, knowing: float, budget: float) -> None:
        columns, classes = records.cells.shape[1], records.given.shape[1]
        self.of_class, self.people = records.of_class, records.counts
        self.none = int(records.cells.max()) + 1
        nothing = np.full((len(records.counts), 1), self.none)
        self.cells: IntArray = np.hstack([records.cells, nothing])
        self.columns = [np.unique(column) for column in self.cells.T]
        self.column_of = np.empty(self.none + 1, dtype=np.int64)
        for column, values in enumerate(self.columns):
            self.column_of[values] = column
        together = np.zeros((self.none + 1, classes, self.none + 1))
        for column in range(columns + 1):
            for other in range(columns + 1):
                np.add.at(together, (self.cells[:, column], self.of_class, self.cells[:, other]), self.people)
        #: People (classes, values); and shares (values, classes, values) of those with one value who have another.
        self.inside = np.einsum("vgv->gv", together).copy()
        self.shares = together / np.maximum(self.inside.T, 1)[:, :, np.newaxis]
        self.occurring = together > 0
        priors = np.column_stack([records.priors, records.prior])
        budgets = np.append(np.full(self.none, knowing), budget)
        #: How far P(s | class) is beyond each limit (sides, classes, values); below 0 within it.
        self.beyond = np.stack(
            [
                sign * (given[:, np.newaxis] - np.exp(sign * budgets) * prior)
                for given, prior in zip(records.given, priors, strict=True)
                for sign in (1, -1)
            ]
        )
        #: The same of all people with a value (sides, values).
        self.all_beyond = np.einsum("gv,sgv->sv", self.inside, self.beyond)


class _Search:
    """One way after the other: the most that may stay for those who know its value, given all ways before it."""

    def __init__(self, values: _Values, at_random: float) -> None:
        self.values, self.at_random = values, at_random
        size, classes = values.none + 1, len(values.inside)
        self.flows = np.zeros((size, classes, classes))
        self.may_stay = np.zeros((size, classes))
        # What comes in each way to a record of a class, beyond each limit: (values, sides, classes, values).
        self.come = np.zeros((size, len(values.beyond), classes, size))
        for value in (values.none, *range(values.none)):
            self._exchange(value)

    def _others(self, value: int) -> FloatArray:
        """What comes in other ways at most to records with a value, beyond each limit: (sides, classes, values)."""
        known = self.values
        alike = self.at_random * known.all_beyond / known.people.sum()
        found = np.repeat(alike[:, np.newaxis], len(known.inside), axis=1)
        for column, others in enumerate(known.columns):
            if column == known.column_of[value]:
                continue
            there = known.occurring[value][:, others].T[:, np.newaxis, :, np.newaxis]
            most = np.where(there, self.come[others], -np.inf).max(axis=0)
            # Who knows a value of this very column sees what its own way brings, which is part of its programme.
            most[:, :, others] = 0.0
            found += np.where(np.isfinite(most), most, 0.0)
        return found

    def _exchange(self, value: int) -> None:
        known, people = self.values, self.values.inside[:, value]
        there = np.flatnonzero(people)
        first, second = np.triu_indices(len(there))
        width, column = len(first), known.column_of[value]
        others = self._others(value)
        own = np.einsum("wshw->shw", self.come)
        own = own + self.may_stay.T * np.maximum(known.beyond, 0.0)
        room = np.maximum(0.0, -(others + np.maximum(0.0, own)))
        leaving = self.flows.sum(axis=2).T / np.maximum(known.inside, 1)
        # Shares that leave in other ways, at least and at most: of the rest some stay, and some leave in this way.
        elsewhere = [
            np.where(known.occurring[value][:, of], leaving[:, of], np.nan)
            for number, of in enumerate(known.columns)
            if number != column
        ]
        rest = 1 - self.at_random - sum(np.nanmin(shares[there], axis=1) for shares in elsewhere)
        left = 1 - self.at_random - sum(np.nanmax(shares[there], axis=1) for shares in elsewhere)
        seen = np.flatnonzero((known.column_of != column) & (known.shares[value][there] > 0).any(axis=0))
        rows: list[tuple[IntArray, FloatArray, float]] = []
        for place, h in enumerate(there.tolist()):
            pairs = np.flatnonzero((first == place) | (second == place))
            g = there[np.where(first[pairs] == place, second[pairs], first[pairs])]
            for beyond, of_others, of_room in zip(known.beyond, others, room, strict=True):
                brought = beyond[g][:, seen] * known.shares[value][g][:, seen] / people[h]
                for j in np.flatnonzero(brought.max(axis=0) > _NOTHING).tolist():
                    rows.append((pairs, brought[:, j], float(of_room[h, seen[j]])))
                entries = np.append(beyond[g, value] / people[h], max(0.0, beyond[h, value]))
                rows.append((np.append(pairs, width + place), entries, -float(of_others[h, value])))
            leaves = np.full(len(pairs), 1 / people[h])
            rows.append((pairs, leaves, max(0.0, float(left[place]))))
            rows.append((np.append(pairs, width + place), np.append(leaves, 1.0), float(rest[place])))
        sizes = [np.abs(entries).max() for _, entries, _ in rows]
        ends = np.cumsum([0, *(len(columns) for columns, _, _ in rows)])
        matrix = csr_array(
            (
                np.concatenate([entries / size for (_, entries, _), size in zip(rows, sizes, strict=True)]),
                np.concatenate([columns for columns, _, _ in rows]),
                ends,
            ),
            shape=(len(rows), width + len(there)),
        )
        limits = [limit / size for (_, _, limit), size in zip(rows, sizes, strict=True)]
        cost = np.concatenate([np.where(first == second, _LEAVES, 2 * _LEAVES), -_STAYS * people[there]]) / people.sum()
        upper = np.concatenate([np.full(width, np.inf), np.ones(len(there))])
        found = linprog(cost, matrix, limits, bounds=np.column_stack([np.zeros(len(upper)), upper]), method="highs")
        self.may_stay[value] = 1.0
        self.may_stay[value, there] = 0.0
        if found.status == _INFEASIBLE:
            # Nobody is exchanged in this way, and none of those with the value stays.
            return
        if not found.success:
            raise RuntimeError(f"the programme of one value failed: {found.message}")
        flows = self.flows[value]
        flows[there[first], there[second]] = flows[there[second], there[first]] = np.maximum(found.x[:width], 0.0)
        self.may_stay[value, there] = np.clip(found.x[width:], 0.0, 1.0)
        self.come[value] = _come(known, value, flows)

    def found(self) -> Exchange:
        """The protocol: who may not stay, and is exchanged in no other way, is exchanged at random."""
        known = self.values
        leaving = self.flows.sum(axis=2).T / np.maximum(known.inside, 1)
        of = known.of_class[:, np.newaxis]
        staying = 1 - self.at_random - leaving[of, known.cells].sum(axis=1)
        stays = np.maximum(0.0, np.minimum(staying, self.may_stay[known.cells, of].min(axis=1)))
        further = np.maximum(0.0, staying - stays)
        # So many of all people join those, that they are within the bound among themselves.
        lot = np.einsum("sgv,gv->sv", known.beyond, _people(known, further))
        ratio = max(0.0, float((lot / -known.all_beyond).max()))
        all_ = 1 / (1 + ratio)
        lots = np.column_stack([np.full(len(stays), all_ * self.at_random), all_ * further + (1 - all_)])
        return Exchange(all_ * stays, all_ * self.flows, lots)


def _come(known: _Values, value: int, flows: FloatArray) -> FloatArray:
    """What flows between people with a value bring to a record of each class, beyond each limit."""
    found = np.einsum("gh,gv,sgv->shv", flows, known.shares[value], known.beyond)
    return np.asarray(found / np.maximum(known.inside[:, value], 1)[:, np.newaxis])


def _people(known: _Values, shares: FloatArray) -> FloatArray:
    """People by class and value, of shares of every record."""
    found = np.zeros_like(known.inside)
    for column in known.cells.T:
        np.add.at(found, (known.of_class, column), known.people * shares)
    return found


def excess(records: Records, exchange: Exchange, knowing: float, budget: float) -> float:
    """By how much the protocol is beyond the bound at most, in shares of a record's people, over all that are seen."""
    known = _Values(records, knowing, budget)
    come = np.stack([_come(known, value, flows) for value, flows in enumerate(exchange.flows)])
    largest = -math.inf
    for side, beyond in enumerate(known.beyond):
        total = come[known.cells, side, known.of_class[:, np.newaxis]].sum(axis=1)
        for lot in exchange.at_random.T[exchange.at_random.any(axis=0)]:
            brought = (_people(known, lot) * beyond).sum(axis=0) / (known.people @ lot)
            total += lot[:, np.newaxis] * brought
        agrees: npt.NDArray[np.bool_] = np.zeros(total.shape, dtype=bool)
        np.put_along_axis(agrees, known.cells, True, axis=1)
        staying = exchange.stays[:, np.newaxis] * beyond[known.of_class]
        # An observer of no column sees a record as it is; of another one also records that do not agree in theirs.
        apart = ~agrees
        largest = max(largest, float((total + staying)[agrees].max()), float(total[apart].max(initial=-math.inf)))
    return largest


def exchanged(records: Records, knowing: float, budget: float) -> Exchange:
    """The best of some protocols for observers of any one column, and of the record.

    Parameters
    ----------
    records : Records
    knowing : float
        Nats, for observers of one column.
    budget : float
        Nats, for observers of the record alone.

    Raises
    ------
    RuntimeError
        If a programme fails, or what was found is beyond the bound.
    """
    values = _Values(records, knowing, budget)
    found = max((_Search(values, share).found() for share in _AT_RANDOM), key=lambda one: one.kept(records))
    if (beyond := excess(records, found, knowing, budget)) > _ERROR:
        raise RuntimeError(f"a record is beyond the bound by {beyond:.2e} of its people")
    return found
