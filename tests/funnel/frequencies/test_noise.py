"""Noise: the law of what OpenDP draws, what it vouches for, and what is said where it cannot be had."""

from __future__ import annotations

import builtins
import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from funnel import EntropyError, SpecError
from funnel.frequencies import Noise
from funnel.frequencies.noise import draw_noise, scale_of
from tests import chance

# A test that is right errs less often than this.
FALSE_ALARM = 1e-9
DRAWS = 30_000


def mass(epsilon: float, k: int) -> float:
    """P(Z = k) of the discrete Laplace law."""
    return math.tanh(epsilon / 2) * math.exp(-epsilon * abs(k))


@pytest.fixture(scope="module", autouse=True)
def opendp() -> Iterator[None]:
    """Also where all other tests have the same noise in every run."""
    with chance.by_opendp():
        yield


@pytest.fixture(scope="module", params=[0.25, 0.75, 1.0, 3.7])
def drawn(request: pytest.FixtureRequest) -> tuple[float, Counter[int]]:
    return request.param, Counter(draw_noise(DRAWS, request.param).tolist())


def test_the_law_is_the_discrete_laplace_one(drawn: tuple[float, Counter[int]]) -> None:
    """Every event is binomial, so its tails are known exactly; the events are few, and the union of errors small."""
    epsilon, counts = drawn
    events = [frozenset([k]) for k in range(-4, 5)]
    events += [frozenset(range(first, 400)) for first in (1, 2, 4, 8, 16)]
    events += [frozenset(-k for k in event) for event in events[9:]]
    events += [frozenset(range(-400, 400, 2)), frozenset(range(-399, 400, 4))]
    for event in events:
        p = sum(mass(epsilon, k) for k in event)
        n = sum(counts[k] for k in event)
        tail = min(stats.binom.cdf(n, DRAWS, p), stats.binom.sf(n - 1, DRAWS, p))
        assert tail > FALSE_ALARM / len(events) / 8, (epsilon, sorted(event)[:3], n, p * DRAWS)


def test_one_record_more_changes_no_probability_by_more_than_a_factor_e_to_the_epsilon(
    drawn: tuple[float, Counter[int]],
) -> None:
    """Of two neighbours, counts 0 and 1: given that one of them answered k, which one is a coin within the bound."""
    epsilon, counts = drawn
    neighbour = Counter((1 + draw_noise(DRAWS, epsilon)).tolist())
    most = math.exp(epsilon) / (1 + math.exp(epsilon))
    for k in range(-3, 5):
        both = counts[k] + neighbour[k]
        for one in (counts[k], neighbour[k]):
            assert stats.binom.sf(one - 1, both, most) > FALSE_ALARM / 8 / 16


def test_no_two_draws_are_the_same() -> None:
    # Equal by chance once in 2^200 or so.
    assert draw_noise(200, 0.1).tolist() != draw_noise(200, 0.1).tolist()
    assert draw_noise(0, 1.0).shape == (0,)
    assert draw_noise(3, 1.0).dtype == np.int64


@given(st.floats(1e-3, 50))
@example(0.75)
@example(3.7)
@example(1.0)
def test_the_scale_is_the_smallest_that_costs_at_most_epsilon(epsilon: float) -> None:
    scale = scale_of(epsilon)
    assert 1 / Fraction(scale) <= Fraction(epsilon) < 1 / Fraction(math.nextafter(scale, 0))
    assert Noise(epsilon, 0.0, 0.1).scale == scale


@pytest.mark.parametrize("epsilon", [0.75, 3.7, 0.3, 1 / 3])
def test_the_sampler_vouches_for_this_epsilon(epsilon: float) -> None:
    """1 / epsilon as a double would cost more than epsilon for some of these."""
    assert len(draw_noise(2, epsilon)) == 2


def test_a_sampler_that_does_not_vouch_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "funnel.frequencies.noise.scale_of", lambda epsilon, sensitivity: math.nextafter(1 / epsilon, 0)
    )
    with pytest.raises(EntropyError, match="vouches for"):
        draw_noise(2, 1.0)


def test_a_sampler_that_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funnel.frequencies.noise.scale_of", lambda epsilon, sensitivity: -1.0)
    with pytest.raises(EntropyError, match="could not be drawn: MakeMeasurement"):
        draw_noise(2, 1.0)


def test_without_opendp_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = builtins.__import__

    def refusing(name: str, *rest: Any) -> Any:
        if name.startswith("opendp"):
            raise ImportError(name)
        return plain(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refusing)
    with pytest.raises(SpecError, match=r"pip install 'funnel\[noise\]'"):
        draw_noise(2, 1.0)


@pytest.mark.parametrize(
    "wrong",
    [(0.0, 0.0, 0.1), (math.inf, 0.0, 0.1), (1.0, 1.0, 0.1), (1.0, -0.1, 0.1), (1.0, 0.0, 0.0), (1.0, 0.0, 1.0)],
)
def test_noise_that_makes_no_sense_is_refused(wrong: tuple[float, float, float]) -> None:
    with pytest.raises(SpecError, match="of noise"):
        Noise(*wrong)


@given(st.floats(1e-3, 50), st.integers(1, 5))
def test_what_changes_several_counts_needs_so_many_times_the_noise(epsilon: float, counts: int) -> None:
    scale = scale_of(epsilon, counts)
    assert counts / Fraction(scale) <= Fraction(epsilon) < counts / Fraction(math.nextafter(scale, 0))


def test_the_sampler_vouches_for_all_counts_of_a_record_together() -> None:
    assert np.abs(draw_noise(4000, 1.0, 8)).mean() > 4 * np.abs(draw_noise(4000, 1.0)).mean()
