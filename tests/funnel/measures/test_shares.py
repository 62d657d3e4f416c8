"""Share of records that are not released with their own values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel import Alphabet, DataError, Joint, Protocol, measures
from funnel.protocol import WORD_BITS
from tests.funnel.measures.channels import full_law, protocol_of
from tests.strategies import joints

UNIT = 2**WORD_BITS
PAIRS = Alphabet(("sex", "race"), (("f", "a"), ("f", "b"), ("m", "a"), ("m", "b")))


def renamed(protocol: Protocol, outputs: Alphabet) -> Protocol:
    return Protocol(protocol.weights, protocol.marginal, protocol.inputs, outputs)


@settings(max_examples=50)
@given(joints(), st.integers(0, 8), st.booleans())
def test_the_share_follows_the_labels(joint: Joint, eighths: int, reads_secret: bool) -> None:
    """Kept with probability 1 − t, otherwise replaced by another value or a coarser one."""
    c, a = joint.counts.shape
    t = eighths / 8
    channel = np.vstack([(1 - t) * np.eye(a) + t / 2 * np.roll(np.eye(a), 1, axis=0), np.full((1, a), t / 2)])
    read = joint.with_secret() if reads_secret else joint
    protocol = protocol_of(read, np.tile(channel, (1, c)) if reads_secret else channel)
    protocol = renamed(protocol, Alphabet(("X",), (*joint.inputs.symbols, ("others",))))
    law = full_law(joint, protocol).sum(axis=0)
    expected = 1 - np.trace(law[:, :a])
    assert measures.changed_share(joint, protocol) == pytest.approx(expected, abs=1e-12)
    assert measures.changed_share_by_column(joint, protocol) == pytest.approx([expected], abs=1e-12)
    assert 0 <= measures.changed_share(joint, protocol) <= 1
    if a > 1:
        assert expected == pytest.approx(t)


def test_columns_are_compared_one_by_one() -> None:
    """Race is swapped for half of the women, sex never shown for men."""
    joint = Joint.from_counts([[10, 10, 10, 10]], inputs=PAIRS)
    half = UNIT // 2
    weights = np.array(
        [[half, half, 0, 0], [half, half, 0, 0], [0, 0, UNIT, 0], [0, 0, 0, UNIT]],
        dtype=np.uint64,
    )
    outputs = Alphabet(PAIRS.columns, (("f", "a"), ("f", "b"), ("f or m", "a"), ("f or m", "b")))
    protocol = Protocol(weights, weights[:, 0], PAIRS, outputs)
    assert measures.changed_share(joint, protocol) == pytest.approx(0.75)
    assert measures.changed_share_by_column(joint, protocol) == pytest.approx([0.5, 0.25])


def test_an_order_of_outputs_changes_nothing() -> None:
    joint = Joint.from_counts([[5, 3, 2]])
    reverse = protocol_of(joint, np.eye(3)[::-1])
    assert measures.changed_share(joint, renamed(reverse, Alphabet(("X",), joint.inputs.symbols[::-1]))) == 0
    assert measures.changed_share(joint, renamed(reverse, joint.inputs)) == pytest.approx(0.7)


def test_other_columns_cannot_be_compared() -> None:
    joint = Joint.from_counts([[5, 3]])
    protocol = renamed(protocol_of(joint, np.eye(2)), Alphabet(("Y",), joint.inputs.symbols))
    for share in (measures.changed_share, measures.changed_share_by_column):
        with pytest.raises(DataError, match="the same columns"):
            share(joint, protocol)
