"""Settings under which the orchestrator runs quietly, offline and inside the project; made before it is imported."""

from __future__ import annotations

import os
from pathlib import Path

from funnel.release.files import private_folder


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
