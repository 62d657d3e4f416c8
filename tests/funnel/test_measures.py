"""Measures of utility and leakage against their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import entropy

import funnel
from funnel import LIP, Joint, measures
from tests.strategies import budgets, joints


@given(joints(), budgets)
def test_measures_are_those_of_their_definition(joint: Joint, epsilon: float) -> None:
    for name in ("grr", "conditional-reporting"):
        protocol = funnel.fit(name, joint, LIP(epsilon))
        read = joint.read_by(protocol.inputs.columns)
        # The law of (s, x, y), written out.
        c, a = joint.counts.shape
        full = np.zeros((c, a, len(protocol.outputs)))
        weights = protocol.weights_for(read.inputs) / 2.0**63
        for s in range(c):
            for x in range(a):
                column = x if read is joint else s * a + x
                full[s, x] = joint.p[s, x] * weights[:, column]
        law = full.sum(axis=0)
        information = entropy(law.sum(axis=0)) + entropy(law.sum(axis=1)) - entropy(law.ravel())
        assert measures.mutual_information(joint, protocol) == pytest.approx(information, abs=1e-9)
        secret = full.sum(axis=1)
        leakage = entropy(secret.sum(axis=0)) + entropy(secret.sum(axis=1)) - entropy(secret.ravel())
        assert measures.secret_information(joint, protocol) == pytest.approx(leakage, abs=1e-9)
        assert measures.guess_accuracy(joint, protocol) == pytest.approx(law.max(axis=0).sum())
        lift = measures.lift(joint, protocol)
        worst = max(abs(math.log(value)) for value in lift[np.isfinite(lift)])
        assert worst == pytest.approx(LIP(epsilon).level(joint, protocol).value, abs=1e-9)
        posterior = measures.posterior(joint, protocol)
        assert np.nansum(posterior, axis=1) == pytest.approx(1)


def test_a_constant_input_has_nothing_to_tell() -> None:
    joint = Joint.from_counts([[5], [7]])
    protocol = funnel.fit("identity", joint, LIP(1.0))
    assert measures.mutual_information(joint, protocol) == 0
    assert measures.normalised_mutual_information(joint, protocol) == 0
    assert joint.entropy == 0
