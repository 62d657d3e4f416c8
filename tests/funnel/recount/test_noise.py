"""Limits of counts under noise, by exact distributions of small tables; and noise that was not drawn as said."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import dlaplace

from funnel.audit.check import FALSE_ALARM
from funnel.recount.noise import cell_limit, limits_of, possible_counts, scale_of, total_limit
from funnel.recount.plausible import plausible_noise

# The share that an audit gives it.
RARE = FALSE_ALARM


@pytest.mark.parametrize("epsilon", [1.0, 0.3, 0.1, 3.0, 1e-3, 0.7000000000000001])
def test_the_scale_costs_no_more_than_epsilon_and_no_smaller_one_would_do(epsilon: float) -> None:
    scale = scale_of(epsilon)
    assert Fraction(scale) * Fraction(epsilon) >= 1
    assert Fraction(math.nextafter(scale, 0.0)) * Fraction(epsilon) < 1


@given(st.floats(0.05, 40), st.fractions(Fraction(1, 10**7), Fraction(1, 3)))
def test_the_limit_of_a_cell_is_the_least(scale: float, tail: Fraction) -> None:
    t = cell_limit(scale, tail)
    with ctx.workprec(200):
        alpha = (-1 / arb(scale)).exp()
        level = arb(tail.numerator) / tail.denominator
        assert 2 * alpha ** (t + 1) / (1 + alpha) <= level
        assert t == 0 or 2 * alpha**t / (1 + alpha) > level


@settings(max_examples=25, deadline=None)
@given(st.floats(0.1, 6), st.integers(1, 7), st.sampled_from([Fraction(1, 4), Fraction(1, 40), Fraction(1, 10**5)]))
def test_the_limit_of_a_total_is_that_of_the_sum_of_its_noise(scale: float, cells: int, tail: Fraction) -> None:
    reach = 260
    one = dlaplace.pmf(np.arange(-reach, reach + 1), 1 / scale)
    distribution = one
    for _ in range(cells - 1):
        distribution = np.convolve(distribution, one)
    middle = len(distribution) // 2
    t = total_limit(scale, cells, tail)
    beyond = [float(distribution[middle + k + 1 :].sum() * 2) for k in (t, t - 1)]
    assert beyond[0] <= float(tail) * (1 + 1e-9)
    assert t == 0 or beyond[1] > float(tail) * (1 - 1e-9)


def test_a_total_by_hypergeometric_functions() -> None:
    # P(Z_1 + ... + Z_a = w) = (1-α)^(2a) α^w C(a+w-1, w) F(a, a+w; w+1; α²).
    scale, cells, tail = 3.0, 16, Fraction(1, 1000)
    t = total_limit(scale, cells, tail)
    with ctx.workprec(200):
        alpha = (-1 / arb(scale)).exp()

        def chance(w: int) -> arb:
            return (
                (1 - alpha) ** (2 * cells)
                * alpha**w
                * math.comb(cells + w - 1, w)
                * (alpha**2).hypgeom_2f1(cells, cells + w, w + 1)
            )

        beyond = [2 * sum((chance(w) for w in range(first, first + 300)), arb(0)) for first in (t + 1, t)]
        assert beyond[0] <= arb(1) / 1000
        assert beyond[1] > arb(1) / 1000


def test_noise_of_a_hundred_thousand_cells_is_bounded_too() -> None:
    # About a normal distribution: 200,000 times the variance of one, and the quantile at 1/4000.
    alpha = math.exp(-1.0)
    deviation = math.sqrt(100_000 * 2 * alpha) / (1 - alpha)
    assert total_limit(1.0, 100_000, Fraction(1, 2000)) == pytest.approx(3.4808 * deviation, rel=2e-3)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.5, 1.0, 4.0]))
def test_published_counts_are_among_the_possible_ones(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 6, size=(3, 4))
    noisy = counts + dlaplace.rvs(1 / scale, size=counts.shape, random_state=rng)
    box = possible_counts(noisy.tolist(), *limits_of(scale, Fraction(1, 100), 3, 4))
    assert box.hold(np.maximum(noisy, 0).tolist())
    reach = cell_limit(scale, Fraction(1, 100) / 24)
    assert np.array_equal(np.array(box.upper), np.maximum(noisy + reach, 0))


def test_the_true_counts_are_possible_as_often_as_is_said() -> None:
    rng = np.random.default_rng(15)
    counts = np.array([[40, 3, 0], [7, 0, 0]])
    drawn = dlaplace.rvs(1.0, size=(2000, 2, 3), random_state=rng)
    limits = limits_of(1.0, Fraction(1, 10), 2, 3)
    inside = sum(possible_counts((counts + z).tolist(), *limits).hold(counts.tolist()) for z in drawn)
    assert 0.9 <= inside / 2000 <= 0.999


def _counts(seed: int, shape: tuple[int, int]) -> list[list[int]]:
    """Counts of some thousand people, many of them small."""
    random = np.random.default_rng(seed)
    counts: list[list[int]] = (
        random.multinomial(4000, random.dirichlet(np.full(shape[0] * shape[1], 0.7))).reshape(shape).tolist()
    )
    return counts


def _in_order(z: np.ndarray, counts: np.ndarray) -> np.ndarray:
    found = np.empty(z.size, dtype=z.dtype)
    found[np.argsort(counts.ravel(), kind="stable")] = np.sort(z.ravel())
    return found.reshape(z.shape)


def _cancelling(z: np.ndarray) -> np.ndarray:
    found = z.ravel().copy()
    found[1::2] = -found[::2]
    return found.reshape(z.shape)


# Of noise z, other noise w, counts n and a scale.
SPOILT: dict[str, Callable[..., np.ndarray]] = {
    "even, so that parity is exact": lambda z, w, n, scale: 2 * (z // 2),
    "up where counts are even": lambda z, w, n, scale: np.where(n % 2 == 0, np.abs(z), -np.abs(z)),
    "sorted by counts": lambda z, w, n, scale: _in_order(z, n),
    "pairs that cancel": lambda z, w, n, scale: _cancelling(z),
    "every second one again": lambda z, w, n, scale: np.repeat(z[:, ::2], 2, axis=1),
    "none where counts are small": lambda z, w, n, scale: np.where(n < np.median(n), 0, z),
    "the smaller of two": lambda z, w, n, scale: np.where(np.abs(w) < np.abs(z), w, z),
    "half the scale": lambda z, w, n, scale: z // 2,
}
# In tables of how many cells each is always seen, at scales of 1 and of 4.
SEEN = [
    ("even, so that parity is exact", 120),
    ("up where counts are even", 320),
    ("sorted by counts", 320),
    ("pairs that cancel", 48),
    ("every second one again", 48),
    ("none where counts are small", 240),
    ("the smaller of two", 480),
    ("half the scale", 480),
]


class TestPlausible:
    """Noise as it was drawn, and as it should not have been."""

    @staticmethod
    def _drawn(seed: int, scale: float = 1.0, shape: tuple[int, int] = (6, 15)) -> np.ndarray:
        return np.asarray(dlaplace.rvs(1 / scale, size=shape, random_state=np.random.default_rng(seed)))

    def test_noise_as_it_is_said_to_be_is_not_refused_more_often_than_is_said(self) -> None:
        found = [plausible_noise(self._drawn(seed).tolist(), 1.0).p_value for seed in range(400)]
        for level in (0.5, 0.1, 0.01):
            assert np.mean(np.array(found) <= level) <= level

    @pytest.mark.parametrize(
        "spoil",
        [
            lambda z: 0 * z,
            lambda z: z // 3,
            lambda z: 4 * z,
            np.abs,
            lambda z: np.maximum(z, 0),
            lambda z: np.broadcast_to(z[:1], z.shape),
            lambda z: z + 400 * (np.arange(z.size).reshape(z.shape) == 7),
            lambda z: np.where(np.arange(z.shape[1]) % 2, 0, z),
            lambda z: np.where(np.arange(z.shape[0])[:, None] == 2, 0, z),
        ],
        ids=["none", "third", "fourfold", "one sign", "no negative", "repeated", "one cell", "half", "one line"],
    )
    def test_other_noise_is(self, spoil: object) -> None:
        # Of a scale at which zeros are rare; a line of 15 without any is then seen too.
        noise = spoil(self._drawn(3, 10.0, (24, 15)))  # type: ignore[operator]
        assert plausible_noise(noise.tolist(), 10.0).p_value < RARE

    def test_noise_does_not_depend_on_counts_and_is_refused_no_more_often_for_it(self) -> None:
        found = [
            plausible_noise(self._drawn(seed).tolist(), 1.0, _counts(seed, (6, 15))).p_value for seed in range(400)
        ]
        for level in (0.5, 0.1, 0.01):
            assert np.mean(np.array(found) <= level) <= level

    @pytest.mark.parametrize("scale", [1.0, 4.0])
    @pytest.mark.parametrize(("how", "cells"), SEEN)
    def test_noise_that_is_a_function_of_counts_or_of_other_noise_is_refused(
        self, how: str, cells: int, scale: float
    ) -> None:
        """In tables of that many cells; the draws are the same in every run, so nothing here is left to chance."""
        shape = (4, cells // 4)
        for seed in range(10):
            counts = _counts(seed, shape)
            z, w = self._drawn(seed, scale, shape), self._drawn(seed + 1000, scale, shape)
            noise = SPOILT[how](z, w, np.array(counts), scale)
            assert plausible_noise(noise.tolist(), scale, counts).p_value < RARE, seed

    def test_noise_of_eight_tenths_of_the_scale_is_seen_in_large_tables_alone(self) -> None:
        seen = [
            plausible_noise(self._drawn(1, 0.8 * 4, (8, cells // 8)).tolist(), 4.0).p_value for cells in (480, 4800)
        ]
        assert seen[0] > RARE > seen[1]

    def test_absent_noise_of_a_small_table_is_as_likely_as_it_is(self) -> None:
        # Six zeros have a probability of .46^6: nobody can tell.
        assert plausible_noise([[0, 0, 0], [0, 0, 0]], 1.0).p_value > 0.01
        assert plausible_noise([[0] * 20] * 3, 1.0).p_value < RARE
