"""A good mixture of posteriors for dozens to hundreds of inputs: column generation at central prices, by neighbours.

Column generation that starts from p_X alone finds nothing there: until columns add up to p_X exactly none of them is of
any use, so at first what is missing or too much of an input has a price. And the prices of a simplex method are a
corner of all that would do, which jumps from round to round: of 171 inputs, 40 s of columns at such prices kept less
than 10 s at those in the middle, which an interior point method ends at (Gondzio, González-Brevis and Munari 2013, New
developments in the primal-dual column generation technique).
"""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from funnel.errors import SolverError
from funnel.joint import FloatArray
from funnel.solver.budget import CALL, Budget
from funnel.solver.goal import negative_entropy
from funnel.solver.neighbours import Neighbourhood, Vertices
from funnel.solver.pricing import Pricer
from funnel.solver.problem import Problem
from funnel.solver.repair import repaired
from funnel.solver.split import Split, best_split

# How far prices may be from what they are thought to be at first, in nats; after so many rounds twice as far in each
# that does not meet p_X.
_OFF, _FIRST_ROUNDS = 10.0, 10
# Rounds at most; those after which the mixture has to be better, unless it ends.
_ROUNDS, _STILL = 200, 5
# Columns whose neighbours are looked at, and columns that are kept, in all and for each input, where there are twice
# as many.
_USED, _KEPT, _KEPT_EACH = 250, 1500, 4
# What may be missing of p_X, and a mass that is none.
_MISSING, _UNUSED = 1e-6, 1e-9
# How exactly prices are found, in nats: a share of what the best neighbour gained, between two ends.
_SHARE, _FINEST, _COARSEST = 0.1, 1e-3, 0.05
# How far a posterior may be outside the region, of the size of the terms of a condition.
_OUTSIDE = 1e-8
# The share of the budget for the mixture that is p_X.
_FINISHING = 0.15
# Of the interior point method: steps, how near to the edge one goes, and what sums may be off by.
_STEPS, _NEARLY, _BALANCED = 60, 0.99, 1e-4
# Units of work of a step: for a pair of entries of a column, an entry, and of inputs cubed; array operations.
_BY_PAIR, _BY_ENTRY, _CUBE, _CALLS = 3.0, 40.0, 0.03, 60


def central_mixture(problem: Problem, budget: Budget, least: float) -> FloatArray:
    """Posteriors (k, a) of a region that p_X is a mixture of, good ones to start from.

    Parameters
    ----------
    problem : Problem
        Its goal is the entropy, and it reads X alone.
    budget : Budget
        When it is spent, what is left of p_X is one posterior.
    least : float
        Nats by which the mixture must rise in a few rounds for the search to go on.
    """
    distribution = problem.distribution
    finishing = budget.reserve(_FINISHING)
    try:
        columns = _Columns(problem, budget)
    except SolverError:
        return distribution[None]
    with contextlib.suppress(SolverError):
        # Nearly parallel columns; the mixture before is as good as it was.
        columns.generate(least)
    if not len(columns.posteriors):
        return distribution[None]
    try:
        mixed = best_split(np.vstack([columns.posteriors, distribution]), distribution, finishing)
    except SolverError:
        mixed = Split(distribution[None], np.ones(1), float(negative_entropy(distribution)), 0.0)
    if columns.missing > _MISSING:
        # The rest has all inputs; how much of it there is follows.
        used = columns.mass > _UNUSED
        masses = np.append(columns.mass[used], 1e-3)
        split = Split(np.vstack([columns.posteriors[used], distribution]), masses / masses.sum(), 0.0, 0.0)
        moved = repaired(split, distribution, problem.rows, None, finishing)
        if moved is not None and moved.value > mixed.value:
            return _without_dust(moved, problem.rows)
    return mixed.posteriors


def _without_dust(split: Split, rows: FloatArray) -> FloatArray:
    """The posteriors without those of no mass to speak of, which a programme's tolerance leaves anywhere.

    A column generation that took one from outside the region could give it any mass.
    """
    sizes = np.maximum(split.posteriors @ np.abs(rows).T, 1e-300)
    outside = (split.posteriors @ rows.T > _OUTSIDE * sizes).any(axis=1)
    return split.posteriors[(split.mass > _UNUSED) & ~outside]


class _Columns:
    """Vertices of a region, with the mixture of them that is best at central prices.

    Attributes
    ----------
    posteriors : ndarray, shape (k, a)
    mass : ndarray, shape (k,)
        How much of each there is in the last mixture.
    missing : float
        How much of p_X is missing or too much in it.
    """

    def __init__(self, problem: Problem, budget: Budget) -> None:
        region = problem.priced
        self._distribution, self._budget = region.distribution, budget
        self._near = Neighbourhood(region, budget)
        pricer = Pricer(region, budget)
        self._thought = np.log(np.maximum(pricer.reach, 1e-300))
        self.posteriors, self.mass = np.zeros((0, region.inputs)), np.zeros(0)
        self.missing = 1.0
        self._gains, self._vertices = np.zeros(0), self._near.none
        self._numbers, self._next = np.zeros(0, dtype=np.intp), 0
        self._known: set[bytes] = set()
        self._add(self._near.vertices(pricer, np.vstack([self._distribution, pricer.corners]), self._thought))

    def generate(self, least: float) -> None:
        """Add neighbours of what is used until that does not help any more, or the budget is spent."""
        off, precision, before, still = _OFF, _COARSEST, -np.inf, 0
        for number in range(_ROUNDS):
            if self._budget.expired or not len(self.posteriors):
                break
            solved = self._solve(off, precision)
            if solved is None:
                break
            count = len(self.posteriors)
            self.mass = solved.amounts[:count]
            self.missing = float(solved.amounts[count:] @ np.tile(self._distribution, 2))
            value = float(solved.value)
            used = np.argsort(-self.mass, kind="stable")[:_USED]
            found, most = self._near.best(self._vertices[used], self._numbers[used], solved.prices / self._distribution)
            self._forget(solved.reduced[:count])
            added = self._add(found)
            if self.missing > _MISSING:
                off *= 2 if number >= _FIRST_ROUNDS else 1
                still = 0 if added else still + 1
            else:
                still = 0 if value > before + least else still + 1
            if still >= _STILL:
                break
            before = max(before, value) if still == 0 else before
            precision = float(np.clip(_SHARE * most, _FINEST, _COARSEST))

    def _solve(self, off: float, precision: float) -> _Central | None:
        """The mixture, with what is missing or too much at its price; after the columns come those amounts (2 a,)."""
        import scipy.sparse as sp

        each = sp.identity(len(self._distribution), format="csr")
        shares = sp.csr_matrix((self.posteriors / self._distribution).T)
        gains = [self._gains, (self._thought - off) * self._distribution, -(self._thought + off) * self._distribution]
        matrix = sp.hstack([shares, each, -each], format="csr")
        return _central(matrix, np.concatenate(gains), self._thought * self._distribution, precision, self._budget)

    def _add(self, vertices: Vertices) -> int:
        """Further columns, those that are new; how many they are."""
        if not len(vertices):
            return 0
        posteriors, inside = self._near.posteriors(vertices)
        new = []
        for place in np.flatnonzero(inside):
            used = np.flatnonzero(posteriors[place])
            key = used.tobytes() + np.round(posteriors[place, used], 9).tobytes()
            if key not in self._known:
                self._known.add(key)
                new.append(place)
        self._budget.spend(CALL * (20 + 4 * len(posteriors)))
        taken = posteriors[new]
        self._vertices = self._vertices.joined(vertices[np.array(new, dtype=np.intp)])
        self.posteriors = np.vstack([self.posteriors, taken])
        self._gains = np.concatenate([self._gains, negative_entropy(taken)])
        self._numbers = np.concatenate([self._numbers, self._next + np.arange(len(new))])
        self.mass = np.concatenate([self.mass, np.zeros(len(new))])
        self._next += len(new)
        return len(new)

    def _forget(self, reduced: FloatArray) -> None:
        """Keep the columns that lack least to be worth their prices, where there are too many."""
        kept = max(_KEPT, _KEPT_EACH * len(self._distribution))
        if len(reduced) <= 2 * kept:
            return
        best = np.sort(np.argsort(reduced, kind="stable")[:kept])
        self.posteriors, self.mass, self._gains = self.posteriors[best], self.mass[best], self._gains[best]
        self._vertices, self._numbers = self._vertices[best], self._numbers[best]


class _Central(NamedTuple):
    """A nearly optimal mixture, its prices of the sums, what columns lack to be worth them, and its value."""

    amounts: FloatArray
    prices: FloatArray
    reduced: FloatArray
    value: float


def _central(matrix: Any, gains: FloatArray, start: FloatArray, precision: float, budget: Budget) -> _Central | None:
    """The x >= 0 with ``matrix @ x = 1`` and the largest ``gains @ x``, by Mehrotra's predictor and corrector.

    Nearly: amounts serve to begin with, and prices to look for columns. None where the budget is spent before.
    """
    import scipy.linalg

    inputs, columns = matrix.shape
    turned = matrix.T.tocsr()
    entries = np.diff(turned.indptr).astype(np.float64)
    work = _CALLS * CALL + _BY_PAIR * float(entries @ entries) + _BY_ENTRY * entries.sum() + _CUBE * inputs**3
    if not budget.allows(work):
        return None
    normal = (matrix @ turned).toarray() + 1e-10 * np.eye(inputs)
    x = turned @ np.linalg.solve(normal, np.ones(inputs))
    y, z = start, turned @ start - gains
    x, z = x + max(-1.5 * x.min(), 0.0) + 1e-8, z + max(-1.5 * z.min(), 0.0) + 1e-8
    x, z = x + 0.5 * (x @ z) / z.sum(), z + 0.5 * (x @ z) / x.sum()
    for _ in range(_STEPS):
        missing, open_dual = 1.0 - matrix @ x, gains - turned @ y + z
        worth = float(gains @ x)
        off = max(float(np.abs(missing).max()), float(np.abs(open_dual).max()))
        if (abs(worth - float(y.sum())) < precision and off < _BALANCED) or not budget.allows(work):
            break
        budget.spend(work)
        ratio = x / z
        normal = (matrix @ turned.multiply(ratio[:, None]).tocsr()).toarray()
        normal[np.diag_indices(inputs)] += 1e-12 * np.trace(normal) / inputs
        try:
            factor = scipy.linalg.cho_factor(normal, check_finite=False)
        except scipy.linalg.LinAlgError:
            break
        newton = _Newton(matrix, turned, factor, missing, open_dual, ratio, z)
        ahead, _, price = newton.step(-x * z)
        product = float(x @ z) / columns
        reached = (x + _length(x, ahead) * ahead) @ (z + _length(z, price) * price) / columns
        goal = product * (reached / product) ** 3
        forward, prices, price = newton.step(goal - x * z - ahead * price)
        if not np.isfinite(forward).all() or not np.isfinite(price).all():
            break
        primal, dual = _NEARLY * _length(x, forward), _NEARLY * _length(z, price)
        x, y, z = x + primal * forward, y + dual * prices, z + dual * price
    return _Central(x, y, z, float(gains @ x))


class _Newton(NamedTuple):
    """The equations of a step, for one goal after another of the products of amounts and what columns lack."""

    matrix: Any
    turned: Any
    factor: tuple[FloatArray, bool]
    missing: FloatArray
    open_dual: FloatArray
    ratio: FloatArray
    lack: FloatArray

    def step(self, products: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Changes of amounts, prices and what columns lack."""
        import scipy.linalg

        goal = products / self.lack
        side = self.matrix @ (goal + self.ratio * self.open_dual) - self.missing
        prices = scipy.linalg.cho_solve(self.factor, side, check_finite=False)
        lack = self.turned @ prices - self.open_dual
        return goal - self.ratio * lack, prices, lack


def _length(values: FloatArray, changes: FloatArray) -> float:
    """How much of a change leaves all values positive; at most 1."""
    falls: npt.NDArray[np.bool_] = changes < 0
    return min(1.0, float((values[falls] / -changes[falls]).min(initial=1.0)))
