"""What an observer who knows the truth concludes: a share of all answers is never above 1."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest

from funnel.register import truth


def shares(seed: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """P(s, x) of 24 values, of which some never occur."""
    random = np.random.default_rng(seed)
    values = random.random((2, 24))
    values[:, random.random(24) < 0.4] = 0
    return np.asarray(values / values.sum())


@pytest.mark.parametrize("seed", range(12))
def test_a_share_of_all_answers_is_at_most_1(seed: int) -> None:
    """Every answer is beyond the bound, and what adds up to all of them may be a hair above it in floats."""
    standing = SimpleNamespace(
        nodes=np.array([0]),
        people=np.array([7]),
        moved=np.array([False]),
        priors=np.array([[1, 1]]),
        prior_of=np.array([0]),
        distributions=SimpleNamespace(values=shares(seed)[None]),
        nats=lambda lifts: np.ones((1, lifts.shape[-1])),
    )
    step = SimpleNamespace(
        channels_of=np.zeros_like,
        library=np.eye(24, dtype=np.uint64)[None] << np.uint64(62),
        guarantee=SimpleNamespace(budget=0.5),
    )
    with (
        mock.patch.object(truth, "stand", return_value=standing),
        mock.patch.object(truth, "replace", lambda people, **_: people),
    ):
        found = truth.reader(None, step, None)  # type: ignore[arg-type]
    assert found == truth.Reader(1.0, pytest.approx(1.0), 0, 7)
    assert found.beyond <= 1


def test_such_sums_are_above_1() -> None:
    """Without the limit the test above would see it."""
    said = shares(1).sum(axis=0) / 2
    assert said[said > 0].sum() > said.sum()
