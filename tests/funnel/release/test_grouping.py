"""Grouping: what a spec leaves open of its groups, and what a grouped release under a guarantee would be."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import funnel
from funnel.errors import SpecError
from funnel.groups import Shown
from funnel.progress import quiet
from funnel.release.grouping import (
    PlannedGroups,
    choice_of,
    found_columns,
    known_groups,
    make_groups,
    plan_groups,
    seconds_for_groups,
    share,
)
from funnel.spec import ReleaseSpec
from tests.funnel.groups.conftest import tabled
from tests.projects import spec_of

LIP = funnel.LIP(0.7)
GROUPS = (("x",), ("y", "z"))
FEWEST = 12


def asked(publish: Any = GROUPS, people: int = 50, **changes: Any) -> ReleaseSpec:
    return spec_of("source.parquet", Path(), publish=publish, groups={"people": people}, **changes)


@pytest.fixture(scope="module")
def joint() -> funnel.Joint:
    return tabled(2, (3, 2, 3), seed=3, n=600)


@pytest.fixture(scope="module")
def planned(joint: funnel.Joint) -> PlannedGroups:
    spec = asked(disclosure={"on_breach": "report", "minimum_cell": FEWEST, "dominance": 1.0, "unique_share": 1.0})
    return plan_groups(spec, joint, LIP, quiet, iter([10.0, 12.5]).__next__)


def counts_of(joint: funnel.Joint, group: tuple[str, ...]) -> dict[tuple[str, ...], np.ndarray]:
    """Records by secret of every combination of some columns."""
    places = [joint.inputs.columns.index(column) for column in group]
    found: dict[tuple[str, ...], np.ndarray] = {}
    for symbol, counts in zip(joint.inputs.symbols, joint.counts.T, strict=True):
        key = tuple(symbol[place] for place in places)
        found[key] = found.get(key, np.zeros(len(joint.secret), dtype=np.int64)) + counts
    return found


def test_a_spec_leaves_the_order_the_groups_or_nothing_open() -> None:
    given, order, auto = asked(), asked(["x", "y", "z"]), asked("auto")
    assert [choice_of(spec) for spec in (given, order, auto)] == ["given", "order", "auto"]
    assert known_groups(given) == GROUPS
    assert known_groups(order) == (("x",), ("y",), ("z",))
    assert known_groups(auto) == ()
    settled = auto.publishing(("z", "x"))
    assert (choice_of(settled), known_groups(settled)) == ("auto", (("z",), ("x",)))
    assert seconds_for_groups(asked(mechanism={"time_limit": 2.5})) == 10.0


def test_a_plan_is_the_protocol_that_the_release_would_have(joint: funnel.Joint, planned: PlannedGroups) -> None:
    made = funnel.publish_groups(joint, GROUPS, LIP, people=50, time_limit=seconds_for_groups(asked()))
    assert planned.guarantee == LIP
    assert planned.solution.protocol == made.protocol == make_groups(asked(), joint, LIP, quiet).protocol
    assert planned.seconds == 2.5
    assert planned.size == len(made.protocol.to_json().encode())
    assert planned.columns == found_columns(Shown.of(joint, made.protocol))
    for found, column, group in zip(planned.columns, "xyz", (1, 2, 2), strict=True):
        assert (found.column, found.group) == (column, group)
        law = np.array([counts.sum() for counts in counts_of(joint, (column,)).values()]) / joint.n
        assert found.entropy == pytest.approx(-(law * np.log(law)).sum(), abs=1e-9)
        assert 0 < found.information < found.entropy
        assert found.kept == found.information / found.entropy


def test_groups_with_a_cell_of_few_people_break_the_rules(joint: funnel.Joint, planned: PlannedGroups) -> None:
    few = {group: min(int(n[n > 0].min()) for n in counts_of(joint, group).values()) < FEWEST for group in GROUPS}
    # One group breaks the rule and one does not, or this would not tell them apart.
    assert few == {("x",): False, ("y", "z"): True}
    assert [one.joint.inputs.columns for one in planned.broken] == [("y", "z")]
    (broken,) = planned.broken
    assert planned.to_dict()["disclosure"] == [{"group": ["y", "z"], "broken": list(broken.broken)}]
    assert broken.broken


def test_the_share_is_of_whole_records_and_all_of_nothing(planned: PlannedGroups) -> None:
    made = planned.solution
    assert 0 < planned.share == made.utility / made.entropy < 1
    nothing = dataclasses.replace(planned, solution=dataclasses.replace(made, utility=0.0, entropy=0.0))
    assert nothing.share == 1.0
    assert [share(value) for value in (-1e-17, 0.25, 1 + 1e-15)] == [0.0, 0.25, 1.0]


def test_a_plan_is_told_as_json(planned: PlannedGroups) -> None:
    made = planned.solution
    told = planned.to_dict()
    assert json.loads(json.dumps(told)) == told
    assert len(made.tried) > 1
    del told["disclosure"]
    assert told.pop("errors") == [one.to_dict() for one in planned.errors]
    assert [one.columns for one in planned.errors] == [("x",), ("y",), ("z",), ("x", "y"), ("x", "z"), ("y", "z")]
    assert told == {
        "guarantee": "lip:0.7",
        "groups": [["x"], ["y", "z"]],
        "reason": made.reason,
        "tried": [
            {"groups": [["x"], ["y", "z"]], "schedule": str(one.schedule), "kept": one.kept, "worth": one.kept}
            for one in made.tried
        ],
        "level": made.level,
        "utility": made.utility,
        "entropy": made.entropy,
        "share": planned.share,
        "chosen_by": "information",
        "explained": {},
        "worth": None,
        "people": 50,
        "prefixes": list(made.prefixes),
        "columns": [one.model_dump() for one in planned.columns],
        "seconds": 2.5,
        "protocol_bytes": planned.size,
    }


def test_columns_of_a_list_become_one_group_only_where_no_rule_is_broken(joint: funnel.Joint) -> None:
    rules = {"minimum_cell": FEWEST, "dominance": 1.0, "unique_share": 1.0}
    found = {
        on_breach: make_groups(asked(["x", "y", "z"], disclosure={"on_breach": on_breach, **rules}), joint, LIP, quiet)
        for on_breach in ("report", "refuse")
    }
    # Of x and y alone no cell has fewer people than it must have, and of each other group one has.
    assert found["report"].groups == (("x", "y", "z"),)
    assert found["refuse"].groups == (("x", "y"), ("z",))
    assert min(int(n[n > 0].min()) for n in counts_of(joint, ("x", "y")).values()) == FEWEST


def test_groups_take_the_work_that_the_spec_allows_and_tell_how_far_they_are(joint: funnel.Joint) -> None:
    told: list[tuple[str, int, int]] = []
    short = asked(mechanism={"time_limit": 0.001})
    made = make_groups(short, joint, LIP, lambda what, done, of: told.append((what, done, of)))
    allowed = seconds_for_groups(short)
    assert made.protocol == funnel.publish_groups(joint, GROUPS, LIP, people=50, time_limit=allowed).protocol
    assert made.utility < make_groups(asked(), joint, LIP, quiet).utility
    assert ("ways to publish the groups", 3, 3) in told


def test_of_a_column_with_one_value_all_is_kept() -> None:
    joint = funnel.Joint.from_counts(
        [[140, 5, 5], [10, 60, 80]], inputs=funnel.Alphabet(("x", "y"), (("a", "1"), ("a", "2"), ("a", "3")))
    )
    made = funnel.publish_groups(joint, [["x"], ["y"]], LIP, people=50)
    constant, other = found_columns(Shown.of(joint, made.protocol))
    assert (constant.column, constant.entropy, constant.information, constant.kept) == ("x", 0.0, 0.0, 1.0)
    assert 0 < other.kept < 1


def test_a_plan_for_more_people_than_there_are_is_refused(joint: funnel.Joint) -> None:
    with pytest.raises(SpecError, match="no prefix has 601 people where the table has 600"):
        plan_groups(asked(people=601), joint, LIP, quiet)
