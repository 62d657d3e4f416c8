"""The tables and sentences of a plan on a console: mechanisms, what to doubt, forecasts of versions and of noise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from funnel.wording import printable

if TYPE_CHECKING:
    from funnel.history.version_forecast import VersionForecast
    from funnel.planning import PlanRow
    from funnel.preview.spec_plan import SpecPlan

_CAPTION = "* as the spec has it; moved next: expected before the next version, if people change again as they did"
_SHARES = {
    "information": "Share of H(X) kept",
    "variance": "Share of the variance explained",
    "estimation": "Share of the records that would tell estimates as much",
}
_UNITS = {"information": "nats", "variance": "of the variance", "estimation": "of the records"}


def comparison(compared: Mapping[str, Sequence[PlanRow]], utility: str) -> Table:
    """Of one guarantee everything about its rows, of several the shares that are kept."""
    from funnel.planning import best_first

    if len(compared) > 1:
        return _comparison_table(compared)
    return _plan_table(best_first(next(iter(compared.values()))), utility)


def _plan_table(rows: Sequence[PlanRow], utility: str) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("mechanism", no_wrap=True)
    told = ("nats", "of H(X)") if utility == "information" else (_UNITS[utility],)
    # Records that an invariant protocol leaves unchanged, which other mechanisms have none of.
    counted = any(row.unchanged is not None for row in rows)
    for title in (*told, *(["unchanged"] if counted else []), "exact level", "time (s)"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        share = "-" if row.share is None else f"{row.share:.1%}"
        table.add_row(
            row.mechanism,
            *(("-" if row.utility is None else f"{row.utility:.4f}",) if utility == "information" else ()),
            share,
            *(["" if row.unchanged is None else f"{row.unchanged:.1%}"] if counted else []),
            "-" if row.level is None else f"{row.level:.6g}",
            f"{row.seconds:.2f}",
        )
    return table


def _up_to(level: float | None) -> str:
    """The largest level of people who are moved, where there are some."""
    if level is None:
        return ""
    return ", a secret ruled out" if math.isinf(level) else f", up to a level of {level:.4g}"


def _things(number: int, one: str, more: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def _reserve_table(found: VersionForecast) -> Table:
    """What each reserve keeps, and how many people would be outside the bound now and by the next version."""
    table = Table(box=None, pad_edge=False)
    later = found.versions > 0
    for title in ("reserve", "kept of H(X)", *(("moved", "outside", "moved next") if later else ())):
        table.add_column(title, justify="right", no_wrap=True)
    for cost in found.costs:
        chances = "-" if cost.moved_next is None else f"{cost.moved_next:,.0f}"
        people = (f"{cost.moved:,}", f"{cost.outside:,}", chances) if later else ()
        mark = " *" if cost.reserve == found.reserve else "  "
        table.add_row(f"{cost.reserve:g}{mark}", f"{cost.kept:.1%}", *people)
    return table


def _beginning_table(found: VersionForecast) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("first version at", "it keeps", "with a second", "all at once", "lost"):
        table.add_column(title, justify="right", no_wrap=True)
    for one in found.beginnings:
        table.add_row(
            f"{one.begin:.0%}", f"{one.first:.1%}", f"{one.both:.1%}", f"{one.one_shot:.1%}", f"{100 * one.lost:.2f} pp"
        )
    return table


def _comparison_table(compared: Mapping[str, Sequence[PlanRow]]) -> Table:
    """Mechanisms (rows) under several guarantees (columns)."""
    table = Table(box=None, pad_edge=False)
    table.add_column("mechanism", no_wrap=True)
    names = dict.fromkeys(row.mechanism for rows in compared.values() for row in rows)
    by_guarantee = []
    for guarantee, rows in compared.items():
        table.add_column(Text(guarantee.replace(":", "\n", 1)), justify="right", no_wrap=True)
        by_guarantee.append({row.mechanism: row for row in rows})
    for name in names:
        cells = []
        for rows_by_name in by_guarantee:
            row = rows_by_name.get(name)
            share = "" if row is None else "-" if row.share is None else f"{row.share:.1%}"
            forbidden = row is not None and row.share is not None and row.reason is not None
            cells.append(f"({share})" if forbidden else share)
        table.add_row(name, *cells)
    return table


def below_comparison(plan: SpecPlan) -> Iterator[str | Table]:
    """All that a console shows of a plan below the comparison of mechanisms: sentences, and tables of forecasts."""
    several = len(plan.bounds) > 1
    if several:
        yield (
            f"{_SHARES[plan.spec.utility]}; in brackets, what may not be used as the spec is (with --all). Give one "
            "--guarantee to see levels, times and why a mechanism is not used."
        )
    for bound in plan.bounds:
        for row in () if several else bound.rows:
            yield from _notes(row)
        if (sure := bound.certainty) is not None:
            yield sure.sentence
            if not plan.costing and "noise" in sure.why and sure.kept < sure.nominal_kept / 2:
                yield "That is more than half of it: --frequencies says what would help."
        for warning in bound.warnings:
            yield f"warning ({bound.guarantee}): {warning}" if several else f"warning: {warning}"
    if plan.spec.publishes_secret:
        those = ", ".join(plan.spec.secret)
        yield f"no other mechanism is compared: {those} is published too, and mechanisms with sets do not publish it"
    for bound in plan.bounds:
        if bound.errors is not None:
            yield f"{bound.guarantee}: {bound.errors.sentence}" if several else bound.errors.sentence
    for bound in plan.bounds:
        if bound.forecast is not None:
            yield from _forecast(bound.forecast, several)
    for bound in plan.bounds:
        if bound.matrix is not None:
            yield from map(printable, bound.matrix.lines())
    yield from map(printable, (*_costs(plan), *(() if plan.disclosure is None else plan.disclosure.lines())))


def _notes(row: PlanRow) -> Iterator[str]:
    """Why a mechanism is not used, and how much better another protocol could be."""
    if row.reason is not None:
        yield f"{row.mechanism} is not used: {row.reason}"
    if row.utility is None or row.share is None:
        return
    known = None if row.certificate is None else row.certificate.sentence(row.share)
    if not row.finished:
        known = known or "what it found until then holds; a larger time_limit may find better"
        yield f"{row.mechanism} was stopped by the time limit: {known}"
    elif known is not None:
        yield f"{row.mechanism}: {known}"


def _costs(plan: SpecPlan) -> Iterator[str]:
    """What noise costs under each bound, if that was asked."""
    from funnel.frequencies.noise_forecast import NO_COST

    for bound in plan.bounds if plan.costing else ():
        yield from (NO_COST,) if bound.noise is None else bound.noise.lines()


def _forecast(found: VersionForecast, several: bool) -> Iterator[str | Table]:
    """What can be kept given everything published before, and what reserves and a smaller beginning cost."""
    asked = found.declared
    of = f" ({found.guarantee})" if several else ""
    people = "units" if found.unit else "people"
    if found.unit:
        of = f"{of}: {found.rows:,} rows of {found.people:,} units ({', '.join(found.unit)})"
    if found.versions:
        yield (
            f"given everything published about these {people} in {_things(found.versions, 'version')}{of}: "
            f"{_things(found.histories, 'history', 'histories')}, {found.new:,} of {found.people:,} {people} new; "
            f"{asked.kept:.1%} kept with {found.mechanism}, {found.alone:.1%} if this version stood alone; "
            f"{asked.moved:,} {people} out of the bound by what was published before"
            f"{_up_to(asked.step.moved_level)}, {asked.outside:,} of them whatever is drawn; "
            f"level over all other histories {asked.step.level.value:.6g}"
        )
    else:
        yield (
            f"the first version about these {people}{of}: {asked.kept:.1%} kept with {found.mechanism} at a "
            f"reserve of {found.reserve:g}"
        )
    yield _reserve_table(found)
    yield _CAPTION if found.versions else "* as the spec has it"
    if found.beginnings:
        yield (
            "a later version can add to values that do not change where the first one takes a part of the bound; "
            "at most, by the most informative protocols and without noise:"
        )
        yield _beginning_table(found)
