"""Reserves: what they cost is the step's own figure, and what they save is what a walk over all people counts."""

from __future__ import annotations

import numpy as np
import pytest

from funnel import LIP, Joint
from funnel.history.changes import Changes
from funnel.history.following import VersionTerms
from funnel.history.observed import Observed
from funnel.history.past import Past
from funnel.history.version_forecast import ReserveCost, cost_of, moved_next

BEFORE = Joint.from_counts([[60, 30, 10], [10, 30, 60]])


def weighed(past: Past, observed: Observed, reserve: float = 1.0) -> ReserveCost:
    """The next version under a reserve, as it would be released."""
    return cost_of(VersionTerms(LIP(0.4), str(len(past) + 1), reserve=reserve).decide(past, observed))


def second_version(reserve: float = 1.0) -> tuple[Past, Observed]:
    """Two hundred people after a first version; one in five of the ill with the first input then gets well."""
    rng = np.random.default_rng(3)
    first = Observed.counted(BEFORE, {}, np.zeros(200, dtype=np.int64), np.repeat([0, 1, 2], [70, 60, 70]))
    step = weighed(Past(), first, reserve).step
    cells = np.repeat(np.arange(6), BEFORE.counts.ravel())
    weights = step.library[step.drawn_from[0]].astype(float) / 2.0**63
    outputs = np.array([rng.choice(len(weights), p=weights[:, cell % 3]) for cell in cells])
    kinds, nodes = np.unique(outputs, return_inverse=True)
    past = Past((step.chapter(np.zeros(len(kinds), dtype=np.int64), kinds),))
    now = np.where((cells == 0) & (rng.random(200) < 0.2), 3, cells)
    joint = Joint.from_counts(np.bincount(now, minlength=6).reshape(2, 3))
    return past, Observed.counted(joint, {0: Changes.counted(cells, now)}, 1 + nodes, now % 3)


def test_a_reserve_costs_utility_and_saves_people_from_being_moved() -> None:
    costs = {}
    for reserve in (1.0, 0.9, 0.8):
        past, observed = second_version(reserve)
        costs[reserve] = weighed(past, observed, reserve)
    for cost in costs.values():
        assert cost.kept == cost.step.utility / cost.step.entropy
        assert (cost.moved, cost.outside) == (cost.step.moved, cost.step.outside)
        assert cost.step.level.value <= 0.4
    assert costs[1.0].kept > costs[0.8].kept
    # Nothing kept back: moved now. A tenth: not now, but if it comes again. A fifth: not then either.
    assert costs[1.0].moved > 50
    assert costs[0.9].moved == costs[0.8].moved == 0
    assert costs[0.9].moved_next is not None
    assert costs[0.9].moved_next > 50
    assert costs[0.8].moved_next == 0


def test_several_reserves_are_weighed_on_the_same_past() -> None:
    past, observed = second_version(0.9)
    costs = [weighed(past, observed, reserve) for reserve in (1.0, 0.6)]
    assert [cost.reserve for cost in costs] == [1.0, 0.6]
    assert costs[0].kept > costs[1].kept


def test_the_forecast_is_that_of_every_history_by_itself() -> None:
    past, observed = second_version()
    step = weighed(past, observed).step
    changes = observed.changes[0]
    k = np.zeros((6, 6))
    k[changes.before, changes.after] = changes.records
    after = k.sum(axis=0)
    k /= k.sum(axis=1, keepdims=True)
    prior = ((after / after.sum()) @ k).reshape(2, 3).sum(axis=1)
    chapter = past.chapters[0]
    expected = 0.0
    for node in step.followed.tolist():
        people = int(observed.records[observed.nodes == node].sum())
        row = chapter.library[0][chapter.outputs[node - 1]].astype(float)
        alpha = BEFORE.p * row
        now = (alpha / alpha.sum()).ravel() @ k
        for weights in step.rows_for(past.history(node)).astype(float) / 2.0**63:
            told = now.reshape(2, 3) * weights
            if told.sum() > 0:
                lifts = (told.ravel() / told.sum() @ k).reshape(2, 3).sum(axis=1) / prior
                expected += people * told.sum() * (np.abs(np.log(lifts)).max() > 0.4 + 1e-7)
    assert moved_next(step) == pytest.approx(expected, rel=1e-9)


def test_a_first_version_has_no_forecast() -> None:
    first = Observed.counted(BEFORE, {}, np.zeros(200, dtype=np.int64), np.repeat([0, 1, 2], [70, 60, 70]))
    assert weighed(Past(), first).moved_next is None
