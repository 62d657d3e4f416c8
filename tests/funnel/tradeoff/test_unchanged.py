"""What stays unchanged by budget: the figures of the optimum at each, computed again, and their limits."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pandas as pd
import pytest

import funnel
from funnel.certificate import Weighting
from funnel.frequencies.public_counts import protect
from funnel.guarantees import LIP, Attribute, MutualInformation
from funnel.joint import Joint
from funnel.sampling.engine import OneWorker
from funnel.settings.protection_settings import FrequencySettings
from funnel.solver.request import Solution
from funnel.tradeoff import unchanged_by_budget
from funnel.tradeoff.trials import Trials
from funnel.tradeoff.unchanged_by_budget import UnchangedCurve, unchanged_curve
from tests.funnel.recount.test_unchanged import by_secret, mean, shares_of

COUNTS = [[30, 5, 9, 12], [10, 50, 7, 3]]
PLAIN = Joint.from_counts(COUNTS, secret=["ill", "well"])
PUBLISHED = PLAIN.with_secret()


def curve(joint: Joint, guarantee: funnel.Guarantee, weights: Weighting = "root") -> UnchangedCurve:
    return unchanged_curve(joint, guarantee, weights, Trials(OneWorker()), parts=(0.25, 0.5, 2.0), seconds=1.0)


@pytest.mark.parametrize(("joint", "guarantee"), [(PLAIN, LIP(0.5)), (PUBLISHED, Attribute(0.5))])
@pytest.mark.parametrize("weights", ["root", "share", "uniform"])
def test_every_point_is_the_optimum_at_its_budget(
    joint: Joint, guarantee: funnel.Guarantee, weights: Weighting
) -> None:
    found = curve(joint, guarantee, weights)
    assert [point.budget for point in found.points] == [0.125, 0.25, 0.5, 1.0]
    for point in found.points:
        best = funnel.optimal(joint, guarantee.with_budget(point.budget), 1e-4, utility="unchanged", weights=weights)
        again = shares_of(best.protocol, joint)
        assert point.share == pytest.approx(mean(again, again.stays))
        columns = [mean(again, again.keeps(slice(j, j + 1))) for j in range(len(point.columns))]
        assert point.columns == pytest.approx(columns)
        kept = again.keeps(slice(again.width)) if found.secret_published else again.stays
        of = dict(zip(map(" · ".join, joint.secret.symbols), by_secret(again, kept), strict=True))
        assert dict(zip(found.secrets, point.secrets, strict=True)) == pytest.approx(of)
        assert point.weighted is not None
        assert point.most is not None
        assert point.weighted <= point.most <= point.weighted + 1e-4 + 1e-9
        assert point.kept == pytest.approx(funnel.measures.mutual_information(joint, best.protocol) / joint.entropy)
        if weights == "share":
            assert point.weighted == pytest.approx(point.share)
    for one, other in pairwise(found.points):
        assert (one.weighted or 0) <= (other.weighted or 0) + 1e-4


def test_a_row_of_the_plan_is_the_point_at_its_budget_and_is_not_fitted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    guarantee = LIP(0.5)
    (row,) = funnel.plan(PLAIN, guarantee, ["invariant"])
    again, asked = curve(PLAIN, guarantee), []
    optimal = unchanged_by_budget.optimal

    def counted(joint: Joint, bound: funnel.Guarantee, *rest: float, **more: Any) -> Solution:
        asked.append(bound.budget)
        return optimal(joint, bound, *rest, **more)

    monkeypatch.setattr(unchanged_by_budget, "optimal", counted)
    found = unchanged_curve(
        PLAIN, guarantee, "root", Trials(OneWorker()), fitted=row, parts=(0.25, 0.5, 2.0), seconds=1.0
    )
    assert asked == [0.125, 0.25, 1.0]
    assert [point.budget for point in found.points] == [0.125, 0.25, 0.5, 1.0]
    for one, other in zip(found.points, again.points, strict=True):
        assert one.share == pytest.approx(other.share, abs=1e-3)
        assert one.secrets == pytest.approx(other.secrets, abs=5e-3)
    assert found.share_at(0.5) == row.unchanged
    assert found.points[2].most is not None
    assert found.points[2].weighted is not None
    assert found.points[2].weighted <= found.points[2].most <= found.points[2].weighted + 1e-4


def test_time_is_enough_for_a_table_under_noise() -> None:
    """A point that ends far from its bound says nothing of what a release leaves unchanged."""
    table = pd.read_parquet("data/adult.parquet", columns=["income", "education", "sex", "age"])
    common = table["education"].value_counts().index[:5]
    table["education"] = table["education"].where(table["education"].isin(common), "another")
    table["age"] = (table["age"] < 40).astype(str)
    exact = Joint.from_table(table, ["income"], ["education", "sex", "age"])
    known = protect(exact, FrequencySettings(protection="noise", epsilon=1.0, beta=0.01)).joint.with_secret()
    found = unchanged_curve(known, Attribute(1.0), "root", Trials(OneWorker()), parts=())
    assert [point.budget for point in found.points] == [1.0]
    assert found.points[0].weighted is not None
    assert found.points[0].most is not None
    assert found.points[0].most - found.points[0].weighted <= 0.01


def test_the_most_common_secret_comes_first_and_stays_within_its_ceiling() -> None:
    found = curve(PUBLISHED, Attribute(0.5))
    assert found.secret_published
    assert found.secrets == ("well", "ill")
    shares = sorted(PUBLISHED.p_secret.tolist(), reverse=True)
    for point in found.points:
        for stays, prior in zip(point.secrets, shares, strict=True):
            assert stays <= min(1.0, math.exp(point.budget) * prior) + 1e-9


def test_as_a_sweep_it_says_what_information_is_kept() -> None:
    found = curve(PLAIN, LIP(0.5))
    swept = found.as_sweep()
    assert swept.mechanisms == ("invariant",)
    best = swept.best(0.5)
    assert best is not None
    assert best.unchanged == found.share_at(0.5)
    assert best.kept == found.points[2].kept


def test_a_guarantee_that_is_not_linear_has_a_reason_instead() -> None:
    found = curve(PLAIN, MutualInformation(0.1))
    assert not found.usable
    assert all(point.reason for point in found.points)
    assert found.as_sweep().mechanisms == ()
