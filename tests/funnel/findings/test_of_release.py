"""The findings of an audit: the exact numbers of the protocol, in a form that JSON can carry."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import funnel
from funnel import LDP, LIP, Joint
from funnel.findings import DrawnRelease, audit_release
from funnel.release.findings import findings_document


def pairs_of(joint: Joint, protocol: funnel.Protocol, outside: int = 0) -> np.ndarray:
    """Counts as near to the protocol's own distribution as whole numbers allow; a few records outside the alphabet."""
    totals = joint.read_by(protocol.inputs.columns).counts.sum(axis=0)
    pairs = np.floor(protocol.matrix * totals).astype(np.int64).T
    for x, missing in enumerate(totals - pairs.sum(axis=1)):
        pairs[x, protocol.weights[:, x].argmax()] += missing
    last = np.zeros(len(protocol.outputs), dtype=np.int64)
    last[protocol.marginal.argmax()] = outside
    return np.vstack([pairs, last])


@pytest.mark.parametrize("guarantee", [LIP(0.4), LDP(0.4)])
@pytest.mark.parametrize("name", ["optimal", "conditional-reporting"])
def test_findings_are_those_of_the_protocol(name: str, guarantee: funnel.Guarantee) -> None:
    joint = Joint.from_counts([[3000, 100, 2000], [1000, 300, 2500]], ["u", "v"], ["a", "b", "c"])
    protocol = funnel.fit(name, joint, guarantee)
    found = audit_release(joint, DrawnRelease(protocol, guarantee, pairs_of(joint, protocol, outside=4)))
    assert found.holds
    assert found.level == guarantee.level(joint, protocol).value <= 0.4
    assert found.level_ratio is not None
    assert math.log(Fraction(found.level_ratio)) == pytest.approx(found.level)
    assert found.witness_output in protocol.outputs.labels
    assert found.witness_secret in joint.secret.labels
    assert (found.witness_other_secret is None) == (guarantee.name == "lip")
    # For LIP the lift at the witness is the level itself.
    if guarantee.name == "lip":
        y, s = protocol.outputs.labels.index(found.witness_output), joint.secret.labels.index(found.witness_secret)
        assert math.log(found.lift[s, y]) == pytest.approx(found.level if found.witness_upward else -found.level)
    assert (found.rows, found.outside) == (joint.n + 4, 4)
    assert found.share == pytest.approx(found.utility / found.entropy)
    assert found.secret_information <= found.level
    assert found.prior_guess_accuracy == pytest.approx(4500 / 8900)
    assert found.guess_accuracy >= found.prior_guess_accuracy - 1e-12
    assert found.consistency.p_value > 0.5
    assert findings_document(found).content()["holds"] is True


def test_a_bound_that_is_exceeded_is_found_out() -> None:
    joint = Joint.from_counts([[30, 10], [10, 30]])
    protocol = funnel.fit("grr", joint, LIP(0.5))
    assert not audit_release(joint, DrawnRelease(protocol, LIP(0.4), pairs_of(joint, protocol))).holds


def test_what_is_infinite_or_undefined_becomes_null() -> None:
    joint = Joint.from_counts([[5, 0, 0], [0, 7, 0], [0, 0, 0]])
    certain = funnel.fit("identity", Joint.from_counts([[5, 7, 1]]), LIP(1.0))
    found = audit_release(joint, DrawnRelease(certain, LIP(1.0), pairs_of(joint, certain)))
    assert (found.holds, found.level, found.level_ratio) == (False, math.inf, None)
    content = findings_document(found).content()
    assert content["level"] is None
    # The third output and the third secret never occur.
    assert content["lift"] == [[2.4, 0.0, None], [0.0, pytest.approx(12 / 7), None], [None, None, None]]
