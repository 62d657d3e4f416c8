"""The balance of an invariant protocol, decided in whole numbers from the content of its file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.protocol import DENOMINATOR, Protocol
from funnel.recount.balance import alphabet_complaints, average_complaints, balance_complaints, gains, is_invariant
from tests.invariant import IntTable, counts_of, flows, protocol_of_flow

Symbols = tuple[tuple[str, ...], ...]


def complaints(protocol: Protocol, counts: Sequence[int]) -> list[str]:
    symbols: Symbols = protocol.inputs.symbols
    return list(balance_complaints(protocol.to_dict(), symbols, list(counts)))


@given(flows())
def test_the_protocol_of_a_flow_is_balanced_for_its_counts(flow: IntTable) -> None:
    protocol = protocol_of_flow(flow)
    assert is_invariant(protocol.to_dict())
    assert complaints(protocol, counts_of(flow).tolist()) == []


@given(flows(), st.data())
def test_a_record_more_in_one_value_unbalances_what_changes_it(flow: IntTable, data: st.DataObject) -> None:
    protocol, counts = protocol_of_flow(flow), counts_of(flow).tolist()
    x = data.draw(st.integers(0, len(counts) - 1))
    counts[x] += 1
    exact = int(protocol.weights[x, x]) == DENOMINATOR
    assert bool(complaints(protocol, counts)) is not exact


@given(flows(), st.data())
def test_a_channel_is_right_on_average_to_within_a_record(flow: IntTable, data: st.DataObject) -> None:
    weights, counts = protocol_of_flow(flow).weights.tolist(), counts_of(flow).tolist()
    assert list(average_complaints(weights, counts)) == []
    x = data.draw(st.integers(0, len(counts) - 1))
    more = data.draw(st.integers(1, 40))
    counts[x] += more
    # All others are published more often by what it gives them, and it is missing as many records.
    missing = more * (DENOMINATOR - weights[x][x])
    (*found,) = average_complaints(weights, counts)
    assert bool(found) is (missing > DENOMINATOR)


@given(flows(), st.data())
def test_rounded_probabilities_may_be_off_by_as_much_and_by_a_record(flow: IntTable, data: st.DataObject) -> None:
    protocol, counts = protocol_of_flow(flow), counts_of(flow).tolist()
    x = data.draw(st.integers(0, len(counts) - 1))
    counts[x] += data.draw(st.integers(1, 40))
    n = sum(counts)
    content, symbols = protocol.to_dict(), protocol.inputs.symbols
    furthest = max(abs(one) for one in gains(content, counts)) / DENOMINATOR / n
    for off in (2.0**-20, furthest / 2, furthest):
        wrong = furthest > off + 1 / n
        if off > 0 and abs(furthest - off - 1 / n) > 1e-9:
            assert bool(list(balance_complaints(content, symbols, counts, off=off))) is wrong


@given(flows())
def test_what_outputs_gain_is_what_others_lose(flow: IntTable) -> None:
    protocol = protocol_of_flow(flow)
    counts = np.arange(1, len(flow) + 1).astype(object)
    found = gains(protocol.to_dict(), counts.tolist())
    expected = protocol.weights.astype(object) @ counts - DENOMINATOR * counts
    assert found == expected.tolist()
    assert sum(found) == 0


def spoilt(protocol: Protocol, change: str) -> dict[str, Any]:
    content = protocol.to_dict()
    if change == "another column":
        content["outputs"]["columns"] = ["Z"]
    elif change == "another order":
        content["outputs"]["symbols"] = content["outputs"]["symbols"][::-1]
    else:
        content["outputs"]["symbols"][0] = ["other"]
    return content


@pytest.mark.parametrize("change", ["another column", "another order", "another value"])
def test_outputs_that_are_not_the_inputs(change: str) -> None:
    protocol = protocol_of_flow(np.diag([12, 24, 36]))
    assert list(alphabet_complaints(spoilt(protocol, change)))
    assert list(balance_complaints(spoilt(protocol, change), protocol.inputs.symbols, [1, 2, 3]))


def test_counts_of_values_that_are_not_read() -> None:
    protocol = protocol_of_flow(np.diag([12, 24]))
    (said,) = balance_complaints(protocol.to_dict(), (*protocol.inputs.symbols, ("new",)), [1, 2, 1])
    assert said == "a value has a count, and the protocol does not read it"
    assert not list(balance_complaints(protocol.to_dict(), (*protocol.inputs.symbols, ("new",)), [1, 2, 0]))
