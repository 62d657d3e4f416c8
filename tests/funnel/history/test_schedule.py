"""Schedules of budgets: what every version keeps is proven on its path weights and never above one shot."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings

from funnel import ALIP, LDP, LIP, Joint, MutualInformation, PerfectPrivacy
from funnel.errors import SpecError
from funnel.guarantees.base import ConeGuarantee
from funnel.history.schedule import Paths, schedule_cost
from tests.strategies import joints

PANEL = Joint.from_counts([[60, 30, 10, 40], [10, 30, 60, 35], [20, 25, 5, 10]])


@pytest.mark.parametrize("guarantee", [LIP(0.4), ALIP(0.6, 0.3), LDP(0.8)])
def test_every_prefix_meets_its_budget_and_keeps_at_most_one_shot(guarantee: ConeGuarantee) -> None:
    cost = schedule_cost(PANEL, guarantee, (0.4, 0.7, 1.0))
    assert cost.budgets == pytest.approx([share * guarantee.budget for share in (0.4, 0.7, 1.0)])
    assert cost.paths.holds(guarantee)
    for t, budget in enumerate(cost.budgets, start=1):
        prefix = _prefix(cost.paths, t)
        assert prefix.holds(guarantee.with_budget(budget))
        assert cost.kept[t - 1] <= cost.one_shot[t - 1]
        # What all paths tell, by the definition.
        distribution = prefix.weights / 2.0**63 * prefix.joint.p_input
        outputs = distribution.sum(axis=1, keepdims=True)
        told = (
            distribution * np.log(np.where(distribution > 0, distribution / (outputs * prefix.joint.p_input), 1))
        ).sum()
        assert cost.kept[t - 1] == pytest.approx(told, abs=1e-9)
    assert cost.lost[0] <= 1e-5
    assert (np.diff(cost.kept) > 0.01).all()


def _prefix(paths: Paths, t: int) -> Paths:
    short = sorted({history[:t] for history in paths.histories})
    weights = np.zeros((len(short), len(paths.joint.inputs)), dtype=np.uint64)
    for history, row in zip(paths.histories, paths.weights, strict=True):
        weights[short.index(history[:t])] += row
    return Paths(paths.joint, tuple(short), weights)


def test_after_the_full_budget_no_path_has_anything_left() -> None:
    cost = schedule_cost(PANEL, LIP(0.4), (0.5, 1.0))
    assert np.mean(_at_vertices(cost.paths, LIP(0.4))) > 0.9
    assert not all(_at_vertices(_prefix(cost.paths, 1), LIP(0.4)))


def _at_vertices(paths: Paths, guarantee: LIP) -> list[bool]:
    """Whether the posterior of every path is a vertex of its region: where its tight conditions have full rank."""
    joint, masses = paths.joint, paths.weights * paths.joint.p_input
    cone = guarantee.posterior_cone(joint.p_secret)
    found = []
    for posterior in masses / masses.sum(axis=1, keepdims=True):
        seen = posterior > 0
        belief = joint.secret_given_input @ posterior
        conditions = cone @ joint.secret_given_input[:, seen]
        conditions -= np.maximum(cone @ belief, 0)[:, None]
        tight = np.abs(cone @ belief) <= 1e-9
        rows = np.vstack([conditions[tight], np.ones(seen.sum())])
        found.append(bool(np.linalg.matrix_rank(rows, tol=1e-6) == seen.sum()))
    return found


@given(joints(max_secrets=2, max_inputs=4, min_inputs=2))
@settings(max_examples=15, deadline=None)
def test_any_two_secrets(joint: Joint) -> None:
    assume(joint.counts.any(axis=1).all())
    cost = schedule_cost(joint, LIP(0.5), (0.5, 1.0))
    assert cost.paths.holds(LIP(0.5))
    assert all(kept <= most + 1e-9 for kept, most in zip(cost.kept, cost.one_shot, strict=True))
    assert cost.kept[0] <= cost.kept[1] + 1e-9


def test_schedules_that_are_none_are_refused() -> None:
    for shares in ((), (0.5,), (1.0, 0.5), (0.5, 0.5, 1.0), (0.0, 1.0)):
        with pytest.raises(SpecError, match="must rise to 1"):
            schedule_cost(PANEL, LIP(0.5), shares)
    with pytest.raises(SpecError, match="no budget that could grow"):
        schedule_cost(PANEL, PerfectPrivacy(), (0.5, 1.0))
    with pytest.raises(SpecError, match="no budget that could grow"):
        schedule_cost(PANEL, MutualInformation(0.1), (0.5, 1.0))
