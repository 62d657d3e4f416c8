"""Grouped protocols are read back as they were written, and refuse what does not fit together."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

import funnel
from funnel.groups import GroupedSolution
from funnel.groups.ahead import classes_of
from funnel.groups.labels import set_label
from funnel.groups.prove import prove
from funnel.recount.grouped import record_level


def test_it_is_read_back_from_json(made: GroupedSolution) -> None:
    protocol = made.protocol
    assert funnel.GroupedProtocol.from_json(protocol.to_json()) == protocol
    # No weight is larger than JSON readers can have in a double.
    assert json.loads(protocol.to_json()) == json.loads(protocol.to_json(), parse_int=lambda text: int(float(text)))


def test_another_weight_is_another_digest(made: GroupedSolution) -> None:
    content = made.protocol.to_dict()
    first, second = (weights for weights in content["stages"][0]["channels"][0]["weights"][:2])
    first[0] -= 1
    with pytest.raises(funnel.FunnelError):
        funnel.GroupedProtocol.from_json(json.dumps(content))
    first[0] += 1
    content["stages"][0]["classes"][0][1][0] = -1 if content["stages"][0]["classes"][0][1][0] >= 0 else 0
    with pytest.raises(funnel.DataError, match="digest"):
        funnel.GroupedProtocol.from_json(json.dumps(content))
    with pytest.raises(funnel.DataError, match="no grouped protocol"):
        funnel.GroupedProtocol.from_json("{}")
    assert second


def test_stages_must_fit_together(made: GroupedSolution) -> None:
    protocol = made.protocol
    first = protocol.stages[0]
    channel, following = first.classes[0]
    with pytest.raises(funnel.SpecError, match="every published column once"):
        replace(protocol, columns=("x", "y"))
    wrong = replace(first, classes=((channel, (10**6, *following[1:])),))
    with pytest.raises(funnel.SpecError, match="leads to none"):
        replace(protocol, stages=(wrong, *protocol.stages[1:]))
    with pytest.raises(funnel.SpecError, match="one class"):
        replace(protocol, stages=(replace(first, classes=first.classes * 2), *protocol.stages[1:]))
    row = first.channels[0].weights[0]
    heavier = replace(first.channels[0], weights=((row[0] + 1, *row[1:]), *first.channels[0].weights[1:]))
    stage = replace(first, channels=(heavier, *first.channels[1:]))
    with pytest.raises(funnel.SpecError, match="do not sum"):
        replace(protocol, stages=(stage, *protocol.stages[1:]))


def test_a_protocol_that_says_more_does_not_hold(binary: funnel.Joint, made: GroupedSolution) -> None:
    tight = funnel.LIP(made.level / 2)
    assert prove(binary, funnel.LIP(0.7), made.protocol).holds
    assert not prove(binary, tight, made.protocol).holds
    counts = {
        (binary.secret.symbols[s], binary.inputs.symbols[r]): int(binary.counts[s, r])
        for s, r in zip(*np.nonzero(binary.counts), strict=True)
    }
    text = made.protocol.to_json()
    assert not record_level(text, str(tight), counts).holds
    # Of some records, the level is that of the worst of them; what nobody can be published as is counted.
    some = [tuple(made.protocol.labels[column][0] for column in made.protocol.columns), ("no", "such", "record")]
    asked = record_level(text, "lip:0.7", counts, some)
    assert asked.records + asked.missing == 2
    assert asked.missing >= 1
    assert asked.nats <= record_level(text, "lip:0.7", counts).nats
    # Published as it is, the table is beyond the bound.
    symbols = {column: sorted({symbol[j] for symbol in binary.inputs.symbols}) for j, column in enumerate("xyz")}
    content = made.protocol.to_dict()
    for stage in content["stages"]:
        (column,) = stage["columns"]
        size = len(symbols[column])
        stage["ahead"], stage["symbols"] = None, [[value] for value in symbols[column]]
        unit = content["denominator"]
        weights = {
            "inputs": [[x] for x in range(size)],
            "weights": [[unit]] * size,
            "marginal": [unit] + [0] * (size - 1),
        }
        stage["channels"] = [{"labels": stage["symbols"], **weights}]
        stage["classes"] = [[0, [-1 if column == "z" else 0] * size]]
    assert not record_level(json.dumps(content), "lip:0.7", counts).holds
    with pytest.raises(funnel.SpecError, match="whole records"):
        record_level(text, "mi:0.1", counts)
    with pytest.raises(funnel.DataError, match="no grouped protocol"):
        record_level("[]", "lip:0.7", counts)


@pytest.mark.parametrize(
    ("members", "label"),
    [
        ([True, False, False, False], "a"),
        ([True, False, True, False], "a or c"),
        ([True, True, True, False], "any but d"),
        ([True, True, True, True], "any"),
    ],
)
def test_sets_have_one_label_in_the_order_of_the_values(members: list[bool], label: str) -> None:
    assert set_label(("a", "b", "c", "d"), np.array(members)) == label


def test_a_set_is_never_called_like_a_value() -> None:
    hostile = ("a", "b", "a or b", "c", "d", "e")
    assert set_label(hostile, np.array([True, True, *[False] * 4])) == '"a" or "b"'
    assert set_label(hostile, np.array([False, False, True, *[False] * 3])) == "a or b"
    assert set_label(("any", "b"), np.array([True, True])) == "any (mixed)"


HOSTILE = (
    ("a", "b", "a or b", "b or c", "c"),
    ("any", "any (mixed)", "a", "any but a"),
    ("x or", "or y", "x", "y", "or"),
    ('"a" or "b"', "a", "b", '"a"', 'a" or "b'),
    ("any but a", "a", "b", "c", "d"),
    ("a", "b", "c", "", " or "),
)


@pytest.mark.parametrize("values", HOSTILE)
def test_no_two_sets_of_values_have_one_text_whatever_the_values_are(values: tuple[str, ...]) -> None:
    texts = {}
    for members in itertools.product((False, True), repeat=len(values)):
        if any(members):
            texts[members] = set_label(values, np.array(members))
    assert len(set(texts.values())) == len(texts)
    for members, text in texts.items():
        if text in values:
            assert [value for value, member in zip(values, members, strict=True) if member] == [text]


def test_values_with_close_posteriors_are_in_one_class() -> None:
    law = np.array([[30, 1, 29, 2, 5], [2, 30, 2, 28, 5]]) / 134
    assert classes_of(law, 3).tolist() == [0, 1, 0, 1, 2]
    assert classes_of(law, 9).tolist() == [0, 1, 2, 3, 4]
