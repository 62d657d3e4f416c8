"""The flow that makes the figures and numbers of a paper again, as a run of the orchestrator."""

from __future__ import annotations

from typing import Any

from prefect import flow

from funnel_papers.running import go


@flow(name="reproduce", log_prints=False, persist_result=False, validate_parameters=True)
def reproduce(
    paper: str,
    figures: list[str] | None = None,
    distributions: int | None = None,
    full: bool = False,
    adult: str = "data/adult.parquet",
    output: str = "reproduced",
    docs: str | None = None,
    workers: int = 1,
) -> dict[str, Any]:
    """Measure, draw and write figures of a paper; every figure is a task to measure and one to draw.

    Parameters and result are those of `funnel_papers.running.go`. What was measured is kept by content, by
    the tasks themselves: a run that failed or was ended goes on where it was, in a new run.
    """
    return go(paper, figures or (), distributions, full, adult, output, docs, workers)
