"""Outlooks: the figures of the very steps that would be made, and what it costs to begin with less."""

from __future__ import annotations

import json

import numpy as np
import pytest

from funnel import LIP, PerfectPrivacy, fit
from funnel.guarantees.base import Guarantee
from funnel.history.following import VersionTerms
from funnel.history.past import Past
from funnel.history.schedule import schedule_cost
from funnel.history.version_forecast import BEGINNINGS, first_people, forecast_version
from funnel.protocol import Protocol
from funnel.release.public.comparison import weighed
from tests.funnel.history.test_reserve import BEFORE, second_version


def terms(guarantee: Guarantee, target: Protocol, reserve: float = 1.0) -> VersionTerms:
    return VersionTerms(guarantee, "planned", target, reserve)


def test_a_second_version_is_weighed_given_its_histories() -> None:
    past, observed = second_version()
    target = fit("optimal", observed.joint, LIP(0.4))
    found = forecast_version(past, observed, terms(LIP(0.4), target, 0.9), (1.0, 0.8))
    assert [cost.reserve for cost in found.costs] == [1.0, 0.9, 0.8]
    step = VersionTerms(LIP(0.4), "planned", target=target, reserve=0.9).decide(past, observed)
    told = found.to_dict()
    assert found.declared.reserve == 0.9
    assert told["share"] == pytest.approx(step.utility / step.entropy)
    assert told["share_alone"] == pytest.approx(step.alone / step.entropy)
    assert (told["level"], told["moved"], told["outside"]) == (step.level.value, step.moved, step.outside)
    assert (told["versions"], told["people"], told["histories"]) == (1, 200, step.histories)
    assert told["new"] == 0
    # What a later version may say is not a question of how the first began.
    assert told["beginnings"] == []
    assert json.loads(json.dumps(told, allow_nan=False)) == told


def test_a_first_version_is_weighed_with_what_beginning_with_less_costs() -> None:
    target = fit("optimal", BEFORE, LIP(0.4))
    found = forecast_version(Past(), first_people(BEFORE), terms(LIP(0.4), target), (0.8,))
    assert (found.versions, found.new, found.histories) == (0, 200, 1)
    assert found.declared.kept == pytest.approx(found.alone)
    assert found.costs[1].kept < found.costs[0].kept
    assert found.costs[1].moved_next is None
    assert [one.begin for one in found.beginnings] == list(BEGINNINGS)
    for one in found.beginnings:
        cost = schedule_cost(BEFORE, LIP(0.4), (one.begin, 1.0))
        assert (one.first, one.both) == tuple(np.array(cost.kept) / cost.entropy)
        assert one.lost == pytest.approx(cost.lost[-1])
        assert one.first < one.both <= one.one_shot + 1e-9


def test_a_bound_that_cannot_grow_has_no_beginnings() -> None:
    target = fit("optimal", BEFORE, PerfectPrivacy())
    found = forecast_version(Past(), first_people(BEFORE), terms(PerfectPrivacy(), target), (1.0,))
    assert found.beginnings == ()


def test_the_orchestrator_is_told_shares_alone() -> None:
    past, observed = second_version()
    target = fit("optimal", observed.joint, LIP(0.4))
    exact = forecast_version(past, observed, terms(LIP(0.4), target), (0.9,)).to_dict()
    rows = weighed(exact, 0.05)
    assert [row["reserve"] for row in rows] == [1.0, 0.9]
    for row, one in zip(rows, exact["reserves"], strict=True):
        assert set(row) == {"reserve", "versions", "share", "share_alone", "outside_at_most"}
        for name in ("share", "share_alone", "outside_at_most"):
            assert row[name] / 0.05 == pytest.approx(round(row[name] / 0.05))
        # Never that it is nobody.
        assert row["outside_at_most"] >= max(0.05, one["outside"] / 200)
