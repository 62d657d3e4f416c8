"""Points: how much the values of a record speak for a secret, by a regression that tables of both agree with."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.special import expit

from funnel.donors.record_classes import Scale, Term
from funnel.errors import SolverError
from funnel.joint import FloatArray, IntArray, Joint

BoolArray = npt.NDArray[np.bool_]

# A point is so much of a log odds ratio, in nats.
POINT = 0.01
# What every coefficient is drawn to 0 by: half a record, so that those of values without a secret end.
_RIDGE = 0.5
_MOST_STEPS, _MOST_ROUNDS, _PAIRS_A_ROUND = 100, 10, 25
# The last Newton step of the regressions that pairs are searched with, in nats.
_ROUGH = 0.1


@dataclass(frozen=True, eq=False)
class _Feature:
    """Which records meet a term."""

    columns: tuple[int, ...]
    values: tuple[str, ...]
    members: IntArray


def scales(joint: Joint, least: int) -> tuple[Scale, ...]:
    """Points for each value of the secret, or for the second of two.

    The log odds of a value are a sum over the values of a record (logistic regression). Its equations say that of every
    value of a column as many records are expected to have the secret as have it, so that **tables of the secret with
    any column agree**. A pair of values that is off by more than the Bayesian information criterion takes for chance
    gets points of its own, and the regression is made again.

    Parameters
    ----------
    joint : Joint
        Counts (c, a) of the secret and of whole records.
    least : int
        Values, and pairs of values, that fewer records have with the secret, or without it, get no points.

    Returns
    -------
    tuple of Scale

    Raises
    ------
    SolverError
        If a regression does not end.

    Notes
    -----
    O(records · columns²) for every search of pairs; ten of them at most, with 25 pairs each.
    """
    records = _Records.of(joint)
    asked = range(1, 2) if len(joint.secret) == 2 else range(len(joint.secret))
    return tuple(records.scale(joint, s, least) for s in asked)


@dataclass(frozen=True, eq=False)
class _Records:
    """Whole records by numbers: codes (a, columns), the values that codes stand for, and people with each record."""

    columns: tuple[str, ...]
    codes: IntArray
    values: tuple[tuple[str, ...], ...]
    people: IntArray

    @classmethod
    def of(cls, joint: Joint) -> _Records:
        inputs = joint.inputs
        return cls(inputs.columns, inputs.codes, inputs.texts, joint.counts.sum(axis=0))

    def scale(self, joint: Joint, s: int, least: int) -> Scale:
        """Points for one value of the secret."""
        having = joint.counts[s]
        features = [
            self._feature((j,), cell)
            for j in range(len(self.columns))
            for cell in np.flatnonzero(self._frequent((j,), having, least)).tolist()
        ]
        coefficients = np.zeros(len(features) + 1)
        for _ in range(_MOST_ROUNDS):
            design = self._design(features)
            coefficients = _regressed(design, self.people, having, coefficients, _ROUGH)
            expected = np.asarray(self.people * expit(design @ coefficients), dtype=np.float64)
            known = {(one.columns, one.values) for one in features}
            pairs = (self._feature(*cell) for cell in self._off(having, expected, least))
            more = [one for one in pairs if (one.columns, one.values) not in known][:_PAIRS_A_ROUND]
            if not more:
                break
            features += more
            coefficients = np.append(coefficients, np.zeros(len(more)))
        coefficients = _regressed(self._design(features), self.people, having, coefficients, POINT / 100)
        points = np.rint(coefficients[1:] / POINT).astype(int).tolist()
        terms = (
            Term(tuple(self.columns[j] for j in one.columns), one.values, amount)
            for one, amount in zip(features, points, strict=True)
        )
        return Scale(joint.secret.symbols[s], tuple(term for term in terms if term.points))

    def _cells(self, columns: tuple[int, ...]) -> tuple[IntArray, int]:
        """The cell of every record in the table of one or two columns, and how many cells there are."""
        shape = tuple(len(self.values[j]) for j in columns)
        return np.ravel_multi_index(tuple(self.codes[:, j] for j in columns), shape).astype(np.int64), math.prod(shape)

    def _feature(self, columns: tuple[int, ...], cell: int) -> _Feature:
        shape = tuple(len(self.values[j]) for j in columns)
        values = tuple(self.values[j][int(v)] for j, v in zip(columns, np.unravel_index(cell, shape), strict=True))
        return _Feature(columns, values, np.flatnonzero(self._cells(columns)[0] == cell))

    def _frequent(self, columns: tuple[int, ...], having: IntArray, least: int) -> BoolArray:
        """Which cells have enough records with the secret and without, or none at all of one kind."""
        of, cells = self._cells(columns)
        true = np.bincount(of, having, cells).astype(np.float64)
        others = np.bincount(of, self.people, cells) - true
        return np.asarray((np.maximum(true, others) >= least) & ~_few(true, least) & ~_few(others, least))

    def _off(self, having: IntArray, expected: FloatArray, least: int) -> Iterator[tuple[tuple[int, ...], int]]:
        """Pairs of values with more, or fewer, records of the secret than chance explains; the clearest first.

        The Bayesian information criterion takes a term that is off by more than √ln n standard errors.
        """
        most = math.sqrt(math.log(self.people.sum()))
        spread = expected * (1 - expected / self.people)
        found: list[tuple[float, tuple[int, ...], int]] = []
        for columns in itertools.combinations(range(len(self.columns)), 2):
            of, cells = self._cells(columns)
            off = np.abs(np.bincount(of, having - expected, cells)) / np.sqrt(1 + np.bincount(of, spread, cells))
            frequent = self._frequent(columns, having, least)
            found += [(float(off[cell]), columns, int(cell)) for cell in np.flatnonzero(frequent & (off > most))]
        yield from ((columns, cell) for _, columns, cell in sorted(found, key=lambda one: (-one[0], one[1], one[2])))

    def _design(self, features: list[_Feature]) -> csr_array:
        """Shape (a, 1 + features): ones, and which records meet which term."""
        rows = np.concatenate([np.arange(len(self.people)), *(one.members for one in features)])
        columns = np.repeat(np.arange(len(features) + 1), [len(self.people), *(len(one.members) for one in features)])
        return csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(self.people), len(features) + 1))


def _few(counts: FloatArray, least: int) -> BoolArray:
    return np.asarray((counts > 0) & (counts < least))


def _regressed(
    design: csr_array, people: IntArray, having: IntArray, start: FloatArray, last_step: float
) -> FloatArray:
    """Coefficients of a logistic regression of counts, shape (p,), by Newton's method from a start.

    Raises
    ------
    SolverError
        If it does not end.
    """
    pull = np.full(len(start), _RIDGE)
    pull[0] = 0.0
    transposed, terms = design.T.tocsr(), np.diff(design.indptr)

    def fit(coefficients: FloatArray) -> float:
        odds = design @ coefficients
        return float(having @ odds - people @ np.logaddexp(0.0, odds) - pull @ coefficients**2 / 2)

    now, value = start, fit(start)
    for _ in range(_MOST_STEPS):
        shares = expit(design @ now)
        slope = transposed @ (having - people * shares) - pull * now
        spread = np.repeat(people * shares * (1 - shares), terms)
        weighted = csr_array((spread, design.indices, design.indptr), shape=design.shape)
        curve = (transposed @ weighted).toarray() + np.diag(pull)
        step = np.linalg.solve(curve, slope)
        for _ in range(_MOST_STEPS):
            if (then := fit(now + step)) >= value - 1e-12 * abs(value):
                break
            step /= 2
        else:
            break
        now, value = now + step, then
        if np.abs(step).max() < last_step:
            return now
    raise SolverError("the regression of the secret on the columns does not end; publish fewer columns")
