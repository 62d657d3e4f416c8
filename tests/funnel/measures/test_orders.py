"""Information of order α: definitions, limits, monotony, data processing, and the bound by the largest lift."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel import Joint, Protocol, SpecError, measures
from tests.funnel.measures.channels import channels, full_law, orders, protocol_of

FAMILY = (measures.sibson_information, measures.arimoto_information)


@settings(max_examples=50)
@given(channels(), st.floats(0.2, 20).filter(lambda alpha: abs(alpha - 1) > 0.05))
def test_the_definitions(channel: tuple[Joint, Protocol], alpha: float) -> None:
    joint, protocol = channel
    law = full_law(joint, protocol).sum(axis=1)
    law = law[law.sum(axis=1) > 0]
    prior = law.sum(axis=1)
    given_secret = law / prior[:, None]
    tilted = prior**alpha / (prior**alpha).sum()
    for measure, weights in zip(FAMILY, (prior, tilted), strict=True):
        powers = (weights[:, None] * given_secret**alpha).sum(axis=0) ** (1 / alpha)
        expected = alpha / (alpha - 1) * math.log(powers.sum())
        assert measure(joint, protocol, alpha) == pytest.approx(expected, abs=1e-9)


@settings(max_examples=50)
@given(channels(), st.sampled_from(["inputs", "secret", "secret and inputs"]))
def test_order_one_is_mutual_information_and_near_it_nearly_so(
    channel: tuple[Joint, Protocol], counts: measures.Counted
) -> None:
    information = measures.mutual_information(*channel, counts)
    for measure in FAMILY:
        assert measure(*channel, 1, counts) == information
        for distance in (1e-6, 1e-12):
            for alpha in (1 - distance, 1 + distance):
                # Digits must not be lost to the division by α − 1; logarithms of lifts are below 50.
                assert measure(*channel, alpha, counts) == pytest.approx(information, abs=2500 * distance + 1e-11)


@settings(max_examples=50)
@given(channels(), st.sampled_from(["inputs", "secret", "secret and inputs"]))
def test_order_infinity_is_leakage_to_guessers_and_large_orders_approach_it(
    channel: tuple[Joint, Protocol], counts: measures.Counted
) -> None:
    for measure, limit in zip(FAMILY, (measures.maximal_leakage, measures.min_entropy_leakage), strict=True):
        leakage = limit(*channel, counts)
        assert measure(*channel, math.inf, counts) == leakage
        for alpha in (1e6, 1e200, 1e308):
            assert measure(*channel, alpha, counts) == pytest.approx(leakage, abs=100 / alpha + 1e-12)


@settings(max_examples=50)
@given(channels(), st.lists(orders, min_size=2, max_size=5))
def test_sibson_grows_with_the_order(channel: tuple[Joint, Protocol], alphas: list[float]) -> None:
    values = [measures.sibson_information(*channel, alpha) for alpha in [*sorted(alphas), math.inf]]
    assert all(low <= high + 1e-9 for low, high in itertools.pairwise(values))


def test_arimoto_need_not_grow_with_the_order() -> None:
    joint = Joint.from_counts([[8, 0], [1, 1]])
    protocol = protocol_of(joint, np.eye(2))
    assert measures.arimoto_information(joint, protocol, math.inf) < measures.arimoto_information(joint, protocol, 1)


@settings(max_examples=50)
@given(channels(), orders, st.integers(0, 2**32 - 1))
def test_processing_the_output_tells_nothing_new(channel: tuple[Joint, Protocol], alpha: float, seed: int) -> None:
    joint, protocol = channel
    read = joint.read_by(protocol.inputs.columns)
    later = np.random.default_rng(seed).dirichlet(np.ones(3), size=len(protocol.outputs)).T
    processed = protocol_of(read, later @ protocol.matrix)
    for order in (alpha, 1.0, math.inf):
        for measure in FAMILY:
            assert measure(joint, processed, order) <= measure(joint, protocol, order) + 1e-9
    for average in (measures.total_variation, measures.chi_squared_divergence):
        assert average(joint, processed) <= average(joint, protocol) * (1 + 1e-9) + 1e-9
    guess = measures.guess_accuracy(joint, protocol, "secret")
    assert measures.guess_accuracy(joint, processed, "secret") <= guess + 1e-12


@settings(max_examples=50)
@given(channels(reads_secret=False), orders)
def test_the_secret_is_known_only_through_the_input(channel: tuple[Joint, Protocol], alpha: float) -> None:
    """S – X – Y: for Sibson information, what Y tells about S it tells about X."""
    for order in (alpha, math.inf):
        secret = measures.sibson_information(*channel, order)
        assert secret <= measures.sibson_information(*channel, order, "inputs") + 1e-9


@settings(max_examples=50)
@given(channels(), orders)
def test_bounded_by_the_largest_lift(channel: tuple[Joint, Protocol], alpha: float) -> None:
    """ALIP proposition 1.1 and 1.3, the latter without its factor α/(α−1) (METHOD section 2)."""
    bound = math.log(np.nanmax(measures.max_lift(*channel))) + 1e-9
    assert measures.secret_information(*channel) <= bound
    for order in (alpha, math.inf):
        for measure in FAMILY:
            assert 0 <= measure(*channel, order) <= bound


@settings(max_examples=30)
@given(channels(), st.sampled_from([1e-300, 1e-30, 1e-9]))
def test_tiny_orders(channel: tuple[Joint, Protocol], alpha: float) -> None:
    """α → 0: Sibson sees only which secrets an output excludes, −ln max_y P(secrets that y allows)."""
    joint, protocol = channel
    law = full_law(joint, protocol).sum(axis=1)
    allowed = (law.sum(axis=1) @ (law > 0))[law.sum(axis=0) > 0]
    limit = max(0.0, -math.log(allowed.max()))
    assert measures.sibson_information(joint, protocol, alpha) == pytest.approx(limit, abs=1e-6)
    assert 0 <= measures.arimoto_information(joint, protocol, alpha) <= math.log(len(law)) + 1e-6


@pytest.mark.parametrize("alpha", [0, -1.0, math.nan, -math.inf, "2", None, True, 1j])
def test_what_is_no_order_is_refused(alpha: object) -> None:
    joint = Joint.from_counts([[1, 2], [3, 4]])
    protocol = protocol_of(joint, np.eye(2))
    for measure in (*FAMILY, measures.alpha_lift, measures.alpha_lift_inverse):
        with pytest.raises(SpecError, match="order alpha must be a number above 0"):
            measure(joint, protocol, alpha)  # type: ignore[operator]
