"""Sparse weights: the same table without its zeros, and protocols that are written, read and judged by it."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel.alphabet import Alphabet
from funnel.audit.labels import check_labels
from funnel.errors import DataError, SpecError
from funnel.measures import mutual_information
from funnel.naming import name_outputs
from funnel.protocol import DENOMINATOR, FORMAT, SPARSE_FORMAT, Protocol
from funnel.recount.released import ReleasedProtocol
from funnel.release.protocol_document import ProtocolDocument, protocol_document
from funnel.rounding import marginal_weights
from funnel.sparse_weights import SparseWeights
from tests.public import UNPROTECTED, public_of
from tests.schemas import validated


@st.composite
def tables(draw: st.DrawFn) -> np.ndarray:
    b, a = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    cells = st.sampled_from([0, 0, 1, 2**32 - 1, 2**32, 2**62 + 3, 2**63])
    return np.array(draw(st.lists(cells, min_size=a * b, max_size=a * b)), dtype=np.uint64).reshape(b, a)


@st.composite
def channels(draw: st.DrawFn) -> tuple[funnel.Joint, np.ndarray]:
    c, a, b = draw(st.integers(2, 3)), draw(st.integers(1, 6)), draw(st.integers(1, 4))
    counts = draw(st.lists(st.integers(0, 9), min_size=c * a, max_size=c * a).filter(any))
    cut = st.lists(st.sampled_from([0, 1, 2**61, 2**62, 2**63]), min_size=b - 1, max_size=b - 1).map(sorted)
    cuts = [[0, *draw(cut), 2**63] for _ in range(a)]
    weights = np.array([[high - low for low, high in itertools.pairwise(c)] for c in cuts], dtype=np.uint64).T
    return funnel.Joint.from_counts(np.reshape(counts, (c, a))), np.ascontiguousarray(weights)


def as_sparse(joint: funnel.Joint, weights: np.ndarray) -> Protocol:
    names = name_outputs(SparseWeights.of(weights), joint.inputs, joint.inputs.columns)
    return Protocol.of_sparse(SparseWeights.of(weights), marginal_weights(joint, weights), joint.inputs, names)


@settings(max_examples=50)
@given(tables(), st.integers(1, 3))
def test_nothing_is_lost(table: np.ndarray, size: int) -> None:
    sparse = SparseWeights.of(table)
    assert (sparse.table() == table).all()
    assert sparse.shape == table.shape
    assert sparse.sums_by_input() == [sum(int(v) for v in column) for column in table.T]
    counts = np.arange(table.shape[1])
    assert sparse.masses(counts) == [sum(int(v) * x for x, v in enumerate(row)) for row in table]
    order = np.arange(len(table))[::-1]
    assert (sparse.chosen(order).table() == table[::-1]).all()
    whole = np.zeros_like(table)
    for first, inputs, rows in sparse.blocks(size):
        whole[np.ix_(range(first, first + len(rows)), inputs)] = rows
    assert (whole == table).all()


def test_entries_that_do_not_fit_are_refused() -> None:
    one, two = np.array([0, 1]), np.array([5, 7], dtype=np.uint64)
    for starts, inputs, values in (
        ([0, 2], one[::-1], two),
        ([0, 2], [1, 1], two),
        ([0, 2], [0, 2], two),
        ([0, 3], one, two),
        ([0, 2], one, np.array([5, 0], dtype=np.uint64)),
        ([0, 2], one, two.astype(np.int64)),
    ):
        with pytest.raises(SpecError):
            SparseWeights(np.array(starts), np.array(inputs), values, 2)
    with pytest.raises(SpecError, match="do not fit memory"):
        SparseWeights(np.zeros(100_001, dtype=np.int64), np.zeros(0, dtype=np.int64), two[:0], 100_000).table()


@settings(max_examples=40)
@given(channels(), st.sampled_from([funnel.LIP(0.5), funnel.LDP(1.0), funnel.ALIP(0.3, 0.7), funnel.PML(0.4)]))
def test_a_sparse_protocol_is_judged_like_its_table(
    channel: tuple[funnel.Joint, np.ndarray], guarantee: funnel.Guarantee
) -> None:
    joint, weights = channel
    sparse = as_sparse(joint, weights)
    table = Protocol(weights, sparse.marginal, sparse.inputs, sparse.outputs)
    assert sparse.is_sparse
    assert not table.is_sparse
    ours, theirs = guarantee.level(joint, sparse), guarantee.level(joint, table)
    assert ours.value == theirs.value
    assert ours.witness.ratio == theirs.witness.ratio
    assert guarantee.holds(joint, sparse) == guarantee.holds(joint, table)
    for counts in ("inputs", "secret", "secret and inputs"):
        assert mutual_information(joint, sparse, counts) == pytest.approx(
            mutual_information(joint, table, counts), abs=1e-12
        )
    assert "weights" not in sparse.__dict__ or (sparse.weights == weights).all()


@settings(max_examples=40)
@given(channels())
def test_a_sparse_protocol_is_read_as_it_was_written(channel: tuple[funnel.Joint, np.ndarray]) -> None:
    joint, weights = channel
    protocol = as_sparse(joint, weights)
    written = json.loads(protocol.to_json())
    assert written["format"] == SPARSE_FORMAT
    assert sum(map(len, written["weights"])) == np.count_nonzero(weights)
    again = Protocol.from_dict(written)
    assert again.digest == protocol.digest
    assert (again.weights == weights).all()
    assert replace(protocol, mechanism="x").digest == protocol.digest
    others = Alphabet(joint.inputs.columns, (("new",), *joint.inputs.symbols[::-1]))
    assert (protocol.sparse_for(others).table() == protocol.weights_for(others)).all()


def test_a_sparse_protocol_that_was_altered_is_refused() -> None:
    joint = funnel.Joint.from_counts([[3, 1], [1, 3]])
    weights = np.array([[DENOMINATOR, 2**62], [0, 2**62]], dtype=np.uint64)
    written = as_sparse(joint, weights).to_dict()
    for rows in (
        [{"0": str(DENOMINATOR), "1": str(2**62)}, {"1": str(2**62 - 1)}],
        [{"0": str(DENOMINATOR), "1": str(2**62)}, {"0": "0", "1": str(2**62)}],
        [{"0": str(DENOMINATOR)}, {"1": str(DENOMINATOR)}],
        [{"0": str(DENOMINATOR), "1": str(2**62)}, {"2": str(2**62)}],
    ):
        with pytest.raises(DataError):
            Protocol.from_dict({**written, "weights": rows})


def test_the_form_of_a_protocol_is_kept() -> None:
    joint = funnel.Joint.from_counts([[3, 1], [1, 3]])
    table = funnel.fit("grr", joint, funnel.LIP(0.5))
    assert table.format == FORMAT
    assert isinstance(table.to_dict()["weights"][0], list)
    sparse = as_sparse(joint, table.weights)
    assert replace(sparse, weights=table.weights[::-1].copy(), marginal=table.marginal[::-1].copy()).is_sparse
    with pytest.raises(SpecError, match="format"):
        replace(table, format="funnel-protocol/3")


def sparse_document() -> tuple[Protocol, dict[str, Any]]:
    joint = funnel.Joint.from_counts([[3, 1, 2], [1, 3, 2]])
    guarantee = funnel.LIP(0.3)
    protocol = as_sparse(joint, funnel.optimal(joint, guarantee).protocol.weights)
    document = protocol_document(protocol, guarantee, public_of(joint, protocol, guarantee), UNPROTECTED)
    return protocol, json.loads(document.to_bytes())


def test_a_document_of_a_sparse_protocol_leaves_its_zeros_out() -> None:
    protocol, content = sparse_document()
    assert content["weights"] == protocol.to_dict()["weights"]
    again = ProtocolDocument.from_json(json.dumps(content))
    assert again.protocol.digest == protocol.digest
    rows = [{x: weight for x, weight in enumerate(row) if weight} for row in protocol.weights.tolist()]
    assert [dict(row) for row in again.entries] == rows
    assert validated(content) == "protocol"
    # Read by whoever judges it as well, as the same numbers.
    released = ReleasedProtocol.parse(json.dumps(content))
    assert released.sparse
    assert np.array_equal(np.array(released.weights, dtype=np.uint64), protocol.weights)


@pytest.mark.parametrize("row", [{"9": "1"}, {"00": "1"}, {"-1": "1"}, {"0": "0"}, ["1", "2", "3"]])
def test_a_document_of_a_sparse_protocol_that_is_damaged_is_refused(row: Any) -> None:
    _, content = sparse_document()
    content["weights"][0] = row
    with pytest.raises(DataError, match="weights are"):
        ProtocolDocument.from_json(json.dumps(content))
    with pytest.raises(DataError, match="cannot be read"):
        ReleasedProtocol.parse(json.dumps(content))


def test_a_set_of_values_has_one_name_in_a_wide_table() -> None:
    inputs = Alphabet(("x", "z"), (("B", "u"), ("A", "u"), ("A", "v"), ("C", "v"), ("D", "v")))
    rows = [[5, 3, 0, 0, 0], [3, 5, 0, 0, 0], [0, 9, 0, 0, 0], [1, 0, 1, 9, 8], [0, 0, 0, 8, 9]]
    names = name_outputs(SparseWeights.of(np.array(rows, dtype=np.uint64)), inputs, inputs.columns).symbols
    assert [x for x, _ in names] == ["B or A", "B or A", "A", "C or D or others", "C or D"]
    assert [z for _, z in names] == ["u", "u (2)", "u", "u or v", "v"]


@pytest.mark.parametrize(
    ("name", "said"), [("X0 or X1", True), ("X1 or X0", False), ("X0 or X2", False), ("X0 or others", False)]
)
def test_the_audit_reads_the_names_of_a_wide_table(name: str, said: bool) -> None:
    joint = funnel.Joint.from_counts([[3, 1, 2], [1, 3, 2]])
    weights = np.array([[2**60, 2**62, 0], [2**63 - 2**60, 2**63 - 2**62, 0], [0, 0, 2**63]], dtype=np.uint64)
    protocol = as_sparse(joint, weights)
    assert protocol.outputs.symbols == (("X0 or X1",), ("X0 or X1 (2)",), ("X2",))
    if name != "X0 or X1":
        renamed = Alphabet(protocol.outputs.columns, ((name,), *protocol.outputs.symbols[1:]))
        protocol = replace(protocol, outputs=renamed)
    guarantee = funnel.LIP(1.0)
    document = protocol_document(protocol, guarantee, public_of(joint, protocol, guarantee), UNPROTECTED)
    assert check_labels(SimpleNamespace(document=document)).passed is said


def test_a_protocol_too_wide_for_a_table_is_shown_without_one() -> None:
    size = 200_000
    many, whole = Alphabet.of(None, size, "X"), np.full(size, DENOMINATOR, dtype=np.uint64)
    weights = SparseWeights.of_entries(np.arange(size), np.arange(size), whole, (size, size))
    marginal = np.zeros(size, dtype=np.uint64)
    marginal[0] = DENOMINATOR
    wide = Protocol.of_sparse(weights, marginal, many, many)
    assert repr(wide) == "<Protocol: X (200,000 values) published as X (200,000 values)>"
