"""Sparse programmes: what is found depends on the work that is allowed, and on no clock."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from funnel.solver.budget import Budget
from funnel.solver.lp import sparse_programme


def test_no_clock_ends_a_sparse_programme() -> None:
    """A busy machine has little of the time of its clock left, and the same work: the answer is the same."""
    random = np.random.default_rng(0)
    gain, values = random.random(400), np.ones(40)
    conditions = sp.csr_matrix(random.normal(size=(200, 400)) * (random.random((200, 400)) < 0.1))
    equations = sp.csr_matrix(random.random((40, 400)) * (random.random((40, 400)) < 0.2))
    # The safety stop of a limit of 10 s is at 70 s.
    idle, busy = (
        sparse_programme(gain, conditions, equations, values, Budget.of(10.0, clock))
        for clock in (lambda: 0.0, iter([0.0, *[70.0 - 1e-6] * 100]).__next__)
    )
    assert idle is not None
    assert busy is not None
    assert (idle.values == busy.values).all()
