"""The page of a plan: what every bound costs, what it means for one person, and what else could be published."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from funnel.certificate import WEIGHTED
from funnel.estimation.expected_errors import ExpectedErrors
from funnel.guarantees import Guarantee, parse_guarantee
from funnel.joint import Joint
from funnel.protocol import INVARIANT
from funnel.release.public_accuracy import estimated
from funnel.report.figures.curves import tradeoff_chart, unchanged_chart
from funnel.report.page import render
from funnel.spec import ReleaseSpec
from funnel.tradeoff.alternatives import Alternative
from funnel.tradeoff.sweep import SECONDS, Point, Sweep
from funnel.tradeoff.unchanged_by_budget import SECONDS as UNCHANGED_SECONDS
from funnel.tradeoff.unchanged_by_budget import UnchangedCurve, UnchangedPoint


@dataclass(frozen=True)
class Belief:
    """The probability of one value of the secret, before a record is seen and after it.

    Attributes
    ----------
    secret : str
    before : float
    least, most : float
        P(s|y) for whatever is published of the person.
    """

    secret: str
    before: float
    least: float
    most: float


def beliefs(joint: Joint, guarantee: Guarantee) -> tuple[Belief, ...]:
    """Of the rarest and of the commonest value of the secret; empty where the guarantee sets no limit one by one.

    Parameters
    ----------
    joint : Joint
        Public counts (c, a).
    guarantee : Guarantee
    """
    prior = joint.p_secret
    limits = guarantee.posterior_limits(prior)
    if limits is None:
        return ()
    least, most = limits
    there = np.flatnonzero(prior > 0)
    rarest, commonest = (int(pick(prior[there])) for pick in (np.argmin, np.argmax))
    labels = joint.secret.labels
    return tuple(
        Belief(labels[s], float(prior[s]), float(least[s]), float(most[s]))
        for s in dict.fromkeys((int(there[rarest]), int(there[commonest])))
    )


_SECRETS = 6


@dataclass(frozen=True)
class UnchangedRow:
    """A line of the table: whose share, and the share at every budget; None where there is no protocol."""

    kind: Literal["records", "column", "secret", "other"]
    label: str
    shares: tuple[float | None, ...]


def unchanged_part(curve: UnchangedCurve, budget: float) -> dict[str, Any]:
    """The section of a curve as the template takes it; ``budget`` is that of the spec (nats)."""
    return {
        "curve": curve,
        "chosen": curve.share_at(budget),
        "chart": unchanged_chart(curve, budget),
        "rows": tuple(_rows(curve)),
        # What counts how much, as a part of a sentence.
        "weighting": WEIGHTED[curve.weights],
        # Values of the secret that have no line.
        "left_out": max(0, len(curve.secrets) - _SECRETS),
        # Of work for each point.
        "seconds": f"{UNCHANGED_SECONDS:g}",
    }


def _rows(curve: UnchangedCurve) -> Iterator[UnchangedRow]:
    def shares(of: Callable[[UnchangedPoint], float | None]) -> tuple[float | None, ...]:
        return tuple(None if point.share is None else of(point) for point in curve.points)

    yield UnchangedRow("records", "whole records", shares(lambda point: point.share))
    # A single column stays where the whole record does.
    for j, column in enumerate(curve.columns if len(curve.columns) > 1 else ()):
        yield UnchangedRow("column", column, shares(lambda point, j=j: point.columns[j]))  # type: ignore[misc]
    for s, label in enumerate(curve.secrets[:_SECRETS]):
        yield UnchangedRow("secret", label, shares(lambda point, s=s: point.secrets[s]))  # type: ignore[misc]
    yield UnchangedRow("other", "weighted share", shares(lambda point: point.weighted))
    yield UnchangedRow("other", "at most, certified", shares(lambda point: point.most))
    yield UnchangedRow("other", "information kept", shares(lambda point: point.kept))


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
