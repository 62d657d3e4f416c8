"""Vertex enumeration by cddlib, also as a process of its own that a time limit or an interrupt can end."""

from __future__ import annotations

import sys
from io import BytesIO

import cdd
import numpy as np

from funnel.errors import SolverError
from funnel.joint import FloatArray


def polytope_vertices(rows: FloatArray) -> FloatArray:
    """Vertices of ``{v >= 0, Σ_x v_x = 1, rows v <= 0}``, shape (k, a), by the double description method.

    Parameters
    ----------
    rows : ndarray, shape (m, a)

    Raises
    ------
    SolverError
        If cddlib reports numerical inconsistency.
    """
    m, a = rows.shape
    scaled = rows / np.abs(rows).max(axis=1, keepdims=True)
    # cddlib reads a row (b, A) as b + A v >= 0; the first row is the equality Σv = 1.
    table = np.zeros((1 + a + m, a + 1))
    table[0, 0], table[0, 1:] = -1.0, 1.0
    table[1 : a + 1, 1:] = np.eye(a)
    table[a + 1 :, 1:] = -scaled
    matrix = cdd.matrix_from_array(table.tolist(), rep_type=cdd.RepType.INEQUALITY, lin_set={0})
    try:
        generators = cdd.copy_generators(cdd.polyhedron_from_matrix(matrix))
    except RuntimeError as error:
        raise SolverError(f"cddlib: {' '.join(str(error).split())}") from error
    found = np.array(generators.array, dtype=np.float64).reshape(-1, a + 1)
    return np.asarray(found[found[:, 0] == 1, 1:])


def _main() -> None:
    rows = np.load(BytesIO(sys.stdin.buffer.read()))
    try:
        found = polytope_vertices(rows)
    except SolverError as error:
        sys.exit(str(error))
    np.save(sys.stdout.buffer, found)


if __name__ == "__main__":
    _main()
