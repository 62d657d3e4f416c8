"""Every mechanism: a channel that meets its guarantee exactly, calibrated to the last, and never above the optimum."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel import LDP, LIP, InfeasibleGuarantee, Joint, SpecError
from funnel.mechanisms.conditional_reporting import conditional_reporting_matrix
from funnel.mechanisms.family import _Calibrating
from funnel.mechanisms.grr import grr_matrix
from funnel.protocol import DENOMINATOR, WeightArray, exact_sums
from funnel.rounding import integer_weights
from funnel.solver.budget import Budget
from tests.strategies import budgets, joints

kinds = st.sampled_from([LIP, LDP])
# Mechanisms that say what they are for instead.
ELSEWHERE = {
    "side-channel-product": "one only",
    "robust-optimal": "made for rldp",
    "polyopt": "made for rldp",
    "independent-reporting": "made for rldp",
    "robust-conditional-reporting": "made for rldp",
}


@settings(max_examples=50)
@given(joints(), kinds, budgets)
def test_every_protocol_is_a_channel_that_meets_its_guarantee(
    joint: Joint, kind: type[funnel.Guarantee], epsilon: float
) -> None:
    guarantee = kind(epsilon)
    best = funnel.optimal(joint, guarantee)
    for name in funnel.mechanisms.names():
        if name in ELSEWHERE:
            with pytest.raises(SpecError, match=ELSEWHERE[name]):
                funnel.fit(name, joint, guarantee)
            continue
        if name == "identity" and not guarantee.holds_for(joint, integer_weights(np.eye(len(joint.inputs)))):
            with pytest.raises(InfeasibleGuarantee) as caught:
                funnel.fit(name, joint, guarantee)
            assert caught.value.best_level is not None
            assert caught.value.best_level > epsilon
            continue
        protocol = funnel.fit(name, joint, guarantee)
        assert set(exact_sums(protocol.weights)) == {DENOMINATOR}
        assert guarantee.holds(joint, protocol)
        assert guarantee.level(joint, protocol).value <= epsilon
        drawable = protocol.weights.any(axis=1)
        # The outputs of an invariant protocol are its inputs, of which some may never occur.
        assert drawable[joint.p_input > 0].all() if name == "invariant" else drawable.all()
        utility = funnel.measures.mutual_information(joint, protocol)
        if protocol.inputs.columns == joint.inputs.columns:
            assert utility <= best.bound + 1e-12


@settings(max_examples=60)
@given(joints(min_inputs=2), kinds)
def test_levels_grow_with_the_parameter(joint: Joint, kind: type[funnel.Guarantee]) -> None:
    joint = Joint.from_counts(joint.counts[joint.counts.sum(axis=1) > 0])
    read = joint.with_secret()
    for distribution, family in (
        (joint, lambda alpha: grr_matrix(len(joint.inputs), alpha)),
        (read, lambda alpha: conditional_reporting_matrix(joint, alpha)),
    ):
        ratios = [
            kind(1.0).worst(distribution, integer_weights(family(alpha))).ratio for alpha in (0.0, 0.3, 1.0, 2.5, 6.0)
        ]
        values = [float("inf") if ratio is None else float(ratio) for ratio in ratios]
        assert all(low <= high * (1 + 1e-9) for low, high in itertools.pairwise(values))


@settings(max_examples=40)
@given(joints(min_inputs=2), kinds, st.floats(0.05, 3))
def test_calibration_leaves_nothing_on_the_table(joint: Joint, kind: type[funnel.Guarantee], epsilon: float) -> None:
    """A slightly stronger GRR would break the guarantee, unless even the truth meets it."""
    guarantee = kind(epsilon)
    protocol = funnel.fit("grr", joint, guarantee)
    level = guarantee.level(joint, protocol).value
    identity = integer_weights(np.eye(len(joint.inputs)))
    if not guarantee.holds_for(joint, identity):
        assert level == pytest.approx(epsilon, rel=1e-9)


class _Deciding(_Calibrating):
    """Counts its decisions."""

    decided = 0

    def weights_at(self, alpha: float) -> WeightArray | None:
        _Deciding.decided += 1
        return super().weights_at(alpha)


@settings(max_examples=40)
@given(joints(min_inputs=2), kinds, st.floats(0.05, 3), st.sampled_from([0.0, 1e-3]))
def test_levels_in_floats_spare_decisions_and_change_no_parameter(
    joint: Joint, kind: type[funnel.Guarantee], epsilon: float, precision: float
) -> None:
    """The parameter is that of a bisection that decides every one on its way."""

    def family(alpha: float) -> WeightArray:
        return integer_weights(grr_matrix(len(joint.inputs), alpha))

    search = _Deciding(family, joint, kind(epsilon), Budget.of(None))
    before = _Deciding.decided
    expected = search.bisected(precision, 0.0, math.inf)
    every = _Deciding.decided - before
    found = search.by_decisions(precision)
    some = _Deciding.decided - before - every
    assert expected is not None
    assert found.alpha == expected.alpha
    assert (found.weights == expected.weights).all()
    assert some <= every + 2
    if every > 40:
        assert some < every / 2


def test_conditional_reporting_has_the_closed_form_of_the_paper() -> None:
    """Q[y|x, s] = (e^α [x = y] + Σ_{s' ≠ s} p(y|s')) / (e^α + c - 1), with the delta that equation (43) lacks."""
    joint = Joint.from_counts([[3, 1, 4], [1, 5, 9]])
    alpha, given_secret = 0.7, joint.input_given_secret
    matrix = conditional_reporting_matrix(joint, alpha)
    for s in range(2):
        for x in range(3):
            for y in range(3):
                expected = (np.exp(alpha) * (x == y) + given_secret[1 - s, y]) / (np.exp(alpha) + 1)
                assert matrix[y, 3 * s + x] == pytest.approx(expected)


def test_the_published_utilities_of_adult_are_in_order() -> None:
    """Marital status and education: the optimum keeps far more than the explicit protocols at every budget."""
    joint = Joint.from_table("data/adult.parquet", secret=["marital-status"], inputs=["education"])
    for epsilon, figures in {
        0.5: (1.8223, 0.4806, 0.2973),
        1.0: (1.9230, 0.9620, 0.7362),
        2.0: (1.9930, 1.5449, 1.4098),
    }.items():
        for name, figure in zip(("optimal", "grr", "conditional-reporting"), figures, strict=True):
            protocol = funnel.fit(name, joint, LIP(epsilon))
            assert funnel.measures.mutual_information(joint, protocol) == pytest.approx(figure, abs=6e-5)


def test_an_unknown_mechanism_is_answered_with_the_nearest() -> None:
    with pytest.raises(SpecError, match="did you mean 'optimal'"):
        funnel.fit("optmal", Joint.from_counts([[1, 2], [2, 1]]), LIP(1.0))
