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
from rich.text import Text

from funnel.plan_tables import below_comparison, comparison
from funnel.progress import LOSS, WARNING
from funnel.wording import listed, printable

if TYPE_CHECKING:
    from funnel.audit.check import Result
    from funnel.joint import Joint
    from funnel.planning import PlanRow
    from funnel.preview.spec_plan import SpecPlan
    from funnel.release.protection import Protection
    from funnel.spec import ReleaseSpec


_WIDE = 160
# Seconds between two lines about how far one thing has come, where there is no terminal.
_OFTEN = 5.0
# With a smaller share of records that stay as they are a release is called one of changed records.
_FEW_UNCHANGED = 0.5


def frequencies_line(protection: Protection) -> str:
    """What protects the frequencies that everything public is made from, in one line."""
    if protection.kind.warning:
        return protection.kind.warning
    unprotected = f", and {protection.unprotected} without noise" if protection.unprotected else ""
    return (
        f"Frequencies: noisy counts, differentially private with epsilon {protection.epsilon:g}, {protection.spent:g} "
        f"spent by all versions about these people{unprotected}; beside the records and their number nothing public is "
        "made from exact ones."
    )


def unchanged_lines(told: Mapping[str, Any] | None, own: float | None = None) -> Iterator[str]:
    """What stays as it is in an invariant release, and what its observers can conclude; nothing of any other.

    own : of donors who are followed, how many records are people's own; what is told is then of their classes.
    """
    from funnel.alphabet import CLASS_COLUMN

    if told is None:
        return
    by_class = told["columns"][-1]["column"] == CLASS_COLUMN
    what, more = ("class", "es") if by_class else ("combination", "s")
    whole = told["whole"]
    columns = ", ".join(f"{one['column']} {one['share']:.1%}" for one in (whole or told)["columns"])
    by_column = "in every column at least as many" if by_class and whole is None else columns
    if own is None:
        yield f"Unchanged: {told['share']:.1%} of the records; {by_column}."
    else:
        # By shares as they are published, rounded, these may seem to be fewer.
        in_class = max(told["share"], own)
        yield f"Own:       {own:.1%} of the records; {in_class:.1%} have the class of their person."
    if (told["share"] if own is None else own) < _FEW_UNCHANGED:
        yield "           Most records are changed: fewer columns or categories, or more records, leave more unchanged."
    errors_of = (("any_error", "a share of whichever values"), ("error", f"that of one {what}"))
    errors = [f"{100 * told[name]:.2g} percentage points at most for {of}" for name, of in errors_of if told[name]]
    yield f"Errors:    standard errors are {', '.join(errors)}" if errors else "Errors:    counted shares have none"
    for one in told["secrets"]:
        stays = "" if one["stays"] is None else f"; the value stays for {one['stays']:.1%}"
        # A largest share is rounded up.
        most = "" if one["at_most"] is None else f", at most {math.ceil(1000 * one['at_most'] - 1e-9) / 1000:.1%}"
        yield f"  {one['label']} ({one['prior']:.1%}): {one['share']:.1%} of the records{stays}{most}"
    rare = told["rare_unchanged"]
    counted = told if whole is None else whole
    records = "record" if counted["unique"] == 1 else "records"
    alone = "" if by_class and whole is None else f"; {counted['unique']:,} published {records} like no other"
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
    if known := told["known"]:
        beyond = sum(one["outside"] > 0 for one in known)
        several = f", the worst of {beyond} that are beyond the bound" if beyond > 1 else ""
        which = "one other column" if told["at_once"] < 2 else "one or two other columns"
        yield _observer_line(f"{which} ({', '.join(known[0]['columns'])}{several})", known[0], "at most ")


def _observer_line(who: str, one: Mapping[str, Any], most: str) -> str:
    is_infinite = one["level"] == "infinite"
    level = (
        "infinite level (some value of the secret is ruled out)"
        if is_infinite
        else f"level at most {one['level']:g} nats"
    )
    beyond = f"{most}{one['outside']:.1%} of the people"
    return f"Observers who know {who}: {level}, {beyond} moved beyond the bound"


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

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Inside, nothing is drawn over what a person reads and types."""
        if self._live:
            self._progress.stop()
        try:
            yield
        finally:
            if self._live:
                self._progress.start()

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

        def shown(guarantee: str, row: PlanRow) -> None:
            compared[guarantee].append(row)

        if self.as_json or not self._out.is_terminal:
            yield shown
            return
        # One display at a time: what is being done is shown below the table.
        self._progress.stop()
        self._print_head(spec, joint, guarantees, protection)
        with Live(
            console=self._out, get_renderable=lambda: Group(comparison(compared, spec.utility), self._progress)
        ) as view:
            yield shown
            view.update(comparison(compared, spec.utility))
        self._shown = True

    def print_plan(self, plan: SpecPlan, page: Path | None = None) -> None:
        """Print the comparison of mechanisms under one bound or several, and what there is to doubt about each.

        page: where the page was written, if it was.
        """
        if self.as_json:
            for document in plan.documents():
                written = None if page is None else str(page)
                self.print_json(document | {"page": written, "warnings": [*document["warnings"], *self.losses]})
            return
        out = self._out
        if not self._shown:
            self._print_head(plan.spec, plan.joint, list(plan.compared), plan.protection)
            # A terminal too narrow breaks lines; rich itself would cut columns off.
            wide = RichConsole(width=max(out.width, _WIDE), file=out.file) if len(plan.bounds) > 1 else out
            wide.print(comparison(plan.compared, plan.spec.utility))
        for part in below_comparison(plan):
            out.print(Text(part) if isinstance(part, str) else part, soft_wrap=isinstance(part, str))
        if page is not None:
            said = f"budgets, what they mean for one person, and what columns cost: {page}"
            out.print(Text(printable(said)), soft_wrap=True)

    def _print_head(self, spec: ReleaseSpec, joint: Joint, guarantees: Sequence[str], protection: Protection) -> None:
        self._out.print(
            Text(
                f"{spec.title}\n{protection.kind.about}{joint.n:,} records; "
                f"secret {', '.join(spec.secret)} ({len(joint.secret)} values), "
                f"published {', '.join(spec.publish)} ({len(joint.inputs)} values, H(X) = {joint.entropy:.4f} nats)"
            ),
            soft_wrap=True,
        )
        style = "bold red" if protection.kind.warning else ""
        self._out.print(Text(frequencies_line(protection), style=style), soft_wrap=True)
        if len(guarantees) == 1:
            self._out.print(Text(f"bound {guarantees[0]}"))

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
