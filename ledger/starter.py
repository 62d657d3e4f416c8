"""Who started a run, as the ledger notes it: a user of a machine, or a run of the orchestrator."""

from __future__ import annotations

import getpass
import socket
import sys


def started_by() -> str:
    """``user@host``, or inside a flow ``prefect run NAME``; no secret is in either."""
    if "prefect" in sys.modules:
        from prefect.context import FlowRunContext

        context = FlowRunContext.get()
        if context is not None and context.flow_run is not None:
            return f"prefect run {context.flow_run.name}"
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        # A container whose user has no name.
        user = "unknown"
    return f"{user}@{socket.gethostname() or 'unknown'}"
