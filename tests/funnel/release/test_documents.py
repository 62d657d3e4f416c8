"""Joint distribution, draws and protocol as documents: read back as they were, and never damaged."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funnel
from funnel import measures
from funnel.drawn import DrawnCounts
from funnel.errors import DataError
from funnel.joint import Joint
from funnel.protocol import Protocol
from funnel.recount.released import ReleasedProtocol
from funnel.release.documents import DrawsDocument, JointDocument, drawn_pairs, draws_document
from funnel.release.protocol_document import ProtocolDocument, protocol_document
from funnel.release.public.public_distributions import PublicDistributions
from funnel.sparse_weights import SparseWeights
from tests.public import UNPROTECTED, counted, public_of
from tests.schemas import validated
from tests.strategies import joints

COUNTS = [[30, 20, 5, 0], [10, 40, 7, 0]]
JOINT = Joint.from_counts(COUNTS, ["yes", "no"], [("a", "1"), ("a", "2"), ("b", "1"), ("b", "2")])
LIP = funnel.LIP(0.5)
PROTOCOL = funnel.fit("grr", JOINT, LIP)
SECRET = funnel.Alphabet.of(None, 1, "S")
Change = Callable[[dict[str, Any]], object]


PUBLIC = public_of(JOINT, PROTOCOL, LIP)


def made() -> dict[str, Any]:
    return protocol_document(PROTOCOL, LIP, PUBLIC, UNPROTECTED).content()


@given(joints())
def test_a_joint_distribution_is_read_back_as_it_was(joint: Joint) -> None:
    text = JointDocument.like(joint).to_bytes()
    assert json.loads(text)["schema"] == "funnel/joint/1"
    again = JointDocument.from_json(text).joint
    assert np.array_equal(again.counts, joint.counts)
    assert (again.secret, again.inputs) == (joint.secret, joint.inputs)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c.pop("counts"), "counts is missing"),
        (lambda c: c.pop("secret"), "secret is missing"),
        (lambda c: c.update(counts=[[1, 2]]), "it cannot be used: 2 labels were given for the 1 symbols of S"),
        (lambda c: c["counts"][0].pop(), "it cannot be used: counts must be a rectangular"),
        (lambda c: c.update(counts=[[0] * 4, [0] * 4]), "it cannot be used: all counts are zero"),
        (lambda c: c["counts"][0].insert(0, -1), "counts.0.0: input should be greater than or equal to 0"),
        (lambda c: c["counts"][0].insert(0, 1.5), "counts.0.0: input should be a valid integer"),
        (lambda c: c["counts"][0].insert(0, "1"), "counts.0.0: input should be a valid integer"),
        (lambda c: c["inputs"]["symbols"].reverse() or c["inputs"].update(columns="ab"), "inputs.columns: "),
        (lambda c: c["secret"].update(symbols=[["no"], ["no"]]), "it cannot be used: the symbols over"),
        (lambda c: c.update(further=1), "further is not known"),
    ],
)
def test_a_damaged_joint_distribution_is_refused(change: Change, said: str) -> None:
    content = JointDocument.like(JOINT).content()
    change(content)
    with pytest.raises(DataError) as caught:
        JointDocument.from_json(json.dumps(content), "joint.json")
    assert str(caught.value).startswith(f"the joint distribution joint.json is damaged: {said}")


@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(1, 3), st.integers(1, 4))
def test_counts_by_secret_are_read_back_as_they_were(seed: int, c: int, a: int, b: int) -> None:
    random = np.random.default_rng(seed)
    counts = DrawnCounts.of(random.integers(0, 3, (c + 1, a + 1, b)))
    secret = funnel.Alphabet.of(None, c, "S")
    text = draws_document(counts, secret, "ab" * 16).to_bytes()
    found = DrawsDocument.from_json(text)
    assert (found.counts.cells.tolist(), found.counts.records.tolist()) == (
        counts.cells.tolist(),
        counts.records.tolist(),
    )
    assert (found.counts.shape, found.secret.alphabet(), found.probe) == ((c + 1, a + 1, b), secret, "ab" * 16)
    assert found.pairs.pairs.tolist() == counts.pairs.tolist()
    assert validated(found.content()) == "draws"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cells": None}, "cells: input should be a valid array"),
        ({"cells": [0, 2.5]}, "cells.1: input should be a valid integer"),
        ({"cells": [0, -2]}, "cells.1: input should be greater than or equal to 0"),
        ({"shape": None}, "shape: input should be a valid array"),
        ({"shape": [1, 1]}, "it cannot be used: counts of draws are outside their table"),
        ({"shape": [0, 3]}, "it cannot be used: counts of draws do not fit a table of 2 × 0 × 3 cells"),
        ({"records": [1, 0]}, "it cannot be used: counts of draws are not in order, or not above zero"),
        ({"cells": [0, 99]}, "it cannot be used: counts of draws are outside their table"),
        ({"cells": [0, 2**63]}, "it counts more than 64 bits hold"),
        ({"cells": [0]}, "it cannot be used: counts of draws do not fit a table"),
        ({"probe": "x"}, "probe: string should match pattern"),
    ],
)
def test_damaged_counts_by_secret_are_refused(changes: dict[str, Any], said: str) -> None:
    counts = DrawnCounts.of(np.array([[[1, 0], [2, 0]], [[0, 0], [0, 0]]]))
    content = draws_document(counts, SECRET, "ab" * 16).content()
    assert DrawsDocument.from_json(json.dumps(content)).counts is not None
    with pytest.raises(DataError) as caught:
        DrawsDocument.from_json(json.dumps({**content, **changes}))
    assert str(caught.value).startswith(f"the table of drawn pairs is damaged: {said}")


def test_draws_of_another_protocol_are_refused() -> None:
    text = draws_document(DrawnCounts.of(np.ones((2, 5, 3), dtype=np.int64)), SECRET, "ab" * 16).to_bytes()
    with pytest.raises(DataError, match=r"have shape \(5, 3\), not \(5, 4\)$"):
        drawn_pairs(DrawsDocument.from_json(text), PROTOCOL)


@given(joints(), st.sampled_from(["lip:1", "ldp:0.5", "alip:1.3,0.7", "mi:0.1", "perfect"]))
def test_a_protocol_is_read_back_as_it_was(joint: Joint, text: str) -> None:
    guarantee = funnel.parse_guarantee(text)
    weights = np.full((2, len(joint.inputs)), 2**62, dtype=np.uint64)
    outputs = funnel.Alphabet.of([joint.inputs.symbols[0], ("?",) * len(joint.inputs.columns)], 2, "X")
    outputs = funnel.Alphabet(joint.inputs.columns, outputs.symbols)
    protocol = Protocol(weights, weights[:, 0], joint.inputs, outputs, "by hand", str(guarantee))
    document = protocol_document(protocol, guarantee, public_of(joint, protocol, guarantee), UNPROTECTED)
    for written in (document.to_bytes(), protocol.to_json()):
        again = Protocol.from_json(written)
        assert (again.digest, again.guarantee, again.mechanism) == (protocol.digest, str(guarantee), "by hand")
    assert ProtocolDocument.from_json(document.to_bytes()) == document
    assert document.protocol.digest == protocol.digest
    # The same for everybody: it tells nothing, and says so.
    assert document.guarantee.level == guarantee.level(joint, protocol).value == 0


def test_what_a_protocol_document_says() -> None:
    content = made()
    assert content["schema"] == "funnel/protocol/1"
    assert content["guarantee"] == {
        "kind": "lip",
        "title": LIP.title,
        "declared": "lip:0.5",
        "unit": "nats",
        "level": 0.5,
        "secret": list(JOINT.secret.columns),
    }
    # But for the guarantee, every key of a protocol on its own means the same.
    alone = PROTOCOL.to_dict()
    assert alone.pop("guarantee") == "lip:0.5"
    assert {key: content[key] for key in alone} == alone
    distributions = PublicDistributions.of(counted(JOINT), PROTOCOL)
    # It follows from the weights and the prior.
    assert content["posterior"] is None
    assert content["prior"]["probabilities"] == distributions.p_input.tolist()
    assert content["utility"]["share"] == distributions.nats(measures.normalised_mutual_information(JOINT, PROTOCOL))


def test_posteriors_are_told_where_the_secret_is_read() -> None:
    protocol = funnel.fit("optimal-with-secret", JOINT, LIP)
    public = public_of(JOINT, protocol, LIP)
    document = protocol_document(protocol, LIP, public, UNPROTECTED)
    content = document.content()
    assert [tuple(said["output"]) for said in content["posterior"]] == list(protocol.outputs.symbols)
    for y, said in enumerate(content["posterior"]):
        assert said["probability"] == round(float(public.distributions.p_output[y]), 4)
        found = [said["inputs"].get(str(x), 0.0) for x in range(len(JOINT.inputs))]
        assert found == pytest.approx(public.distributions.posterior[y].tolist(), abs=5e-5)
        # Nobody has the last value, and what is zero is left out.
        assert "3" not in said["inputs"]
    without, fewer = {**content, "posterior": None}, {**content, "posterior": content["posterior"][1:]}
    for spoilt, why in ((without, "none though it reads the secret"), (fewer, "one posterior for every output")):
        with pytest.raises(DataError, match=why):
            ProtocolDocument.from_json(json.dumps(spoilt))


DAMAGE: list[tuple[Change, str]] = [
    (
        lambda c: [row.reverse() for row in c["weights"]],
        "it cannot be used: the protocol does not match its own digest",
    ),
    (lambda c: c.update(digest="0" * 64), "it cannot be used: the protocol does not match its own digest"),
    (lambda c: c["weights"][0].__setitem__(0, "1"), "it cannot be used: this is not a readable protocol"),
    (lambda c: c["weights"][0].__setitem__(0, 1), "weights.0.0: input should be a valid string"),
    (lambda c: c["weights"][0].__setitem__(0, "1e3"), "weights.0.0: string should match"),
    (lambda c: c["weights"][0].__setitem__(0, "-1"), "weights.0.0: string should match"),
    (lambda c: c.update(denominator="1"), "denominator: input should be '9223372036854775808'"),
    (lambda c: c.update(format="funnel-protocol/3"), "format: input should be 'funnel-protocol/1' or"),
    (lambda c: c.pop("marginal"), "marginal is missing"),
    (lambda c: c["guarantee"].update(kind="ldp"), "it declares a guarantee of another kind"),
    (lambda c: c["guarantee"].update(declared="no:1"), "it cannot be used: "),
    (lambda c: c["guarantee"].update(unit="bits"), "guarantee.unit: input should be 'nats'"),
    (lambda c: c.update(guarantee="lip:0.5"), "guarantee: "),
    (lambda c: c.update(posterior=[]), "it has posteriors that follow from the prior"),
    (lambda c: c["prior"]["probabilities"].pop(), "it does not have one prior probability for every symbol"),
    (lambda c: c["outputs"].update(columns="ab"), "outputs.columns: "),
    (lambda c: c.update(further=1), "further is not known"),
]


@pytest.mark.parametrize(("change", "said"), DAMAGE)
def test_a_damaged_protocol_is_refused(change: Change, said: str) -> None:
    content = made()
    change(content)
    with pytest.raises(DataError) as caught:
        ProtocolDocument.from_json(json.dumps(content), "protocol.json")
    assert str(caught.value).startswith(f"the protocol protocol.json is damaged: {said}")


def test_a_forged_document_is_refused_by_its_published_schema_too() -> None:
    """Somebody else's reader of JSON Schemas refuses what needs no arithmetic to be refused."""
    schema = jsonschema.Draft202012Validator(ProtocolDocument.json_schema())
    schema.validate(made())
    for change, said in DAMAGE:
        content = made()
        change(content)
        assert schema.is_valid(content) is said.startswith("it ")


def sparse_content() -> dict[str, Any]:
    """The document of the same protocol, written without its zeros."""
    weights = PROTOCOL.weights.copy()
    weights[:, 0] = 0
    weights[0, 0] = 2**63
    protocol = Protocol.of_sparse(SparseWeights.of(weights), PROTOCOL.marginal, PROTOCOL.inputs, PROTOCOL.outputs)
    guarantee = funnel.parse_guarantee("lip:9")
    public = public_of(JOINT, protocol, guarantee)
    document = protocol_document(protocol, guarantee, public, UNPROTECTED)
    assert document.protocol.digest == protocol.digest
    assert ProtocolDocument.from_json(document.to_bytes()) == document
    content: dict[str, Any] = json.loads(document.to_bytes())
    return content


def test_a_protocol_without_its_zeros_is_read_back_as_it_was() -> None:
    content = sparse_content()
    assert content["format"] == "funnel-protocol/2"
    assert content["weights"][0]["0"] == str(2**63)
    assert not any("0" in row for row in content["weights"][1:])
    again = Protocol.from_json(json.dumps(content))
    assert again.weights[:, 0].tolist() == [2**63, *[0] * (len(again.outputs) - 1)]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"99": "1"}, "are for inputs that there are not"),
        ({"00": "1"}, "are for inputs that there are not"),
        ({"0": "0"}, "are written where they are zero"),
        (["1", "2", "3", "4"], "are not written as funnel-protocol/2 writes them"),
    ],
)
def test_weights_that_are_written_otherwise_are_refused(row: object, said: str) -> None:
    content = sparse_content()
    content["weights"][0] = row
    with pytest.raises(DataError, match=said):
        ProtocolDocument.from_json(json.dumps(content))


def test_a_large_table_of_which_much_is_zero_is_written_without_and_is_the_same_protocol() -> None:
    """Of 36 inputs and outputs, each input staying with a half and else becoming the next: 72 weights of 1,296."""
    size, half = 36, 2**62
    weights = np.zeros((size, size), dtype=np.uint64)
    for x in range(size):
        weights[x, x] = weights[(x + 1) % size, x] = half
    symbols = tuple((f"value {x}",) for x in range(size))
    joint = funnel.Joint.from_counts(np.full((2, size), 100), inputs=[text for (text,) in symbols])
    marginal = np.array([2**63, *[0] * (size - 1)], dtype=np.uint64)
    protocol = Protocol(weights, marginal, joint.inputs, joint.inputs, "table", "lip:9")
    guarantee = funnel.parse_guarantee("lip:9")
    document = protocol_document(protocol, guarantee, public_of(joint, protocol, guarantee), UNPROTECTED)
    content = json.loads(document.to_bytes())
    assert content["format"] == "funnel-protocol/1"
    assert sum(map(len, content["weights"])) == 2 * size
    assert 3 * len(json.dumps(content["weights"])) < len(json.dumps(protocol.to_dict()["weights"]))
    assert validated(content) == "protocol"
    again = ProtocolDocument.from_json(document.to_bytes()).protocol
    assert (again.digest, again.format, again.is_sparse) == (protocol.digest, protocol.format, False)
    released = ReleasedProtocol.parse(document.to_bytes())
    assert not released.sparse
    assert np.array_equal(np.array(released.weights, dtype=np.uint64), weights)
    # Some rows as lists and others by position is no form at all.
    content["weights"][0] = protocol.to_dict()["weights"][0]
    with pytest.raises(DataError, match="are not written as"):
        ProtocolDocument.from_json(json.dumps(content))
