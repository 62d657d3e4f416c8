"""Points: how much the values of a record speak for a secret, by a regression that tables of both agree with."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array
from scipy.special import expit

from funnel.donors.record_classes import Scale, Term
from funnel.errors import SolverError
from funnel.joint import FloatArray, IntArray, Joint
from funnel.progress import Progress, quiet

BoolArray = npt.NDArray[np.bool_]

# A point is so much of a log odds ratio, in nats.
POINT = 0.01
# What every coefficient is drawn to 0 by: half a record, so that those of values without a secret end.
_RIDGE = 0.5
_MOST_STEPS, _MOST_ROUNDS, _PAIRS_A_ROUND = 100, 10, 25
# The last Newton step of the regressions that pairs are searched with, in nats.
_ROUGH = 0.01
# A step that is not half as large as the one before is followed by a new curve: so what is left is less than a step.
_SMALLER = 0.5


@dataclass(frozen=True, eq=False)
class _Feature:
    """Which records meet a term."""

    columns: tuple[int, ...]
    values: tuple[str, ...]
    members: IntArray


def scales(joint: Joint, least: int, progress: Progress = quiet) -> tuple[Scale, ...]:
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
    progress : callable

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
    found = []
    for number, s in enumerate(asked):

        def advance(rounds: int, before: int = number * _MOST_ROUNDS) -> None:
            progress("finding classes of records", before + rounds, len(asked) * _MOST_ROUNDS)

        found.append(records.scale(joint, s, least, advance))
    return tuple(found)


@dataclass(frozen=True, eq=False)
class _Records:
    """Whole records by numbers: codes (columns, a), the values that codes stand for, and people with each record."""

    columns: tuple[str, ...]
    codes: IntArray
    values: tuple[tuple[str, ...], ...]
    people: IntArray

    @classmethod
    def of(cls, joint: Joint) -> _Records:
        inputs = joint.inputs
        codes = np.ascontiguousarray(inputs.codes.T, dtype=np.int64)
        return cls(inputs.columns, codes, inputs.texts, joint.counts.sum(axis=0))

    def scale(self, joint: Joint, s: int, least: int, advance: Callable[[int], None]) -> Scale:
        """Points for one value of the secret."""
        having = joint.counts[s]
        alone, together = (
            {columns: _frequent(true, all_, least) for columns, (true, all_) in self._tables(of, having, self.people)}
            for of in (1, 2)
        )
        singles = [np.flatnonzero(frequent) for frequent in alone.values()]
        features = [self._feature((j,), value) for j, values in enumerate(singles) for value in values.tolist()]
        known = set[tuple[tuple[int, ...], int]]()
        coefficients = np.zeros(len(features) + 1)

        def fitted(last_step: float) -> tuple[FloatArray, FloatArray]:
            """Coefficients, and how many records are expected to have the secret."""
            terms = self._terms(features)
            design = terms.T.tocsr()

            def curve(spread: FloatArray) -> FloatArray:
                return self._curve(design, terms, spread, singles)

            found = _regressed(design, terms, self.people, having, coefficients, last_step, curve)
            return found, np.asarray(self.people * expit(design @ found), dtype=np.float64)

        for number in range(_MOST_ROUNDS):
            advance(number)
            coefficients, expected = fitted(_ROUGH)
            more = [cell for cell in self._off(having, expected, together) if cell not in known][:_PAIRS_A_ROUND]
            if not more:
                break
            known.update(more)
            features += [self._feature(*cell) for cell in more]
            coefficients = np.append(coefficients, np.zeros(len(more)))
        coefficients, _ = fitted(POINT / 100)
        points = np.rint(coefficients[1:] / POINT).astype(int).tolist()
        terms = (
            Term(tuple(self.columns[j] for j in one.columns), one.values, amount)
            for one, amount in zip(features, points, strict=True)
        )
        return Scale(joint.secret.symbols[s], tuple(term for term in terms if term.points))

    def _cells(self, columns: tuple[int, ...]) -> IntArray:
        """The cell of every record in the table of one or two columns."""
        of: IntArray = self.codes[columns[0]]
        for j in columns[1:]:
            of = of * len(self.values[j]) + self.codes[j]
        return of

    def _tables(
        self, several: int, *weights: IntArray | FloatArray
    ) -> Iterator[tuple[tuple[int, ...], list[FloatArray]]]:
        """Sums of the records' weights in the cells of each table of so many columns."""
        for columns in itertools.combinations(range(len(self.columns)), several):
            of, cells = self._cells(columns), math.prod(len(self.values[j]) for j in columns)
            yield columns, [np.asarray(np.bincount(of, one, cells), dtype=np.float64) for one in weights]

    def _feature(self, columns: tuple[int, ...], cell: int) -> _Feature:
        shape = tuple(len(self.values[j]) for j in columns)
        values = tuple(self.values[j][int(v)] for j, v in zip(columns, np.unravel_index(cell, shape), strict=True))
        return _Feature(columns, values, np.flatnonzero(self._cells(columns) == cell))

    def _off(
        self, having: IntArray, expected: FloatArray, frequent: Mapping[tuple[int, ...], BoolArray]
    ) -> Iterator[tuple[tuple[int, ...], int]]:
        """Pairs of values with more, or fewer, records of the secret than chance explains; the clearest first.

        The Bayesian information criterion takes a term that is off by more than √ln n standard errors.
        """
        most = math.sqrt(math.log(self.people.sum()))
        found: list[tuple[float, tuple[int, ...], int]] = []
        spread = expected * (1 - expected / self.people)
        for columns, (difference, variance) in self._tables(2, having - expected, spread):
            off = np.abs(difference) / np.sqrt(1 + variance)
            found += [
                (float(off[cell]), columns, int(cell)) for cell in np.flatnonzero(frequent[columns] & (off > most))
            ]
        yield from ((columns, cell) for _, columns, cell in sorted(found, key=lambda one: (-one[0], one[1], one[2])))

    def _curve(
        self, design: csr_array, terms: csr_array, spread: FloatArray, singles: Sequence[IntArray]
    ) -> FloatArray:
        """Shape (p, p): products of the terms over records with these weights.

        Those of single values, nearly all, are tables of two columns; a sparse product takes four times as long.
        """
        curve = np.diag(terms @ spread)
        curve[0] = curve[:, 0] = np.diag(curve)
        ends = np.cumsum([1, *(len(values) for values in singles)])
        places = [slice(*ends[j : j + 2]) for j in range(len(singles))]
        for (j, k), (table,) in self._tables(2, spread):
            block = table.reshape(len(self.values[j]), -1)[np.ix_(singles[j], singles[k])]
            curve[places[j], places[k]] = block
            curve[places[k], places[j]] = block.T
        pairs = terms[ends[-1] :]
        weighted = csr_array((spread[pairs.indices], pairs.indices, pairs.indptr), shape=pairs.shape)
        curve[ends[-1] :] = (weighted @ design).toarray()
        curve[:, ends[-1] :] = curve[ends[-1] :].T
        return curve

    def _terms(self, features: Sequence[_Feature]) -> csr_array:
        """Shape (1 + features, a): ones, and which records meet which term."""
        members = [np.arange(len(self.people)), *(one.members for one in features)]
        ends = np.cumsum([0, *map(len, members)])
        shape = (len(members), len(self.people))
        return csr_array((np.ones(ends[-1]), np.concatenate(members), ends), shape=shape)


def _frequent(having: FloatArray, people: FloatArray, least: int) -> BoolArray:
    """Which cells have enough records with the secret and without, or none at all of one kind."""
    others = people - having
    few = ((having > 0) & (having < least)) | ((others > 0) & (others < least))
    return np.asarray((np.maximum(having, others) >= least) & ~few)


def _regressed(
    design: csr_array,
    terms: csr_array,
    people: IntArray,
    having: IntArray,
    start: FloatArray,
    last_step: float,
    curve_of: Callable[[FloatArray], FloatArray],
) -> FloatArray:
    """Coefficients of a logistic regression of counts, shape (p,), by Newton's method from a start.

    The curve of one step serves the next ones, too, while each is clearly smaller than the one before.

    Raises
    ------
    SolverError
        If it does not end.
    """
    pull = np.full(len(start), _RIDGE)
    pull[0] = 0.0

    def fit(coefficients: FloatArray) -> float:
        odds = design @ coefficients
        return float(having @ odds - people @ np.logaddexp(0.0, odds) - pull @ coefficients**2 / 2)

    now, value, curve, size = start, fit(start), None, math.inf
    for _ in range(_MOST_STEPS):
        shares = expit(design @ now)
        slope = terms @ (having - people * shares) - pull * now
        if curve is None:
            try:
                curve = cho_factor(curve_of(people * shares * (1 - shares)) + np.diag(pull))
            except np.linalg.LinAlgError:
                break
        step = cho_solve(curve, slope)
        for _ in range(_MOST_STEPS):
            if (then := fit(now + step)) >= value - 1e-12 * abs(value):
                break
            step /= 2
        else:
            break
        now, value, before, size = now + step, then, size, float(np.abs(step).max())
        if size < last_step:
            return now
        if size > _SMALLER * before:
            curve = None
    raise SolverError("the regression of the secret on the columns does not end; publish fewer columns")
