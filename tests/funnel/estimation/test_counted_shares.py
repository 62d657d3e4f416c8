"""Errors of shares that are counted in the records of an invariant protocol."""

from __future__ import annotations

import numpy as np
import pytest

from funnel.estimation.share_information import CountedShares


def test_a_cell_that_always_stays_has_no_error_whatever_sums_round_to() -> None:
    """Three values of one cell exchange records among themselves, and a fourth one never changes."""
    channel = np.eye(4)
    channel[:3, :3] = [[0.7, 0.1, 0.3], [0.2, 0.6, 0.3], [0.1, 0.3, 0.4]]
    assert (channel[:3, :3].sum(axis=0) != 1).any(), "no sum of these is rounded, so that nothing is tested"
    counted = CountedShares(channel, np.array([0.2, 0.3, 0.4, 0.1]), 100)
    assert counted.errors(np.array([0, 0, 0, 1]), 2).tolist() == [0.0, 0.0]
    single = counted.errors(np.arange(4), 4)
    variance = 0.2 * 0.7 * 0.3 + 0.3 * 0.1 * 0.9 + 0.4 * 0.3 * 0.7
    assert single[0] == pytest.approx(np.sqrt(variance / 100))
