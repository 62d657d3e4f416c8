"""Lifts over the confidence set: none is above the bound, a law attains it, and it tends to the plain level."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import funnel
from funnel import ALIP, LDP, LIP, RLDP, DataError, Joint, measures
from funnel.guarantees.robust_lift import worst_lift_over
from tests.funnel.guarantees.test_robust import around, distance, random_case


def lifts(rows: np.ndarray, law: np.ndarray, upward: bool) -> np.ndarray:
    both = np.einsum("bsu,su->bs", rows, law)
    ratio = both / law.sum(axis=1) / both.sum(axis=1, keepdims=True)
    return ratio if upward else 1 / ratio


@settings(max_examples=8, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.booleans(), st.booleans())
def test_no_law_in_the_set_exceeds_the_bound(seed: int, upward: bool, reads_secret: bool) -> None:
    counts, rows = random_case(seed)
    if not reads_secret:
        rows = np.broadcast_to(rows[:, :1], rows.shape).copy()
    near, estimate = around(counts), counts / counts.sum()
    worst = worst_lift_over(rows, near, upward, reads_secret)
    assert worst.law is not None
    assert worst.law.sum() == pytest.approx(1)
    assert distance(worst.law, estimate) <= near.radius * (1 + 1e-9)
    assert lifts(rows, worst.law, upward)[worst.output, worst.secret] == pytest.approx(worst.attained)
    # Mostly 1e-7; the bound says more where cells that were never seen leave the multipliers undetermined.
    assert worst.attained <= worst.bound <= worst.attained * 1.05
    random = np.random.default_rng(seed)
    for k in range(60):
        direction = random.dirichlet(np.full(counts.size, 0.3 if k % 2 else 1.0)).reshape(counts.shape)
        low, high = 0.0, 1.0
        for _ in range(30):
            middle = (low + high) / 2
            inside = distance((1 - middle) * estimate + middle * direction, estimate) <= near.radius
            low, high = (middle, high) if inside else (low, middle)
        law = (1 - low) * estimate + low * direction
        assert lifts(rows, law, upward).max() <= worst.bound


@pytest.mark.parametrize("upward", [True, False])
@pytest.mark.parametrize("seed", [0, 3])
def test_a_generic_solver_finds_the_same(seed: int, upward: bool) -> None:
    """Multi-start SLSQP over whole laws, in logarithms so that they stay positive."""
    counts, rows = random_case(seed)
    near, estimate = around(counts), counts / counts.sum()
    worst = worst_lift_over(rows, near, upward, True)
    random = np.random.default_rng(seed)

    def law(logs: np.ndarray) -> np.ndarray:
        weights = np.exp(logs - logs.max()).reshape(counts.shape)
        return weights / weights.sum()

    best = 0.0
    for _ in range(4):
        found = minimize(
            lambda logs: -math.log(lifts(rows, law(logs), upward)[worst.output, worst.secret]),
            np.log(np.maximum(estimate, 1e-4) * np.exp(0.1 * random.normal(size=counts.shape))).ravel(),
            method="SLSQP",
            constraints={"type": "ineq", "fun": lambda logs: near.radius - distance(law(logs), estimate)},
            options={"maxiter": 300, "ftol": 1e-14},
        )
        if distance(law(found.x), estimate) <= near.radius * (1 + 1e-7):
            best = max(best, math.exp(-found.fun))
    assert best <= worst.bound * (1 + 1e-7)
    assert best == pytest.approx(worst.attained, rel=1e-6)


@pytest.mark.parametrize("name", ["grr", "conditional-reporting"])
def test_robust_levels_are_above_plain_ones_and_tend_to_them(name: str) -> None:
    base = np.array([[5, 3, 2], [2, 3, 5]])
    protocol = funnel.fit(name, Joint.from_counts(base), LIP(0.5))
    levels = []
    for factor in (10, 1000, 1_000_000):
        joint = Joint.from_counts(base * factor)
        found = measures.robust_lifts(joint, protocol)
        assert found.level >= found.attained
        assert found.level > LIP(1.0).level(joint, protocol).value
        # A lift compares with the average record, which is no further away than the other secret.
        assert found.level <= RLDP(1.0, set="chi2").level(joint, protocol).value + 1e-9
        levels.append(found.level)
    assert levels == sorted(levels, reverse=True)
    assert levels[-1] == pytest.approx(0.5, abs=2e-3)


def test_both_sides_count_by_their_budgets() -> None:
    joint = Joint.from_counts([[50, 30], [20, 60]])
    protocol = funnel.fit("grr", joint, LIP(0.5))
    found = measures.robust_lifts(joint, protocol)
    up, down = math.log(found.upward.bound), math.log(found.downward.bound)
    assert found.level == pytest.approx(max(up, down))
    assert found.level_of(ALIP(1.0, 0.5)) == pytest.approx(max(down, 2 * up))
    assert found.level_of(ALIP(math.inf, 0.5)) == pytest.approx(up)
    assert found.level_of(LDP(1.0)) is None


def test_an_output_that_excludes_a_secret_has_no_level() -> None:
    joint = Joint.from_counts([[50, 50], [100, 0]])
    protocol = funnel.fit("identity", Joint.from_counts([[50, 50], [50, 50]]), LIP(1.0))
    found = measures.robust_lifts(joint, protocol)
    assert math.isinf(found.level)
    assert found.downward.law is None
    # P(y|s)/P(y) is at most 1/P(s), whatever the law.
    assert math.isfinite(found.upward.bound)
    with pytest.raises(DataError, match="no record"):
        measures.robust_lifts(Joint.from_counts([[3, 1], [0, 0]]), protocol)


def test_channels_too_large_to_search_get_the_bound_on_ratios() -> None:
    joint = Joint.from_counts(np.random.default_rng(0).integers(20, 400, size=(15, 60)))
    protocol = funnel.fit("grr", joint, LIP(1.0))
    found = measures.robust_lifts(joint, protocol)
    assert found.level == pytest.approx(RLDP(1.0, set="chi2").level(joint, protocol).value, rel=1e-9)
    assert LIP(1.0).level(joint, protocol).value <= found.attained + 1e-12
    assert found.attained <= found.level


@pytest.mark.parametrize("upward", [True, False])
def test_a_search_that_ends_early_proves_less_and_nothing_false(upward: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    counts, rows = random_case(3)
    near = around(counts)
    searched = worst_lift_over(rows, near, upward, True)
    monkeypatch.setattr("funnel.guarantees.robust_lift._ROUNDS", 0)
    stopped = worst_lift_over(rows, near, upward, True)
    assert stopped.law is None
    assert stopped.attained <= searched.attained * (1 + 1e-9)
    # A lift is at most 1/P(s); how small one is, only the search says.
    assert searched.bound <= stopped.bound
    assert math.isinf(stopped.bound) is not upward


@pytest.mark.parametrize("upward", [True, False])
def test_where_nothing_is_told_the_estimate_itself_attains_the_worst(upward: bool) -> None:
    counts, rows = random_case(1)
    near = around(counts)
    worst = worst_lift_over(np.full_like(rows, 1 / len(rows)), near, upward, True)
    assert worst.attained == pytest.approx(1, abs=1e-12)
    assert 1 <= worst.bound <= 1 + 1e-6
    assert worst.law == pytest.approx(counts / counts.sum())
