"""PF theorem 2 as it stands: the best vertex of the polytope of all channels, in a(a - 1) dimensions."""

from __future__ import annotations

import itertools

import cdd
import numpy as np
from scipy.special import xlogy

from funnel.joint import Joint


def best_vertex(joint: Joint, epsilon: float) -> tuple[float, int]:
    """Best vertex of ``{Q : a × a, columns sum to 1, Q >= 0, ε-LDP}`` and their number (PF equations (5)-(7)).

    Parameters
    ----------
    joint : Joint
        Counts (c, a).
    epsilon : float
        Nats.

    Returns
    -------
    float
        I(X;Y), nats.
    int
        Vertices.

    Notes
    -----
    Exponential in a(a - 1): for two secrets milliseconds at a = 3, a sixth of a second at a = 4, minutes at a = 5. The
    optimiser reaches the same value in dimension a - 1 (`funnel.optimal`).
    """
    c, a = joint.counts.shape
    given = joint.input_given_secret
    rows = [[0.0, *unit] for unit in np.eye(a * a)]
    for y, s, t in itertools.product(range(a), range(c), range(c)):
        if s != t:
            row = np.zeros((a, a))
            row[y] = np.exp(epsilon) * given[t] - given[s]
            rows.append([0.0, *row.ravel()])
    equalities = []
    for x in range(a):
        row = np.zeros((a, a))
        row[:, x] = 1
        equalities.append([-1.0, *row.ravel()])
    matrix = cdd.matrix_from_array(equalities + rows, rep_type=cdd.RepType.INEQUALITY, lin_set=set(range(a)))
    points = np.array(cdd.copy_generators(cdd.polyhedron_from_matrix(matrix)).array)
    channels = np.maximum(points[points[:, 0] == 1, 1:].reshape(-1, a, a), 0)
    distribution = channels * joint.p_input
    outputs = distribution.sum(axis=2)
    values = xlogy(distribution, channels).sum(axis=(1, 2)) - xlogy(outputs, outputs).sum(axis=1)
    return float(values.max()), len(channels)
