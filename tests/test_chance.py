"""The noise that all other tests have: of the law of OpenDP's, which still vouches for it, the same in every run."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from funnel import EntropyError
from funnel.frequencies.noise import draw_noise
from tests import chance


def test_a_test_has_noise_of_its_own_and_the_same_in_every_run() -> None:
    with chance.same_noise():
        found = []
        for test in ("one", "one", "another"):
            chance.begin(test)
            found.append([draw_noise(50, epsilon, 2).tolist() for epsilon in (0.3, 0.3)])
    assert found[0] == found[1] != found[2]
    # Within a test no noise is that of before.
    assert found[0][0] != found[0][1]


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 3.7])
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_it_is_of_the_law_of_opendp(epsilon: float, sensitivity: int) -> None:
    drawn, rate = chance.noise_of(5)(30_000, epsilon, sensitivity), epsilon / sensitivity
    for k in range(-4, 5):
        mass = math.tanh(rate / 2) * math.exp(-rate * abs(k))
        assert stats.binomtest(int(np.sum(drawn == k)), len(drawn), mass).pvalue > 1e-6
    beyond = math.exp(-8 * rate) / (1 + math.exp(-rate))
    assert stats.binomtest(int(np.sum(drawn >= 8)), len(drawn), beyond).pvalue > 1e-6


def test_opendp_still_says_what_it_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funnel.frequencies.noise.scale_of", lambda *_: math.nextafter(1, 0))
    with chance.same_noise(), pytest.raises(EntropyError, match="vouches for"):
        draw_noise(2, 1.0)


def test_a_test_of_opendp_has_its_noise() -> None:
    with chance.same_noise(), chance.by_opendp():
        found = []
        for _ in range(2):
            chance.begin("the same")
            found.append(draw_noise(200, 0.1).tolist())
    # Equal by chance once in 2^200 or so.
    assert found[0] != found[1]
