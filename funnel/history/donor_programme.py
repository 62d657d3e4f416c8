"""Donor programme: who goes on and who begins anew, so that most records are people's own and the bound is kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from funnel.errors import SolverError
from funnel.joint import FloatArray

# What donors that go on count for, beside own records: as little as only decides between equals.
_DONORS = 1e-3
_EXACTLY = 1e-10


def best_rows(read: FloatArray, conditions: FloatArray, classes: int) -> FloatArray | None:
    """The channel (2k, 2k + 1) with most own records, for one history; None if the solver finds none.

    Outputs are "the same person, of class i now" and "another one, of class i". A person who goes on is of the class
    that is read, and one who is gone does not go on. As many records are of each class as records that are people's own
    would be.

    Parameters
    ----------
    read : ndarray, shape (2k + 1,)
        P(what is read | h).
    conditions : ndarray, shape (m, 2k + 1)
        ``G T <= 0`` is asked of every row T of the channel.
    classes : int
        k.
    """
    from scipy.sparse import coo_array

    k, inputs = classes, 2 * classes + 1
    # Every input may begin anew as any class; the first 2k may go on as their own.
    ys = np.concatenate([np.arange(2 * k) % k, np.repeat(k + np.arange(k), inputs)])
    xs = np.concatenate([np.arange(2 * k), np.tile(np.arange(inputs), k)])
    gains = np.zeros(len(ys))
    gains[:k], gains[k : 2 * k] = read[:k], _DONORS * read[k : 2 * k]
    conditions = conditions / np.maximum(np.abs(conditions).max(axis=1, keepdims=True), 1e-300)
    rows, columns, values = [], [], []
    for number, condition in enumerate(conditions):
        at = condition[xs] != 0
        rows.append(number * 2 * k + ys[at])
        columns.append(np.flatnonzero(at))
        values.append(condition[xs[at]])
    variables = np.arange(len(ys))
    of_class = read[:k] / read[:k].sum()
    equal = coo_array(
        (np.concatenate([np.ones(len(ys)), read[xs]]), (np.concatenate([xs, inputs + ys % k]), np.tile(variables, 2)))
    )
    broken = coo_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))),
        shape=(len(conditions) * 2 * k, len(ys)),
    )
    found = _best(gains, broken, equal, np.concatenate([np.ones(inputs), of_class * read.sum()]))
    if found is None:
        return None
    channel = np.zeros((2 * k, inputs))
    channel[ys, xs] = found
    return channel


def first_rows(read: FloatArray, conditions: FloatArray, classes: int) -> FloatArray | None:
    """The channel (k, k) over classes that leaves most records as they are, as many of each; None if none is found.

    Parameters
    ----------
    read : ndarray, shape (k,)
        How common classes are.
    conditions : ndarray, shape (m, k)
        ``G T <= 0`` is asked of every row T of the channel.
    classes : int
        k.
    """
    from scipy.sparse import block_diag, coo_array

    k, variables = classes, np.arange(classes**2)
    ys, xs = variables // k, variables % k
    conditions = conditions / np.maximum(np.abs(conditions).max(axis=1, keepdims=True), 1e-300)
    equal = coo_array(
        (np.concatenate([np.ones(k * k), read[xs]]), (np.concatenate([xs, k + ys]), np.tile(variables, 2)))
    )
    broken: Any = block_diag([conditions] * k)
    found = _best(np.where(xs == ys, read[xs], 0.0), broken, equal, np.concatenate([np.ones(k), read]))
    return None if found is None else found.reshape(k, k)


def _best(gains: FloatArray, broken: Any, equal: Any, totals: FloatArray) -> FloatArray | None:
    """The best probabilities x with ``broken x <= 0`` and ``equal x = totals``; None if none is found for sure."""
    from scipy.optimize import linprog

    problem: Any = linprog
    solved = problem(
        -gains,
        A_ub=broken.tocsr(),
        b_ub=np.zeros(broken.shape[0]),
        A_eq=equal.tocsr(),
        b_eq=totals,
        bounds=(0, 1),
        method="highs",
        options={"primal_feasibility_tolerance": _EXACTLY, "dual_feasibility_tolerance": _EXACTLY},
    )
    if solved.status == 2:
        raise SolverError("no channel was found for a history, although a constant one is allowed; please report it")
    return np.clip(solved.x, 0.0, 1.0) if solved.status == 0 else None
