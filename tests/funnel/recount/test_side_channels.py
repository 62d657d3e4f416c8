"""Observers who know published columns, several guarantees at once: both computations agree, over boxes too."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import funnel
from funnel import Joint, SpecError
from funnel.guarantees import examples
from funnel.recount.count_box import CountBox
from funnel.recount.levels import plain_level
from funnel.recount.promise import declared_promise, read_promise
from tests.funnel.guarantees.known import channels, noisy_tables, tables, worst_attribute, worst_srlip
from tests.funnel.recount.test_levels import same

KNOWN = ["srlip:0.7", "attribute:0.7", "rsrlip:1.2,0.1", "rattribute:1.2,0.1"]
TOGETHER = ["lip:0.7 & srlip:0.9", "rlip:1.2,0.1 & attribute:0.7", "ldp:1.5 & alip:inf,0.3 & rsrlip:0.9,0.01"]
READS = pytest.mark.parametrize("reads_secret", [False, True])


@pytest.mark.parametrize("text", KNOWN + TOGETHER)
@READS
@settings(max_examples=12, deadline=None)
@given(data=st.data(), joint=tables(largest=300))
def test_same_levels_and_decisions(text: str, reads_secret: bool, data: st.DataObject, joint: Joint) -> None:
    assume(joint.counts.any(axis=1).all())
    weights = data.draw(channels(4 * len(joint.secret) if reads_secret else 4))
    same(text, joint, weights, reads_secret)


@pytest.mark.parametrize("text", KNOWN + TOGETHER)
@READS
@settings(max_examples=10, deadline=None)
@given(data=st.data(), joint=noisy_tables())
def test_same_over_boxes(text: str, reads_secret: bool, data: st.DataObject, joint: Joint) -> None:
    assert joint.bounds is not None
    assume((joint.bounds.totals[:, 1] > 0).all() and joint.bounds.upper.any(axis=1).all())
    weights = data.draw(channels(4 * len(joint.secret) if reads_secret else 4))
    same(text, joint, weights, reads_secret)


@READS
@settings(max_examples=60, deadline=None)
@given(data=st.data(), joint=tables())
def test_the_definition_in_fractions(reads_secret: bool, data: st.DataObject, joint: Joint) -> None:
    weights = data.draw(channels(4 * len(joint.secret) if reads_secret else 4))
    for text, naive in (("srlip:0.7", worst_srlip), ("attribute:0.7", worst_attribute)):
        ratio = naive(joint.counts.tolist(), weights, reads_secret)
        found = plain_level(text, joint.counts, weights, reads_secret=reads_secret, published=joint.inputs.symbols)
        assert found.nats == pytest.approx(math.inf if ratio is None else math.log(ratio), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("text", KNOWN)
def test_promises_to_who_knows_columns_cover_noise(text: str) -> None:
    assert read_promise(text).covers_noise
    assert funnel.parse_guarantee(text).covers_noise


def test_parts_of_boxes_are_those_of_their_tables() -> None:
    box = CountBox.of([[1, 0, 2], [0, 0, 0]], [[4, 3, 5], [2, 2, 2]], [[8, 9], [0, 3]])
    part = box.part([0, 2])
    assert part.lower == ((1, 2), (0, 0))
    assert part.upper == ((4, 5), (2, 2))
    # The middle cell takes 0 to 3 of 8 to 9, and 0 to 2 of up to 3; the others add up to what is left, and may.
    assert part.totals == ((5, 9), (0, 3))


@pytest.mark.parametrize("text", TOGETHER)
def test_promises_of_several(text: str) -> None:
    promise = read_promise(text)
    guarantee = funnel.parse_guarantee(text)
    assert promise.covers_noise
    assert guarantee.covers_noise
    assert promise.kind == guarantee.name == "several"
    assert float(promise.budget) == guarantee.budget
    assert [part.kind for part in promise.parts] == [part.split(":")[0] for part in text.split(" & ")]
    listed = ", ".join(f'"{part}"' for part in text.split(" & "))
    for declared in (f'"{text}"', f"[{listed}]", f'{{kind = "several", parts = "{text}"}}'):
        assert declared_promise(f"guarantee = {declared}") == promise
    assert declared_promise('guarantee = ["lip:1.0"]') == read_promise("lip:1.0")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lip:1.0 & lip:1.0", "at least two different"),
        ("lip:1.0 & ", "knows no guarantee"),
        ("perfect & lip:1.0", "cannot be scaled"),
        ("lip:1.0 & alip:0,1", "cannot be scaled"),
    ],
)
def test_promises_that_are_none(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        read_promise(text)
    with pytest.raises(SpecError):
        funnel.parse_guarantee(text)


def test_both_refuse_what_is_not_said() -> None:
    joint = Joint.from_counts([[3, 4], [5, 6]])
    weights = np.array([[2**62, 2**62], [2**62, 2**62]], dtype=np.uint64)
    with pytest.raises(SpecError, match="attribute is about what an observer knows"):
        plain_level("attribute:1.0", joint.counts, weights)
    assert any("&" in example for example in examples())


def test_a_box_that_leaves_the_counts_alone_changes_nothing() -> None:
    joint = Joint.from_counts([[30, 10, 5, 5], [10, 20, 10, 10]], inputs=funnel.Alphabet(("a", "b"), _PAIRS))
    weights = np.array([[3, 1, 2, 2], [1, 3, 2, 2]], dtype=np.uint64) * np.uint64(2**61)
    box = CountBox.exactly(joint.counts)
    for text in KNOWN:
        levels = {plain_level(text, joint.counts, weights, published=_PAIRS, box=one).nats for one in (None, box)}
        assert len(levels) == 1


_PAIRS = (("x", "1"), ("x", "2"), ("y", "1"), ("y", "2"))
