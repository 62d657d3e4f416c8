"""Records and noisy counts together: against least squares of both, and how often intervals hold the truth."""

from __future__ import annotations

import numpy as np
import pytest

import funnel
from funnel.errors import SpecError
from funnel.estimation.combined import CombinedFit, NoisyShares, nearest_distribution
from funnel.estimation.estimating import estimate
from funnel.estimation.means import estimate_numbers
from funnel.estimation.rare import RareValues
from funnel.joint import FloatArray
from funnel.protocol import Protocol
from funnel.rounding import integer_weights

COLUMNS = ("x", "z")
VALUES = tuple((x, z) for x in ("u", "v", "never") for z in ("0", "1"))
SHARES = np.array([0.3, 0.2, 0.1, 0.4, 0.0, 0.0])


def protocol_of(channel: FloatArray) -> Protocol:
    inputs = funnel.Alphabet(COLUMNS, VALUES)
    outputs = funnel.Alphabet(COLUMNS, tuple((f"y{k}", "") for k in range(len(channel))))
    weights = integer_weights(channel)
    return Protocol(weights, weights[:, 0], inputs, outputs, "test", "lip:9")


def made(kind: str) -> FloatArray:
    """A channel of which the values that never occur are published as others are, or nearly no record changes."""
    if kind == "nearly nothing changes":
        channel = np.eye(6) * 0.999 + 0.001 / 6
        channel[:, 4:] = channel[:, :1]
        return channel
    strong = np.array([[0.6, 0.3, 0.2, 0.1], [0.2, 0.4, 0.2, 0.2], [0.2, 0.3, 0.6, 0.7]])
    return np.column_stack([strong, strong[:, :2]])


def drawn(channel: FloatArray, n: int, random: np.random.Generator) -> tuple[np.ndarray, NoisyShares, FloatArray]:
    people = np.round(SHARES * n).astype(int)
    counts = random.multinomial(people, channel.T).sum(axis=0)
    # Of two secrets each: discrete Laplace noise with epsilon 0.75.
    noise = (random.geometric(1 - np.exp(-0.75), (4, 6)) * np.array([[1], [-1], [1], [-1]])).sum(axis=0)
    noisy = NoisyShares.of_counts(people + noise, np.full(6, 2), 1 / 0.75, n)
    return counts, noisy, people / n


def test_the_noise_of_a_sum_of_counts_has_the_moments_of_its_distribution() -> None:
    noisy = NoisyShares.of_counts(np.zeros(1), np.array([2]), 1 / 0.75, 1)
    k = np.arange(-200, 201)
    distribution = np.exp(-0.75 * np.abs(k))
    distribution = np.convolve(distribution / distribution.sum(), distribution / distribution.sum())
    k = np.arange(-400, 401)
    variance = distribution @ k**2
    assert noisy.variances == pytest.approx([variance])
    assert noisy.excess == pytest.approx([distribution @ k.astype(float) ** 4 / variance**2 - 3])


def test_it_is_least_squares_of_both() -> None:
    channel = made("strong")
    random = np.random.default_rng(1)
    counts, noisy, _ = drawn(channel, 400, random)
    fit = CombinedFit(RareValues(channel, np.zeros(0, dtype=np.int64), np.zeros(0)), noisy)
    aimed = fit.aimed(counts, np.eye(6), sampling=False)
    # Outputs sum to one, which the third row says of the first two: it is left out, and the sum is observed exactly.
    shares = nearest_distribution(noisy.shares, noisy.variances)
    for _ in range(2):
        spread = (np.diag(channel @ shares) - (channel * shares) @ channel.T)[:2, :2] / 400
        rows = np.vstack([channel[:2], np.eye(6)])
        weights = np.zeros((8, 8))
        weights[:2, :2], weights[2:, 2:] = np.linalg.inv(spread), np.diag(1 / noisy.variances)
        # The sum is one exactly: a condition with a multiplier, and no row of a large weight.
        normal = np.ones((7, 7))
        normal[:6, :6], normal[6, 6] = rows.T @ weights @ rows, 0
        inverse = np.linalg.inv(normal)
        seen = np.concatenate([counts[:2] / 400, noisy.shares])
        expected = (inverse @ np.append(rows.T @ weights @ seen, 1.0))[:6]
        shares = nearest_distribution(expected, np.diag(inverse)[:6])
    assert aimed.unbiased == pytest.approx(expected, abs=1e-6)
    assert aimed.fitted == pytest.approx(shares, abs=1e-6)
    assert aimed.told.all()


@pytest.mark.parametrize("kind", ["strong", "nearly nothing changes"])
def test_margins_are_sums_of_the_crossed_table(kind: str) -> None:
    channel = made(kind)
    protocol = protocol_of(channel)
    counts, noisy, truth = drawn(channel, 20_000, np.random.default_rng(2))
    crossed = estimate(counts, protocol, COLUMNS, beside=noisy)
    margin = estimate(counts, protocol, "x", beside=noisy)
    assert crossed.method == margin.method == "combined"
    assert margin.frequencies == pytest.approx(crossed.frequencies.reshape(3, 2).sum(axis=1), abs=1e-12)
    assert crossed.frequencies[4:].max() < 5e-4
    assert (margin.upper - margin.lower).max() < 0.002
    assert np.abs(margin.frequencies - truth.reshape(3, 2).sum(axis=1)).max() < 0.001
    # The records alone tell neither.
    assert np.isnan(estimate(counts, protocol, "x").errors).any()


@pytest.mark.parametrize("n", [200, 20_000])
@pytest.mark.parametrize("kind", ["strong", "nearly nothing changes"])
def test_intervals_hold_the_truth_as_often_as_they_say(kind: str, n: int) -> None:
    channel = made(kind)
    protocol, random = protocol_of(channel), np.random.default_rng(n)
    held = []
    for _ in range(1000):
        counts, noisy, truth = drawn(channel, n, random)
        found = estimate(counts, protocol, COLUMNS, beside=noisy)
        held.append((found.lower <= truth) & (truth <= found.upper))
    rates = np.mean(held, axis=0)[:4]
    # Of 4,000 that are hardly dependent; where nearly nothing changes, whole records are what intervals end at.
    assert 0.935 <= rates.mean() <= (0.965 if kind == "strong" else 1)
    assert rates.min() >= 0.92


def test_nothing_changed_is_known_exactly() -> None:
    counts, noisy, truth = drawn(np.eye(6), 500, np.random.default_rng(3))
    found = estimate(counts, protocol_of(np.eye(6)), COLUMNS, beside=noisy)
    assert found.frequencies == pytest.approx(truth, abs=1e-9)
    assert (found.upper - found.lower).max() < 1e-6


def test_parts_and_numbers_are_of_the_same_shares() -> None:
    channel = made("strong")
    protocol = protocol_of(channel)
    counts, noisy, truth = drawn(channel, 20_000, np.random.default_rng(4))
    within = estimate(counts, protocol, "z", within="x", beside=noisy)
    assert within.frequencies[:4] == pytest.approx([0.6, 0.4, 0.2, 0.8], abs=0.01)
    means = estimate_numbers(counts, protocol, "z", beside=noisy)
    assert means.means[0] == pytest.approx(truth[1::2].sum(), abs=0.002)


def test_what_does_not_go_together_is_refused() -> None:
    channel = made("strong")
    protocol = protocol_of(channel)
    counts, noisy, _ = drawn(channel, 400, np.random.default_rng(5))
    for changes in ({"bootstrap": 100}, {"at_most": {("never", "0"): 0.1}}):
        with pytest.raises(SpecError):
            estimate(counts, protocol, "x", beside=noisy, **changes)
    with pytest.raises(SpecError, match="variance above zero"):
        NoisyShares(np.ones(2), np.zeros(2), np.ones(2))
    with pytest.raises(SpecError, match="6 values"):
        estimate(counts, protocol, "x", beside=NoisyShares(np.ones(2), np.ones(2), np.ones(2)))
