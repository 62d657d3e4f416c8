"""The noise that all other tests have: of the same law, the same in every run."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from funnel.frequencies.noise import draw_noise
from funnel.release import secret
from tests import chance


def test_a_test_has_noise_of_its_own_and_the_same_in_every_run() -> None:
    with chance.same_noise():
        found = []
        for test in ("one", "one", "another"):
            chance.begin(test)
            found.append([*[draw_noise(50, epsilon, 2).tolist() for epsilon in (0.3, 0.3)], secret.fresh_text()])
    assert found[0] == found[1] != found[2]
    # Within a test no noise is that of before.
    assert found[0][0] != found[0][1]


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 3.7])
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_noise_of_a_seed_is_of_the_law(epsilon: float, sensitivity: int) -> None:
    drawn, rate = chance.noise_of(5)(30_000, epsilon, sensitivity), epsilon / sensitivity
    for k in range(-4, 5):
        mass = math.tanh(rate / 2) * math.exp(-rate * abs(k))
        assert stats.binomtest(int(np.sum(drawn == k)), len(drawn), mass).pvalue > 1e-6
    beyond = math.exp(-8 * rate) / (1 + math.exp(-rate))
    assert stats.binomtest(int(np.sum(drawn >= 8)), len(drawn), beyond).pvalue > 1e-6
