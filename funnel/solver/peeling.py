"""Peeling: a good mixture of posteriors for hundreds of inputs and several secrets, taken off p_X in layers.

Column generation that starts from p_X alone finds nothing there: until columns add up to p_X exactly none of them is of
any use, and prices say nothing. So p_X need not be met at first: what is missing or too much of an input has a price, a
little off the price it was thought to have. One programme then makes what was found a mixture, with one more posterior
for the rest; and the rest is split in the same way.
"""

from __future__ import annotations

import numpy as np

from funnel.errors import SolverError
from funnel.joint import FloatArray
from funnel.solver.budget import Budget
from funnel.solver.goal import negative_entropy
from funnel.solver.lp import PenalisedProgramme
from funnel.solver.neighbours import Neighbourhood, Vertices
from funnel.solver.polish import repaired
from funnel.solver.pricing import Pricer
from funnel.solver.problem import Problem
from funnel.solver.region import Region
from funnel.solver.split import Split

# How far prices may be from what they are thought to be, in nats, and where these are prices of groups; when a round
# gains so little, they are thought anew. How far where p_X is to be met.
_OFF, _OFF_KNOWN, _LITTLE, _AT_ANY_PRICE = 0.5, 0.2, 1e-3, 10.0
# Rounds of a layer at most, and layers.
_ROUNDS, _LAYERS = 400, 6
# The share of a layer's budget for what is left of p_X.
_FINISHING = 0.15
# A rest of so little mass, or of so few inputs, stays as it is.
_REST, _FEW = 0.01, 10
_UNUSED = 1e-9
# How far a posterior may be outside the region, of the size of the terms of a condition.
_OUTSIDE = 1e-8


def peeled(problem: Problem, budget: Budget, prices: FloatArray | None = None, least: float = _LITTLE) -> FloatArray:
    """Posteriors (k, a) of a region that p_X is a mixture of, good ones to start from.

    Parameters
    ----------
    problem : Problem
    budget : Budget
        When it is spent, what is left of p_X is one posterior.
    prices : ndarray, shape (a,), optional
        What prices are thought to be.
    least : float
        Nats that a column must gain for a layer to go on.
    """
    rows, law, levels = problem.rows, problem.law, problem.priced.levels
    priced = problem.priced.rows if levels else rows
    found: list[FloatArray] = []
    rest, left = law, 1.0
    for layer in range(_LAYERS):
        support = np.flatnonzero(rest > 0)
        if left < _REST or len(support) < _FEW or budget.expired:
            break
        part = rest[support] / rest[support].sum()
        try:
            here = np.append(support, np.arange(len(law), len(law) + levels))
            region = Region.with_levels(priced[:, here], part, levels) if levels else Region.of(rows[:, support], part)
            split = _layer(region, rows[:, support], None if layer else prices, least, budget)
        except SolverError:
            break
        if split is not None:
            split = _without_dust(split, rows[:, support])
        if split is None or len(split.mass) < 2:
            break
        whole = np.zeros((len(split.mass), len(law)))
        whole[:, support] = split.posteriors
        last = int(np.count_nonzero(split.posteriors > _UNUSED, axis=1).argmax())
        found += [row for y, row in enumerate(whole) if y != last]
        rest, left = whole[last], left * float(split.mass[last])
    return np.array([*found, rest])


def _without_dust(split: Split, rows: FloatArray) -> Split:
    """The same split without outputs of no mass to speak of, whose posteriors a programme's tolerance leaves anywhere.

    A column generation that took one from outside the region could give it any mass.
    """
    sizes = np.maximum(split.posteriors @ np.abs(rows).T, 1e-300)
    outside = (split.posteriors @ rows.T > _OUTSIDE * sizes).any(axis=1)
    kept = (split.mass > _UNUSED) & ~outside
    return Split(split.posteriors[kept], split.mass[kept], split.value, split.bound)


def _layer(region: Region, rows: FloatArray, prices: FloatArray | None, least: float, budget: Budget) -> Split | None:
    law, finishing = region.law, budget.reserve(_FINISHING)
    pricer, near = Pricer(region, budget), Neighbourhood(region, budget)
    thought, off = (np.log(np.maximum(pricer.reach, 1e-300)), _OFF) if prices is None else (prices, _OFF_KNOWN)
    master = _Master(region, near, budget)
    master.think(thought, off)
    master.add_vertices(near.vertices(pricer, np.vstack([law, pricer.corners]), thought))
    mass, prices, wrong = master.solve()
    try:
        for _ in range(_ROUNDS):
            if budget.expired:
                break
            used = np.flatnonzero(mass > _UNUSED)
            found, most = near.best(master.vertices[used], used, prices)
            added = master.add_vertices(found)
            if most < least or not added:
                value = master.value
                master.think(prices, _AT_ANY_PRICE)
                mass, _, wrong = master.solve()
                if wrong < _UNUSED and value - master.value < least:
                    break
                off = off if added else 2 * off
                master.think(prices, off)
            mass, prices, wrong = master.solve()
        if wrong > _UNUSED:
            master.think(prices, _AT_ANY_PRICE)
            mass, _, wrong = master.solve()
    except SolverError:
        # Nearly parallel columns; the mixture before is as good as it was.
        pass
    kept = np.flatnonzero(mass > _UNUSED)
    posteriors, mass = master.posteriors(kept), mass[kept]
    if wrong < _UNUSED:
        return Split(posteriors, mass / mass.sum(), 0.0, 0.0)
    # The rest has all inputs; how much of it there is follows.
    masses = np.append(mass, 1e-3)
    return repaired(Split(np.vstack([posteriors, law]), masses / masses.sum(), 0.0, 0.0), law, rows, None, finishing)


class _Master(PenalisedProgramme):
    """Mixtures of vertices."""

    def __init__(self, region: Region, near: Neighbourhood, budget: Budget) -> None:
        super().__init__(region.law, budget)
        self._near, self.vertices = near, near.none

    def add_vertices(self, vertices: Vertices) -> int:
        """Further columns, those that are new; how many they are."""
        if not len(vertices):
            return 0
        posteriors, inside = self._near.posteriors(vertices)
        posteriors, vertices = posteriors[inside], vertices[inside]
        new = self.add(posteriors, negative_entropy(posteriors))
        self.vertices = self.vertices.joined(vertices[new])
        return len(new)
