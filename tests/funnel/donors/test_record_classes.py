"""Classes of records: questions that anybody can ask, the same by the second computation, within the rules."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.alphabet import Alphabet
from funnel.disclosure.rules import Rules
from funnel.donors.growing import pooled, record_classes
from funnel.donors.record_classes import Question, RecordClasses
from funnel.errors import DataError
from funnel.joint import Joint
from funnel.recount.classes import PlainClasses
from funnel.release.classes_document import ClassesDocument, classes_document

COLUMNS = ("size", "colour", "shape")
RULES = Rules(5, 0.9, 1.0)


def possible(tables: np.ndarray) -> np.ndarray:
    return np.asarray(~RULES.small(tables).any(axis=0))


def everything(tables: np.ndarray) -> np.ndarray:
    return np.ones(tables.shape[1], dtype=np.bool_)


def prevailing(tables: np.ndarray) -> np.ndarray:
    return np.asarray(~RULES.above(tables, tables.sum(axis=0)).any(axis=0))


@st.composite
def joints(draw: st.DrawFn) -> Joint:
    """Records of three columns, with a secret of two or three values that depends on the first two."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = [draw(st.integers(2, 4)) for _ in COLUMNS]
    secrets = draw(st.integers(2, 3))
    symbols = tuple((f"s{i}", f"c{j}", f"f{k}") for i, j, k in np.ndindex(*sizes))
    tells = random.dirichlet(np.full(secrets, 0.5), (sizes[0], sizes[1]))
    counts = [random.multinomial(random.integers(1, 80), tells[int(s[1:]), int(c[1:])]) for s, c, _ in symbols]
    return Joint.from_counts(np.array(counts).T, inputs=Alphabet(COLUMNS, symbols))


def grown(joint: Joint, least: int = 20, allowed: Any = everything) -> RecordClasses:
    return record_classes(joint, least, 30, possible, allowed)


@given(joints())
def test_classes_are_large_enough_and_keep_the_rules(joint: Joint) -> None:
    classes = grown(joint)
    counted = classes.counted(joint)
    assert counted.n == joint.n
    assert np.array_equal(counted.counts.sum(axis=1), joint.counts.sum(axis=1))
    if len(classes.names) > 1:
        assert counted.counts.sum(axis=0).min() >= 20
        assert not RULES.small(counted.counts).any()


@given(joints())
def test_the_second_computation_asks_the_same_questions(joint: Joint) -> None:
    classes = grown(joint, allowed=prevailing)
    plain = PlainClasses.parse(classes_document(classes).to_bytes())
    of = classes.of_records(joint.inputs)
    assert [plain.of(symbol) for symbol in joint.inputs.symbols] == [classes.names[number] for number in of]
    # Of values that nobody has, too.
    strange = Alphabet(COLUMNS, (("unknown", "c0", "f1"),))
    assert plain.of(strange.symbols[0]) == classes.names[classes.of_records(strange)[0]]


@given(joints())
def test_the_document_says_the_classes(joint: Joint) -> None:
    document = classes_document(grown(joint))
    assert ClassesDocument.from_json(document.to_bytes()).classes == grown(joint)


@given(joints())
def test_nothing_is_asked_that_tells_nothing(joint: Joint) -> None:
    """A secret that has one distribution everywhere leaves one class."""
    totals = np.maximum(joint.counts.sum(axis=0), 1)
    same = Joint.from_counts(np.stack([3 * totals, totals]), inputs=joint.inputs)
    assert len(grown(same).names) == 1


@given(joints())
def test_parts_are_pooled_until_all_may_be_classes(joint: Joint) -> None:
    of = pooled(joint.counts, prevailing)
    tables = np.stack([joint.counts[:, of == number].sum(axis=1) for number in range(of.max() + 1)], axis=1)
    assert set(of.tolist()) == set(range(of.max() + 1))
    assert prevailing(tables).all() or tables.shape[1] == 1


def test_a_secret_that_one_column_tells_is_found() -> None:
    inputs = Alphabet(("a", "b"), (("x", "p"), ("x", "q"), ("y", "p"), ("y", "q")))
    joint = Joint.from_counts([[80, 90, 20, 30], [20, 10, 80, 70]], inputs=inputs)
    classes = record_classes(joint, 50, 2, everything, everything)
    assert classes.questions == (Question("a", ("y",), "1", "2"),) or classes.questions[0].column == "a"
    assert len(classes.names) == 2


@pytest.mark.parametrize(
    "questions",
    [
        (Question("a", ("x",), 0, "1"),),
        (Question("a", ("x",), 2, "1"),),
        (Question("a", ("x",), "1", "3"),),
        (Question("c", ("x",), "1", "2"),),
        (Question("a", ("x",), 1, 1), Question("a", ("y",), "1", "2")),
    ],
    ids=["leads back", "leads nowhere", "another name", "another column", "two ways"],
)
def test_what_is_no_tree_is_refused(questions: tuple[Question, ...]) -> None:
    with pytest.raises(DataError, match="no tree"):
        RecordClasses(("a", "b"), questions, ("1", "2"))


def test_a_document_that_says_more_is_refused() -> None:
    classes = RecordClasses(("a",), (Question("a", ("x",), "1", "2"),), ("1", "2"))
    content = json.loads(classes_document(classes).to_bytes())
    with pytest.raises(DataError, match="more than"):
        PlainClasses.parse(json.dumps({**content, "rows": [1]}).encode())
    content["questions"][0]["then"] = "7"
    with pytest.raises(DataError, match="no class"):
        PlainClasses.parse(json.dumps(content).encode()).of(("x",))
