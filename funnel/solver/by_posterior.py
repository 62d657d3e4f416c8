"""By posterior: the programme of an invariant channel by interior points, for many values and few numbers of each.

Conditions on a posterior look at few numbers of a value, and values with the same posterior are one source of what
moves. So a Newton step solves one small system for each output, and one for all sources together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp

from funnel.errors import SolverError
from funnel.joint import FloatArray
from funnel.solver.budget import CALL, Budget
from funnel.solver.exchange import Exchanged
from funnel.solver.interior_steps import next_point, over
from funnel.solver.presolve import laid_along

Mask = npt.NDArray[np.bool_]

# Units of work of a step: of an entry of the products for the system of the sources, and of what outputs are.
_PRODUCT, _ENTRY = 0.03, 16.0
# Numbers of a value that conditions may look at: for two secrets, who have no more, pairs as needed end sooner.
_FEATURES = range(3, 25)
# What a number of a value has to add to the others, relatively; to so many digits values with the same ones are alike.
_FEATURE, _ALIKE = 1e-11, 12
# Where the method starts: the share that stays, and the least slack, of that of a constant row; the first gap; the same
# where a solution is known.
_STAYS, _SLACK, _FIRST, _LEAST_STAYS, _AGAIN = 0.3, 0.1, 0.3, 0.05, 0.05
# Corrections of a step, and what steps have to be longer than.
_CORRECTIONS, _SHORT = 2, 1e-6
# Steps at most, and usually; how far equations may be from what they have to be; how often solutions are refined.
_STEPS, _USUAL_STEPS, _OFF, _REFINED = 150, 45, 1e-6, 2
# What is added to the diagonal of a matrix that rounding has left without an inverse, relatively.
_ADDED = (1e-14, 1e-12, 1e-10, 1e-8)
# Outputs in one product.
_TOGETHER = 256
# Sources of an output that are kept: those of most of it, and others by chance; and outputs of a source by chance.
_LARGEST, _BY_CHANCE, _INTO = 2, 8, 3


class Parts(NamedTuple):
    """A number for each variable: what stays (n,), what moves (n, m), and what conditions leave open (n, K)."""

    stays: FloatArray
    moves: FloatArray
    slack: FloatArray

    def plus(self, other: Parts, share: float = 1.0) -> Parts:
        return Parts(*(one + share * two for one, two in zip(self, other, strict=True)))

    def times(self, other: Parts) -> Parts:
        return Parts(*(one * two for one, two in zip(self, other, strict=True)))

    def over(self, other: Parts) -> Parts:
        """Quotients; zero where the other is, as it is for pairs that are left out."""
        return Parts(*(over(one, two) for one, two in zip(self, other, strict=True)))


class Prices(NamedTuple):
    """A number for each equation: conditions and balance of outputs (n, K + 1), and sums of sources (m,)."""

    outputs: FloatArray
    sources: FloatArray

    def plus(self, other: Prices, share: float = 1.0) -> Prices:
        return Prices(self.outputs + share * other.outputs, self.sources + share * other.sources)


class _Point(NamedTuple):
    """Where the method is, or a change of it: variables, the price of each to stay positive, prices of equations."""

    variables: Parts
    spare: Parts
    prices: Prices

    @property
    def duals(self) -> Parts:
        """The prices of variables."""
        return self.spare

    def moved(self, change: _Point, primal: float, dual: float) -> _Point:
        return _Point(
            self.variables.plus(change.variables, primal),
            self.spare.plus(change.spare, dual),
            self.prices.plus(change.prices, dual),
        )


class PosteriorProgramme:
    """The same programme as `ExchangeProgramme`, between outputs and sources; no condition may be broken.

    Variables are the share of every output that stays as it is, and densities ``z[y, j] / (p_y p_j)`` of what it takes
    from each source j, which are ones in a constant channel. Equations are the conditions and the balance of every
    output, and the sum of every source.

    Parameters
    ----------
    distribution : ndarray, shape (n,)
        Probabilities of the values, > 0.
    worth : ndarray, shape (n,)
        What a value is worth that stays as it is, summing to 1.
    spaces : ndarray, shape (K, n)
        Half-spaces of masses: ``spaces @ P(·, y) <= 0`` for every output y.
    budget : Budget
        Charged for every step.
    """

    def __init__(self, distribution: FloatArray, worth: FloatArray, spaces: FloatArray, budget: Budget) -> None:
        self.distribution, self.worth, self._budget = distribution, worth, budget
        _, first, source = np.unique(np.round(spaces.T, _ALIKE), axis=0, return_index=True, return_inverse=True)
        self.source = source.ravel()
        self.mass = np.bincount(self.source, weights=distribution)
        # What conditions and balance take of a unit of each source, and the few numbers that is a function of; a
        # constant row leaves one of each condition.
        self.room = -(spaces @ distribution)
        self.asked = np.vstack([spaces[:, first] / self.room[:, None], np.ones(len(first))])
        left, sizes, right = np.linalg.svd(self.asked, full_matrices=False)
        kept = sizes > _FEATURE * sizes[0]
        self.back, self.features = left[:, kept] * sizes[kept], right[kept]
        self.relative = distribution / self.mass[self.source]
        self.pairs = np.ones((len(distribution), len(self.mass)), dtype=bool)
        self._last: _Point | None = None

    @property
    def is_suited(self) -> bool:
        """Whether conditions look at a few numbers of a value."""
        return len(self.features) in _FEATURES

    @property
    def work(self) -> float:
        """Units of work of a solution, about."""
        return _USUAL_STEPS * self._step_work

    @property
    def _step_work(self) -> float:
        (n, m), r = self.pairs.shape, len(self.features)
        return CALL * 400 + _PRODUCT * n * r * m**2 + _ENTRY * n * r * (m + len(self.asked) ** 2)

    def solve(self, gap: float) -> Exchanged:
        """The best channel between the pairs that it has, up to a gap; or what there is time for.

        Raises
        ------
        SolverError
            If rounding leaves nothing of a step.
        """
        point = self._start()
        for _ in range(_STEPS):
            value = float(self.worth @ point.variables.stays)
            off = self.missing(point.variables)
            met = max(np.abs(off.outputs).max(), np.abs(off.sources).max()) < _OFF
            if met and self._bound(point.prices) - value <= gap:
                break
            if self._budget.ended_by is not None:
                break
            self._budget.spend(self._step_work)
            try:
                further = _Step(self, point).taken()
            except np.linalg.LinAlgError:
                # Rounding ends it here. Whether that is near enough, the proven bound decides.
                further = None
            if further is None:
                break
            point = further
        else:
            raise SolverError("interior points do not get near an invariant channel; change epsilon slightly")
        self._last = point
        return self._exchanged(point)

    def keep_few(self, generator: np.random.Generator) -> None:
        """Leave to each output few sources: the largest of the last solution, and others by chance, as they were used.

        There are far more channels that are as good than equations, so that few pairs do as well as all.
        """
        moves = np.zeros(self.pairs.shape) if self._last is None else self._last.variables.moves * self.mass
        likely = np.log(np.maximum(moves, 1e-300)) + generator.gumbel(size=moves.shape)
        into = np.log(np.maximum(moves * self.distribution[:, None], 1e-300)) + generator.gumbel(size=moves.shape)
        self.pairs = _largest(likely, _BY_CHANCE, 1) | _largest(into, _INTO, 0)
        for asked in self.asked:
            self.pairs |= _largest(moves * np.maximum(-asked, 0.0), _LARGEST, 1)

    def given(self, parts: Parts) -> Prices:
        """What equations are at variables: conditions and balance of outputs, sums of sources by their mass."""
        outputs = (parts.moves * self.mass) @ self.asked.T + parts.stays[:, None] * self.asked[:, self.source].T
        outputs[:, :-1] += parts.slack
        stays = np.bincount(self.source, weights=self.relative * parts.stays)
        return Prices(outputs, self.distribution @ parts.moves + stays)

    def missing(self, parts: Parts) -> Prices:
        """What equations lack at variables."""
        outputs, sources = self.given(parts)
        outputs[:, -1] -= 1
        return Prices(-outputs, 1 - sources)

    def taken(self, prices: Prices) -> Parts:
        """What variables take at prices of equations."""
        by_source = prices.outputs @ self.asked
        own = by_source[np.arange(len(self.distribution)), self.source] + self.relative * prices.sources[self.source]
        moves = by_source * self.mass + np.outer(self.distribution, prices.sources)
        return Parts(own, np.where(self.pairs, moves, 0.0), prices.outputs[:, :-1])

    def _start(self) -> _Point:
        """In the middle of everything; or, once there is a solution, between it and that."""
        (n, m), conditions = self.pairs.shape, len(self.room)
        stays, used = np.full(n, _STAYS), np.where(self.pairs, self.mass, 0.0)
        shares = used / used.sum(axis=1, keepdims=True)
        prices, product = Prices(np.zeros((n, conditions + 1)), np.zeros(m)), _FIRST / (n * m)
        if self._last is not None:
            moves = np.where(self.pairs, self._last.variables.moves * self.mass, 0.0)
            shares = (shares + moves / moves.sum(axis=1, keepdims=True)) / 2
            stays = np.clip(self._last.variables.stays, _LEAST_STAYS, 1 - _LEAST_STAYS)
            prices, product = self._last.prices, _AGAIN / np.count_nonzero(self.pairs)
        inside = Parts(stays, shares * (1 - stays)[:, None] / self.mass, np.zeros((n, conditions)))
        slack = np.maximum(-self.given(inside).outputs[:, :-1], _SLACK)
        variables = inside._replace(slack=slack)
        return _Point(variables, Parts(*(np.where(one > 0, product, 0.0) for one in variables)).over(variables), prices)

    def _bound(self, prices: Prices) -> float:
        """What no channel between these pairs exceeds: `funnel.solver.exchange.proven_bound`, by source."""
        priced, balance = np.maximum(-prices.outputs[:, :-1], 0.0), -prices.outputs[:, -1]
        gains = -(priced @ self.asked[:-1] + balance[:, None]) / self.distribution[:, None]
        own = self.worth / self.distribution + gains[np.arange(len(self.distribution)), self.source]
        best = np.where(self.pairs, gains, -np.inf).max(axis=0)[self.source]
        return float(balance.sum() + self.distribution @ np.maximum(own, best))

    def _exchanged(self, point: _Point) -> Exchanged:
        n = len(self.distribution)
        prices = np.maximum(-point.prices.outputs[:, :-1], 0.0)
        flows = self._flows(point.variables)
        value = float(self.worth @ (np.diagonal(flows) / self.distribution))
        balance = -point.prices.outputs[:, -1]
        return Exchanged(flows, value, 0.0, balance, sp.csr_array(prices / self.room), np.zeros((n, n)))

    def _flows(self, variables: Parts) -> FloatArray:
        """Flows (n, n): what moves out of a source is laid along its values, one after the other."""
        distribution, flows = self.distribution, np.diag(self.distribution * np.minimum(variables.stays, 1.0))
        leaves = distribution - np.diagonal(flows)
        order = np.argsort(self.source, kind="stable")
        for values in np.split(order, np.cumsum(np.bincount(self.source))[:-1]):
            out = leaves[values]
            into = distribution * variables.moves[:, self.source[values[0]]]
            if not out.sum() > 0 or not into.sum() > 0:
                flows[values, values] += out
                continue
            outputs = np.flatnonzero(into)
            places, sources, amounts = laid_along(into[outputs], out)
            np.add.at(flows, (outputs[places], values[sources]), amounts)
        return flows


def _largest(values: FloatArray, number: int, axis: int) -> Mask:
    """Which of the values are among the largest along an axis."""
    number = min(number, values.shape[axis])
    places = np.take(np.argpartition(-values, number - 1, axis=axis), np.arange(number), axis=axis)
    found = np.zeros(values.shape, dtype=bool)
    np.put_along_axis(found, places, True, axis=axis)
    return found


class _Step:
    """The equations of one step."""

    def __init__(self, programme: PosteriorProgramme, point: _Point) -> None:
        self._programme, self._point = programme, point
        taken = programme.taken(point.prices)
        self._missing = programme.missing(point.variables)
        gain = Parts(-programme.worth, np.zeros_like(taken.moves), np.zeros_like(taken.slack))
        self._off = gain.plus(taken, -1.0).plus(point.spare, -1.0)
        self._scale = point.variables.over(point.spare)
        distribution, source, features, back = (
            programme.distribution,
            programme.source,
            programme.features,
            programme.back,
        )
        every = np.arange(len(distribution))
        stays, moves, slack = self._scale
        own = features[:, source].T
        inner = np.matmul(features * (moves * programme.mass**2)[:, None, :], features.T)
        inner += (stays[:, None] * own)[:, :, None] * own[:, None, :]
        matrices = back @ inner @ back.T
        places = np.arange(slack.shape[1])
        matrices[:, places, places] += slack
        sizes = np.diagonal(matrices, axis1=1, axis2=2)
        if not (sizes > 0).all():
            raise np.linalg.LinAlgError
        unit = 1 / np.sqrt(sizes)
        self._inverse = np.linalg.inv(matrices * unit[:, :, None] * unit[:, None, :])
        self._inverse *= unit[:, :, None] * unit[:, None, :]
        self._across = distribution[:, None] * programme.mass * moves
        self._across[every, source] += programme.relative * stays
        size = distribution**2 @ moves + np.bincount(source, weights=programme.relative**2 * stays)
        joint = np.diag(size)
        root = _root(back.T @ self._inverse @ back)
        for first in range(0, len(distribution), _TOGETHER):
            some = slice(first, first + _TOGETHER)
            product = (root[some] @ features) * self._across[some, None, :]
            product = product.reshape(-1, len(size))
            joint -= product.T @ product
        # Balance of all outputs and the sums of all sources but one imply the last: the largest is left out.
        self._rest = np.flatnonzero(np.arange(len(size)) != programme.mass.argmax())
        self._unit = 1 / np.sqrt(size[self._rest])
        self._factor = _factor(joint[np.ix_(self._rest, self._rest)] * self._unit * self._unit[:, None])

    def taken(self) -> _Point | None:
        """Where the step leads; None where it leads nowhere."""
        return next_point(self._point, lambda goals, off: self._change(Parts(*goals), off), _CORRECTIONS, _SHORT)

    def _change(self, goals: Parts, off: float) -> _Point:
        """The change by which a price changes by its goal where its variable stays, and what is off by ``-off``."""
        programme, scale = self._programme, self._scale
        wanted = Parts(*(off * one - two for one, two in zip(self._off, goals, strict=True)))
        given = programme.given(scale.times(wanted))
        right = Prices(off * self._missing.outputs, off * self._missing.sources).plus(given)
        prices = self._solved(right)
        for _ in range(_REFINED):
            again = programme.given(scale.times(programme.taken(prices)))
            prices = prices.plus(self._solved(right.plus(again, -1.0)))
        variables = scale.times(programme.taken(prices).plus(wanted, -1.0))
        return _Point(variables, goals.plus(variables.over(scale), -1.0), prices)

    def _solved(self, right: Prices) -> Prices:
        """Prices at which scaled variables give what is asked for, up to rounding."""
        asked, inverse = self._programme.asked, self._inverse
        free = np.matmul(inverse, right.outputs[:, :, None])[:, :, 0]
        rest = right.sources - ((free @ asked) * self._across).sum(axis=0)
        sources = np.zeros(len(rest))
        sources[self._rest] = self._unit * scipy.linalg.cho_solve(self._factor, self._unit * rest[self._rest])
        outputs = right.outputs - (self._across * sources) @ asked.T
        return Prices(np.matmul(inverse, outputs[:, :, None])[:, :, 0], sources)


def _root(matrices: FloatArray) -> FloatArray:
    """Of matrices (n, r, r) that rounding may have left a little below zero, roots R with ``R' R`` equal to them."""
    values, vectors = np.linalg.eigh((matrices + np.swapaxes(matrices, 1, 2)) / 2)
    return np.asarray(np.sqrt(np.maximum(values, 0.0))[:, :, None] * np.swapaxes(vectors, 1, 2))


def _factor(matrix: FloatArray) -> tuple[FloatArray, bool]:
    """The Cholesky factor of a matrix whose diagonal is at most 1, with as little added to it as makes it one."""
    for added in _ADDED:
        matrix[np.diag_indices(len(matrix))] += added
        try:
            return scipy.linalg.cho_factor(matrix, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            continue
    raise SolverError("rounding leaves a step of interior points without a solution; change epsilon slightly")
