"""What (εl, εu)-ALIP bounds, and where the printed bounds of ALIP fail (METHOD section 6.3)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings

from funnel import Joint, Protocol, measures
from tests.funnel.measures.channels import channels, orders, protocol_of

SLACK = 1e-9


def exact_budgets(joint: Joint, protocol: Protocol) -> tuple[float, float]:
    """(L, ψ): the largest and the smallest lift, so that (−ln ψ, ln L)-ALIP holds and nothing stronger."""
    largest, smallest = measures.max_lift(joint, protocol), measures.min_lift(joint, protocol)
    return max(1.0, float(np.nanmax(largest))), min(1.0, float(np.nanmin(smallest)))


@settings(max_examples=50)
@given(channels())
def test_what_the_two_extreme_lifts_bound(channel: tuple[Joint, Protocol]) -> None:
    """ALIP propositions 1.2, 3.1 and 3.2 as corrected."""
    L, psi = exact_budgets(*channel)
    both = (L - 1) * (1 - psi)
    l1 = 2 * both / (L - psi) if psi < L else 0.0
    assert np.nanmax(measures.l1_lift(*channel)) <= l1 * (1 + SLACK) + SLACK
    assert measures.total_variation(*channel) <= l1 / 2 * (1 + SLACK) + SLACK
    assert np.nanmax(measures.chi_squared_lift(*channel)) <= both * (1 + SLACK) + SLACK
    assert measures.chi_squared_divergence(*channel) <= both * (1 + SLACK) + SLACK
    if 1 - psi <= L - 1:
        # Then the printed bounds hold too.
        assert measures.total_variation(*channel) <= (L - 1) / 2 * (1 + SLACK) + SLACK
        assert np.nanmax(measures.l1_lift(*channel)) <= (L - 1) * (1 + SLACK) + SLACK
        assert np.nanmax(measures.chi_squared_lift(*channel)) <= (L - 1) ** 2 * (1 + SLACK) + SLACK


@settings(max_examples=50)
@given(channels(), orders)
def test_what_the_budgets_bound_on_inverse_lifts(channel: tuple[Joint, Protocol], alpha: float) -> None:
    """ALIP propositions 3.3 and 5.3 as printed, 5.1 and 5.2 as corrected."""
    L, psi = exact_budgets(*channel)
    assert np.nanmax(measures.alpha_lift(*channel, alpha)) <= L * (1 + SLACK)
    inverse = 1 / psi if psi > 0 else math.inf
    assert np.nanmax(measures.alpha_lift_inverse(*channel, alpha)) <= inverse * (1 + SLACK)
    most = max(inverse - 1, 1 - 1 / L)
    assert np.nanmax(measures.l1_lift_inverse(*channel)) <= most * (1 + SLACK) + SLACK
    assert np.nanmax(measures.chi_squared_lift_inverse(*channel)) <= most**2 * (1 + SLACK) + SLACK


@settings(max_examples=50)
@given(channels(), orders)
def test_what_bounded_summaries_say_about_lifts(channel: tuple[Joint, Protocol], alpha: float) -> None:
    """ALIP propositions 4 and 6: a bound on a summary bounds the extreme lift through the prior of its secret."""
    joint, protocol = channel
    lifts = measures.lift(joint, protocol)
    occurs = ~np.isnan(measures.max_lift(joint, protocol))
    seen = joint.p_secret > 0
    lifts, prior = lifts[seen][:, occurs], joint.p_secret[seen]
    highest, lowest = lifts.max(axis=0), lifts.min(axis=0)
    at_top, at_bottom = prior[lifts.argmax(axis=0)], prior[lifts.argmin(axis=0)]

    def summary(measure: object, *order: float) -> np.ndarray:
        return np.asarray(measure(joint, protocol, *order)[occurs])  # type: ignore[operator]

    assert (highest <= (summary(measures.l1_lift) / at_top + 1) * (1 + SLACK)).all()
    assert (highest <= (np.sqrt(summary(measures.chi_squared_lift) / at_top) + 1) * (1 + SLACK)).all()
    assert (highest * at_top ** (1 / alpha) <= summary(measures.alpha_lift, alpha) * (1 + SLACK)).all()
    inverse = np.divide(1.0, lowest, out=np.full(lowest.shape, np.inf), where=lowest > 0)
    assert (inverse <= (summary(measures.l1_lift_inverse) / at_bottom + 1) * (1 + SLACK)).all()
    assert (inverse <= (np.sqrt(summary(measures.chi_squared_lift_inverse) / at_bottom) + 1) * (1 + SLACK)).all()
    shown = summary(measures.alpha_lift_inverse, alpha)
    finite = np.isfinite(inverse)
    assert (np.isinf(shown) == ~finite).all()
    weight = at_bottom[finite] ** (1 / alpha)
    assert (inverse[finite] * weight <= shown[finite] * (1 + SLACK)).all()


def test_the_printed_bounds_of_propositions_1_and_3_fail_where_lifts_may_fall_further_than_rise() -> None:
    """A rare secret excluded: lifts rise to 10/9 only, but one falls to 0."""
    joint = Joint.from_counts([[9, 81], [0, 10]])
    protocol = protocol_of(joint, np.eye(2))
    L, psi = exact_budgets(joint, protocol)
    assert (L, psi) == (pytest.approx(10 / 9), 0)
    # The first output: 0.9·(1/9)² + 0.1·1² against the printed (L − 1)² = 1/81, and 0.2 against L − 1 = 1/9.
    assert measures.chi_squared_lift(joint, protocol)[0] == pytest.approx(1 / 9)
    assert measures.l1_lift(joint, protocol)[0] == pytest.approx(0.2)
    assert measures.chi_squared_lift(joint, protocol)[0] > 8 * (L - 1) ** 2
    assert measures.l1_lift(joint, protocol)[0] > 1.7 * (L - 1)


def test_the_printed_bounds_of_proposition_1_fail_on_average() -> None:
    """Four outputs, each of which excludes one of four secrets."""
    joint = Joint.from_counts(1 - np.eye(4, dtype=int))
    protocol = protocol_of(joint, np.eye(4))
    L, psi = exact_budgets(joint, protocol)
    assert (L, psi) == (pytest.approx(4 / 3), 0)
    assert measures.total_variation(joint, protocol) == pytest.approx(1 / 4) != pytest.approx((L - 1) / 2)
    assert measures.total_variation(joint, protocol) > (L - 1) / 2
    assert measures.chi_squared_divergence(joint, protocol) == pytest.approx(1 / 3)
    assert measures.chi_squared_divergence(joint, protocol) > (L - 1) ** 2


def test_the_printed_bounds_of_proposition_5_fail_where_lifts_may_rise_further_than_fall() -> None:
    """One output doubles the belief in a rare secret, which hardly lowers the belief in the other."""
    joint = Joint.from_counts([[98, 9802], [2, 98]])
    protocol = protocol_of(joint, np.eye(2))
    L, psi = exact_budgets(joint, protocol)
    assert (L, psi) == (pytest.approx(2), pytest.approx(98 / 99))
    printed = 1 / psi - 1
    assert measures.l1_lift_inverse(joint, protocol)[0] == pytest.approx(0.99 / 98 + 0.01 / 2)
    assert measures.l1_lift_inverse(joint, protocol)[0] > 1.4 * printed
    assert measures.chi_squared_lift_inverse(joint, protocol)[0] > 20 * printed**2
