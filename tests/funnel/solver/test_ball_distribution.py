"""Distributions behind half-spaces over the χ² set: in their balls, in exact fractions, and nearly the worst."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import funnel
from funnel import Joint
from funnel.guarantees import rldp
from funnel.guarantees.chi2_ball import extreme_distribution, worst_distribution
from funnel.guarantees.worst_case import Neighbourhood


def spread(counts: list[int], distribution: np.ndarray) -> Fraction:
    """Σ P̂²/R, of the distribution that doubles are in proportion to."""
    parts = [Fraction(float(part)) for part in distribution]
    total, records = sum(parts), sum(counts)
    seen = [(Fraction(count, records), part / total) for count, part in zip(counts, parts, strict=True) if count]
    return sum((estimate**2 / part for estimate, part in seen), Fraction(0))


def test_the_distribution_is_in_the_ball_whatever_rounding_did() -> None:
    random = np.random.default_rng(0)
    outside = 0
    for trial in range(200):
        cells = int(random.integers(2, 7))
        counts = random.integers(0 if trial % 3 == 0 else 1, 10 ** int(random.integers(1, 7)), size=cells)
        counts[0] += 1
        distribution, row = counts / counts.sum(), random.random(cells)
        radius = 10.0 ** random.uniform(-9, 1)
        divergence = 1 + radius
        found = worst_distribution(row, distribution, divergence)
        assert (found >= 0).all()
        assert spread(counts.tolist(), found) <= Fraction(divergence)
        # It is drawn in by what rounding may have done and no more, which for the smallest balls is a part of them.
        assert (
            float(row @ extreme_distribution(row, distribution, divergence) - row @ found)
            <= 1e-11 / np.sqrt(radius) + 1e-12
        )
        outside += spread(counts.tolist(), extreme_distribution(row, distribution, divergence)) > Fraction(divergence)
    # That distribution itself would cut off what the guarantee allows.
    assert outside > 50


def test_a_ball_of_no_size_is_the_estimate() -> None:
    distribution = np.array([0.2, 0.3, 0.5])
    assert worst_distribution(np.array([1.0, 0.0, 0.5]), distribution, 1.0).tolist() == distribution.tolist()


def test_every_cut_is_of_distributions_that_are_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two secrets at once: Σ_s P̂_s sqrt(Σ P̂²/R_s) <= sqrt(1 + B), all others being as estimated."""
    joint = Joint.from_counts([[200, 31, 5], [40, 150, 60], [9, 70, 300]])
    made: list[tuple[np.ndarray, np.ndarray]] = []

    def listened(row: np.ndarray, distribution: np.ndarray, divergence: float) -> np.ndarray:
        found = worst_distribution(row, distribution, divergence)
        made.append((distribution, found))
        return found

    monkeypatch.setattr(rldp, "worst_distribution", listened)
    guarantee = funnel.RLDP(0.8, set="chi2")
    funnel.optimal(joint, guarantee, gap=1e-2, time_limit=1)
    near: Neighbourhood = guarantee.neighbourhood(joint)
    assert len(made) > 12
    for pair in zip(made[::2], made[1::2], strict=True):
        used, secrets = 0.0, []
        for estimate, distribution in pair:
            (secret,) = np.flatnonzero((near.distribution == estimate).all(axis=1))
            secrets.append(secret)
            root = float(spread(joint.counts[secret].tolist(), distribution)) ** 0.5
            used += (root - 1) * float(near.prior[secret]) / near.deviation
        assert secrets[0] != secrets[1]
        # What is left is far more than the rounding of this sum.
        assert used <= 1 - 1e-12
