"""Commands of the pipeline: ``funnel release``, ``funnel approve`` and ``funnel watch``."""

from __future__ import annotations

import importlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import click

from funnel.commands import STOPPED, json_option, renamed_option, spec_argument
from funnel.console import Console, frequencies_line, unchanged_lines
from funnel.deferred_imports import VALIDATOR, import_without
from funnel.errors import PipelineError
from funnel.pipeline import check_installed
from funnel.release.files import private_folder
from funnel.release.protection import Protection
from funnel.spec import ReleaseSpec
from funnel.wording import printable

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
    Where the spec says required = true in [approval], the version is held, unseen, until funnel approve publishes it.

    The steps run in this command; set PREFECT_API_URL to run them as a flow of that Prefect server, which shows them.
    """
    check_installed()
    # A wrong spec is found, and that nothing has changed, before anything slow is imported.
    described = ReleaseSpec.load(spec)
    arguments = (again, rotate_secret)
    with Console(as_json) as console:
        result = None if any(arguments) else _look(described, console)
        if result is None:
            # Here where no server is named: an orchestrator that ended with the command would show them to nobody.
            result = _run(
                described,
                console,
                lambda: _steps().run_release(described, *arguments)[0],
                lambda: _flow("release")(str(spec.absolute()), *arguments, described.text),
            )
    _show(result, as_json, console)


@click.command("approve")
@spec_argument
@click.option(
    "--approver", required=True, metavar="NAME", help='Who approves, such as "A. Okafor, data protection officer".'
)
@renamed_option("--by", "--approver")
@click.option("--note", metavar="TEXT", help="What else is to be kept in the internal record.")
@click.option(
    "--version", metavar="VERSION", help="The version that was looked at, such as 1.1.0; refused if another waits."
)
@click.option("--reject", metavar="REASON", help="Remove the version instead of publishing it.")
@json_option
def approve(
    spec: Path, approver: str, note: str | None, version: str | None, reject: str | None, as_json: bool
) -> None:
    """Publish the version of SPEC that waits for approval, or reject it.

    Where a spec says required = true in [approval], funnel release holds a version that passed its validation in a
    private folder of the series. Approval makes sure that it is what was judged, writes who approved and when into the
    report and the record, has everything judged again, and publishes it. Nothing is drawn again.

    The name is taken as it is given: it is a claim of whoever runs the command, not an authentication. It is published
    in the report; the note is not.
    """
    check_installed()
    from funnel.release.approval import Approval, version_to_approve

    click.get_current_context().meta[STOPPED] = "what was held waits still, unless it was published before"
    if reject is not None and note is not None:
        raise click.UsageError("--note goes with an approval; with --reject the reason is kept")
    said = Approval.given(approver, note if reject is None else reject)
    asked = version_to_approve(version)
    described = ReleaseSpec.load(spec)
    with Console(as_json) as console:
        if reject is not None:
            from funnel.pipeline.flows.look import reject as refuse

            result = refuse(described, said, asked)
        else:
            result = _run(
                described,
                console,
                lambda: _steps().run_approved(described, said, asked)[0],
                lambda: _flow("approve")(str(spec.absolute()), said.by, said.note, version, described.text),
            )
    _show(result, as_json, console)


def _show(result: dict[str, Any], as_json: bool, console: Console) -> None:
    """Print what a run came to."""
    if as_json:
        warnings = list(dict.fromkeys([*result.get("warnings", ()), *console.losses]))
        console.print_json({**result, "warnings": warnings} if warnings or "warnings" in result else result)
        return
    # A name is as it was given, and may hold what turns a line of a terminal around.
    click.echo(printable(_sentence(result)))
    for line in unchanged_lines(result.get("unchanged"), (result.get("history") or {}).get("own")):
        click.echo(printable(line))
    if (certificate := result.get("certificate")) is not None:
        click.echo(f"Optimum: {certificate}.")
    for warning in result.get("warnings", ()):
        click.echo(f"Warning: {warning}.")
    if (frequencies := result.get("frequencies")) is not None:
        click.echo(frequencies_line(Protection.model_validate(frequencies)))
    if result["cached"]:
        click.echo(f"Cached: {', '.join(result['cached'])}.")
    if result.get("key") is not None:
        click.echo(f"Key:     {result['key']} (tell it to readers by another way; funnel audit --public-key)")
    if (sizes := result.get("bytes")) is not None and sizes["protocol"] > sizes["records"]:
        click.echo(
            f"Size:    protocol.json has {sizes['protocol'] / 1000:,.0f} kB and data/records.parquet "
            f"{sizes['records'] / 1000:,.0f} kB: {result['probabilities']:,} probabilities are not zero, and each is "
            "proven to its last bit."
        )
    if "folder" in result:
        click.echo(f"Release: {result['folder']}")
        click.echo(f"Report:  {result['report']}")
        click.echo(f"Private: {result['internal']} (exact counts, internal report; for its publisher alone)")
    if result["status"] == "held":
        click.echo('Look at the report, then: funnel approve SPEC --approver "NAME, OFFICE" (or --reject REASON)')


def _sentence(result: dict[str, Any]) -> str:
    version = result["version"]
    if result["status"] == "unchanged":
        return (
            f"Nothing has changed since version {version}, so nothing was drawn again "
            "(funnel release --again would, and would reveal more)."
        )
    if result["status"] == "rejected":
        return f"Version {version} was rejected by {result['by']} on {result['at']}: {result['reason']}"
    if "since" in result:
        return (
            f"Version {version}, {result['rows']:,} records, has waited for approval since {result['since']}; nothing "
            "has changed, so nothing was drawn again."
        )
    reused = ""
    if not result["fresh"] and "approved_by" not in result:
        reused = "; records keep their answers" if result["drawn"] else "; rows taken over from the version before"
    explained = result.get("explained")
    of_numbers = "" if explained is None else f"{explained:.1%} of the variance explained, "
    what = (
        f"{result['rows']:,} records by {result['mechanism']}, {of_numbers}{_kept(result)}, exact "
        f"level {result['level']:.12g} within {result['guarantee']}{reused}"
    )
    if (history := result.get("history")) is not None:
        what += _of_history(history)
    if result["status"] == "held":
        return f"Held version {version} for approval, unpublished: {what}."
    by = f", approved by {result['approved_by']}" if "approved_by" in result else ""
    return f"Published version {version}: {what}{by}."


def _kept(result: dict[str, Any]) -> str:
    """What stays as it is, or the share of the information that is kept of the columns as the spec asks for them."""
    if (own := (result.get("history") or {}).get("own")) is not None:
        return f"{own:.1%} of them people's own"
    if result.get("unchanged") is not None:
        return f"{result['unchanged']['share']:.1%} of them unchanged"
    left = result.get("grouping_kept")
    if left is None:
        return f"{result['share']:.1%} of the information kept"
    return (
        f"{left * result['share']:.1%} of the information kept ({result['share']:.1%} of what grouping for the "
        f"threshold left)"
    )


def _of_history(history: dict[str, Any]) -> str:
    """What all versions about the same people tell together, as a further part of a sentence."""
    versions, moved = history["versions"], ""
    people = "people" if history.get("units") is None else "units"
    if history["moved"]:
        moved = f" but for {history['outside']:,} {people} whom frequencies, and no draw, had moved out of it"
    first = "the first version about" if versions == 1 else f"all {versions} versions about"
    these = (
        f"these {people}" if history.get("units") is None else f"these {history['units']:,} units, in all their rows"
    )
    many = f"{history['histories']:,} {'history' if history['histories'] == 1 else 'histories'}"
    return (
        f"; {first} {these} together: level {history['level']:.12g} over {many}{moved}, "
        f"{history['share']:.1%} kept before rounding, {history['share_alone']:.1%} if this version stood alone"
    )


def _look(spec: ReleaseSpec, console: Console) -> dict[str, Any] | None:
    from funnel.pipeline.flows.look import look
    from funnel.pipeline.tasks.step import listening

    with listening(console.progress):
        return look(spec)


def _run(
    spec: ReleaseSpec,
    console: Console,
    by_itself: Callable[[], dict[str, Any]],
    on_the_server: Callable[[], dict[str, Any]],
) -> dict[str, Any]:
    """Run the steps here, or as a flow of the server that the user named."""
    console.progress("loading the steps", 0, None)
    # Before the orchestrator or the validator is imported.
    quiet_environment(spec.workspace_folder)
    # What the last steps need is imported while the first ones wait for files.
    threading.Thread(target=import_without, args=VALIDATOR, daemon=True).start()
    from funnel.pipeline.tasks.step import listening

    with _remembered_interrupt() as interrupted:

        def listen(what: str, done: int, total: int | None) -> None:
            if interrupted():
                raise KeyboardInterrupt
            console.progress(what, done, total)

        with listening(listen):
            if SERVER not in os.environ:
                return by_itself()
            console.progress("loading the orchestrator", 0, None)
            try:
                return on_the_server()
            except RuntimeError as error:
                # What the orchestrator raises when its server does not answer.
                raise PipelineError(f"the orchestrator failed: {' '.join(str(error).split())[:300]}") from error


def _steps() -> ModuleType:
    return importlib.import_module("funnel.pipeline.flows.pipeline")


def _flow(name: str) -> Callable[..., dict[str, Any]]:
    found: Callable[..., dict[str, Any]] = getattr(importlib.import_module("funnel.pipeline.flows.release"), name)
    return found


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
    the source of the newest release, if there is one. A source that cannot be read for a while, and a server that is
    down, are told and watched on.
    """
    check_installed()
    from funnel.pipeline.flows.watch import watch_source

    described = ReleaseSpec.load(spec)
    quiet_environment(described.workspace_folder)
    with Console(as_json) as console:
        for look in watch_source(spec.absolute(), interval, once, console.progress):
            if as_json:
                console.print_json(look)
            elif "message" in look:
                click.echo(f"{look['status']}, watching on: {look['message']}")
            else:
                click.echo(f"{look['status']}: {look['source']} ({look['sha256'][:16]})")


@click.command("serve")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option("--port", type=click.IntRange(0, 65535), default=4300, show_default=True, help="0 for any that is free.")
def serve(folder: Path, host: str, port: int) -> None:
    """Serve the public files of the releases in FOLDER over http, for browsers near it, until Ctrl-C.

    Exactly those files of every version that its signature lists: versions that wait for approval are not among them.
    Name the address as served_at in [output], and the runs of an orchestrator link to the report.
    """
    check_installed()
    from funnel.pipeline.flows.serve import server_of

    click.get_current_context().meta[STOPPED] = "nothing is served any more"
    with server_of(folder, host, port) as server:
        shown = f"[{host}]" if ":" in host else host
        click.echo(
            f"Serving the public files of {folder} at http://{shown}:{server.server_address[1]}/ (Ctrl-C ends it)"
        )
        server.serve_forever()


def quiet_environment(workspace: Path) -> None:
    """Set the settings of Prefect and Great Expectations for a run of a command; what the user has set stays.

    What Prefect keeps on this machine goes to the private workspace.

    Raises
    ------
    OutputError
        If the workspace cannot be made.
    """
    settings = {
        "PREFECT_HOME": str(private_folder(workspace / "prefect")),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        # The command tells of progress and errors itself, in one sentence instead of a traceback.
        "PREFECT_LOGGING_LEVEL": "CRITICAL",
        "PREFECT_CLI_PROMPT": "false",
        "GX_ANALYTICS_ENABLED": "false",
    }
    for name, value in settings.items():
        os.environ.setdefault(name, value)
