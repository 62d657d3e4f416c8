"""Vertex enumeration by cddlib, also as a process of its own that a time limit or an interrupt can end."""

from __future__ import annotations

import sys
from io import BytesIO

import cdd
import numpy as np

from funnel.joint import FloatArray
from funnel.solver.completeness import InconsistentVerticesError
from funnel.solver.vertices import INCONSISTENT


def polytope_vertices(rows: FloatArray, equalities: FloatArray) -> FloatArray:
    """Vertices of ``{v >= 0, Σ_x v_x = 1, rows v <= 0, equalities v = 0}``, shape (k, a), by double description.

    Parameters
    ----------
    rows : ndarray, shape (m, a)
        cddlib takes what is below 1e-7 for zero, so entries should be of the order of 1.
    equalities : ndarray, shape (l, a)

    Raises
    ------
    InconsistentVerticesError
        If cddlib reports numerical inconsistency.
    """
    a = rows.shape[1]
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
    matrix = cdd.matrix_from_array(table.tolist(), rep_type=cdd.RepType.INEQUALITY, lin_set=linear)
    try:
        generators = cdd.copy_generators(cdd.polyhedron_from_matrix(matrix))
    except RuntimeError as error:
        raise InconsistentVerticesError(f"cddlib: {' '.join(str(error).split())}") from error
    found = np.array(generators.array, dtype=np.float64).reshape(-1, a + 1)
    return np.asarray(found[found[:, 0] == 1, 1:])


def _main() -> None:
    given = np.load(BytesIO(sys.stdin.buffer.read()))
    try:
        found = polytope_vertices(given["rows"], given["equalities"])
    except InconsistentVerticesError as error:
        print(error, file=sys.stderr)
        sys.exit(INCONSISTENT)
    np.save(sys.stdout.buffer, found)


if __name__ == "__main__":
    _main()
