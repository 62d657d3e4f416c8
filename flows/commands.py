"""Commands that need the orchestrator: ``funnel release`` and ``funnel watch``."""

from __future__ import annotations

import importlib
import os
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
from funnel.pipeline import check_installed
from funnel.pipeline.flows.environment import quiet_environment
from funnel.spec import ReleaseSpec

SERVER = "PREFECT_API_URL"


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

    The steps are ingest, estimate, optimise, sanitise, audit, describe, validate and publish. A release appears whole
    or not at all, under releases/NAME/VERSION, and releases/NAME/latest points to it last. If neither the source nor
    the spec has changed since the last version, nothing is drawn: every fresh draw about the same people reveals more.

    The steps run in this command; set PREFECT_API_URL to run them as a flow of that Prefect server, which shows them.
    """
    check_installed()
    # A wrong spec is found, and that nothing has changed, before anything slow is imported.
    described = ReleaseSpec.load(spec)
    with Console(as_json) as console:
        result = None if again or rotate_secret else _look(described, console)
        if result is None:
            result = _run(spec, described, again, rotate_secret, console)
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


def _look(spec: ReleaseSpec, console: Console) -> dict[str, Any] | None:
    from funnel.pipeline.flows.look import look
    from funnel.pipeline.tasks.step import listening

    with listening(console.progress):
        return look(spec)


def _run(path: Path, spec: ReleaseSpec, again: bool, rotate_secret: bool, console: Console) -> dict[str, Any]:
    # Before the orchestrator or the validator is imported.
    quiet_environment(spec.workspace_folder)
    _preload("great_expectations", "matplotlib.figure")
    from funnel.pipeline.tasks.step import listening

    with _remembered_interrupt() as interrupted:

        def listen(what: str, done: int, total: int | None) -> None:
            if interrupted():
                raise KeyboardInterrupt
            console.progress(what, done, total)

        with listening(listen):
            return (
                _by_itself(spec, again, rotate_secret)
                if SERVER not in os.environ
                else _on_the_server(path, spec, again, rotate_secret, console)
            )


def _by_itself(spec: ReleaseSpec, again: bool, rotate_secret: bool) -> dict[str, Any]:
    """Run the steps here: an orchestrator that ended with the command would show them to nobody."""
    from funnel.pipeline.flows.way import go

    return go(spec, again, rotate_secret)[0]


def _on_the_server(path: Path, spec: ReleaseSpec, again: bool, rotate_secret: bool, console: Console) -> dict[str, Any]:
    """Run the steps as a flow of the server that the user named."""
    console.progress("loading the orchestrator", 0, None)
    from funnel.pipeline.flows.release import release as flow

    try:
        result: dict[str, Any] = flow(str(path.absolute()), again, rotate_secret, spec.text)
    except RuntimeError as error:
        # What the orchestrator raises when its server does not answer.
        raise PipelineError(f"the orchestrator failed: {' '.join(str(error).split())[:300]}") from error
    return result


@contextmanager
def _remembered_interrupt() -> Iterator[Callable[[], bool]]:
    """Tell whether Ctrl-C or SIGTERM came inside this block, also if the exception it raised was lost.

    Libraries swallow it where they catch every exception (while importing, in callbacks), and the optimiser answers it
    with the best protocol so far: but a release that its user stopped must not be published.
    """
    seen = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def remember(number: int, frame: FrameType | None) -> None:
        seen.set()
        handler = before[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    for number in before:
        signal.signal(number, remember)
    try:
        yield seen.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
    check_installed()
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
