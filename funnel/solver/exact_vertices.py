"""Vertex enumeration in exact integers: slower than cddlib, and never in doubt."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from funnel.errors import SolverError
from funnel.joint import FloatArray, IntArray
from funnel.solver.budget import Budget

# A ray of the cone, and the conditions it meets with equality as the bits of an integer.
_Ray = tuple[list[int], int]
# Units of work of a pair of rays on two sides of a condition; most have too little in common to be looked at closely.
_BY_PAIR = 1_000.0


def exact_vertices(cone: FloatArray, counts: IntArray, budget: Budget | None = None) -> FloatArray:
    """Vertices of ``{v >= 0, Σ_x v_x = 1, cone P(S|v) <= 0}`` by double description in Python integers, shape (k, a).

    The floats of the cone are taken as the rationals they are and the counts are integers, so every sign is decided
    exactly. (The wheels of cddlib come without its exact arithmetic.)

    Parameters
    ----------
    cone : ndarray, shape (m, c)
        Conditions on the posterior P(S|y).
    counts : ndarray of int64, shape (c, a)
        All inputs occur.
    budget : Budget, optional
        Charged for every pair of rays; ends the enumeration.

    Raises
    ------
    SolverError
        If the budget is spent.

    Notes
    -----
    Of the order of k³ operations on integers for every condition: for up to a few hundred vertices.
    """
    budget, a = Budget.of(budget), counts.shape[1]
    columns = counts.T.tolist()
    # Rays are kept as rows T_x = v_x / p_x of a channel: the conditions on them are Σ_x T_x Σ_s M_s n[s, x] <= 0.
    rays: list[_Ray] = [([int(x == y) for y in range(a)], ((1 << a) - 1) ^ (1 << x)) for x in range(a)]
    for number, condition in enumerate(cone.tolist()):
        factors = _integers(condition)
        row = [sum(m * n for m, n in zip(factors, column, strict=True)) for column in columns]
        rays = _cut(rays, row, 1 << (a + number), budget)
    sizes = [sum(column) for column in columns]
    return np.array([_posterior(ray, sizes) for ray, _ in rays]).reshape(-1, a)


def _integers(values: list[float]) -> list[int]:
    fractions = [Fraction(value) for value in values]
    scale = math.lcm(*(fraction.denominator for fraction in fractions))
    return [int(fraction * scale) for fraction in fractions]


def _posterior(ray: list[int], sizes: list[int]) -> list[float]:
    parts = [size * u for size, u in zip(sizes, ray, strict=True)]
    total = sum(parts)
    return [float(Fraction(part, total)) for part in parts]


def _cut(rays: list[_Ray], row: list[int], bit: int, budget: Budget) -> list[_Ray]:
    """Extreme rays of the cone after one more condition ``row · T <= 0``."""
    valued = [(sum(c * u for c, u in zip(row, ray, strict=True)), ray, tight) for ray, tight in rays]
    kept = [(ray, tight | bit if value == 0 else tight) for value, ray, tight in valued if value <= 0]
    inside = [found for found in valued if found[0] < 0]
    for above, outer, outer_tight in valued:
        if above <= 0:
            continue
        budget.spend(_BY_PAIR * len(inside))
        if budget.expired:
            raise SolverError(f"exact vertex enumeration over {len(row)} distinct inputs did not finish in time")
        for below, inner, inner_tight in inside:
            common = outer_tight & inner_tight
            if common.bit_count() >= len(row) - 2 and _span_a_face(common, rays):
                budget.spend(100.0 * len(rays) + 300.0 * len(row))
                mixed = [above * u - below * v for u, v in zip(inner, outer, strict=True)]
                divisor = math.gcd(*mixed)
                kept.append(([u // divisor for u in mixed], common | bit))
    return kept


def _span_a_face(common: int, rays: list[_Ray]) -> bool:
    """Whether no third ray meets all the conditions that two rays have in common."""
    found = 0
    for _, tight in rays:
        if common & tight == common:
            found += 1
            if found > 2:
                return False
    return True
