"""All vertices of the polytope of posteriors a guarantee allows: listed directly for two secrets, else by cddlib.

What cddlib lists in floats is checked to be complete, and enumerated in exact integers where that is in doubt.
"""

from __future__ import annotations

import math
from fractions import Fraction
from math import comb
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from funnel.errors import SolverError
from funnel.guarantees.base import ConeGuarantee, PosteriorGuarantee
from funnel.joint import FloatArray, IntArray, Joint
from funnel.solver.budget import CALL, Budget
from funnel.solver.interval import Interval

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


# Relative to the terms of a condition: cddlib is right to about 1e-12, and what it gets wrong it misses by far more.
_TOLERANCE = 1e-9
_CHUNK = 512

BoolArray = npt.NDArray[np.bool_]


class InconsistentVerticesError(SolverError):
    """Floating point could not decide which points are vertices; another scaling of the same polytope may."""


def require_complete(vertices: FloatArray, rows: FloatArray, equalities: FloatArray) -> None:
    """Check that these are the vertices of ``{v >= 0, Σ_x v_x = 1, rows v <= 0, equalities v = 0}``.

    A bound on all protocols rests on having every vertex, and float double description may lose some. All vertices
    are connected by edges, so a list with a gap has a vertex at the gap, from which an edge leads nowhere: where as
    many conditions are active as the polytope has dimensions, each edge is what is left when one of them is dropped,
    and another vertex must lie on it; where more are active, there must be at least as many neighbours as dimensions.

    Parameters
    ----------
    vertices : ndarray, shape (k, a)
        Exact zeros where a coordinate vanishes.
    rows : ndarray, shape (m, a)
        Conditions that hold strictly somewhere in the polytope.
    equalities : ndarray, shape (l, a)

    Raises
    ------
    InconsistentVerticesError
        If a point is outside the polytope or no vertex, or a vertex is missing or listed twice.

    Notes
    -----
    O(k a (a + m)) bits of memory; the number of vertices times that of degenerate ones in time.
    """
    if len(vertices) == 0:
        raise InconsistentVerticesError("no vertex was found")
    if (vertices < 0).any():
        raise InconsistentVerticesError("a coordinate is negative")
    # Each sum is compared with the sum of its terms' sizes, so neither scale of rows nor of columns matters.
    if (_relative(vertices, rows) > _TOLERANCE).any() or (np.abs(_relative(vertices, equalities)) > _TOLERANCE).any():
        raise InconsistentVerticesError("a vertex lies outside the polytope")
    rank = int(np.linalg.matrix_rank(equalities, tol=_TOLERANCE)) if len(equalities) else 0
    dimension = vertices.shape[1] - 1 - rank
    active = np.hstack([vertices == 0, _relative(vertices, rows) >= -_TOLERANCE])
    size = active.sum(axis=1)
    if (size < dimension).any():
        raise InconsistentVerticesError("a point of the list is not a vertex")
    if np.linalg.matrix_rank(vertices - vertices[0]) < dimension:
        raise InconsistentVerticesError("the vertices do not span the polytope")
    _require_two_ends(active[size == dimension], active[size > dimension], dimension)
    _require_neighbours(active[size > dimension], active, dimension)


def _relative(vertices: FloatArray, rows: FloatArray) -> FloatArray:
    size = vertices @ np.abs(rows).T
    return np.divide(vertices @ rows.T, size, out=np.zeros(size.shape), where=size > 0)


def _require_two_ends(simple: BoolArray, degenerate: BoolArray, dimension: int) -> None:
    edges = []
    for condition in range(simple.shape[1]):
        leaving = simple[simple[:, condition]].copy()
        leaving[:, condition] = False
        edges.append(np.packbits(leaving, axis=1))
    distinct, ends = np.unique(np.vstack(edges), axis=0, return_counts=True)
    if (ends > 2).any():
        raise InconsistentVerticesError("a vertex is listed twice")
    lone = np.unpackbits(distinct[ends == 1], axis=1, count=simple.shape[1])
    shared = lone.astype(np.float32) @ degenerate.T.astype(np.float32)
    if (shared.max(axis=1, initial=-1.0) < dimension - 1).any():
        raise InconsistentVerticesError("a vertex is missing")


def _require_neighbours(degenerate: BoolArray, active: BoolArray, dimension: int) -> None:
    every = active.T.astype(np.float32)
    for start in range(0, len(degenerate), _CHUNK):
        shared = degenerate[start : start + _CHUNK].astype(np.float32) @ every
        # Each vertex shares all its conditions with itself.
        if ((shared >= dimension - 1).sum(axis=1) - 1 < dimension).any():
            raise InconsistentVerticesError("a neighbour of a degenerate vertex is missing")


# Up to so many inputs exact integers are fast enough where cddlib fails.
_SMALL = 8
# Coordinates this small are left over from cancellation.
_ZERO = 1e-12
# Conditions this much smaller than their terms are nothing but rounding.
_VACUOUS = 1e-14
# Digits in which scaled conditions that are one differ at most.
_SAME = 12
# Units of work of a list, and the crude number of vertices beyond which one is not begun: cddlib cannot be stopped.
_LISTING, _MOST = 400 * CALL, 2**26


def enumerate_vertices(
    joint: Joint,
    guarantee: ConeGuarantee,
    time_limit: float | Budget | None = None,
    rows: FloatArray | None = None,
) -> FloatArray:
    """Vertices of ``Δ = {v >= 0, Σv = 1, v = P(X|y) meets the guarantee}``, shape (k, a) (PF theorem 3, (11)-(13)).

    Two secrets: at most a²/2 vertices, listed directly in O(a²) because a vertex has at most two non-zeros. More
    secrets: double description by cddlib; the number of vertices grows exponentially with a and c and as ε falls. The
    list is checked to be complete; where floating point loses vertices and inputs are few, they are enumerated in exact
    integers.

    Parameters
    ----------
    joint : Joint
        All inputs and secrets must occur.
    guarantee : ConeGuarantee
    time_limit : float or Budget, optional
        Seconds of processor time.
    rows : ndarray, shape (m, a), optional
        The cone in posterior coordinates, where it is not the guarantee's cone of this joint distribution.

    Raises
    ------
    SolverError
        If there may be too many vertices, the budget is spent, or cddlib fails or returns vertices that are outside the
        polytope or not all there are.
    """
    budget = Budget.of(time_limit)
    c, a = joint.counts.shape
    if c == 1 or a == 1:
        return np.eye(a)
    if c == 2 and isinstance(guarantee, PosteriorGuarantee):
        budget.spend(50 * CALL + 8.0 * a**3)
        # Every condition is one on ρ = P(s = 1|y), so vertices are points or pairs at its ends.
        interval = Interval.of_cone(guarantee.posterior_cone(joint.p_secret)).around(float(joint.p_secret[1]))
        return interval.vertices(joint.secret_given_input[1])
    # In posterior coordinates a row is T_x = v_x q / p_x; the factor q > 0 does not matter to a cone.
    if rows is None:
        rows = without_rounding(guarantee.cone(joint) / joint.p_input, joint, guarantee)
    if len(rows) == 0:
        return np.eye(a)
    apart = _equalities_apart(_scaled(rows))
    conditions = _each_once(apart.rows)
    if vertices_at_most(a, len(conditions), 1) > _MOST or not budget.allows(_LISTING):
        raise SolverError(
            f"vertices over {a} distinct inputs may be too many to be listed within the limit; leave "
            'method="vertices" out, raise epsilon, or group rare categories'
        )
    budget.spend(_LISTING)
    try:
        return _by_double_description(conditions, apart.equalities, joint.p_input)
    except InconsistentVerticesError as error:
        if a <= _SMALL and not len(apart.equalities) and isinstance(guarantee, PosteriorGuarantee):
            exact = exact_vertices(guarantee.posterior_cone(joint.p_secret), joint.counts, budget)
            # Exactly as rounded to floats, a cone that is nearly flat can be empty.
            if len(exact):
                return exact
        raise SolverError(
            f"vertex enumeration over {a} distinct inputs is numerically inconsistent ({error}); change epsilon or "
            "group rare categories"
        ) from error


def vertices_at_most(a: int, rows: int, ends: int = 2) -> int:
    """A crude bound on the number of vertices: a support of k inputs, and k - 1 rows at one of their ends."""
    return sum(comb(a, k) * comb(rows, k - 1) * ends ** (k - 1) for k in range(1, min(a, rows + 1) + 1))


def without_rounding(rows: FloatArray, joint: Joint, guarantee: ConeGuarantee) -> FloatArray:
    """The conditions (m, a) of a guarantee in posterior coordinates, but for those that are nothing but rounding.

    At a budget of 0 a secret that is independent of the input, or two with the same records for each input, have such
    conditions: the difference of two equal numbers, which for a rare secret are large ones.
    """
    if not isinstance(guarantee, PosteriorGuarantee):
        return rows
    terms = np.abs(guarantee.posterior_cone(joint.p_secret)) @ joint.secret_given_input
    return np.asarray(rows[np.abs(rows).max(axis=1) > _VACUOUS * terms.max(axis=1)])


def _scaled(rows: FloatArray) -> FloatArray:
    return np.asarray(rows / np.abs(rows).max(axis=1, keepdims=True))


def _each_once(rows: FloatArray) -> FloatArray:
    """Conditions without those that another one repeats, as two secrets with the same records for each input do.

    Where one is active both are: every vertex would seem degenerate, and a list with a gap would seem complete.
    """
    _, first = np.unique(np.round(rows, _SAME), axis=0, return_index=True)
    return np.asarray(rows[np.sort(first)])


class _Conditions(NamedTuple):
    rows: FloatArray
    equalities: FloatArray


def _equalities_apart(rows: FloatArray) -> _Conditions:
    """Rows that are conditions, and rows that hold with equality because their negative is there too (ε = 0)."""
    there = {row.tobytes() for row in rows + 0.0}
    negated = np.array([(0.0 - row).tobytes() in there for row in rows])
    return _Conditions(rows[~negated], rows[negated])


def _by_double_description(rows: FloatArray, equalities: FloatArray, distribution: FloatArray) -> FloatArray:
    # cddlib takes everything below 1e-7 for zero, so whether it finds all vertices depends on scale and order. Rare
    # inputs and rare secrets are seen better half way to the coordinates T_x = v_x / p_x.
    plain, balanced = np.ones(len(distribution)), np.sqrt(distribution)
    failures: list[InconsistentVerticesError] = []
    for unit, step in ((plain, 1), (plain, -1), (balanced, 1)):
        try:
            scaled = _scaled(rows * unit)
            found = polytope_vertices(scaled[::step, ::step], (equalities * unit)[:, ::step])[:, ::step]
            clean = np.where(np.abs(found) < _ZERO, 0.0, found) * unit
            require_complete(clean, rows, equalities)
        except InconsistentVerticesError as error:
            failures.append(error)
        else:
            return np.asarray(clean / clean.sum(axis=1, keepdims=True))
    raise failures[0]


def polytope_vertices(rows: FloatArray, equalities: FloatArray | None = None) -> FloatArray:
    """Vertices of ``{v >= 0, Σ_x v_x = 1, rows v <= 0, equalities v = 0}``, shape (k, a), by double description.

    Parameters
    ----------
    rows : ndarray, shape (m, a)
        cddlib takes what is below 1e-7 for zero, so entries should be of the order of 1.
    equalities : ndarray, shape (l, a), optional

    Raises
    ------
    InconsistentVerticesError
        If cddlib reports numerical inconsistency.
    """
    import cdd

    a = rows.shape[1]
    equalities = np.zeros((0, a)) if equalities is None else equalities
    # cddlib reads a row (b, A) as b + A v >= 0, or = 0 for the rows of lin_set.
    table = np.vstack(
        [
            np.concatenate([[-1.0], np.ones(a)]),
            np.pad(equalities, ((0, 0), (1, 0))),
            np.pad(np.eye(a), ((0, 0), (1, 0))),
            np.pad(-rows, ((0, 0), (1, 0))),
        ]
    )
    linear = set(range(1 + len(equalities)))
    try:
        matrix = cdd.matrix_from_array(table.tolist(), rep_type=cdd.RepType.INEQUALITY, lin_set=linear)
        generators = cdd.copy_generators(cdd.polyhedron_from_matrix(matrix))
    except RuntimeError as error:
        raise InconsistentVerticesError(" ".join(str(error).split())) from error
    found = np.array(generators.array, dtype=np.float64).reshape(-1, a + 1)
    return np.asarray(found[found[:, 0] == 1, 1:])
