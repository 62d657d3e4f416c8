"""Lifts and their summaries per output: definitions, conventions, limits in α."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel import Joint, Protocol, measures
from tests.funnel.measures.channels import channels, full_law, orders, protocol_of


@settings(max_examples=50)
@given(channels(), orders)
def test_the_definitions(channel: tuple[Joint, Protocol], alpha: float) -> None:
    joint, protocol = channel
    law = full_law(joint, protocol).sum(axis=1)
    law = law[law.sum(axis=1) > 0]
    prior, marginal = law.sum(axis=1), law.sum(axis=0)
    for y, mass in enumerate(marginal):
        if mass == 0:
            continue
        lifts = [float(law[s, y] / (prior[s] * mass)) for s in range(len(prior))]
        inverse = [math.inf if value == 0 else 1 / value for value in lifts]

        def mean(values: list[float]) -> float:
            return sum(p * value for p, value in zip(prior, values, strict=True))

        for measure, expected in (
            (measures.max_lift, max(lifts)),
            (measures.min_lift, min(lifts)),
            (measures.l1_lift, mean([abs(value - 1) for value in lifts])),
            (measures.chi_squared_lift, mean([(value - 1) ** 2 for value in lifts])),
            (measures.l1_lift_inverse, mean([abs(value - 1) for value in inverse])),
            (measures.chi_squared_lift_inverse, mean([(value - 1) ** 2 for value in inverse])),
        ):
            assert measure(joint, protocol)[y] == pytest.approx(expected, rel=1e-9, abs=1e-12)
        # Divided by the largest first, so that high powers stay in range.
        for powers, values in ((measures.alpha_lift, lifts), (measures.alpha_lift_inverse, inverse)):
            top = max(values)
            expected = top if math.isinf(top) else top * mean([(v / top) ** alpha for v in values]) ** (1 / alpha)
            assert powers(joint, protocol, alpha)[y] == pytest.approx(expected, rel=1e-8)
            assert powers(joint, protocol, math.inf)[y] == pytest.approx(top, rel=1e-9)


SUMMARIES = (
    measures.max_lift,
    measures.min_lift,
    measures.l1_lift,
    measures.chi_squared_lift,
    measures.l1_lift_inverse,
    measures.chi_squared_lift_inverse,
)


@settings(max_examples=50)
@given(channels())
def test_outputs_that_never_occur_are_nan_and_nothing_else_is(channel: tuple[Joint, Protocol]) -> None:
    joint, protocol = channel
    never = full_law(joint, protocol).sum(axis=(0, 1)) == 0
    unseen = joint.counts.sum(axis=1) == 0
    assert (np.isnan(measures.lift(joint, protocol)) == (never[None, :] | unseen[:, None])).all()
    for summary in SUMMARIES:
        assert (np.isnan(summary(joint, protocol)) == never).all()
    for powers in (measures.alpha_lift, measures.alpha_lift_inverse):
        for alpha in (1e-9, 1.0, 3.0, 1e200, math.inf):
            assert (np.isnan(powers(joint, protocol, alpha)) == never).all()


def test_an_output_that_excludes_a_secret() -> None:
    joint = Joint.from_counts([[1, 1], [0, 2], [0, 0]])
    protocol = protocol_of(joint, np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]))
    expected = {
        measures.max_lift: [2, 4 / 3, np.nan],
        measures.min_lift: [0, 2 / 3, np.nan],
        measures.l1_lift: [1, 1 / 3, np.nan],
        measures.chi_squared_lift: [1, 1 / 9, np.nan],
        measures.l1_lift_inverse: [math.inf, 0.375, np.nan],
        measures.chi_squared_lift_inverse: [math.inf, (0.25 + 0.0625) / 2, np.nan],
    }
    for summary, values in expected.items():
        assert summary(joint, protocol) == pytest.approx(values, nan_ok=True)
    for alpha in (0.5, 2.0, math.inf):
        assert measures.alpha_lift_inverse(joint, protocol, alpha)[0] == math.inf


@settings(max_examples=50)
@given(channels(), st.lists(orders, min_size=2, max_size=4))
def test_the_order_tunes_from_one_to_the_extreme_lift(channel: tuple[Joint, Protocol], alphas: list[float]) -> None:
    occurs = ~np.isnan(measures.max_lift(*channel))
    assert measures.alpha_lift(*channel, 1)[occurs] == pytest.approx(1)
    for powers in (measures.alpha_lift, measures.alpha_lift_inverse):
        rows = np.array([powers(*channel, alpha)[occurs] for alpha in [*sorted(alphas), math.inf]])
        assert (rows[:-1] <= rows[1:] * (1 + 1e-9)).all()


@settings(max_examples=50)
@given(channels(), orders)
def test_averages_over_outputs(channel: tuple[Joint, Protocol], alpha: float) -> None:
    """ALIP after (31)–(33): total variation, χ²-divergence and Sibson information are averages of the summaries."""
    joint, protocol = channel
    law = full_law(joint, protocol).sum(axis=1)
    prior, marginal = law.sum(axis=1, keepdims=True), law.sum(axis=0, keepdims=True)
    difference = law - prior * marginal
    assert measures.total_variation(joint, protocol) == pytest.approx(np.abs(difference).sum() / 2, abs=1e-12)
    product = prior * marginal
    cells = product > 0
    squared = (difference[cells] ** 2 / product[cells]).sum()
    assert measures.chi_squared_divergence(joint, protocol) == pytest.approx(squared, abs=1e-9)
    if abs(alpha - 1) > 0.05:
        mean = np.nansum(marginal[0] * measures.alpha_lift(joint, protocol, alpha))
        sibson = measures.sibson_information(joint, protocol, alpha)
        assert alpha / (alpha - 1) * math.log(mean) == pytest.approx(sibson, abs=1e-9)
