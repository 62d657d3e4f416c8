"""Sweeps: what is kept grows with the budget below what is certified, and is remembered."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from funnel.errors import SpecError
from funnel.guarantees import ALIP, LIP, PerfectPrivacy
from funnel.joint import Joint
from funnel.mechanisms import mechanism
from funnel.release.cache import Cache
from funnel.sampling.engine import OneWorker
from funnel.tradeoff.sweep import Point, Sweep, rising, sweep
from funnel.tradeoff.trials import Trials
from tests.strategies import joints

JOINT = Joint.from_counts([[30, 5, 9], [10, 50, 7]], secret=["ill", "well"])


class Counting(OneWorker):
    """Counts what it is given to do."""

    def __init__(self) -> None:
        self.done = 0

    def run(self, function: Any, tasks: Any) -> Iterator[tuple[int, Any]]:
        self.done += len(tasks)
        return super().run(function, tasks)


@settings(max_examples=5)
@given(joints(max_secrets=3, max_inputs=4))
def test_nothing_that_can_be_used_keeps_more_than_is_certified_at_its_budget_or_at_a_larger_one(joint: Joint) -> None:
    found = sweep(joint, LIP(0.5), Trials(OneWorker()), parts=(0.5, 2.0), seconds=0.2)
    assert found.budgets == (0.25, 0.5, 1.0)
    for point in found.points:
        assert point.kept is None or (point.level is not None and point.level <= point.budget and not point.reason)
        for budget, most in found.frontier():
            if budget >= point.budget and not mechanism(point.mechanism).reads_secret:
                assert (point.kept or 0.0) <= most + 1e-9


def test_points_are_those_of_a_plan_at_every_budget() -> None:
    found = sweep(JOINT, ALIP(1.3, 0.7), Trials(OneWorker()), parts=(0.5,))
    assert [point.guarantee for point in found.of("grr")] == ["alip:0.65,0.35", "alip:1.3,0.7"]
    best = found.best(max(found.budgets))
    assert best is not None
    assert best.mechanism == found.mechanisms[0]
    assert {point.mechanism for point in found.at(max(found.budgets))} >= {"optimal", "grr", "identity"}
    assert not any(mechanism(point.mechanism).reads_secret for point in found.points)
    assert any(
        mechanism(point.mechanism).reads_secret
        for point in sweep(JOINT, LIP(0.3), Trials(OneWorker()), parts=(), reads_secret=True).points
    )


def test_what_cannot_be_used_keeps_nothing_and_says_why() -> None:
    found = sweep(JOINT, LIP(0.1), Trials(OneWorker()), parts=())
    identity = next(point for point in found.points if point.mechanism == "identity")
    assert identity.kept is None
    assert identity.most is None
    assert "above lip:0.1" in str(identity.reason)
    assert "identity" not in found.mechanisms


def test_perfect_privacy_has_one_budget() -> None:
    assert sweep(JOINT, PerfectPrivacy(), Trials(OneWorker())).budgets == (0.0,)


def test_points_are_fitted_once_for_counts_and_after_an_interruption_the_rest(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "tradeoff")

    class Stopping(OneWorker):
        def run(self, function: Any, tasks: Any) -> Iterator[tuple[int, Any]]:
            for number, one in enumerate(super().run(function, tasks)):
                if number == 3:
                    raise KeyboardInterrupt
                yield one

    with pytest.raises(KeyboardInterrupt):
        sweep(JOINT, LIP(0.5), Trials(Stopping(), cache), parts=(0.5,))
    rest = Counting()
    found = sweep(JOINT, LIP(0.5), Trials(rest, cache), parts=(0.5,))
    assert rest.done == len(found.points) - 3
    again = Counting()
    assert sweep(JOINT, LIP(0.5), Trials(again, cache), parts=(0.5,)) == found
    assert again.done == 0
    other = Counting()
    sweep(Joint(JOINT.counts + 1, JOINT.secret, JOINT.inputs), LIP(0.5), Trials(other, cache), parts=(0.5,))
    assert other.done == len(found.points)


def test_a_bound_that_cannot_be_asked_of_the_counts_is_an_error() -> None:
    from funnel.guarantees import SRLIP

    with pytest.raises(SpecError):
        sweep(Joint.from_counts(np.ones((2, 9000), dtype=int)), SRLIP(1.0), Trials(OneWorker()), parts=())


def test_the_frontier_is_the_least_of_what_is_certified() -> None:
    found = sweep(JOINT, LIP(0.5), Trials(OneWorker()), parts=())
    assert isinstance(found, Sweep)
    ((budget, most),) = found.frontier()
    assert budget == 0.5
    assert most == min(point.most for point in found.points if point.most is not None)


def test_no_curve_falls_where_searches_end_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """By half a second's work 140 inputs kept less at a larger budget, which what was found before meets as well."""
    random = np.random.default_rng(3)
    counts = random.multinomial(9000, random.dirichlet(np.full(1400, 0.2))).reshape(10, 140)
    joint = Joint.from_counts(counts[:, counts.any(axis=0)])
    # The package has a function of this name.
    monkeypatch.setattr(import_module("funnel.tradeoff.sweep"), "names", lambda: ["optimal"])
    found = sweep(joint, LIP(1.0), Trials(OneWorker()), parts=(0.5, 0.7, 1.4, 2.0), seconds=0.2)
    kept = [point.kept or 0.0 for point in found.of("optimal")]
    assert len(kept) == len(found.budgets) == 5
    assert kept == sorted(kept)
    assert all(point.level is not None and point.level <= point.budget for point in found.points)


def test_a_point_that_falls_takes_the_protocol_before_it() -> None:
    of = ((0.5, 0.3, 0.4), (1.0, 0.2, 0.6), (1.5, None, None), (2.0, 0.25, 0.7), (3.0, 0.8, 0.9))
    points = [Point("optimal", f"lip:{budget}", budget, kept, 0.9 * budget, most, None) for budget, kept, most in of]
    found = rising(points, lambda point: point.kept)
    assert [point.kept for point in found] == [0.3, 0.3, None, 0.3, 0.8]
    assert [point.level for point in found] == [0.45, 0.45, 1.35, 0.45, 2.7]
    assert [(point.guarantee, point.budget, point.most) for point in found] == [
        (point.guarantee, point.budget, point.most) for point in points
    ]
