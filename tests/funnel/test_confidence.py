"""The confidence set around an estimate: its radius from the χ² law, and how often it holds the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from scipy.special import gammainc

from funnel import Joint, SpecError
from funnel.confidence import confidence_set
from tests.strategies import joints


@given(joints())
def test_the_radius_leaves_out_alpha_of_the_chi_square_law(joint: Joint) -> None:
    wide, narrow = confidence_set(joint, 0.01), confidence_set(joint, 0.3)
    assert (wide.cells, wide.n) == (joint.counts.size, joint.n)
    if joint.counts.size == 1:
        assert wide.radius == narrow.radius == 0
        return
    assert wide.radius > narrow.radius > 0
    # The distribution function of χ² with k degrees of freedom is the regularised gamma function of k/2 and x/2.
    for found, alpha in ((wide, 0.01), (narrow, 0.3)):
        assert gammainc((found.cells - 1) / 2, found.radius * joint.n / 2) == pytest.approx(1 - alpha)


def test_it_holds_the_true_law_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(5)
    law = rng.dirichlet(np.full(9, 3.0))
    inside = 0
    for sample in rng.multinomial(2000, law, size=1000):
        found = confidence_set(Joint.from_counts(sample.reshape(3, 3)), 0.1)
        inside += float(((sample / 2000 - law) ** 2 / law).sum()) <= found.radius
    assert 0.87 <= inside / 1000 <= 0.93


def test_the_smallest_expected_count_warns_of_small_cells() -> None:
    assert confidence_set(Joint.from_counts([[90, 10], [9, 1]])).smallest_expected == pytest.approx(10 * 11 / 110)
    assert confidence_set(Joint.from_counts([[9, 0], [9, 0]])).smallest_expected == 0


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, float("nan")])
def test_a_significance_out_of_range_is_refused(alpha: float) -> None:
    with pytest.raises(SpecError, match="strictly between 0 and 1"):
        confidence_set(Joint.from_counts([[1, 2]]), alpha)
