"""What commands show: progress and tables for people on a terminal, plain lines elsewhere, JSON for machines."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.console import Console as RichConsole
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from funnel.audit.recheck import Check
    from funnel.joint import Joint
    from funnel.planning import PlanRow
    from funnel.spec import ReleaseSpec


_WIDE = 160


class Console:
    """Progress goes to standard error, results to standard output.

    Parameters
    ----------
    as_json : bool
        Whether results are one JSON object.
    """

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
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
        self._said = ""
        self._started = time.perf_counter()

    def __enter__(self) -> Console:
        if self._live:
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._progress.stop()

    def progress(self, what: str, done: int, total: int | None) -> None:
        """Show what is being done; without a terminal, one line each time something new begins."""
        if self._live:
            self._progress.update(self._task, description=Text(what).markup, completed=done, total=total)
        elif what != self._said:
            print(f"{time.perf_counter() - self._started:6.1f} s  {what}", file=sys.stderr, flush=True)
        self._said = what

    def print_json(self, content: dict[str, Any]) -> None:
        """Print one JSON object on one line."""
        print(json.dumps(content, ensure_ascii=False, allow_nan=False))

    def print_plan(
        self,
        spec: ReleaseSpec,
        joint: Joint,
        compared: Sequence[tuple[str, Sequence[PlanRow]]],
        doubts: Sequence[Sequence[str]],
    ) -> None:
        """Print the comparison of mechanisms under one guarantee or several, and what there is to doubt about each."""
        if self.as_json:
            # One guarantee a line: the form is the same however many there are.
            for (guarantee, rows), warnings in zip(compared, doubts, strict=True):
                self.print_json(
                    {
                        "guarantee": guarantee,
                        "records": joint.n,
                        "secret": list(spec.secret),
                        "publish": list(spec.publish),
                        "entropy": joint.entropy,
                        "mechanisms": [row.to_dict() for row in rows],
                        "warnings": list(warnings),
                    }
                )
            return
        out = RichConsole()
        out.print(
            Text(
                f"{spec.title}\n{joint.n:,} records; secret {', '.join(spec.secret)} ({len(joint.secret)} values), "
                f"published {', '.join(spec.publish)} ({len(joint.inputs)} values, H(X) = {joint.entropy:.4f} nats)"
            ),
            soft_wrap=True,
        )
        if len(compared) > 1:
            # A terminal too narrow breaks lines; rich itself would cut columns off.
            RichConsole(width=max(out.width, _WIDE)).print(_comparison_table(compared))
            out.print(
                Text(
                    "Share of H(X) kept; in brackets, what may not be used as the spec is. Give one --guarantee to see "
                    "levels, times and why a mechanism is not used."
                ),
                soft_wrap=True,
            )
            for (guarantee, _), warnings in zip(compared, doubts, strict=True):
                for warning in warnings:
                    out.print(Text(f"warning ({guarantee}): {warning}"), soft_wrap=True)
            return
        for (guarantee, rows), warnings in zip(compared, doubts, strict=True):
            out.print(Text(f"bound {guarantee}"))
            out.print(_plan_table(rows))
            for row in rows:
                if row.reason is not None:
                    out.print(Text(f"{row.mechanism} is not used: {row.reason}"), soft_wrap=True)
                if not row.finished and row.bound is not None and row.utility is not None:
                    out.print(
                        Text(
                            f"{row.mechanism} was stopped by the time limit: within {row.bound - row.utility:.2g} nats "
                            "of the optimum"
                        ),
                        soft_wrap=True,
                    )
            for warning in warnings:
                out.print(Text(f"warning: {warning}"), soft_wrap=True)

    def print_checks(self, root: str, checks: Sequence[Check]) -> None:
        """Print the checks of an audit."""
        if self.as_json:
            self.print_json(
                {
                    "release": root,
                    "passed": all(check.passed for check in checks),
                    "checks": [{"name": c.name, "passed": c.passed, "detail": c.detail} for c in checks],
                }
            )
            return
        out = RichConsole()
        out.print(Text(root), soft_wrap=True)
        table = Table(box=None, pad_edge=False, show_header=False)
        for check in checks:
            verdict = Text("pass", style="green") if check.passed else Text("FAIL", style="bold red")
            table.add_row(verdict, check.name, Text(check.detail))
        out.print(table)


def _plan_table(rows: Sequence[PlanRow]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("mechanism", no_wrap=True)
    for title in ("utility (nats)", "of H(X)", "exact level", "time (s)"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        share = "-" if row.share is None else f"{row.share:.1%}"
        table.add_row(
            row.mechanism,
            "-" if row.utility is None else f"{row.utility:.4f}",
            share,
            "-" if row.level is None else f"{row.level:.6g}",
            f"{row.seconds:.2f}",
        )
    return table


def _comparison_table(compared: Sequence[tuple[str, Sequence[PlanRow]]]) -> Table:
    """Mechanisms (rows) under several guarantees (columns)."""
    table = Table(box=None, pad_edge=False)
    table.add_column("mechanism", no_wrap=True)
    names = dict.fromkeys(row.mechanism for _, rows in compared for row in rows)
    by_guarantee = []
    for guarantee, rows in compared:
        table.add_column(Text(guarantee.replace(":", "\n", 1)), justify="right", no_wrap=True)
        by_guarantee.append({row.mechanism: row for row in rows})
    for name in names:
        cells = []
        for rows_by_name in by_guarantee:
            row = rows_by_name[name]
            share = "-" if row.share is None else f"{row.share:.1%}"
            cells.append(f"({share})" if row.share is not None and row.reason is not None else share)
        table.add_row(name, *cells)
    return table
