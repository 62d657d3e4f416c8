"""Attacks on the public figures of a release: linear conditions on whole counts, and what they leave open."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, milp
from scipy.sparse import csr_array, hstack, vstack

from funnel.joint import FloatArray, IntArray

# Branches of one integer programme. A programme that is cut short leaves what it asked undecided.
NODES = 100
# Records by which a condition may be missed, above the tolerance of the solver.
SLACK = 1e-5
NOTHING: IntArray = np.empty(0, dtype=np.int64)


@dataclass
class Conditions:
    """Linear conditions on the counts (c, a) of a table, as somebody reads them from public files."""

    shape: tuple[int, int]
    n: int
    rows: list[FloatArray] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.between(np.ones(self.shape), self.n, self.n)

    def between(self, row: FloatArray, low: float, high: float) -> None:
        """The sum of counts times ``row`` (c, a) lies between two numbers."""
        size = float(np.abs(row).max())
        if size > 0:
            self.rows.append(row.ravel() / size)
            self.low.append(low / size - SLACK)
            self.high.append(high / size + SLACK)

    def secrets(self, low: FloatArray, high: FloatArray) -> None:
        """The shares of the secret, shape (c,), lie between these."""
        for s, limits in enumerate(zip(low, high, strict=True)):
            row = np.zeros(self.shape)
            row[s] = 1
            self.between(row, limits[0] * self.n, limits[1] * self.n)

    def inputs(self, low: FloatArray, high: FloatArray) -> None:
        """The shares of the published values, shape (a,), lie between these."""
        for x, limits in enumerate(zip(low, high, strict=True)):
            row = np.zeros(self.shape)
            row[:, x] = 1
            self.between(row, limits[0] * self.n, limits[1] * self.n)

    def lifts(
        self, weights: FloatArray, output: tuple[FloatArray, FloatArray], low: FloatArray, high: FloatArray
    ) -> None:
        """Lifts (c, b) lie between these, nan where they are not told, and P(y) between two arrays of shape (b,)."""
        for (s, y), least in np.ndenumerate(low):
            if least == least:
                for limit, sign in ((least * output[0][y], 1), (high[s, y] * output[1][y], -1)):
                    row = np.zeros(self.shape)
                    row[s] = sign * (weights[y] - limit)
                    self.between(row, 0, math.inf)

    def outputs(self, weights: FloatArray, output: FloatArray, tolerance: float) -> None:
        """P(y), shape (b,), is known to a tolerance."""
        for y, share in enumerate(output):
            row = np.broadcast_to(weights[y], self.shape)
            self.between(np.array(row), (share - tolerance) * self.n, (share + tolerance) * self.n)

    @property
    def matrix(self) -> FloatArray:
        """All rows, shape (m, c a)."""
        return np.array(self.rows)

    def allow(self, counts: IntArray) -> bool:
        """Whether counts meet the conditions: else an attack misread something."""
        values = self.matrix @ counts.ravel()
        return bool((values >= np.array(self.low)).all() and (values <= np.array(self.high)).all())


@dataclass
class Outcome:
    """Of the cells that were attacked: ``recovered`` have one value left, ``zeros`` of them the value that nobody is
    there; ``open`` ones have more than one, and the others are undecided, as far as the work reached."""

    cells: int
    recovered: int = 0
    zeros: int = 0
    open: int = 0

    def to_dict(self) -> dict[str, int]:
        """JSON-ready."""
        return {
            "cells": self.cells,
            "recovered": self.recovered,
            "of these, nobody": self.zeros,
            "undecided": self.cells - self.recovered - self.open,
        }


def recovered(conditions: Conditions, truth: IntArray) -> Outcome:
    """Which cells the conditions leave one value, out of all whole counts.

    That a cell is open is proven by another table that fits; that it is recovered by the least and largest value that
    real numbers, then whole numbers for its secret, allow it.
    """
    if not conditions.allow(truth):
        raise ValueError("the attack misread something: the true counts do not fit")
    outcome = Outcome(truth.size)
    free = _moved(conditions, truth)
    for cell in np.flatnonzero(~free):
        if free[cell]:
            continue
        value = int(truth.ravel()[cell])
        closed = 0
        for sign in (1, -1):
            cost = np.zeros(truth.size)
            cost[cell] = sign
            found = None
            # Real numbers first; then whole ones for the counts of this secret, which is sound and far less work.
            for whole in (
                np.zeros(truth.size),
                np.repeat(np.arange(len(truth)) == cell // truth.shape[1], truth.shape[1]),
            ):
                if found is None:
                    found = _other(conditions, cost, sign * value, whole)
            if found is NOTHING:
                closed += 1
            elif found is not None and conditions.allow(found):
                free |= found != truth.ravel()
        outcome.recovered += closed == 2
        outcome.zeros += closed == 2 and value == 0
    outcome.open = int(free.sum())
    return outcome


def _moved(conditions: Conditions, truth: IntArray) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Cells that are open because the table with a few records elsewhere fits too; shape (c a,)."""
    matrix = conditions.matrix
    values = matrix @ truth.ravel()
    above, below = np.array(conditions.high) - values, values - np.array(conditions.low)
    free = np.zeros(truth.size, dtype=bool)
    flat = truth.ravel()
    for cells, signs in _moves(truth.shape):
        taken = np.array(cells)[np.array(signs) < 0]
        if free[list(cells)].all() or (flat[taken] < 1).any():
            continue
        change = matrix[:, list(cells)] @ np.array(signs, dtype=float)
        if (change <= above).all() and (-change <= below).all():
            free[list(cells)] = True
    return free


def _moves(shape: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """One record in another cell, and two that exchange their secrets."""
    c, a = shape
    for one in range(c * a):
        for other in range(c * a):
            if one != other:
                yield (one, other), (1, -1)
    for s in range(c):
        for t in range(c):
            for x in range(a):
                for z in range(a):
                    if s != t and x != z:
                        yield (s * a + x, t * a + z, s * a + z, t * a + x), (1, 1, -1, -1)


def _other(conditions: Conditions, cost: FloatArray, value: int, whole: FloatArray) -> IntArray | None:
    """A table that costs less than a value, `NOTHING` if there is none, None if that is undecided."""
    table = LinearConstraint(csr_array(conditions.matrix), conditions.low, conditions.high)
    found = _solved(cost, [table], Bounds(0, conditions.n), whole)
    bound = found.mip_dual_bound if whole.any() else found.fun
    if bound is not None and math.isfinite(bound) and math.ceil(bound - 1e-4) >= value:
        return NOTHING
    return np.round(found.x).astype(np.int64) if whole.any() and found.x is not None else None


def _solved(cost: FloatArray, constraints: list[LinearConstraint], bounds: Bounds, whole: IntArray) -> OptimizeResult:
    return milp(cost, constraints=constraints, bounds=bounds, integrality=whole, options={"node_limit": NODES})


def told_by_two(one: Conditions, other: Conditions, truth: IntArray, person: int) -> str:
    """Whether two releases give the cell of the one person that only the first has: "yes", "no" or "undecided".

    Parameters
    ----------
    one, other : Conditions
        Read from the release with and without the person.
    truth : ndarray of int64, shape (c, a)
        Counts with the person.
    person : int
        Position of the true cell. The question is whether a person in another cell would fit as well.
    """
    others = truth.ravel().copy()
    others[person] -= 1
    if not other.allow(others):
        raise ValueError("the attack misread something: the true counts do not fit")
    for cell in np.delete(np.arange(truth.size), person):
        if one.allow(others + (np.arange(truth.size) == cell)):
            return "no"
    size = one.shape[0] * one.shape[1]
    first, second = csr_array(one.matrix), csr_array(other.matrix)
    both = LinearConstraint(
        vstack([hstack([first, csr_array(first.shape)]), hstack([second, -second])], format="csr"),
        [*one.low, *other.low],
        [*one.high, *other.high],
    )
    # Counts with the person, then where the person is; the others keep counts that are not negative.
    single = LinearConstraint(csr_array(np.concatenate([np.zeros(size), np.ones(size)])[np.newaxis]), 1, 1)
    rest = LinearConstraint(hstack([csr_array(np.eye(size)), csr_array(-np.eye(size))], format="csr"), 0, math.inf)
    limits = Bounds(0, np.concatenate([np.full(size, one.n), np.ones(size)]))
    cost = np.zeros(2 * size)
    cost[size + person] = 1.0
    for whole in (np.zeros(2 * size), np.concatenate([np.zeros(size), np.ones(size)]), np.ones(2 * size)):
        found = _solved(cost, [both, single, rest], limits, whole)
        bound = found.mip_dual_bound if whole.any() else found.fun
        if bound is not None and math.isfinite(bound) and bound > 1e-3:
            return "yes"
    return "no" if found.x is not None and found.x[size + person] < 0.5 else "undecided"
