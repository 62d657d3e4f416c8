"""Whether a list of vertices can be all vertices of a polytope: none outside, and every edge has two ends."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from funnel.errors import SolverError
from funnel.joint import FloatArray

# Relative to the terms of a condition: cddlib is right to about 1e-12, and what it gets wrong it misses by far more.
_TOLERANCE = 1e-9


class InconsistentVerticesError(SolverError):
    """Floating point could not decide which points are vertices; another scaling of the same polytope may."""


def require_complete(vertices: FloatArray, rows: FloatArray, equalities: FloatArray) -> None:
    """Check that these are the vertices of ``{v >= 0, Σ_x v_x = 1, rows v <= 0, equalities v = 0}``.

    A bound on all protocols rests on having every vertex, and float double description may lose some. At a vertex
    with as many active conditions as the polytope has dimensions, dropping one of them leaves an edge; if no other
    listed vertex lies on it, its other end is missing. Since all vertices are connected by edges, a list with a gap
    shows it unless every vertex at the gap is degenerate.

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
    O(k a (a + m)) bits of memory.
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
    _require_closed_edges(active[size == dimension], active[size > dimension], dimension)


def _relative(vertices: FloatArray, rows: FloatArray) -> FloatArray:
    size = vertices @ np.abs(rows).T
    return np.divide(vertices @ rows.T, size, out=np.zeros(size.shape), where=size > 0)


def _require_closed_edges(
    simple: npt.NDArray[np.bool_], degenerate: npt.NDArray[np.bool_], dimension: int
) -> None:
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
