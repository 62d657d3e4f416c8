"""What groups cost: points are protocols that were made, by any way, and are remembered; lines are lines of a spec."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import funnel
from funnel.groups import Schedule
from funnel.guarantees import Guarantee
from funnel.release.cache import Cache
from funnel.sampling.engine import OneWorker
from funnel.spec import ReleaseSpec
from funnel.tradeoff.groups import ALONE, CHOSEN, GIVEN, SINGLY, GroupedTradeoff, groups_tradeoff
from tests.funnel.groups.conftest import tabled
from tests.projects import spec_of

JOINT = tabled(2, (4, 3, 2), seed=8, n=2000)
LIP = funnel.LIP(0.8)


class Counting(OneWorker):
    """Counts what it is given to do."""

    def __init__(self) -> None:
        self.done = 0

    def run(self, function: Any, tasks: Any) -> Iterator[tuple[int, Any]]:
        self.done += len(tasks)
        return super().run(function, tasks)


def spec(publish: object, **said: Any) -> ReleaseSpec:
    return spec_of("people.csv", ".", publish=publish, **said)


def looked_at(publish: object, way: list[list[str]], workers: OneWorker, **said: Any) -> GroupedTradeoff:
    parts, cache = said.pop("parts", (0.5,)), said.pop("cache", None)
    chosen = tuple(map(tuple, way))
    return groups_tradeoff(spec(publish, **said), JOINT, LIP, chosen, workers, cache, parts=parts)


def test_points_are_protocols_of_these_groups_and_are_remembered(tmp_path: Path) -> None:
    groups, workers = [["x"], ["y", "z"]], Counting()
    found = looked_at(groups, groups, workers, cache=Cache(tmp_path / "kept"))
    assert found.people == 50
    assert found.ways[0].name == GIVEN
    assert set(found.sweep.mechanisms) == {*(way.name for way in found.ways), ALONE}
    assert found.sweep.budgets == (0.4, 0.8)
    made = funnel.publish_groups(JOINT, groups, LIP, schedule=Schedule(0.9, 4))
    point = found.sweep.of(GIVEN)[-1]
    assert point.kept == pytest.approx(made.utility / made.entropy)
    assert point.level == made.level <= 0.8
    for name in found.sweep.mechanisms:
        low, high = (one.kept or 0.0 for one in found.sweep.of(name))
        assert 0 <= low <= high + 0.02 <= 1.02
    as_it_is, *others = found.alternatives
    assert as_it_is.kept == point.kept
    assert as_it_is.nats == pytest.approx(made.utility)
    assert {one.column for one in others} == {"x", "y", "z"}
    assert [one.nats for one in others] == sorted((one.nats for one in others), reverse=True)
    done = workers.done
    again = looked_at(groups, groups, workers, cache=Cache(tmp_path / "kept"))
    assert (workers.done, again.sweep, again.alternatives) == (done, found.sweep, found.alternatives)


@pytest.mark.parametrize(
    ("publish", "name", "said"),
    [
        ([["x"], ["y", "z"]], GIVEN, {}),
        (["x", "y", "z"], CHOSEN, {}),
        ("auto", CHOSEN, {"groups": {"without": ["w"]}}),
    ],
)
def test_every_line_is_one_of_a_spec_that_says_what_it_is_for(publish: object, name: str, said: dict[str, Any]) -> None:
    found = looked_at(publish, [["x"], ["y", "z"]], OneWorker(), parts=(), **said)
    assert found.ways[0].name == name
    assert SINGLY in [way.name for way in found.ways]
    for way in found.ways:
        assert tomllib.loads(way.line)["publish"] == [list(group) for group in way.groups]
    for one in found.alternatives[1:]:
        line = tomllib.loads(one.lines)
        if publish == "auto":
            assert line == {"groups": {"without": ["w", one.column]}}
        else:
            left = [column for part in line["publish"] for column in ([part] if isinstance(part, str) else part)]
            assert sorted([*left, one.column]) == ["x", "y", "z"]


NUMBERED = tabled(2, (3, 2), seed=4, n=1500)


@pytest.mark.parametrize("utility", ["variance", "estimation"])
def test_points_are_shares_of_what_the_spec_asks_for(utility: str) -> None:
    values = {symbol: ("1", "2", "9")[int(symbol[1])] for symbol in ("x0", "x1", "x2")}
    symbols = tuple((values[x], y) for x, y in NUMBERED.inputs.symbols)
    joint = funnel.Joint.from_counts(NUMBERED.counts, inputs=funnel.Alphabet(("x", "y"), symbols))
    numbers: dict[str, Any] = {"numbers": {"x": {"unit": "m"}}} if utility == "variance" else {}
    asked = spec([["x"], ["y"]], utility=utility, **numbers)
    found = groups_tradeoff(asked, joint, LIP, (("x",), ("y",)), OneWorker(), parts=())
    # Of columns by themselves no bound of that is known.
    assert ALONE not in found.sweep.mechanisms
    classes = 1 if utility == "estimation" else 4
    made = funnel.publish_groups(joint, [["x"], ["y"]], LIP, schedule=Schedule(0.9, classes), utility=utility)
    (point,) = found.sweep.of(GIVEN)
    assert point.kept == (made.worth if utility == "estimation" else made.explained["x"])
    by_column = {one.column: one for one in found.alternatives[1:]}
    assert all(one.nats is None for one in found.alternatives)
    # Without the number there is nothing to explain.
    assert (by_column["x"].kept is None) == (utility == "variance")
    assert by_column["y"].kept is not None


@pytest.mark.parametrize("guarantee", [funnel.LIP(1.0), funnel.ALIP(1.5, 0.9), funnel.LDP(1.2)])
def test_columns_by_themselves_keep_the_bound_and_no_more_than_is_said(guarantee: Guarantee) -> None:
    """Held against all records that they can show, one by one."""
    chosen = (("x",), ("y",), ("z",))
    found = groups_tradeoff(spec([["x"], ["y"], ["z"]]), JOINT, guarantee, chosen, OneWorker(), parts=())
    (said,) = found.sweep.of(ALONE)
    budget = {"lip": 1.0, "alip": 0.9, "ldp": 1.2}[guarantee.name] / 3
    symbols = JOINT.inputs.symbols
    sizes = [sorted({symbol[j] for symbol in symbols}) for j in range(3)]
    channel = np.ones((1, len(symbols)))
    for j, values in enumerate(sizes):
        grr = (1 + (np.exp(budget) - 1) * np.eye(len(values))) / (np.exp(budget) + len(values) - 1)
        of_record = grr[:, [values.index(symbol[j]) for symbol in symbols]]
        channel = np.array([a * b for a, b in itertools.product(channel, of_record)])
    protocol = channel @ (JOINT.p / JOINT.p_secret[:, None]).T
    shown = channel @ JOINT.p_input
    masses = channel * JOINT.p_input
    told = float((masses * np.log(masses / np.outer(shown, JOINT.p_input))).sum())
    assert told / JOINT.entropy <= (said.kept or 0.0) + 1e-12
    # And not by much, where columns have little to do with each other.
    assert (said.kept or 0.0) < 2 * told / JOINT.entropy
    lifts = protocol / shown[:, None]
    limits = guarantee.lift_limits
    if limits is None:
        assert (protocol.max(axis=1) / protocol.min(axis=1)).max() <= np.exp(guarantee.budget) + 1e-9
    else:
        assert lifts.max() <= limits[1] + 1e-9
        assert lifts.min() >= limits[0] - 1e-9
