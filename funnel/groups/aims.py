"""Aims: what a stage is made to tell of what it reads, as a convex function of posteriors that the solver maximises.

By information a stage tells I(X; Y | h). By variance a stage with columns of numbers tells, of each number, the share
of its variance over all records that the outputs explain beyond what the prefix h does, and of its other columns
together their information as a share of their entropy. Both are sums over outputs of ``P(y) g(v)`` with a convex g,
less the same of the prefix, so they add up over the prefixes of a stage and, of a number, over the stages: that is the
law of total variance (decision 0076).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from funnel.groups.reading import Reading
from funnel.groups.records import Records
from funnel.joint import FloatArray, IntArray
from funnel.solver.goal import ENTROPY, Goal, SquaredMean, SumOfShares

Numbers = Mapping[str, Mapping[str, float | None]]
"""By column the number of every value, None for a value that has none."""

# Numbers worked on at once.
_CHUNK = 2**22


class Aim(ABC):
    """What a stage is made to tell. All figures are times people."""

    @abstractmethod
    def told(self, rows: FloatArray, people: FloatArray) -> FloatArray:
        """What a channel (b, a) tells people with these inputs (m, a); shape (m,)."""

    @abstractmethod
    def whole(self, people: FloatArray) -> FloatArray:
        """What would be told of these people (m, a) if every input was; shape (m,)."""

    @abstractmethod
    def worths(self, masses: FloatArray) -> FloatArray:
        """``P(y) g(v)`` of outputs that so many people of every input have (k, a); shape (k,)."""

    @abstractmethod
    def goal(self) -> Goal:
        """g, for the solver."""

    @abstractmethod
    def taken(self, seen: npt.NDArray[np.bool_]) -> Aim:
        """The same over some of the inputs."""

    @abstractmethod
    def pooled(self, pool: IntArray) -> Aim:
        """The same over pools of inputs, (a,) numbers from 0.

        A pool stands for all its inputs alike, whoever has which of them: so a channel that is made for pools follows
        from no more than how many people they have.
        """

    def blurred(self, pool: IntArray) -> Aim:
        """The same over all inputs, each counting as its pool."""
        return self.pooled(pool).pooled_back(pool)

    @abstractmethod
    def pooled_back(self, pool: IntArray) -> Aim:
        """Over inputs that are those of their pools, (a,)."""


@dataclass(frozen=True)
class Information(Aim):
    """I(X; Y | h), nats."""

    def told(self, rows: FloatArray, people: FloatArray) -> FloatArray:
        """H(Y) - H(Y|X)."""
        own = xlogy(rows, rows).sum(axis=0)
        return np.asarray(people @ own + _entropies(people @ rows.T))

    def whole(self, people: FloatArray) -> FloatArray:
        """H(X)."""
        return _entropies(people)

    def worths(self, masses: FloatArray) -> FloatArray:
        """-P(y) H(X|y)."""
        return -_entropies(masses)

    def goal(self) -> Goal:
        """Σ v ln v."""
        return ENTROPY

    def taken(self, seen: npt.NDArray[np.bool_]) -> Aim:
        """Itself: inputs are told apart whatever they are."""
        return self

    def pooled(self, pool: IntArray) -> Aim:
        """Itself."""
        return self

    def pooled_back(self, pool: IntArray) -> Aim:
        """Itself."""
        return self


INFORMATION = Information()


@dataclass(frozen=True, eq=False)
class Shares(Aim):
    """Shares of the variances of numbers that are explained, and the share of the entropy of what else there is.

    Attributes
    ----------
    numbers : ndarray, shape (k, a)
        Of every input the k numbers, of mean 0 and variance 1 over all records.
    others : ndarray, shape (d, a)
        Which values of the other columns an input has, columns summing to 1; one row of ones where there are none.
    weight : float
        One over the entropy of these columns over all records; 0 where there are none.
    """

    numbers: FloatArray
    others: FloatArray
    weight: float

    def told(self, rows: FloatArray, people: FloatArray) -> FloatArray:
        """What outputs explain beyond what is known of all of them together."""
        found = np.empty(len(people))
        size = max(1, len(rows) * max(len(self.others), 1))
        for some in np.array_split(np.arange(len(people)), max(1, len(people) * size // _CHUNK)):
            masses = people[some] @ rows.T
            found[some] = -self.worths(people[some])
            for number in self.numbers:
                sums = people[some] @ (rows * number).T
                with np.errstate(divide="ignore", invalid="ignore"):
                    found[some] += np.where(masses > 0, sums**2 / masses, 0.0).sum(axis=1)
            if self.weight:
                parts = np.einsum("ma,da,ba->mbd", people[some], self.others, rows, optimize=True)
                found[some] += self.weight * (xlogy(parts, parts).sum(axis=(1, 2)) - xlogy(masses, masses).sum(axis=1))
        return found

    def whole(self, people: FloatArray) -> FloatArray:
        """What varies of the numbers among these people, and the entropy of the rest."""
        known = people @ ((self.numbers**2).sum(axis=0) + self.weight * xlogy(self.others, self.others).sum(axis=0))
        return np.asarray(known - self.worths(people))

    def worths(self, masses: FloatArray) -> FloatArray:
        """P(y) times squares of means, less the entropy of the rest."""
        totals = masses.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            squares = ((masses @ self.numbers.T) ** 2).sum(axis=1) / totals
        return np.where(totals > 0, squares, 0.0) - self.weight * _entropies(masses @ self.others.T)

    def goal(self) -> Goal:
        """The square of one mean, or the sum of all there is."""
        if len(self.numbers) == 1 and not self.weight:
            return SquaredMean(self.numbers[0])
        return SumOfShares(self.numbers, self.others, self.weight)

    def taken(self, seen: npt.NDArray[np.bool_]) -> Aim:
        """Of some inputs."""
        return Shares(self.numbers[:, seen], self.others[:, seen], self.weight)

    def pooled(self, pool: IntArray) -> Aim:
        """Means of the inputs of every pool."""
        size = np.bincount(pool)

        def means(of_inputs: FloatArray) -> FloatArray:
            return np.stack([np.bincount(pool, weights=row) for row in of_inputs]) / size

        return Shares(means(self.numbers), means(self.others), self.weight)

    def pooled_back(self, pool: IntArray) -> Aim:
        """Every input as its pool."""
        return Shares(self.numbers[:, pool], self.others[:, pool], self.weight)


def aim_of(records: Records, reading: Reading, numbers: Numbers) -> Aim:
    """What a stage is made to tell, where these columns are numbers: information, unless it has one that varies.

    Parameters
    ----------
    records : Records
        Of those whose counts may be used.
    reading : Reading
    numbers : mapping
        Empty where a release is made by information.
    """
    found = []
    for column in reading.columns:
        if column in numbers:
            values, law = _law(records, (column,))
            standard = standardised([numbers[column][value] for (value,) in values], law)
            of_value = dict(zip((value for (value,) in values), standard.tolist(), strict=True))
            place = reading.columns.index(column)
            # A value that none of these people has is at the mean, of which nothing is explained.
            found.append([of_value.get(symbol[place], 0.0) for symbol in reading.symbols])
    of_symbols = np.array(found)
    if not len(found) or not of_symbols.any():
        return INFORMATION
    others = tuple(column for column in reading.columns if column not in numbers)
    image, weight = np.ones((1, len(reading.symbols))), 0.0
    if others:
        law = _law(records, others)[1]
        entropy = float(-xlogy(law, law).sum())
        if entropy > 0:
            places = [reading.columns.index(column) for column in others]
            rest: dict[tuple[str, ...], int] = {}
            of_rest = [rest.setdefault(tuple(symbol[j] for j in places), len(rest)) for symbol in reading.symbols]
            image, weight = np.eye(len(rest))[:, of_rest], 1 / entropy
    return Shares(np.repeat(of_symbols, reading.folds, axis=1), np.repeat(image, reading.folds, axis=1), weight)


def standardised(numbers: list[float | None], law: FloatArray) -> FloatArray:
    """Numbers of values with a law (a,), as differences from their mean in standard deviations; 0 for those without.

    A value without a number counts as the mean of the others. All are 0 where numbers do not vary.
    """
    known = np.array([one is not None for one in numbers]) & (law > 0)
    if not known.any():
        return np.zeros(len(numbers))
    found = np.array([np.nan if one is None else one for one in numbers], dtype=np.float64)
    first = found[known][0]
    gaps = np.where(np.isnan(found), 0.0, found - first)
    mean = float(gaps[known] @ law[known] / law[known].sum())
    gaps = np.where(np.isnan(found), 0.0, gaps - mean)
    spread = float(np.sqrt(law @ gaps**2))
    constant = float(np.ptp(found[known])) == 0
    return np.zeros(len(numbers)) if constant else np.asarray(gaps / spread)


def _law(records: Records, columns: tuple[str, ...]) -> tuple[tuple[tuple[str, ...], ...], FloatArray]:
    """What there is of some columns, and the shares of it."""
    alphabet, symbols = records.read(columns)
    law: FloatArray = np.bincount(symbols, weights=records.joint.p_input, minlength=len(alphabet)).astype(np.float64)
    return alphabet.symbols, law


def _entropies(masses: FloatArray) -> FloatArray:
    """Sums times entropies of rows (m, k), (m,)."""
    totals = masses.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(-np.where(masses > 0, masses * np.log(masses / totals), 0.0).sum(axis=1))
