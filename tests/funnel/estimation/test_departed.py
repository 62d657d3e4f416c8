"""Departed: estimates from outputs that are more common than their channel gives them, by what is known of that."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from funnel import LIP, Alphabet, Joint, Protocol, SpecError, estimate, fit
from funnel.estimation.combined import NoisyShares
from funnel.estimation.departed_shares import DepartedShares
from funnel.estimation.fit import Method
from funnel.estimation.means import estimate_numbers
from funnel.estimation.regression import LinearSource
from funnel.estimation.weighted import estimate_weighted

N = 20_000
INPUTS = Alphabet(("age", "size"), (("young", "1"), ("young", "2"), ("old", "1"), ("old", "2")))
JOINT = Joint.from_counts([[3_000, 2_000, 1_000, 4_000], [2_000, 3_000, 4_000, 1_000]], inputs=INPUTS)
P = JOINT.counts.sum(axis=0) / JOINT.n
# In records: what is published besides what the channel gives.
DEPARTURES = np.array([400.0, -300.0, 150.0, -250.0])
VARIANCE = 40.0**2


@cache
def protocol() -> Protocol:
    return fit("grr", JOINT, LIP(1.0))


def published(random: np.random.Generator) -> tuple[np.ndarray, DepartedShares]:
    """Counts of one release, and what it says of departures."""
    people = np.rint(P * N).astype(np.int64)
    counts = sum(random.multinomial(n, column) for n, column in zip(people, protocol().matrix.T, strict=True))
    told = DepartedShares.of_counts(DEPARTURES + random.normal(0, 40, 4), VARIANCE, N)
    return counts + DEPARTURES.astype(np.int64), told


@pytest.mark.parametrize("method", ["em", "inverse", "combined"])
def test_shares_are_right_on_average_and_intervals_hold_them(method: str) -> None:
    random, held, off, errors, without = np.random.default_rng(1), [], [], [], []
    for _ in range(144):
        counts, departed = published(random)
        noisy = NoisyShares(P + random.normal(0, 0.01, 4), np.full(4, 1e-4), np.zeros(4))
        beside = noisy if method == "combined" else None
        how: Method = "inverse" if method == "inverse" else "em"
        one = estimate(counts, protocol(), "age", method=how, beside=beside, departed=departed)
        off.append(one.frequencies[0] - 0.5)
        errors.append(one.errors[0])
        held.append(one.lower[0] <= 0.5 <= one.upper[0])
        without.append(estimate(counts, protocol(), "age", method=how, beside=beside).frequencies[0] - 0.5)
    deviation = float(np.std(off))
    # Seeded; so many draws know a deviation to 6 %, and a share of 95 % to 1.8 points.
    assert abs(np.mean(off)) < 4 * deviation / 12
    assert np.mean(errors) == pytest.approx(deviation, rel=0.2)
    assert 0.88 < np.mean(held) < 1.0
    assert abs(np.mean(without)) > 4 * deviation / 12


def _numbers(counts: np.ndarray, departed: DepartedShares | None) -> float:
    return float(estimate_numbers(counts, protocol(), "size", departed=departed).means[0])


def _weighted(counts: np.ndarray, departed: DepartedShares | None) -> float:
    classes = {"1": (1.0, 1.0, 1.0), "2": (3.0, 3.0, 3.0)}
    return float(estimate_weighted(counts, protocol(), "size", classes, "age", departed=departed).frequencies[0])


def _source(counts: np.ndarray, departed: DepartedShares | None) -> float:
    return float(LinearSource.of_outputs(counts, protocol(), False, departed=departed).unbiased[0])


@pytest.mark.parametrize("figure", [_numbers, _weighted, _source])
def test_every_estimate_takes_departures_off(figure: Callable[[np.ndarray, DepartedShares | None], float]) -> None:
    exact = np.rint(protocol().matrix @ P * 10**9).astype(np.int64)
    known = DepartedShares.of_counts(DEPARTURES, 1.0, N)
    departing = exact + np.rint(DEPARTURES / N * 10**9).astype(np.int64)
    assert figure(departing, known) == pytest.approx(figure(exact, None), abs=1e-6)
    assert abs(figure(departing, None) - figure(exact, None)) > 1e-3


def test_what_cannot_be_told_has_room_for_departures() -> None:
    weights = np.array([[1.0, 0.5, 0.5], [0.0, 0.5, 0.5]]) * 2**63
    distribution = Joint.from_counts([[10, 10, 10]])
    outputs, alike = Alphabet(("y",), (("a",), ("b",))), np.full(2, 2**62, dtype=np.uint64)
    two = Protocol(weights.astype(np.uint64), alike, distribution.inputs, outputs, "grr", "lip:1.0")
    counts = np.array([7_000, 3_000])
    known = DepartedShares.of_counts(np.array([1_000.0, -1_000.0]), 1e4, 10_000)
    plain, found = estimate(counts, two), estimate(np.array([8_000, 2_000]), two, departed=known)
    assert np.isnan(plain.errors).sum() == np.isnan(found.errors).sum() == 2
    assert (found.lower <= plain.lower + 1e-9).all()
    assert (found.upper >= plain.upper - 1e-9).all()
    assert found.upper[1] < 1


def test_departures_of_other_outputs_and_of_groups_are_refused() -> None:
    counts, departed = published(np.random.default_rng(2))
    with pytest.raises(SpecError, match="departures are of 4 published values"):
        estimate(counts, protocol(), departed=DepartedShares.of_counts(np.zeros(3), 1.0, N))
    with pytest.raises(SpecError, match="departures are of all these records"):
        estimate(counts, protocol(), bootstrap=100, departed=departed)
    with pytest.raises(SpecError, match="a share for every output"):
        DepartedShares(np.zeros(3), np.zeros((2, 2)))
