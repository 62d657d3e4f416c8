"""Protocols: exact sums, a digest of what is drawn, and JSON that cannot be altered unnoticed."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given

import funnel
from funnel import LIP, Alphabet, DataError, Joint, Protocol, SpecError
from funnel.protocol import DENOMINATOR
from tests.strategies import budgets, joints


@given(joints(), budgets)
def test_json_round_trip(joint: Joint, epsilon: float) -> None:
    protocol = funnel.fit("grr", joint, LIP(epsilon))
    again = Protocol.from_json(protocol.to_json())
    assert again.digest == protocol.digest
    assert (again.weights == protocol.weights).all()
    assert (again.inputs, again.outputs, again.guarantee) == (protocol.inputs, protocol.outputs, protocol.guarantee)


def protocol() -> Protocol:
    return funnel.fit("optimal", Joint.from_counts([[30, 10, 20], [10, 30, 20]]), LIP(0.3))


def test_the_digest_is_of_what_is_drawn() -> None:
    one = protocol()
    renamed = Protocol(one.weights, one.marginal, one.inputs, one.outputs, "other", "lip:9")
    assert renamed.digest == one.digest
    swapped = Protocol(one.weights[:, ::-1], one.marginal, one.inputs, one.outputs)
    assert swapped.digest != one.digest


def test_altered_json_is_refused() -> None:
    content = json.loads(protocol().to_json())
    for change in ("weight", "label", "marginal", "sum", "format", "missing"):
        altered = json.loads(json.dumps(content))
        if change == "weight":
            column = next(x for x in range(3) if sum(int(row[x]) > 5 for row in altered["weights"]) > 1)
            high, low = [row for row in altered["weights"] if int(row[column]) > 5][:2]
            high[column], low[column] = str(int(high[column]) - 1), str(int(low[column]) + 1)
        elif change == "label":
            altered["inputs"]["symbols"][0] = ["another"]
        elif change == "marginal":
            altered["marginal"][0], altered["marginal"][1] = (
                str(int(altered["marginal"][0]) - 1),
                str(int(altered["marginal"][1]) + 1),
            )
        elif change == "sum":
            altered["weights"][0][0] = str(int(altered["weights"][0][0]) + 1)
        elif change == "format":
            altered["format"] = "funnel-protocol/9"
        else:
            del altered["outputs"]
        with pytest.raises(DataError):
            Protocol.from_json(json.dumps(altered))
    for text in ("", "[]", "{", "null", "[" * 10**5, '{"format": [], "denominator": {}}'):
        with pytest.raises(DataError):
            Protocol.from_json(text)


def test_weights_must_sum_exactly() -> None:
    half = np.uint64(DENOMINATOR // 2)
    two, inputs = Alphabet.of(None, 2, "y"), Alphabet.of(None, 1, "x")
    good = np.array([[half], [half]], dtype=np.uint64)
    assert Protocol(good, good[:, 0], inputs, two).matrix.sum() == 1
    for bad in (good - np.array([[1], [0]], dtype=np.uint64), good * np.uint64(0)):
        with pytest.raises(SpecError, match="sum to exactly"):
            Protocol(bad, good[:, 0], inputs, two)
        with pytest.raises(SpecError, match="sum to exactly"):
            Protocol(good, bad[:, 0], inputs, two)
    # Two entries whose 64-bit sum wraps around to the right value.
    wrapped = np.array([[2**63 + 2**62], [2**63 + 2**62]], dtype=np.uint64)
    with pytest.raises(SpecError, match="sum to exactly"):
        Protocol(wrapped, good[:, 0], inputs, two)
    with pytest.raises(SpecError, match="unsigned"):
        Protocol(good.astype(np.int64), good[:, 0], inputs, two)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="read-only"):
        Protocol(good, good[:, 0], inputs, two).weights[0, 0] = 0


def test_unknown_symbols_draw_from_the_marginal() -> None:
    one = protocol()
    other = Alphabet(one.inputs.columns, (("new",), one.inputs.symbols[1]))
    weights = one.weights_for(other)
    assert (weights[:, 0] == one.marginal).all()
    assert (weights[:, 1] == one.weights[:, 1]).all()
    with pytest.raises(DataError, match="the protocol reads"):
        one.weights_for(Alphabet(("z",), (("new",),)))


def test_what_a_notebook_shows_is_a_line_and_no_table_of_counts() -> None:
    joint = Joint.from_counts([[30, 10], [10, 50]])
    protocol = funnel.fit("grr", joint, LIP(0.5))
    assert repr(joint) == "<Joint of 100 records: S (2 values) by X (2 values)>"
    assert repr(joint.inputs) == "<Alphabet of X (2 values): X0, X1>"
    assert repr(protocol) == "<Protocol grr for lip:0.5: X (2 values) published as X (2 values)>"
    assert repr(funnel.History(LIP(0.5))) == "<History within lip:0.5: no version yet>"
