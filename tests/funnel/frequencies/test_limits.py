"""Limits: tails of the noise against brute force, and how often true counts are outside of them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from funnel import SpecError
from funnel.frequencies.limits import bounds_of, cell_limit, limits_of, moves_limit, naming_limit, total_limit
from funnel.frequencies.noise import Noise, scale_of

epsilons = st.floats(0.05, 4)
tails = st.floats(1e-9, 0.6)


def distribution(epsilon: float, a: int) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], int]:
    """The distribution of a sum of ``a`` discrete Laplace variables, by repeated convolution, and where 0 is in it."""
    reach = math.ceil(60 / epsilon)
    one = math.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(np.arange(-reach, reach + 1)))
    whole = one
    for _ in range(a - 1):
        whole = np.convolve(whole, one)
    return whole, a * reach


def beyond(epsilon: float, a: int, t: int) -> float:
    """P(|sum| > t)."""
    whole, zero = distribution(epsilon, a)
    return float(whole[zero + t + 1 :].sum() * 2)


@given(epsilons, tails)
@example(1.0, 0.00125)
@example(4.0, 0.6)
def test_the_limit_of_a_cell_is_the_least(epsilon: float, tail: float) -> None:
    t = cell_limit(scale_of(epsilon), Fraction(tail))
    alpha = math.exp(-epsilon)
    assert 2 * alpha ** (t + 1) / (1 + alpha) <= tail * (1 + 1e-9)
    assert t == 0 or 2 * alpha**t / (1 + alpha) > tail * (1 - 1e-9)


@given(epsilons, tails)
@example(1.0, 0.5)
def test_the_limit_for_naming_is_the_least_that_one_record_hardly_reaches(epsilon: float, delta: float) -> None:
    m = naming_limit(scale_of(epsilon), Fraction(delta))
    alpha = math.exp(-epsilon)
    assert alpha ** (m - 1) / (1 + alpha) <= delta * (1 + 1e-9)
    # A single record without noise is below the limit, whatever delta is.
    assert m == 2 or alpha ** (m - 2) / (1 + alpha) > delta * (1 - 1e-9)


def test_intervals_decide_where_doubles_cannot() -> None:
    """A tail a hair above and below that of t: doubles do not tell them apart."""
    from flint import arb, ctx

    ctx.prec = 400
    try:
        alpha = (-arb(1)).exp()
        exact = 2 * alpha**5 / (1 + alpha)
        middle = Fraction(*map(int, (exact.mid() * arb(2) ** 300).floor().unique_fmpz().str().split())) / 2**300
    finally:
        ctx.prec = 53
    assert cell_limit(1.0, middle + Fraction(1, 2**290)) == 4
    assert cell_limit(1.0, middle - Fraction(1, 2**290)) == 5


@settings(max_examples=30)
@given(st.floats(0.3, 4), st.integers(1, 6), tails)
@example(1.0, 2, 0.005)
@example(4.0, 5, 0.6)
def test_the_limit_of_a_total_is_that_of_brute_force(epsilon: float, a: int, tail: float) -> None:
    t = total_limit(scale_of(epsilon), a, Fraction(tail))
    assert beyond(epsilon, a, t) <= tail * (1 + 1e-9)
    assert t == 0 or beyond(epsilon, a, t - 1) > tail * (1 - 1e-5)


@pytest.mark.parametrize(("epsilon", "a"), [(1.0, 300), (0.1, 40), (0.01, 7), (3.0, 5000), (0.002, 3)])
def test_the_limit_of_a_wide_total_is_that_of_fourier(epsilon: float, a: int) -> None:
    """The distribution of the sum by its characteristic function, which shares nothing with ours."""
    size = 1 << 19
    angle = 2 * np.pi * np.arange(size // 2 + 1) / size
    alpha = math.exp(-epsilon)
    characteristic = ((1 - alpha) ** 2 / (1 - 2 * alpha * np.cos(angle) + alpha**2)) ** a
    whole = np.fft.irfft(characteristic, size)
    cumulated = np.cumsum(whole[1 : size // 2][::-1])[::-1] * 2
    for tail in (0.3, 0.01, 1e-6):
        t = total_limit(scale_of(epsilon), a, Fraction(tail))
        # cumulated[t] is P(|sum| > t), up to what Fourier's rounding leaves.
        assert cumulated[t] <= tail + 1e-10
        assert t == 0 or cumulated[t - 1] > tail * (1 - 1e-4) - 1e-10


def test_half_of_beta_is_for_cells_and_half_for_totals() -> None:
    epsilon, beta = 0.5, 0.05
    cells, totals = limits_of((3, 4), Noise(epsilon, 0.0, beta))
    alpha = math.exp(-epsilon)
    assert 12 * 2 * alpha ** (cells + 1) / (1 + alpha) <= beta / 2 < 12 * 2 * alpha**cells / (1 + alpha)
    assert 3 * beyond(epsilon, 4, totals) <= beta / 2 < 3 * beyond(epsilon, 4, totals - 1)


@pytest.mark.parametrize("counts", [1, 26, 500])
def test_beta_is_for_all_counts_of_changes_together(counts: int) -> None:
    epsilon, beta = 0.5, 0.05
    most, alpha = moves_limit(counts, scale_of(epsilon), beta), math.exp(-epsilon)
    assert counts * 2 * alpha ** (most + 1) / (1 + alpha) <= beta < counts * 2 * alpha**most / (1 + alpha)


@settings(max_examples=60)
@given(arrays.arrays(np.int64, (2, 3), elements=st.integers(0, 40)), st.floats(0.2, 3), st.data())
def test_bounds_hold_the_true_counts_where_noise_is_within_its_limits(
    counts: np.ndarray[tuple[int, int], np.dtype[np.int64]], epsilon: float, data: st.DataObject
) -> None:
    noise = Noise(epsilon, 0.0, 0.02)
    cells, totals = limits_of(counts.shape, noise)
    drawn = data.draw(arrays.arrays(np.int64, (2, 3), elements=st.integers(-cells, cells)))
    over = np.abs(drawn.sum(axis=1)) > totals
    drawn[over] = 0
    noisy = counts + drawn
    bounds = bounds_of(noisy, noise)
    assert bounds.hold(counts)
    assert bounds.beta == noise.beta
    # What is published is one of the tables that may be true.
    assert bounds.hold(np.maximum(noisy, 0))
    # And nothing further away from the noisy counts is.
    assert (bounds.upper <= np.maximum(noisy + cells, 0)).all()
    assert (bounds.lower >= noisy - cells).all()


def test_what_is_published_is_within_the_bounds_whatever_was_drawn() -> None:
    noisy = np.array([[-90, -80, 3], [0, 500, -7]])
    bounds = bounds_of(noisy, Noise(1.0, 0.0, 0.01))
    assert bounds.hold(np.maximum(noisy, 0))
    assert bounds.lower.min() >= 0


def test_true_counts_are_outside_as_rarely_as_promised() -> None:
    """Against numpy's own sampler: a seed, so that the test always says the same."""
    random = np.random.default_rng(15)
    epsilon, beta, rounds = 0.5, 0.2, 4000
    counts = np.array([[0, 2, 30, 400], [5, 0, 0, 1], [90, 8, 70, 6]])
    noise = Noise(epsilon, 0.0, beta)
    cells, totals = limits_of(counts.shape, noise)
    p = 1 - math.exp(-epsilon)
    drawn = random.geometric(p, (rounds, 3, 4)) - random.geometric(p, (rounds, 3, 4))
    of_cells = int((np.abs(drawn) > cells).any(axis=(1, 2)).sum())
    of_totals = int((np.abs(drawn.sum(axis=2)) > totals).any(axis=1).sum())
    outside = sum(not bounds_of(counts + one, noise).hold(counts) for one in drawn[:1000])
    assert stats.binom.sf(outside - 1, 1000, beta) > 1e-9
    for missed in (of_cells, of_totals):
        assert stats.binom.sf(missed - 1, rounds, beta / 2) > 1e-9
        # Nor are they wider than they need to be.
        assert stats.binom.cdf(missed, rounds, beta / 4) > 1e-9


def test_noise_too_wide_for_proven_bounds_is_refused() -> None:
    with pytest.raises(SpecError, match="too wide for proven bounds"):
        total_limit(1e7, 1000, Fraction(1, 100))
