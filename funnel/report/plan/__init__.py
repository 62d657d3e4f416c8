"""The page of a plan: what every bound costs, what it means for one person, and what else could be published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from funnel.estimation.expected_errors import ExpectedErrors
from funnel.guarantees import Guarantee, parse_guarantee
from funnel.joint import Joint
from funnel.protocol import INVARIANT
from funnel.report.estimated import estimated
from funnel.report.figures.curves import tradeoff_chart
from funnel.report.page import render
from funnel.report.plan.unchanged_chart import unchanged_part
from funnel.spec import ReleaseSpec
from funnel.tradeoff.alternatives import Alternative
from funnel.tradeoff.meaning import Belief, beliefs
from funnel.tradeoff.sweep import SECONDS, Point, Sweep
from funnel.tradeoff.unchanged_by_budget import UnchangedCurve


@dataclass(frozen=True, eq=False)
class PlannedBound:
    """All that is looked at under one guarantee.

    Attributes
    ----------
    sweep : Sweep
    alternatives : tuple of Alternative
        What the spec says first.
    notes : tuple of str
        Sentences that the console says too.
    errors : ExpectedErrors or None
        Of the mechanism of the spec; None where there is none, or too many values.
    unchanged : UnchangedCurve or None
        Where the spec asks for an invariant protocol.
    """

    sweep: Sweep
    alternatives: tuple[Alternative, ...]
    notes: tuple[str, ...] = ()
    errors: ExpectedErrors | None = None
    unchanged: UnchangedCurve | None = None


@dataclass(frozen=True, eq=False)
class Budget:
    """One budget as the page tells of it.

    Attributes
    ----------
    guarantee : str
    chosen : bool
        Whether it is the one of the spec.
    best : Point or None
        Where the spec asks for an invariant protocol that one, else what keeps most.
    beliefs : tuple of Belief
    factor : float or None
        The largest by which any probability may rise, where the guarantee limits lifts one by one.
    """

    guarantee: str
    chosen: bool
    best: Point | None
    beliefs: tuple[Belief, ...]
    factor: float | None


def render_plan(
    spec: ReleaseSpec, joint: Joint, bounds: Sequence[PlannedBound], frequencies: str, software: str
) -> str:
    """The page of a plan, as one HTML file that needs nothing else: no network, no script, no second file.

    Parameters
    ----------
    spec : ReleaseSpec
    joint : Joint
        The counts (c, a) that the plan was made from, over what is published.
    bounds : sequence of PlannedBound
    frequencies : str
        What protects the frequencies, in one line.
    software : str
        Which funnel.
    """
    return render(
        "plan.html.jinja",
        {
            "spec": spec,
            "joint": joint,
            "about": spec.frequencies.kind.about,
            "parts": [_part(joint, one, spec.utility) for one in bounds],
            "frequencies": frequencies,
            "software": software,
            "seconds": f"{SECONDS:g}",
            "invariant": spec.mechanism.name == INVARIANT,
        },
    )


def _part(joint: Joint, one: PlannedBound, utility: str) -> dict[str, Any]:
    """A bound as the template takes it."""
    guarantee = parse_guarantee(one.sweep.guarantee)
    invariant = None if one.unchanged is None else one.unchanged.as_sweep()
    return {
        "guarantee": guarantee,
        "text": one.sweep.guarantee,
        "chart": tradeoff_chart(one.sweep, guarantee.budget, utility),
        "sweep": one.sweep,
        "budgets": [budget_of(joint, invariant or one.sweep, guarantee, budget) for budget in one.sweep.budgets],
        "alternatives": [other for other in one.alternatives if other.kind != "as it is"],
        "as_it_is": next((other for other in one.alternatives if other.kind == "as it is"), None),
        "notes": one.notes,
        "estimated": () if one.errors is None else estimated(one.errors.tables),
        "unchanged": None if one.unchanged is None else unchanged_part(one.unchanged, guarantee.budget),
    }


def budget_of(joint: Joint, sweep: Sweep, guarantee: Guarantee, budget: float) -> Budget:
    """What is told of one budget of a sweep."""
    named = next(point.guarantee for point in sweep.at(budget))
    here = parse_guarantee(named)
    limits = here.lift_limits
    return Budget(
        named,
        budget == guarantee.budget,
        sweep.best(budget),
        beliefs(joint, here),
        None if limits is None else limits[1],
    )
