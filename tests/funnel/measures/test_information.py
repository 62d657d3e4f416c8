"""Mutual information, conditional entropy and what else averages over outputs, against their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.stats import entropy

import funnel
from funnel import LIP, Joint, Protocol, measures
from tests.funnel.measures.channels import channels, full_distribution, protocol_of
from tests.strategies import budgets, joints


@settings(max_examples=50)
@given(joints(), budgets)
def test_measures_are_those_of_their_definition(joint: Joint, epsilon: float) -> None:
    for name in ("grr", "conditional-reporting"):
        protocol = funnel.fit(name, joint, LIP(epsilon))
        read = joint.read_by(protocol.inputs.columns)
        # The distribution of (s, x, y), written out.
        c, a = joint.counts.shape
        full = np.zeros((c, a, len(protocol.outputs)))
        weights = protocol.weights_for(read.inputs) / 2.0**63
        for s in range(c):
            for x in range(a):
                column = x if read is joint else s * a + x
                full[s, x] = joint.p[s, x] * weights[:, column]
        distribution = full.sum(axis=0)
        information = (
            entropy(distribution.sum(axis=0)) + entropy(distribution.sum(axis=1)) - entropy(distribution.ravel())
        )
        assert measures.mutual_information(joint, protocol) == pytest.approx(information, abs=1e-9)
        secret = full.sum(axis=1)
        leakage = entropy(secret.sum(axis=0)) + entropy(secret.sum(axis=1)) - entropy(secret.ravel())
        assert measures.secret_information(joint, protocol) == pytest.approx(leakage, abs=1e-9)
        assert measures.guess_accuracy(joint, protocol) == pytest.approx(distribution.max(axis=0).sum())
        lift = measures.lift(joint, protocol)
        worst = max(abs(math.log(value)) for value in lift[np.isfinite(lift)])
        assert worst == pytest.approx(LIP(epsilon).level(joint, protocol).value, abs=1e-9)


def test_a_constant_input_has_nothing_to_tell() -> None:
    joint = Joint.from_counts([[5], [7]])
    protocol = funnel.fit("identity", joint, LIP(1.0))
    assert measures.mutual_information(joint, protocol) == 0
    assert measures.normalised_mutual_information(joint, protocol) == 0
    assert joint.entropy == 0


COUNTED: tuple[measures.Counted, ...] = ("inputs", "secret", "secret and inputs")


@settings(max_examples=50)
@given(channels())
def test_information_is_entropy_less_what_is_left_of_it(channel: tuple[Joint, Protocol]) -> None:
    joint, protocol = channel
    distribution = full_distribution(joint, protocol)
    tables = (distribution.sum(axis=0), distribution.sum(axis=1), distribution.reshape(-1, distribution.shape[2]))
    for counts, table in zip(COUNTED, tables, strict=True):
        whole = float(entropy(table.sum(axis=1)))
        left = float(entropy(table.ravel()) - entropy(table.sum(axis=0)))
        information = measures.mutual_information(joint, protocol, counts)
        assert information == pytest.approx(whole - left, abs=1e-9)
        share = measures.normalised_mutual_information(joint, protocol, counts)
        assert 0 <= share <= 1
        assert share * whole == pytest.approx(information, abs=1e-9)


@settings(max_examples=50)
@given(channels())
def test_secret_and_inputs_tell_at_least_what_either_tells(channel: tuple[Joint, Protocol]) -> None:
    """I((S,X);Y) >= I(X;Y) and I(S;Y); equal to I(X;Y) where the protocol reads X only, and then I(S;Y) <= I(X;Y)."""
    inputs, secret, both = (measures.mutual_information(*channel, counts) for counts in COUNTED)
    assert both >= max(inputs, secret) - 1e-12
    joint, protocol = channel
    if protocol.inputs.columns == joint.inputs.columns:
        assert both == pytest.approx(inputs, abs=1e-12)
        assert secret <= inputs + 1e-12


def test_publishing_the_secret_with_the_input_tells_all_of_both() -> None:
    joint = Joint.from_counts([[3, 1], [2, 4]])
    read = joint.with_secret()
    protocol = protocol_of(read, np.eye(4))
    assert measures.mutual_information(joint, protocol, "secret and inputs") == pytest.approx(read.entropy)
    assert measures.mutual_information(joint, protocol) == pytest.approx(joint.entropy)
    assert measures.normalised_mutual_information(joint, protocol, "secret and inputs") == pytest.approx(1)
