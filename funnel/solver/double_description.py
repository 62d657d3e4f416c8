"""Vertex enumeration by cddlib, also as a program of its own that a time limit or an interrupt can end.

The program imports nothing of this package: it starts in a fraction of the time that the package takes.
"""

from __future__ import annotations

import signal
import sys
from io import BytesIO

import cdd
import numpy as np
import numpy.typing as npt

# Exit status of the program when cddlib gives up, unlike one that was killed or crashed.
INCONSISTENT = 3
# The signal that ends the program when its processor time is over; where there is none, only the caller's clock does.
OUT_OF_TIME = getattr(signal, "SIGPROF", 0)


def polytope_vertices(
    rows: npt.NDArray[np.float64], equalities: npt.NDArray[np.float64] | None = None
) -> npt.NDArray[np.float64]:
    """Vertices of ``{v >= 0, Σ_x v_x = 1, rows v <= 0, equalities v = 0}``, shape (k, a), by double description.

    Parameters
    ----------
    rows : ndarray, shape (m, a)
        cddlib takes what is below 1e-7 for zero, so entries should be of the order of 1.
    equalities : ndarray, shape (l, a), optional

    Raises
    ------
    RuntimeError
        If cddlib reports numerical inconsistency.
    """
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
    matrix = cdd.matrix_from_array(table.tolist(), rep_type=cdd.RepType.INEQUALITY, lin_set=linear)
    generators = cdd.copy_generators(cdd.polyhedron_from_matrix(matrix))
    found = np.array(generators.array, dtype=np.float64).reshape(-1, a + 1)
    return np.asarray(found[found[:, 0] == 1, 1:])


def _main() -> None:
    if len(sys.argv) > 1 and OUT_OF_TIME:
        signal.setitimer(signal.ITIMER_PROF, max(1e-6, float(sys.argv[1])))
    given = np.load(BytesIO(sys.stdin.buffer.read()))
    try:
        found = polytope_vertices(given["rows"], given["equalities"])
    except RuntimeError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        sys.exit(INCONSISTENT)
    np.save(sys.stdout.buffer, found)


if __name__ == "__main__":
    _main()
