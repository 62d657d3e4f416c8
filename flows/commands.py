"""Commands that need the orchestrator: ``funnel release`` and ``funnel watch``."""

from __future__ import annotations

import importlib
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import click

from funnel.cli import json_option, spec_argument
from funnel.console import Console
from funnel.errors import PipelineError
from funnel.pipeline.flows.environment import quiet_environment
from funnel.progress import Progress
from funnel.spec import ReleaseSpec


@click.command("release")
@spec_argument
@click.option("--again", is_flag=True, help="Draw and publish again although nothing has changed; reveals more.")
@click.option(
    "--rotate-secret",
    is_flag=True,
    help="Take another release secret knowingly: every record is drawn afresh, which reveals more.",
)
@json_option
def release(spec: Path, again: bool, rotate_secret: bool, as_json: bool) -> None:
    """Sanitise the source of SPEC and publish it, or refuse and say why.

    The steps are ingest, estimate, optimise, sanitise, audit, validate and publish. A release appears whole or not at
    all, under releases/NAME/VERSION, and releases/NAME/latest points to it last. If neither the source nor the spec
    has changed since the last version, nothing is drawn: every fresh draw about the same people reveals more.

    Runs on an orchestrator of its own that ends with the command; set PREFECT_API_URL to run against a server.
    """
    # A wrong spec is found before anything slow is imported.
    described = ReleaseSpec.load(spec)
    quiet_environment(described.workspace_folder)
    with Console(as_json) as console:
        console.progress("starting the orchestrator", 0, None)
        result = _run(spec, again, rotate_secret, console)
    if as_json:
        console.print_json(result)
        return
    if result["status"] == "unchanged":
        click.echo(
            f"Nothing has changed since version {result['version']}, so nothing was drawn again "
            "(funnel release --again would, and would reveal more)."
        )
    else:
        reused = ""
        if not result["fresh"]:
            reused = "; records keep their answers" if result["drawn"] else "; rows taken over from the version before"
        click.echo(
            f"Published version {result['version']}: {result['rows']:,} records by {result['mechanism']}, "
            f"{result['share']:.1%} of the information kept, exact level {result['level']:.12g} within "
            f"{result['guarantee']}{reused}."
        )
    for warning in result.get("warnings", ()):
        click.echo(f"Warning: {warning}.")
    if result["cached"]:
        click.echo(f"Cached: {', '.join(result['cached'])}.")
    click.echo(f"Release: {result['folder']}")
    click.echo(f"Report:  {result['report']}")


def _run(spec: Path, again: bool, rotate_secret: bool, console: Console) -> dict[str, Any]:
    _preload("great_expectations", "matplotlib.figure")
    with _remembered_interrupt() as interrupted:

        def listen(what: str, done: int, total: int | None) -> None:
            if interrupted():
                raise KeyboardInterrupt
            console.progress(what, done, total)

        return _listened(spec, again, rotate_secret, listen)


def _listened(spec: Path, again: bool, rotate_secret: bool, listen: Progress) -> dict[str, Any]:
    from funnel.pipeline.flows.release import release as flow
    from funnel.pipeline.tasks.step import listening

    with listening(listen):
        try:
            result: dict[str, Any] = flow(str(spec.absolute()), again, rotate_secret)
        except RuntimeError as error:
            # What the orchestrator raises when its server does not start or answer.
            raise PipelineError(f"the orchestrator failed: {' '.join(str(error).split())[:300]}") from error
    return result


@contextmanager
def _remembered_interrupt() -> Iterator[Callable[[], bool]]:
    """Tell whether Ctrl-C was pressed inside this block, also if the exception it raised was lost.

    Libraries swallow it where they catch every exception (while importing, in callbacks), and the optimiser answers it
    with the best protocol so far: but a release that its user stopped must not be published.
    """
    seen = threading.Event()
    before = signal.getsignal(signal.SIGINT)

    def remember(number: int, frame: FrameType | None) -> None:
        seen.set()
        if callable(before):
            before(number, frame)

    signal.signal(signal.SIGINT, remember)
    try:
        yield seen.is_set
    finally:
        signal.signal(signal.SIGINT, before)


def _preload(*modules: str) -> None:
    """Import what the last steps need while the first ones wait for the orchestrator's server to start."""
    for name in modules:
        threading.Thread(target=importlib.import_module, args=(name,), daemon=True).start()


@click.command("watch")
@spec_argument
@click.option(
    "--interval", type=click.FloatRange(min=0.1), default=60.0, show_default=True, help="Seconds between looks."
)
@click.option("--once", is_flag=True, help="Look once, tell of a change if there is one, and end.")
@json_option
def watch(spec: Path, interval: float, once: bool, as_json: bool) -> None:
    """Tell the orchestrator when the source of SPEC changes.

    Compares the digest of the source with the one seen last and emits the event funnel.source.changed, which starts
    the deployed release flow (see prefect.yaml). Needs a server: set PREFECT_API_URL. What was seen last is kept in
    the private workspace, so a change while nobody watched is noticed at the next look. The first look compares with
    the source of the newest release, if there is one. A source that cannot be read for a while is told and watched on.
    """
    from funnel.pipeline.flows.watch import watch_source

    described = ReleaseSpec.load(spec)
    quiet_environment(described.workspace_folder)
    with Console(as_json) as console:
        for look in watch_source(spec.absolute(), interval, once, console.progress):
            if as_json:
                console.print_json(look)
            elif look["status"] == "unreadable":
                click.echo(f"unreadable, watching on: {look['message']}")
            else:
                click.echo(f"{look['status']}: {look['source']} ({look['sha256'][:16]})")
