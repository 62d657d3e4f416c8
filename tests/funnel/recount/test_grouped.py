"""Everything that a grouped protocol can show, by enumeration of all records and outputs, for protocols of any kind."""

from __future__ import annotations

import copy
import json
import math
from collections import defaultdict
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.audit.grouped.law import PublishedLaw
from funnel.errors import DataError, SpecError
from funnel.recount.grouped import follow, record_level
from funnel.recount.grouped_text import UNIT, GroupedText, label_of, members_of, natural
from tests.funnel.recount.grouped_protocols import COLUMNS, protocols, tables, ways

Law = dict[Any, dict[str, Fraction]]


def enumerated(content: dict[str, Any], counts: dict[Any, int]) -> tuple[Law, Law]:
    """People by secret, expected after every prefix of outputs, and with every published record."""
    prefixes: Law = defaultdict(lambda: defaultdict(Fraction))
    records: Law = defaultdict(lambda: defaultdict(Fraction))
    for ((secret,), record), count in counts.items():
        known: dict[Any, Fraction] = defaultdict(Fraction)
        for path, shown, likely in ways(content, record):
            records[shown][secret] += count * likely
            for depth in range(1, len(path) + 1):
                known[path[:depth]] += likely
        for path, likely in known.items():
            prefixes[path][secret] += count * likely
    return prefixes, records


def ln(lift: Fraction) -> float:
    """To the last digits of a double near 1 as well, where a lift that is rounded first would lose them."""
    return math.log1p(float(lift - 1)) if abs(lift - 1) < Fraction(1, 2) else math.log(lift)


def level(law: Law, counts: dict[Any, int], kind: str) -> float:
    """The largest level over some posteriors, in floats."""
    sizes: dict[str, int] = defaultdict(int)
    for ((secret,), _), count in counts.items():
        sizes[secret] += count
    n, worst = sum(sizes.values()), 0.0
    for masses in law.values():
        lifts = [masses.get(s, Fraction(0)) * n / (sum(masses.values()) * size) for s, size in sizes.items()]
        if not min(lifts):
            return math.inf
        up, down = ln(max(lifts)), -ln(min(lifts))
        worst = max(worst, up + down if kind == "ldp" else max(up, down))
    return worst


@given(st.data(), st.sampled_from(["lip:0.9", "ldp:1.5"]))
@settings(max_examples=30, deadline=None)
def test_levels_are_those_of_all_prefixes_and_all_records(data: st.DataObject, guarantee: str) -> None:
    counts = data.draw(tables())
    content = data.draw(protocols(counts))
    prefixes, records = enumerated(content, counts)
    found = follow(json.dumps(content), guarantee, counts)
    kind, _, budget = guarantee.partition(":")
    assert found.decided == len(prefixes)
    assert found.records.records == len(records)
    assert set(found.masses) == set(records)
    for law, told in ((prefixes, found.outputs), (records, found.records)):
        exact = level(law, counts, kind)
        assert told.nats == pytest.approx(exact, rel=1e-12, abs=1e-12)
        assert told.nats >= exact * (1 - 1e-15) or math.isinf(exact)
        if abs(exact - float(budget)) > 1e-9:
            assert told.holds == (exact <= float(budget))
    assert found.records.nats <= found.outputs.nats
    unit = UNIT ** len(content["stages"])
    for shown, masses in found.masses.items():
        exact_of = records[shown]
        assert [Fraction(mass, unit) for mass in masses] == [exact_of.get(s, 0) for (s,) in found.secrets]


@given(st.data())
@settings(max_examples=20, deadline=None)
def test_the_law_of_records_is_that_of_all_their_ways(data: st.DataObject) -> None:
    counts = data.draw(tables())
    content = data.draw(protocols(counts))
    law = PublishedLaw.following(follow(json.dumps(content), "lip:1.0", counts))
    people: dict[Any, int] = defaultdict(int)
    joint: dict[tuple[Any, Any], float] = defaultdict(float)
    for (_, record), count in counts.items():
        people[record] += count
    for record, count in people.items():
        for _, shown, likely in ways(content, record):
            joint[record, shown] += count * float(likely)
    n = sum(people.values())
    entries = zip(law.rows.tolist(), law.published.tolist(), law.masses.tolist(), strict=True)
    found = {(law.followed.sources[r], law.records[y]): mass for r, y, mass in entries}
    assert found == pytest.approx(dict(joint))
    shown_by: dict[Any, float] = defaultdict(float)
    for (_, shown), mass in joint.items():
        shown_by[shown] += mass
    told = sum(
        mass / n * math.log(mass * n / (people[record] * shown_by[shown])) for (record, shown), mass in joint.items()
    )
    assert law.information == pytest.approx(max(0.0, told), abs=1e-12)
    assert [law.untrue(j) for j in range(len(COLUMNS))] == [0, 0, 0]
    for columns, channel in law.effective.items():
        places = [COLUMNS.index(column) for column in columns]
        cells: dict[tuple[Any, Any], float] = defaultdict(float)
        for (record, shown), mass in joint.items():
            cells[tuple(record[j] for j in places), tuple(shown[j] for j in places)] += mass
        entries_of = zip(channel.inputs_of.tolist(), channel.outputs_of.tolist(), channel.masses.tolist(), strict=True)
        assert {(channel.inputs[x], channel.outputs[y]): mass for x, y, mass in entries_of} == pytest.approx(
            dict(cells)
        )
    for j, column in enumerate(COLUMNS):
        plain = sum(mass for (record, shown), mass in joint.items() if record[j] == shown[j])
        assert law.plain[column] == pytest.approx(plain / n)


@given(st.data())
@settings(max_examples=20, deadline=None)
def test_a_text_is_the_set_that_it_names(data: st.DataObject) -> None:
    values = data.draw(
        st.lists(st.sampled_from(["a", "b", "a or b", "any", "any but a", '"a"', "9", "10"]), unique=True)
    )
    values = sorted(values, key=natural)
    members = set(data.draw(st.lists(st.sampled_from(values), min_size=1, unique=True))) if values else set()
    if members:
        text = label_of(values, members)
        assert members_of(text, values) == members
        assert text not in values or members == {text}


def test_numbers_in_texts_are_in_the_order_of_their_values() -> None:
    assert sorted(["10", "9", "b", "a10", "a9"], key=natural) == ["a9", "a10", "b", "9", "10"]


COUNTS = {(("no",), ("a", "u")): 30, (("yes",), ("a", "v")): 10, (("no",), ("b", "u")): 20, (("yes",), ("b", "v")): 40}
HALF = UNIT // 2


def small() -> dict[str, Any]:
    """Two columns: the first is mixed by halves, the second said where the first was."""
    first = {
        "labels": [["a"], ["any"]],
        "inputs": [[0], [0, 1]],
        "weights": [[HALF], [HALF, UNIT]],
        "marginal": [HALF, HALF],
    }
    mixed = {"labels": [["any"]], "inputs": [[0, 1]], "weights": [[UNIT, UNIT]], "marginal": [UNIT]}
    return {
        "format": "funnel-grouped-protocol/1",
        "denominator": UNIT,
        "columns": ["x", "y"],
        "guarantee": "lip:1.0",
        "people": 10,
        "digest": "",
        "stages": [
            {
                "columns": ["x"],
                "symbols": [["a"], ["b"]],
                "ahead": None,
                "channels": [first],
                "classes": [[0, [-1, 0]]],
            },
            {"columns": ["y"], "symbols": [["u"], ["v"]], "ahead": None, "channels": [mixed], "classes": [[0, [-1]]]},
        ],
    }


def changed(*path: Any, value: Any) -> dict[str, Any]:
    """The small protocol with something else at one place."""
    content = copy.deepcopy(small())
    place = content
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return content


@pytest.mark.parametrize(
    "content",
    [
        changed("stages", 0, "channels", 0, "weights", 0, value=[HALF - 1]),
        changed("stages", 0, "channels", 0, "weights", 0, value=[float(HALF)]),
        changed("stages", 0, "channels", 0, "weights", 0, value=[-HALF]),
        changed("stages", 0, "channels", 0, "inputs", 0, value=[2]),
        changed("stages", 0, "channels", 0, "inputs", 1, value=[0, 0]),
        changed("stages", 0, "channels", 0, "marginal", value=[HALF, HALF + 1]),
        changed("stages", 0, "channels", 0, "labels", value=[["a"]]),
        changed("stages", 0, "classes", value=[[0, [-1, 1]]]),
        changed("stages", 0, "classes", value=[[1, [-1, 0]]]),
        changed("stages", 0, "classes", value=[[0, [-1, 0]], [0, [-1, 0]]]),
        changed("stages", 1, "classes", value=[[0, [0]]]),
        changed("stages", 0, "symbols", value=[["a"], ["a"]]),
        changed("stages", 1, "columns", value=["x"]),
        changed("stages", 0, "ahead", value={"column": "y", "values": ["u", "v"], "classes": [0, 2]}),
        changed("stages", 1, "ahead", value={"column": "x", "values": ["a", "b"], "classes": [0, 0]}),
        changed("denominator", value=2**63),
        changed("format", value="funnel-protocol/1"),
        {},
    ],
)
def test_what_nobody_could_draw_by_is_refused(content: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="no grouped protocol"):
        follow(json.dumps(content), "lip:1.0", COUNTS)


def test_names_and_what_nobody_comes_to_are_found() -> None:
    assert list(GroupedText.parse(json.dumps(small())).misnamed()) == []
    wrong = changed("stages", 0, "channels", 0, "labels", value=[["any"], ["a"]])
    assert list(GroupedText.parse(json.dumps(wrong)).misnamed()) == [(1, 1, 1), (1, 1, 2)]
    idle = small()
    idle["stages"][1]["classes"].append([0, [-1]])
    idle["stages"][1]["channels"].append(copy.deepcopy(idle["stages"][1]["channels"][0]))
    assert list(GroupedText.parse(json.dumps(idle)).unused()) == [(2, "channel", 1), (2, "class", 1)]


def test_only_bounds_on_the_posterior_are_judged_and_somebody_is_counted() -> None:
    text = json.dumps(small())
    with pytest.raises(SpecError, match="no bound on the posterior"):
        follow(text, "mi:0.1", COUNTS)
    with pytest.raises(DataError, match="nobody"):
        follow(text, "lip:1.0", {})
    with pytest.raises(DataError, match="columns"):
        follow(text, "lip:1.0", {(("no",), ("a",)): 3})


def test_two_budgets_are_judged_each_for_itself() -> None:
    text = json.dumps(small())
    # Of those who show "a", all of the people with "a": 30 of 50 with no, 10 of 50 with yes.
    up, down = math.log(0.75 / 0.5), math.log(0.5 / 0.25)
    assert follow(text, "lip:1.0", COUNTS).records.nats == pytest.approx(down)
    assert follow(text, f"alip:{down + 1e-6},{up + 1e-6}", COUNTS).records.holds
    assert not follow(text, f"alip:{down + 1e-6},{up - 1e-6}", COUNTS).records.holds
    # Of two budgets the larger one, while they keep their proportion.
    assert follow(text, f"alip:1.0,{up / 2}", COUNTS).records.nats == pytest.approx(2.0)


def test_records_that_nobody_can_be_published_as_are_missing() -> None:
    found = record_level(json.dumps(small()), "lip:1.0", COUNTS, [("a", "any"), ("a", "u"), ("b", "any")])
    assert (found.records, found.missing) == (1, 2)


def test_a_value_that_a_channel_does_not_know_is_noticed() -> None:
    unknown = {**COUNTS, (("no",), ("c", "u")): 5}
    assert follow(json.dumps(small()), "lip:1.0", COUNTS).strangers == 0
    law = PublishedLaw.following(follow(json.dumps(small()), "lip:1.0", unknown))
    assert law.followed.strangers == 1
    assert law.untrue(0) > 0


def test_expected_people_are_those_of_prefixes() -> None:
    (first,) = follow(json.dumps(small()), "lip:1.0", COUNTS).people
    assert (first.stage, first.channel, first.most, first.fewest) == (0, 0, 100.0, 100.0)
