"""ALIP's bounds on summaries of lifts, as printed and as corrected (METHOD section 6.3); summaries are written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel import Joint, Protocol, measures
from funnel.joint import FloatArray
from tests.funnel.measures.channels import channels, full_distribution, protocol_of

orders = st.one_of(st.sampled_from([0.5, 2.0, 10.0]), st.floats(1e-3, 100))


def lifts_that_occur(joint: Joint, protocol: Protocol) -> FloatArray:
    """Lifts of the secrets and outputs that occur."""
    lifts = measures.lift(joint, protocol)[joint.p_secret > 0]
    return np.asarray(lifts[:, ~np.isnan(lifts[0])])


def inverse_of(lifts: FloatArray) -> FloatArray:
    return np.divide(1.0, lifts, out=np.full(lifts.shape, np.inf), where=lifts > 0)


def l1(joint: Joint, lifts: FloatArray) -> FloatArray:
    """Σ_s p_s |l − 1| per output (ALIP (31), (34))."""
    return np.asarray(joint.p_secret[joint.p_secret > 0] @ np.abs(lifts - 1))


def chi_squared(joint: Joint, lifts: FloatArray) -> FloatArray:
    """Σ_s p_s (l − 1)² per output (ALIP (32), (35))."""
    return np.asarray(joint.p_secret[joint.p_secret > 0] @ (lifts - 1) ** 2)


def power_mean(joint: Joint, lifts: FloatArray, alpha: float) -> FloatArray:
    """(Σ_s p_s l^α)^(1/α) per output (ALIP (33), (36)), divided by the largest first, so that powers stay in range."""
    means = np.full(lifts.shape[1], np.inf)
    finite = np.isfinite(lifts).all(axis=0)
    top = lifts[:, finite].max(axis=0)
    means[finite] = top * (joint.p_secret[joint.p_secret > 0] @ (lifts[:, finite] / top) ** alpha) ** (1 / alpha)
    return means


def on_average(joint: Joint, protocol: Protocol, per_output: FloatArray) -> float:
    marginal = full_distribution(joint, protocol).sum(axis=(0, 1))
    return float(marginal[marginal > 0] @ per_output)


SLACK = 1e-9


def exact_budgets(joint: Joint, protocol: Protocol) -> tuple[float, float]:
    """(L, ψ): the largest and the smallest lift, so that (−ln ψ, ln L)-ALIP holds and nothing stronger."""
    lifts = lifts_that_occur(joint, protocol)
    return max(1.0, float(lifts.max())), min(1.0, float(lifts.min()))


@settings(max_examples=50)
@given(channels())
def test_what_the_two_extreme_lifts_bound(channel: tuple[Joint, Protocol]) -> None:
    """ALIP propositions 1.2, 3.1 and 3.2 as corrected."""
    L, psi = exact_budgets(*channel)
    both = (L - 1) * (1 - psi)
    most = 2 * both / (L - psi) if psi < L else 0.0
    joint, lifts = channel[0], lifts_that_occur(*channel)
    variation, divergence = l1(joint, lifts), chi_squared(joint, lifts)
    assert variation.max() <= most * (1 + SLACK) + SLACK
    assert on_average(*channel, variation) <= most * (1 + SLACK) + SLACK
    assert divergence.max() <= both * (1 + SLACK) + SLACK
    assert on_average(*channel, divergence) <= both * (1 + SLACK) + SLACK
    if 1 - psi <= L - 1:
        # Then the printed bounds hold too.
        assert variation.max() <= (L - 1) * (1 + SLACK) + SLACK
        assert divergence.max() <= (L - 1) ** 2 * (1 + SLACK) + SLACK


@settings(max_examples=50)
@given(channels(), orders)
def test_what_the_budgets_bound_on_inverse_lifts(channel: tuple[Joint, Protocol], alpha: float) -> None:
    """ALIP propositions 3.3 and 5.3 as printed, 5.1 and 5.2 as corrected."""
    L, psi = exact_budgets(*channel)
    joint, lifts = channel[0], lifts_that_occur(*channel)
    inverse = inverse_of(lifts)
    assert power_mean(joint, lifts, alpha).max() <= L * (1 + SLACK)
    largest = 1 / psi if psi > 0 else math.inf
    assert power_mean(joint, inverse, alpha).max() <= largest * (1 + SLACK)
    most = max(largest - 1, 1 - 1 / L)
    assert l1(joint, inverse).max() <= most * (1 + SLACK) + SLACK
    assert chi_squared(joint, inverse).max() <= most**2 * (1 + SLACK) + SLACK


@settings(max_examples=50)
@given(channels(), orders)
def test_what_bounded_summaries_say_about_lifts(channel: tuple[Joint, Protocol], alpha: float) -> None:
    """ALIP propositions 4 and 6: a bound on a summary bounds the extreme lift through the prior of its secret."""
    joint, protocol = channel
    lifts, prior = lifts_that_occur(joint, protocol), joint.p_secret[joint.p_secret > 0]
    highest = lifts.max(axis=0)
    at_top, at_bottom = prior[lifts.argmax(axis=0)], prior[lifts.argmin(axis=0)]
    assert (highest <= (l1(joint, lifts) / at_top + 1) * (1 + SLACK)).all()
    assert (highest <= (np.sqrt(chi_squared(joint, lifts) / at_top) + 1) * (1 + SLACK)).all()
    assert (highest * at_top ** (1 / alpha) <= power_mean(joint, lifts, alpha) * (1 + SLACK)).all()
    inverse = inverse_of(lifts)
    largest = inverse.max(axis=0)
    assert (largest <= (l1(joint, inverse) / at_bottom + 1) * (1 + SLACK)).all()
    assert (largest <= (np.sqrt(chi_squared(joint, inverse) / at_bottom) + 1) * (1 + SLACK)).all()
    shown, finite = power_mean(joint, inverse, alpha), np.isfinite(largest)
    assert (np.isinf(shown) == ~finite).all()
    assert (largest[finite] * at_bottom[finite] ** (1 / alpha) <= shown[finite] * (1 + SLACK)).all()


def test_the_printed_bounds_of_propositions_1_and_3_fail_where_lifts_may_fall_further_than_rise() -> None:
    """A rare secret excluded: lifts rise to 10/9 only, but one falls to 0."""
    joint = Joint.from_counts([[9, 81], [0, 10]])
    protocol = protocol_of(joint, np.eye(2))
    L, psi = exact_budgets(joint, protocol)
    assert (L, psi) == (pytest.approx(10 / 9), 0)
    lifts = lifts_that_occur(joint, protocol)
    # The first output: 0.9·(1/9)² + 0.1·1² against the printed (L − 1)² = 1/81, and 0.2 against L − 1 = 1/9.
    assert chi_squared(joint, lifts)[0] == pytest.approx(1 / 9)
    assert l1(joint, lifts)[0] == pytest.approx(0.2)
    assert chi_squared(joint, lifts)[0] > 8 * (L - 1) ** 2
    assert l1(joint, lifts)[0] > 1.7 * (L - 1)


def test_the_printed_bounds_of_proposition_1_fail_on_average() -> None:
    """Four outputs, each of which excludes one of four secrets."""
    joint = Joint.from_counts(1 - np.eye(4, dtype=int))
    protocol = protocol_of(joint, np.eye(4))
    L, psi = exact_budgets(joint, protocol)
    assert (L, psi) == (pytest.approx(4 / 3), 0)
    lifts = lifts_that_occur(joint, protocol)
    assert on_average(joint, protocol, l1(joint, lifts)) / 2 == pytest.approx(1 / 4) != pytest.approx((L - 1) / 2)
    assert on_average(joint, protocol, l1(joint, lifts)) / 2 > (L - 1) / 2
    assert on_average(joint, protocol, chi_squared(joint, lifts)) == pytest.approx(1 / 3)
    assert on_average(joint, protocol, chi_squared(joint, lifts)) > (L - 1) ** 2


def test_the_printed_bounds_of_proposition_5_fail_where_lifts_may_rise_further_than_fall() -> None:
    """One output doubles the belief in a rare secret, which hardly lowers the belief in the other."""
    joint = Joint.from_counts([[98, 9802], [2, 98]])
    protocol = protocol_of(joint, np.eye(2))
    L, psi = exact_budgets(joint, protocol)
    assert (L, psi) == (pytest.approx(2), pytest.approx(98 / 99))
    printed, inverse = 1 / psi - 1, inverse_of(lifts_that_occur(joint, protocol))
    assert l1(joint, inverse)[0] == pytest.approx(0.99 / 98 + 0.01 / 2)
    assert l1(joint, inverse)[0] > 1.4 * printed
    assert chi_squared(joint, inverse)[0] > 20 * printed**2
