"""Telling: what a run did, as one sentence for the console, the state and the log of a run; and why one failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from prefect.artifacts import create_markdown_artifact
from prefect.client.schemas.objects import State
from prefect.logging import get_run_logger
from prefect.states import Completed

from funnel.errors import FunnelError
from funnel.release.public.rounding import public_text

# What the states of runs are called, by the status of what is told.
_STATES = {
    "published": "Published",
    "unchanged": "Unchanged",
    "held": "WaitingForApproval",
    "rejected": "Rejected",
}


def ended(told: dict[str, Any]) -> State[dict[str, Any]]:
    """The state of a release run that ended well, named by what it did; its message says which version and bound.

    The orchestrator is read by others than the steward: no figure is told here that is not public.
    """
    message = _done(told)
    log(message)
    for warning in told.get("warnings", ()):
        log(f"Warning: {warning}.")
    return Completed(name=_STATES[told["status"]], message=message, data=told)


def _done(told: Mapping[str, Any]) -> str:
    version = told["version"]
    if told["status"] == "unchanged":
        return f"unchanged: version {version} is this release already, and nothing was drawn again"
    if told["status"] == "rejected":
        return f"rejected: version {version} was rejected by {told['by']} on {told['at']}"
    if told["status"] == "held":
        return f"version {version} waits for approval: funnel approve SPEC --approver NAME"
    by = f", approved by {told['approved_by']}" if "approved_by" in told else ""
    return (
        f"published version {version}: {told['rows']:,} records by {told['mechanism']} within {told['guarantee']}{by}"
    )


def log(message: str) -> None:
    """Write a line into the log of the run."""
    get_run_logger().info(message)


@contextmanager
def explained(known: Mapping[str, str]) -> Iterator[None]:
    """Leave an artifact that says what went wrong and what to do, where what is done inside fails.

    Parameters
    ----------
    known : mapping of str to str
        ``name`` and ``title`` of what is being done, as far as they are known by then; the name becomes the key of the
        artifact.
    """
    try:
        yield
    except FunnelError as error:
        log(f"{type(error).__name__}: {error}")
        create_markdown_artifact(
            _failure(known["title"], error), key=f"{known['name']}-failure", description=known["title"]
        )
        raise


def _failure(title: str, error: FunnelError) -> str:
    lines = [
        f"# {plain(title)}: nothing was done",
        "",
        f"- **Why, and what to do**: {plain(public_text(str(error)))}",
        f"- **Kind**: {type(error).__name__}, exit status {error.exit_code} of the command",
        "",
        "What was published before is untouched. Once this is mended, start the deployment again, or wait for the next",
        "run on the schedule: a run that finds nothing changed draws nothing.",
    ]
    return "\n".join(lines)


def plain(text: str) -> str:
    """Text without what markdown would read as markup."""
    return "".join("\\" + c if c in r"\`*_{}[]<>#|!" else c for c in text)
