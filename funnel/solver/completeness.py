"""Whether a list of vertices can be all vertices of a polytope: none outside, and every edge has two ends."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from funnel.errors import SolverError
from funnel.joint import FloatArray

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
