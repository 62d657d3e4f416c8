"""Shares of records that are published as they are, against sums written out, and cells that are published exactly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel import Alphabet, Joint, Protocol, SpecError, measures
from funnel.protocol import DENOMINATOR
from funnel.sparse_weights import SparseWeights
from tests.funnel.measures.channels import full_distribution
from tests.invariant import IntTable, flows, invariant_protocol, joint_of_flow, protocol_of_flow
from tests.strategies import joints


@st.composite
def changes(draw: st.DrawFn) -> tuple[Joint, Protocol]:
    """A joint distribution with inputs that never occur, and a channel from inputs to inputs that may read secrets."""
    joint = draw(joints(max_secrets=3, max_inputs=4))
    read = joint.with_secret() if draw(st.booleans()) else joint
    a = len(read.inputs)
    shares = st.lists(st.one_of(st.just(0.0), st.floats(0.01, 1)), min_size=a, max_size=a).filter(any)
    columns = [np.eye(a)[x] if draw(st.booleans()) else np.array(draw(shares)) for x in range(a)]
    channel = np.array([column / column.sum() for column in columns]).T
    protocol = invariant_protocol(channel, read.inputs, np.ones(a))
    if draw(st.booleans()):
        sparse = SparseWeights.of(protocol.weights)
        protocol = Protocol.of_sparse(sparse, protocol.marginal, protocol.inputs, protocol.outputs)
    return joint, protocol


@settings(max_examples=100)
@given(changes())
def test_shares_are_sums_over_all_records(case: tuple[Joint, Protocol]) -> None:
    joint, protocol = case
    found = measures.unchanged(joint, protocol)
    distribution = full_distribution(joint, protocol)
    reads_secret = protocol.inputs.columns != joint.inputs.columns
    own = [[protocol.outputs.index(s * reads_secret + x) for x in joint.inputs.symbols] for s in joint.secret.symbols]
    kept = np.array(
        [[distribution[s, x, own[s][x]] for x in range(len(joint.inputs))] for s in range(len(joint.secret))]
    )
    assert found.share == pytest.approx(kept.sum(), abs=1e-12)
    with np.errstate(invalid="ignore"):
        assert found.by_secret == pytest.approx(kept.sum(axis=1) / joint.p_secret, abs=1e-12, nan_ok=True)
    for j in range(len(found.inputs.columns)):
        alike = sum(
            distribution[s, x, y]
            for s, secret in enumerate(joint.secret.symbols)
            for x, symbol in enumerate(joint.inputs.symbols)
            for y, shown in enumerate(protocol.outputs.symbols)
            if (secret * reads_secret + symbol)[j] == shown[j]
        )
        assert found.by_column[j] == pytest.approx(alike, abs=1e-12)
    assert found.by_value == pytest.approx(np.diag(protocol.matrix), abs=1e-12)
    read = joint.read_by(protocol.inputs.columns)
    exact = [
        x
        for x in range(len(read.inputs))
        if read.p_input[x] > 0
        and int(protocol.weights[x, x]) == DENOMINATOR
        and not any(
            protocol.weights[x, other] and read.p_input[other] > 0 for other in range(len(read.inputs)) if other != x
        )
    ]
    assert found.exact == tuple(read.inputs.symbols[x] for x in exact)
    assert found.exact_share == pytest.approx(read.p_input[exact].sum(), abs=1e-12)


@settings(max_examples=50)
@given(flows())
def test_in_a_flow_what_stays_is_its_diagonal(flow: IntTable) -> None:
    found = measures.unchanged(joint_of_flow(flow), protocol_of_flow(flow))
    assert found.share == pytest.approx(np.trace(flow) / flow.sum(), abs=1e-12)
    alone = [x for x in range(len(flow)) if flow[x, x] == flow[x].sum()]
    assert [found.inputs.index(symbol) for symbol in found.exact] == alone


def test_columns_and_secrets_that_are_published_have_shares_of_their_own() -> None:
    """Ill people keep their sex, and half of them are published as well; to well people nothing happens but inflow."""
    pairs = Alphabet(("state", "sex"), (("ill", "f"), ("ill", "m"), ("well", "f"), ("well", "m")))
    joint = Joint.from_counts(
        [[10, 10, 0, 0], [0, 0, 50, 30]], secret=Alphabet(("state",), (("ill",), ("well",))), inputs=pairs
    )
    channel = [[0.5, 0, 0.1, 0], [0, 1, 0, 0], [0.5, 0, 0.9, 0], [0, 0, 0, 1]]
    found = measures.unchanged(joint, invariant_protocol(channel, pairs, joint.counts.sum(axis=0)))
    assert found.share == pytest.approx(0.9)
    assert found.by_column.tolist() == pytest.approx([0.9, 1.0])
    assert found.by_secret.tolist() == pytest.approx([0.75, 0.9375])
    assert found.exact == (("ill", "m"), ("well", "m"))
    assert found.exact_share == pytest.approx(0.4)


def test_records_outside_the_alphabet_are_never_unchanged() -> None:
    joint = Joint.from_counts([[6, 4]], inputs=["a", "new"])
    protocol = invariant_protocol(np.eye(2), Alphabet(("X",), (("a",), ("b",))), [1, 1])
    found = measures.unchanged(joint, protocol)
    assert found.share == pytest.approx(0.6)
    assert found.by_value.tolist() == [1, 0]
    # New people enter the cell of a.
    assert found.exact == ()


def test_outputs_that_are_not_the_inputs_are_refused() -> None:
    protocol = invariant_protocol(np.eye(2), Alphabet(("X",), (("a",), ("b",))), [1, 1])
    other = Protocol(
        protocol.weights, protocol.marginal, protocol.inputs, Alphabet(("X",), (("b",), ("a",))), "merging"
    )
    with pytest.raises(SpecError, match="outputs of this merging are not its inputs"):
        measures.unchanged(Joint.from_counts([[1, 1]], inputs=["a", "b"]), other)
