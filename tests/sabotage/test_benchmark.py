"""The benchmark of the gate: its bounds are those of tables, honest releases pass it, and large sabotages do not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.gate import SHAPES, TARGET, Sample, Shape, Source, above_uniform, alarms, at_least, at_most, smallest


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if "large" not in shape.name], ids=lambda one: one.name)
def test_honest_releases_are_not_refused(shape: Shape, tmp_path: Path) -> None:
    done = list(alarms(Source(shape, tmp_path), [], 2))
    assert [row["refused"] for row in done] == [[], []]
    assert all(0 < p <= 1 for row in done for p in row["p"].values())
    assert ("order" in done[0]["p"]) is shape.shuffled
    # What was done is not done again.
    assert list(alarms(Source(shape, tmp_path), done, 2)) == []


def test_exact_bounds_on_probabilities() -> None:
    # Of no events in n trials the bound solves (1 - p)^n = 1 - confidence.
    assert (1 - at_most(0, 300)) ** 300 == pytest.approx(0.01)
    assert at_least(300, 300) ** 300 == pytest.approx(0.01)
    assert at_most(5, 5) == 1
    assert at_least(0, 5) == 0
    assert at_least(290, 300) < 290 / 300 < at_most(290, 300)


def test_p_values_that_are_too_small_are_above_the_uniform_distribution() -> None:
    uniform = (np.arange(1000) + 0.5) / 1000
    excess, allowed = above_uniform(uniform)
    assert excess < allowed
    assert above_uniform(np.sqrt(uniform))[0] < allowed
    assert above_uniform(uniform**2)[0] > allowed


def test_large_sabotages_are_caught_and_none_is_not() -> None:
    sample, rng = Sample(), np.random.default_rng(5)
    for caught in (sample.unsanitised, sample.coupled, sample.in_place):
        assert not caught(0.0, rng)
        assert caught(1.0, rng)
    found = smallest(lambda share, _: share > 0.01, 1000)
    assert 0.01 < found["share"] < 0.0111
    assert found["least"] >= TARGET
