"""The page of a plan of groups: what becomes of every column, what every bound costs, and what each column costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from funnel.disclosure.words import breaches_sentence
from funnel.guarantees import Guarantee
from funnel.joint import Joint
from funnel.progress import Progress
from funnel.release.cache import Cache
from funnel.release.grouped_findings import FoundColumn
from funnel.release.grouping import PlannedGroups
from funnel.release.provenance import software_name
from funnel.release.public_report import EstimatedTable
from funnel.report.estimated import estimated
from funnel.report.figures.curves import TradeoffChart, tradeoff_chart
from funnel.report.page import render
from funnel.report.plan import Budget, budget_of
from funnel.report.plan.writing import write_page
from funnel.sampling.engine import Workers
from funnel.spec import ReleaseSpec
from funnel.tradeoff import Alternative, Sweep
from funnel.tradeoff.groups import GroupedTradeoff, groups_tradeoff


@dataclass(frozen=True, eq=False)
class _Part:
    """A bound as the template takes it."""

    guarantee: Guarantee
    text: str
    planned: PlannedGroups
    columns: tuple[FoundColumn, ...]
    tradeoff: GroupedTradeoff
    chart: TradeoffChart
    sweep: Sweep
    budgets: tuple[Budget, ...]
    alternatives: tuple[Alternative, ...]
    as_it_is: Alternative
    notes: tuple[str, ...]
    estimated: tuple[EstimatedTable, ...]


def write_grouped_plan(
    spec: ReleaseSpec,
    joint: Joint,
    planned: Sequence[PlannedGroups],
    frequencies: str,
    path: Path | None,
    progress: Progress,
) -> Path:
    """`funnel.report.plan.writing.write_plan` of groups: other budgets, other groups and every column left out.

    Parameters
    ----------
    spec : ReleaseSpec
    joint : Joint
        Exact counts (c, records).
    planned : sequence of PlannedGroups
        What a release would be under each bound that was asked about.
    frequencies : str
        What protects the frequencies, in one line.
    path : Path or None
        By default `funnel.report.plan.writing.page_of` the spec.
    progress : callable
    """

    def looked_at(workers: Workers, cache: Cache) -> list[GroupedTradeoff]:
        return [
            groups_tradeoff(spec, joint, one.guarantee, one.solution.groups, workers, cache, progress=progress)
            for one in planned
        ]

    return write_page(
        spec,
        path,
        looked_at,
        lambda found: render_grouped_plan(spec, joint, planned, found, frequencies, software_name()),
    )


def render_grouped_plan(
    spec: ReleaseSpec,
    joint: Joint,
    planned: Sequence[PlannedGroups],
    found: Sequence[GroupedTradeoff],
    frequencies: str,
    software: str,
) -> str:
    """The page as one HTML file that needs nothing else: no network, no script, no second file."""
    parts = [_part(spec, joint, one, tradeoff) for one, tradeoff in zip(planned, found, strict=True)]
    values = {"spec": spec, "joint": joint, "parts": parts, "frequencies": frequencies, "software": software}
    return render("grouped_plan.html.jinja", values)


def _part(spec: ReleaseSpec, joint: Joint, planned: PlannedGroups, found: GroupedTradeoff) -> _Part:
    guarantee, sweep = planned.guarantee, found.sweep
    refuses = spec.disclosure.refuses(spec.frequencies.protection)
    notes = tuple(
        f"Of {' with '.join(one.joint.inputs.columns)}, {breaches_sentence(one)}: "
        + ("refused." if refuses else "released, and told of.")
        for one in planned.broken
    )
    return _Part(
        guarantee,
        str(guarantee),
        planned,
        tuple(sorted(planned.columns, key=lambda one: one.group)),
        found,
        tradeoff_chart(sweep, guarantee.budget, spec.utility),
        sweep,
        tuple(budget_of(joint, sweep, guarantee, budget) for budget in sweep.budgets),
        found.alternatives[1:],
        found.alternatives[0],
        notes,
        estimated(planned.errors),
    )
