"""The pipeline around the method: flows, tasks, expectations and the ledger, folders at the top of the project."""

from __future__ import annotations

from importlib.util import find_spec

from funnel.errors import PipelineError

_PACKAGES = ("prefect", "great_expectations", "pandas", "jinja2", "sqlalchemy")


def check_installed() -> None:
    """Refuse in one sentence where funnel was installed as a library, without the packages of its pipeline.

    Raises
    ------
    PipelineError
        If a package of the extra ``pipeline`` is not installed.
    """
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise PipelineError(f"the pipeline is not installed ({missing[0]} is missing): pip install 'funnel[pipeline]'")
