"""Simple polytope: all its vertices, kept while half-spaces are added one by one, with a check that none is missing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from funnel.errors import SolverError
from funnel.joint import FloatArray

Places = npt.NDArray[np.intp]

# A half-space that cuts off less than this changes nothing worth its vertices; it is drawn back from vertices nearer
# than that, so that no vertex ever meets more conditions than the polytope has dimensions.
_LEAST, _NEAR = 1e-7, 1e-9
# Half-spaces whose vertices would be known worse than to about 1e-9 are not taken: leaving one out never hurts a bound.
_CONDITION = 1e6


class SimplePolytope:
    """``{x : A x <= b}``, bounded, with as many conditions met in every vertex as there are dimensions.

    Parameters
    ----------
    rows : ndarray, shape (m, d)
        A.
    most : ndarray, shape (m,)
        b.
    vertices : ndarray, shape (N, d)
        All vertices.
    active : ndarray of int, shape (N, d)
        The conditions that each vertex meets with equality.

    Notes
    -----
    An edge is what is left of a vertex's conditions when one is dropped, and has two ends. So the vertices that a
    half-space makes are those of its conditions with all but one of a vertex that it cuts off, where the other end of
    that edge stays. Each is solved for anew from its conditions, so errors do not add up. Sets of conditions are told
    apart by the exclusive or of a random word for each.
    """

    def __init__(self, rows: FloatArray, most: FloatArray, vertices: FloatArray, active: Places) -> None:
        self._random = np.random.default_rng(1)
        self._rows, self._most = rows, most
        self.vertices, self._active = vertices, active
        self._words = self._random.integers(1, 2**62, size=len(rows))

    def cut(self, row: FloatArray, most: float) -> int:
        """Add ``row · x <= most``, or a half-space that is a hair wider; how many vertices it made, 0 where none.

        Parameters
        ----------
        row : ndarray, shape (d,)
        most : float
        """
        size = float(np.abs(row).max())
        row, most = row / size, most / size + _NEAR
        over = self.vertices @ row - most
        if over.max() <= _LEAST:
            return 0
        while (np.abs(over) < _NEAR).any():
            most, over = most + 3 * _NEAR, over - 3 * _NEAR
        outside = over > 0
        if not outside.any() or outside.all():
            return 0
        number, dimensions = len(self._rows), self.vertices.shape[1]
        edges = self._edge_words(self._active[outside])
        _, first, ends = np.unique(edges.ravel(), return_index=True, return_counts=True)
        # Edges with one end outside.
        vertex, dropped = np.divmod(first[ends == 1], dimensions)
        made = self._active[outside][vertex]
        made[np.arange(len(made)), dropped] = number
        rows, bounds = np.vstack([self._rows, row]), np.append(self._most, most)
        inverses = _inverses(rows[made])
        if inverses is None:
            return 0
        self._rows, self._most = rows, bounds
        self._words = np.append(self._words, self._random.integers(1, 2**62))
        corners = np.einsum("nij,nj->ni", inverses, bounds[made])
        self.vertices = np.vstack([self.vertices[~outside], corners])
        self._active = np.vstack([self._active[~outside], made])
        return len(made)

    def edges(self) -> tuple[Places, Places]:
        """Both ends of every edge, as numbers of vertices, shapes (e,).

        Raises
        ------
        SolverError
            If an edge does not have two ends: then a vertex is missing, or one is no vertex. Vertices are connected by
            edges, so where every edge has two ends there is no other vertex.
        """
        words = self._edge_words(self._active).ravel()
        order = np.argsort(words, kind="stable")
        sorted_words = words[order]
        first, second = sorted_words[::2], sorted_words[1::2]
        if len(words) % 2 or (first != second).any() or (first[1:] == first[:-1]).any():
            raise SolverError("the vertices of a polytope are not all there")
        ends = order // self.vertices.shape[1]
        return ends[::2], ends[1::2]

    def _edge_words(self, active: Places) -> npt.NDArray[np.int64]:
        """A word for each edge of these vertices, shape (N, d): the conditions that are left."""
        words = self._words[active]
        return np.asarray(np.bitwise_xor.reduce(words, axis=1)[:, None] ^ words)


def _inverses(systems: FloatArray) -> FloatArray | None:
    """The inverses of systems (N, d, d), or None where one is too close to singular."""
    try:
        inverses = np.linalg.inv(systems)
    except np.linalg.LinAlgError:
        return None
    size = np.abs(systems).sum(axis=2).max(axis=1) * np.abs(inverses).sum(axis=2).max(axis=1)
    return np.asarray(inverses) if bool((size < _CONDITION).all()) else None
