"""Mechanisms at the edges: inputs and secrets that never occur, one symbol, budgets too large to matter."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel import LDP, LIP, Guarantee, InfeasibleGuarantee, Joint, Protocol
from tests.strategies import joints

# The product of columns has its own tests, as there is one column here, and so have those made for robust guarantees.
OTHERS = (
    "side-channel-product",
    "robust-optimal",
    "polyopt",
    "independent-reporting",
    "robust-conditional-reporting",
)
ANY_COLUMNS = [name for name in funnel.mechanisms.names() if name not in OTHERS]
EVERY = [(name, kind) for name in ANY_COLUMNS for kind in (LIP, LDP)]


def drawable(protocol: Protocol) -> bool:
    return bool(protocol.weights.any(axis=1).all())


@pytest.mark.parametrize(("name", "kind"), EVERY)
def test_an_input_that_never_occurs_has_no_output_of_its_own(name: str, kind: type[Guarantee]) -> None:
    """Its own symbol would have weight zero everywhere: an output that cannot be drawn, and has no name."""
    joint = Joint.from_counts([[3, 0, 30], [1, 0, 10]])
    for epsilon in (0.5, 40.0):
        protocol = funnel.fit(name, joint, kind(epsilon))
        if name == "invariant":
            # Its outputs are its inputs: what never occurs is never drawn.
            assert protocol.weights.any(axis=1).tolist() == [True, False, True]
        else:
            assert drawable(protocol)
        assert kind(epsilon).holds(joint, protocol)
        if protocol.inputs == joint.inputs:
            assert (protocol.weights[:, 1] == protocol.marginal).all()


@pytest.mark.parametrize(("name", "kind"), EVERY)
def test_a_secret_that_never_occurs_changes_nothing(name: str, kind: type[Guarantee]) -> None:
    counts = [[30, 10, 20], [10, 30, 20]]
    secret = ["u", "v"]
    plain = Joint.from_counts(counts, secret)
    wider = Joint.from_counts([counts[0], [0, 0, 0], counts[1]], ["u", "never", "v"])
    one, other = (funnel.fit(name, joint, kind(1.2)) for joint in (plain, wider))
    assert one.digest == other.digest
    assert kind(1.2).level(plain, one).value == kind(1.2).level(wider, one).value
    # A record with the secret that never occurred draws from the marginal, if the protocol reads it at all.
    read = wider.read_by(one.inputs.columns)
    if read is not wider:
        assert (one.weights_for(read.inputs)[:, 3:6] == one.marginal[:, None]).all()


@pytest.mark.parametrize(("name", "kind"), EVERY)
def test_one_input_is_published_as_it_is(name: str, kind: type[Guarantee]) -> None:
    joint = Joint.from_counts([[5], [7]], inputs=["only"])
    for epsilon in (0.0, 1.0):
        protocol = funnel.fit(name, joint, kind(epsilon))
        # Unary encoding publishes sets, here each with probability 1/2.
        assert protocol.outputs.labels == (("{}", "{only}") if name == "oue" else ("only",))
        assert kind(epsilon).level(joint, protocol).value == 0


@settings(max_examples=40)
@given(joints(), st.sampled_from([LIP, LDP]), st.sampled_from(["optimal", "grr"]), st.sampled_from([0.0, 1e-12, 1e4]))
def test_no_budget_is_too_small_or_too_large(joint: Joint, kind: type[Guarantee], name: str, epsilon: float) -> None:
    guarantee = kind(epsilon)
    protocol = funnel.fit(name, joint, guarantee)
    assert drawable(protocol)
    assert guarantee.holds(joint, protocol)
    assert guarantee.level(joint, protocol).value <= epsilon


def test_conditional_reporting_is_refused_without_a_budget_for_its_rounding() -> None:
    joint = Joint.from_counts([[3, 1, 4], [1, 5, 9], [2, 6, 5]])
    with pytest.raises(InfeasibleGuarantee, match="even the weakest"):
        funnel.fit("conditional-reporting", joint, LIP(0.0))
    protocol = funnel.fit("conditional-reporting", joint, LIP(1e-9))
    assert LIP(1e-9).holds(joint, protocol)


def test_identity_is_infeasible_with_the_level_it_has() -> None:
    joint = Joint.from_counts([[8, 2], [2, 8]])
    with pytest.raises(InfeasibleGuarantee) as caught:
        funnel.fit("identity", joint, LDP(1.0))
    assert caught.value.best_level == pytest.approx(math.log(4))
    protocol = funnel.fit("identity", joint, LDP(1.4))
    assert (protocol.matrix == np.eye(2)).all()
    assert protocol.outputs.symbols == joint.inputs.symbols
