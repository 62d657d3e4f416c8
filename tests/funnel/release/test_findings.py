"""Findings and comparisons as documents: read back as they were, also what is infinite or undefined."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import funnel
from funnel.errors import DataError
from funnel.findings import DrawnRelease, Findings, audit_release
from funnel.findings.followed import ExpectedHistory, FoundHistory
from funnel.joint import Joint
from funnel.planning import plan
from funnel.protocol import Protocol
from funnel.release.comparison import ComparisonDocument, comparison_document
from funnel.release.findings import FindingsDocument, findings_document
from tests.schemas import validated

EVEN = Joint.from_counts([[30, 20, 5], [10, 40, 7]], ["yes", "no"], ["a", "b", "c"])
# Nobody answers "no", and "c" is certain to be "perhaps".
UNEVEN = Joint.from_counts([[30, 20, 0], [0, 0, 0], [10, 40, 7]], ["yes", "no", "perhaps"], ["a", "b", "c"])


def identity(joint: Joint) -> Protocol:
    """Everybody tells the truth; a fourth output never occurs."""
    weights = np.zeros((4, 3), dtype=np.uint64)
    weights[np.arange(3), np.arange(3)] = 2**63
    outputs = funnel.Alphabet(joint.inputs.columns, (*joint.inputs.symbols, ("d",)))
    return Protocol(weights, weights[:, 0], joint.inputs, outputs)


def findings(joint: Joint, protocol: Protocol, guarantee: str) -> Findings:
    b, a = protocol.size
    pairs = np.zeros((a + 1, b), dtype=np.int64)
    pairs[np.arange(a), protocol.weights.argmax(axis=0)] = joint.counts.sum(axis=0)
    return audit_release(joint, DrawnRelease(protocol, funnel.parse_guarantee(guarantee), pairs))


@pytest.mark.parametrize("text", ["lip:0.5", "ldp:1", "alip:1.3,0.7", "mi:0.05", "chi2-lift:1,1", "rldp:2"])
def test_findings_are_read_back_as_they_were(text: str) -> None:
    found = findings(EVEN, funnel.fit("grr", EVEN, funnel.LIP(0.4)), text)
    document = findings_document(found)
    assert validated(document.content()) == "findings"
    assert FindingsDocument.from_json(document.to_bytes()) == document
    assert document.guarantee == found.guarantee
    assert (document.level, document.utility, document.holds) == (found.level, found.utility, found.holds)
    assert [list(row) for row in document.lift] == found.lift.tolist()


def test_what_is_infinite_or_undefined_is_none() -> None:
    found = findings(UNEVEN, identity(UNEVEN), "lip:1")
    assert math.isinf(found.level)
    assert not found.holds
    document = findings_document(found)
    assert validated(document.content()) == "findings"
    assert (document.level, document.level_ratio, document.robust_level) == (None, None, None)
    assert [value is None for value in document.lift[0]] == [False, False, False, True]
    assert all(value is None for value in document.lift[1])
    assert FindingsDocument.from_json(document.to_bytes()) == document


@pytest.mark.parametrize("left_open", [None, 0.02])
def test_what_all_versions_disclose_is_read_back(left_open: float | None) -> None:
    expected = ExpectedHistory(3, 0.9, 0.0, 0.0, 0.01, 4, 1, left_open)
    history = FoundHistory(
        "people",
        2,
        3,
        40,
        0,
        2,
        0.9,
        None,
        (("people/1.0.0", "a"),),
        "a",
        "yes",
        0,
        0,
        1.0,
        0.4,
        0.5,
        0.6,
        0.7,
        expected=expected,
    )
    document = findings_document(replace(findings(EVEN, identity(EVEN), "lip:1"), history=history))
    assert validated(document.content()) == "findings"
    assert FindingsDocument.from_json(document.to_bytes()).history == history


def test_a_comparison_is_read_back_as_it_was() -> None:
    rows = plan(EVEN, funnel.LIP(0.5), ["grr", "subset-merging", "conditional-reporting", "robust-optimal"])
    document = comparison_document(rows)
    assert validated(document.content()) == "comparison"
    # What stays unchanged, and the bound that plans leave mechanisms out by, are in plans; a certificate says the same.
    told = [{key: value for key, value in row.to_dict().items() if key not in ("unchanged", "bound")} for row in rows]
    assert document.content()["rows"] == told
    # One of them reads the secret and one is no mechanism for LIP: what may not be used is there with its reason.
    assert [row.usable for row in document.rows] == [row.reason is None for row in rows]
    assert {row.usable for row in document.rows} == {True, False}
    assert ComparisonDocument.from_json(document.to_bytes()) == document
    for damaged in ("{}", "[1]", "3", '[{"mechanism": "grr"}]'):
        with pytest.raises(DataError, match=r"^the comparison of mechanisms is damaged: "):
            ComparisonDocument.from_json(damaged)
