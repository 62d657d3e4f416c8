"""The watch flow: one look at a source, as a run on a schedule, for machines where no ``funnel watch`` runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import flow
from prefect.states import Completed

from funnel.pipeline.flows.telling import explained, log
from funnel.pipeline.flows.watch import look_once
from funnel.pipeline.tasks.step import plain_errors


@flow(name="watch", log_prints=False, persist_result=False, validate_parameters=True)
def watch(spec: str) -> Any:
    """Look at the source of a spec, and emit the event that starts the release deployment if it has changed.

    Parameters
    ----------
    spec : str
        Path of the spec file.

    Returns
    -------
    dict
        ``status`` ("noted", "unchanged" or "changed"), ``source``, ``sha256``. The state of the run is named by it.

    Raises
    ------
    FunnelError
        With one clear sentence; a change that could not be told of is told of at the next look.
    """
    with explained({"name": "watch", "title": f"watching the source of {Path(spec).name}"}):
        look = plain_errors(look_once)(Path(spec).absolute())
    message = f"{look['status']}: {look['source']} ({look['sha256'][:16]})"
    log(message)
    return Completed(name=look["status"].capitalize(), message=message, data=look)
