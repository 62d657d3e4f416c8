"""What commands show: progress and tables for people on a terminal, plain lines elsewhere, JSON for machines."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.console import Console as RichConsole
from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from funnel.progress import LOSS, WARNING
from funnel.wording import listed, printable

if TYPE_CHECKING:
    from funnel.audit.check import Result
    from funnel.certainty import Certainty
    from funnel.disclosure.rule_forecast import RuleForecast
    from funnel.estimation import ExpectedErrors
    from funnel.frequencies.noise_forecast import NoiseForecast
    from funnel.history.version_forecast import Outlook
    from funnel.joint import Joint
    from funnel.planning import PlanRow
    from funnel.release.protection import Protection
    from funnel.spec import ReleaseSpec


_WIDE = 160
_CAPTION = "* as the spec has it; moved next: expected before the next version, if people change again as they did"
# Seconds between two lines about how far one thing has come, where there is no terminal.
_OFTEN = 5.0


def frequencies_line(protection: Protection) -> str:
    """What protects the frequencies that everything public is made from, in one line."""
    if protection.protection != "noise":
        more = 'protection = "noise" in [frequencies] protects them.'
        if protection.protection == "threshold":
            return (
                "FREQUENCIES ARE GROUPED, BUT EXACT: rare combinations were grouped before anything else, and all "
                "public files are made from the exact counts of the groups; two versions that differ by one person can "
                f"give that person away. {more}"
            )
        return (
            "FREQUENCIES ARE NOT PROTECTED: nothing but rounding protects the exact counts that all public files are "
            f"made from; single people can be read from these. {more}"
        )
    unprotected = f", and {protection.unprotected} without noise" if protection.unprotected else ""
    return (
        f"Frequencies: noisy counts, differentially private with epsilon {protection.epsilon:g}, {protection.spent:g} "
        f"spent by all versions about these people{unprotected}; no public file is made from exact ones."
    )


def unchanged_lines(told: Mapping[str, Any] | None) -> Iterator[str]:
    """What stays as it is in an invariant release, and what its observers can conclude; nothing of any other."""
    from funnel.alphabet import CLASS_COLUMN

    if told is None:
        return
    by_class = told["columns"][-1]["column"] == CLASS_COLUMN
    what, more = ("class", "es") if by_class else ("combination", "s")
    whole = told["whole"]
    columns = ", ".join(f"{one['column']} {one['share']:.1%}" for one in (whole or told)["columns"])
    by_column = "in every column at least as many" if by_class and whole is None else columns
    yield f"Unchanged: {told['share']:.1%} of the records; {by_column}."
    points = f"{100 * told['error']:.2g} percentage points"
    yield f"Errors:    the share of one {what} that is counted has a standard error of {points} at most"
    for one in told["secrets"]:
        stays = "" if one["stays"] is None else f"; the value stays for {one['stays']:.1%}"
        most = "" if one["at_most"] is None else f", at most {one['at_most']:.1%}"
        yield f"  {one['label']} ({one['prior']:.1%}): {one['share']:.1%} of the records{stays}{most}"
    rare = told["rare_unchanged"]
    counted = told if whole is None else whole
    alone = "" if by_class and whole is None else f"; {counted['unique']:,} published records like no other"
    if alone and counted["unique_unchanged"] is not None:
        alone += f", {counted['unique_unchanged']:.1%} of them true"
    yield (
        f"Rare:      {f'no {what}' if rare is None else f'{rare:.1%} unchanged of those'} with less than a "
        f"thousandth of the records; {told['exact_records']:.1%} of the records in {what}{more} that are published "
        f"exactly{alone}"
    )
    # Of whole records these are the columns that observers may know, and the class.
    for one in told["observers"]:
        others = [column["column"] for column in told["columns"][-one["columns"] : -1]]
        if one["known"] in (0, one["columns"]):
            who = f"{'all' if one['known'] else 'none'} of the other columns"
        else:
            some = "" if by_class and len(others) == 1 else f"{one['known']} of "
            who = some + (listed(others) if by_class else "the other columns")
        yield _observer_line(who, one, "")
    if (known := told["known"]) is not None:
        yield _observer_line(f"one other column ({known['column']})", known, "at most ")


def _observer_line(who: str, one: Mapping[str, Any], most: str) -> str:
    level = one["level"] if one["level"] == "infinite" else f"at most {one['level']:g}"
    beyond = f"{most}{one['outside']:.1%} of the people"
    return f"Observers: who know {who}: level {level} nats, {beyond} moved beyond the bound"


def _loud(protection: Protection) -> str:
    return "" if protection.protection == "noise" else "bold red"


def json_line(content: dict[str, Any]) -> str:
    """A JSON object on one line, with an escape for every character that a terminal would obey rather than show."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


class Console:
    """Progress goes to standard error, results to standard output.

    Parameters
    ----------
    as_json : bool
        Whether results are one JSON object.
    out : rich.console.Console, optional
        Where results are shown; standard output by default.
    """

    def __init__(self, as_json: bool, out: RichConsole | None = None) -> None:
        self.as_json = as_json
        self._out = RichConsole() if out is None else out
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            console=RichConsole(stderr=True),
            transient=True,
        )
        self._live = sys.stderr.isatty()
        self._task = self._progress.add_task("starting", total=None)
        self._said, self._said_at = "", 0.0
        self._started = time.perf_counter()
        # Warnings that name no value of the source: those of records that are left out or merged.
        self.losses: list[str] = []
        # Whether the table of a plan is on the terminal already.
        self._shown = False

    def __enter__(self) -> Console:
        if self._live:
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._progress.stop()

    def progress(self, what: str, done: int, total: int | None, /) -> None:
        """Show what is being done; without a terminal a line when something new begins, and at times how far it is.

        A warning is a line of its own in either case.
        """
        now = time.perf_counter() - self._started
        if what.startswith(WARNING):
            if what.startswith(WARNING + LOSS):
                self.losses.append(what.removeprefix(WARNING))
            self._line(what, now)
            return
        self._progress.update(self._task, description=Text(what).markup, completed=done, total=total)
        if self._live:
            return
        so_far = "" if not done or total is None else f"{done:,} of {total:,}"
        # Some say it themselves, and of what.
        told = what if so_far in what else f"{what}: {so_far}"
        # "fitting optimal: 0.61 nats" is how far "fitting optimal" is.
        further = what.split(":")[0] == self._said.split(":")[0]
        if told != self._said and not (further and now - self._said_at < _OFTEN):
            self._line(told, now)
            self._said, self._said_at = told, now

    def _line(self, text: str, now: float) -> None:
        if self._live:
            self._progress.console.print(Text(printable(text)), soft_wrap=True)
            return
        # Nobody need read along.
        with suppress(BrokenPipeError):
            print(f"{now:6.1f} s  {printable(text)}", file=sys.stderr, flush=True)

    def print_json(self, content: dict[str, Any]) -> None:
        """Print one JSON object on one line."""
        print(json_line(content))

    @contextmanager
    def comparing(
        self, spec: ReleaseSpec, joint: Joint, guarantees: Sequence[str], protection: Protection
    ) -> Iterator[Callable[[str, PlanRow], None]]:
        """Inside, the table of a plan grows on a terminal with every (guarantee, row) that is told; elsewhere not."""
        compared: dict[str, list[PlanRow]] = {guarantee: [] for guarantee in guarantees}

        def told(guarantee: str, row: PlanRow) -> None:
            compared[guarantee].append(row)

        if self.as_json or not self._out.is_terminal:
            yield told
            return
        # One display at a time: what is being done is shown below the table.
        self._progress.stop()
        self._print_head(spec, joint, guarantees, protection)
        with Live(
            console=self._out, get_renderable=lambda: Group(_table(compared, spec.utility), self._progress)
        ) as view:
            yield told
            view.update(_table(compared, spec.utility))
        self._shown = True

    def print_plan(
        self,
        spec: ReleaseSpec,
        joint: Joint,
        compared: Sequence[tuple[str, Sequence[PlanRow]]],
        doubts: Sequence[Sequence[str]],
        outlooks: Sequence[Outlook | None],
        protection: Protection,
        sure: Sequence[Certainty | None] | None = None,
        disclosure: RuleForecast | None = None,
        noise: Sequence[NoiseForecast | None] | None = None,
        page: Path | None = None,
        errors: Sequence[ExpectedErrors | None] | None = None,
    ) -> None:
        """Print the comparison of mechanisms under one guarantee or several, and what there is to doubt about each.

        sure: what each bound costs and buys beside the same for the frequencies as they are, where it is more.
        noise: what noise on the frequencies costs under each bound, if asked for.
        page: where the page was written, if it was.
        errors: how exactly shares could be estimated from the best mechanism's release, under each bound.

        Where versions are about the same people, also what can be kept given everything published before.
        """
        sure = sure or [None] * len(compared)
        if self.as_json:
            # One guarantee a line: the form is the same however many there are.
            costs, worth = noise or [None] * len(compared), errors or [None] * len(compared)
            for (guarantee, rows), warnings, found, beside, cost, exact in zip(
                compared, doubts, outlooks, sure, costs, worth, strict=True
            ):
                self.print_json(
                    {
                        "guarantee": guarantee,
                        "records": joint.n,
                        "secret": list(spec.secret),
                        "publish": list(spec.publish),
                        "entropy": joint.entropy,
                        "utility": spec.utility,
                        "frequencies": {
                            **protection.model_dump(),
                            "outlook": None if cost is None else cost.to_dict(),
                        },
                        "mechanisms": [row.to_dict() for row in rows],
                        "certainty": None if beside is None else beside.to_dict(),
                        "history": None if found is None else found.to_dict(),
                        "disclosure": None if disclosure is None else disclosure.to_dict(guarantee),
                        "estimates": None if exact is None else exact.to_dict(),
                        "page": None if page is None else str(page),
                        "warnings": [*warnings, *self.losses],
                    }
                )
            return
        out, several = self._out, len(compared) > 1
        if not self._shown:
            self._print_head(spec, joint, [guarantee for guarantee, _ in compared], protection)
            # A terminal too narrow breaks lines; rich itself would cut columns off.
            wide = RichConsole(width=max(out.width, _WIDE), file=out.file) if several else out
            wide.print(_table(dict(compared), spec.utility))
        if several:
            out.print(
                Text(
                    f"{_SHARES[spec.utility]}; in brackets, what may not be used as the spec is (with --all). Give one "
                    "--guarantee to see levels, times and why a mechanism is not used."
                ),
                soft_wrap=True,
            )
        for (guarantee, rows), warnings, beside in zip(compared, doubts, sure, strict=True):
            for row in () if several else rows:
                self._print_notes(row)
            if beside is not None:
                out.print(Text(beside.sentence), soft_wrap=True)
                if not noise and "noise" in beside.why and beside.kept < beside.nominal_kept / 2:
                    out.print(Text("That is more than half of it: --frequencies says what would help."))
            for warning in warnings:
                out.print(
                    Text(f"warning ({guarantee}): {warning}" if several else f"warning: {warning}"), soft_wrap=True
                )
        if spec.publishes_secret:
            those = ", ".join(spec.secret)
            said = (
                f"no other mechanism is compared: {those} is published too, and mechanisms with sets do not publish it"
            )
            out.print(Text(said), soft_wrap=True)
        for (guarantee, _), exact in zip(compared, errors or [None] * len(compared), strict=True):
            if exact is not None:
                out.print(Text(f"{guarantee}: {exact.sentence}" if several else exact.sentence), soft_wrap=True)
        for outlook in outlooks:
            if outlook is not None:
                self._print_forecast(outlook, several)
        for line in (*_costs(noise or ()), *(() if disclosure is None else disclosure.lines())):
            out.print(Text(printable(line)), soft_wrap=True)
        if page is not None:
            self._print_page(page)

    def _print_page(self, page: Path) -> None:
        said = f"budgets, what they mean for one person, and what columns cost: {page}"
        self._out.print(Text(printable(said)), soft_wrap=True)

    def _print_head(self, spec: ReleaseSpec, joint: Joint, guarantees: Sequence[str], protection: Protection) -> None:
        about = "about " if protection.protection == "noise" else ""
        self._out.print(
            Text(
                f"{spec.title}\n{about}{joint.n:,} records; "
                f"secret {', '.join(spec.secret)} ({len(joint.secret)} values), "
                f"published {', '.join(spec.publish)} ({len(joint.inputs)} values, H(X) = {joint.entropy:.4f} nats)"
            ),
            soft_wrap=True,
        )
        self._out.print(Text(frequencies_line(protection), style=_loud(protection)), soft_wrap=True)
        if len(guarantees) == 1:
            self._out.print(Text(f"bound {guarantees[0]}"))

    def _print_notes(self, row: PlanRow) -> None:
        """Why a mechanism is not used, and how much better another protocol could be."""
        if row.reason is not None:
            self._out.print(Text(f"{row.mechanism} is not used: {row.reason}"), soft_wrap=True)
        if row.utility is None or row.share is None:
            return
        known = None if row.certificate is None else row.certificate.sentence(row.share)
        if not row.finished:
            known = known or "what it found until then holds; a larger time_limit may find better"
            self._out.print(Text(f"{row.mechanism} was stopped by the time limit: {known}"), soft_wrap=True)
        elif known is not None:
            self._out.print(Text(f"{row.mechanism}: {known}"), soft_wrap=True)

    def _print_forecast(self, found: Outlook, several: bool) -> None:
        """What can be kept given everything published before, and what reserves and a smaller beginning cost."""
        out, asked = self._out, found.asked
        of = f" ({found.guarantee})" if several else ""
        people = "units" if found.unit else "people"
        if found.unit:
            of = f"{of}: {found.rows:,} rows of {found.people:,} units ({', '.join(found.unit)})"
        if found.versions:
            said = (
                f"given everything published about these {people} in {_things(found.versions, 'version')}{of}: "
                f"{_things(found.histories, 'history', 'histories')}, {found.new:,} of {found.people:,} {people} new; "
                f"{asked.kept:.1%} kept with {found.mechanism}, {found.alone:.1%} if this version stood alone; "
                f"{asked.moved:,} {people} out of the bound by what was published before"
                f"{_up_to(asked.step.moved_level)}, {asked.outside:,} of them whatever is drawn; "
                f"level over all other histories {asked.step.level.value:.6g}"
            )
        else:
            said = (
                f"the first version about these {people}{of}: {asked.kept:.1%} kept with {found.mechanism} at a "
                f"reserve of {found.reserve:g}"
            )
        out.print(Text(said), soft_wrap=True)
        out.print(_reserve_table(found))
        out.print(Text(_CAPTION if found.versions else "* as the spec has it"), soft_wrap=True)
        if found.beginnings:
            said = (
                "a later version can add to values that do not change where the first one takes a part of the bound; "
                "at most, by the most informative protocols and without noise:"
            )
            out.print(Text(said), soft_wrap=True)
            out.print(_beginning_table(found))

    def print_checks(self, root: str, checks: Sequence[Result]) -> None:
        """Print the checks of an audit, and what they amount to."""
        from funnel.audit.check import State, audit_document, overall

        if self.as_json:
            self.print_json(audit_document(root, checks).content())
            return
        out = self._out
        out.print(Text(printable(root)), soft_wrap=True)
        shown = {
            State.PASSED: Text("pass", style="green"),
            State.FAILED: Text("FAIL", style="bold red"),
            State.UNCHECKED: Text("could not be checked", style="yellow"),
        }
        for check in checks:
            # A line each, however long: scripts read them.
            out.print(shown[check.state], Text(f"{check.name}: {check.detail}"), soft_wrap=True)
        summed = {state: sum(check.state is state for check in checks) for state in State}
        out.print(
            Text(f"{overall(checks)}: ") + Text(", ".join(f"{n} {state}" for state, n in summed.items() if n)),
            soft_wrap=True,
        )


def _costs(noise: Sequence[NoiseForecast | None]) -> Iterator[str]:
    """What noise costs under each bound."""
    from funnel.frequencies.noise_forecast import NO_COST

    for cost in noise:
        yield from (NO_COST,) if cost is None else cost.lines()


_SHARES = {
    "information": "Share of H(X) kept",
    "variance": "Share of the variance explained",
    "estimation": "Share of the records that would tell estimates as much",
}
_UNITS = {"information": "nats", "variance": "of the variance", "estimation": "of the records"}


def _table(compared: Mapping[str, Sequence[PlanRow]], utility: str) -> Table:
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


def _reserve_table(found: Outlook) -> Table:
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


def _beginning_table(found: Outlook) -> Table:
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
