"""The confidence set around an estimate: its radius from the χ² distribution, and how often it holds the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from scipy.special import gammainc

from funnel import Joint, SpecError
from funnel.confidence import confidence_set
from tests.strategies import joints


@given(joints())
def test_the_radius_leaves_out_alpha_of_the_chi_square_distribution(joint: Joint) -> None:
    wide, narrow = confidence_set(joint, 0.01), confidence_set(joint, 0.3)
    assert (wide.cells, wide.n) == (joint.counts.size, joint.n)
    if joint.counts.size == 1:
        assert wide.radius == narrow.radius == 0
        return
    assert wide.radius > narrow.radius > 0
    # The distribution function of χ² with k degrees of freedom is the regularised gamma function of k/2 and x/2.
    for found, alpha in ((wide, 0.01), (narrow, 0.3)):
        assert gammainc((found.cells - 1) / 2, found.radius * joint.n / 2) == pytest.approx(1 - alpha)


def test_it_holds_the_true_distribution_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(5)
    distribution = rng.dirichlet(np.full(9, 3.0))
    inside = 0
    for sample in rng.multinomial(2000, distribution, size=1000):
        found = confidence_set(Joint.from_counts(sample.reshape(3, 3)), 0.1)
        inside += float(((sample / 2000 - distribution) ** 2 / distribution).sum()) <= found.radius
    assert 0.87 <= inside / 1000 <= 0.93


def coverage_and_doubt(distribution: np.ndarray, n: int) -> tuple[float, float]:
    """How often F at .05 holds the distribution of n records, and how often it says that it is doubtful."""
    samples = np.random.default_rng(3).multinomial(n, distribution.ravel(), size=3000)
    distance = ((samples / n - distribution.ravel()) ** 2 / distribution.ravel()).sum(axis=1)
    sets = [confidence_set(Joint.from_counts(sample.reshape(distribution.shape))) for sample in samples[:400]]
    return float((distance <= sets[0].radius).mean()), float(np.mean([found.doubtful for found in sets]))


@pytest.mark.parametrize("often", [0.1, 0.3])
def test_near_deterministic_tables_are_not_covered_and_say_so(often: float) -> None:
    """Every margin is 200 records, and every product of margins 40; but most cells hardly ever occur."""
    counts = np.full((5, 5), often) + np.eye(5) * (200 - 5 * often)
    covered, doubted = coverage_and_doubt(counts / counts.sum(), 1000)
    assert covered < 0.9
    assert doubted == 1


def test_where_nothing_is_rare_the_set_covers_and_nothing_is_doubted() -> None:
    counts = np.full((5, 5), 20.0) + np.eye(5) * 300
    covered, doubted = coverage_and_doubt(counts / counts.sum(), 2000)
    assert 0.935 <= covered <= 0.965
    assert doubted == 0


def test_rare_cells_are_seen_in_the_margins_and_in_the_counts() -> None:
    margins = confidence_set(Joint.from_counts([[90, 10], [9, 1]]))
    assert margins.smallest_expected == pytest.approx(10 * 11 / 110)
    assert (margins.smallest_observed, margins.few, margins.doubtful) == (1, 1, True)
    # Expected often, seen once.
    diagonal = confidence_set(Joint.from_counts((np.eye(5) * 196 + 1).astype(int)))
    assert diagonal.smallest_expected == pytest.approx(201**2 / 1005)
    assert (diagonal.smallest_observed, diagonal.few, diagonal.doubtful) == (1, 20, True)
    warning = diagonal.warning(["sex"], ["age", "job"])
    assert warning is not None
    assert warning.startswith("20 of the 25 combinations of sex, age, job have fewer than 5 records")
    for seen, doubtful in ((4, True), (5, False)):
        assert confidence_set(Joint.from_counts([[90, 90], [seen, 90]])).doubtful is doubtful
    # Seen five times, and yet the margins expect it less often.
    assert confidence_set(Joint.from_counts([[5, 5], [5, 900]])).doubtful


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, float("nan")])
def test_a_significance_out_of_range_is_refused(alpha: float) -> None:
    with pytest.raises(SpecError, match="strictly between 0 and 1"):
        confidence_set(Joint.from_counts([[1, 2]]), alpha)
