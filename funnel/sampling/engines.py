"""Engines: the workers that a spec asks for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from funnel.sampling import OneWorker, Processes, Workers
from funnel.sampling.dask_workers import dask_workers
from funnel.settings.work import EngineSettings


@contextmanager
def workers_of(engine: EngineSettings) -> Iterator[Workers]:
    """The workers of an engine, for as long as the block lasts.

    Raises
    ------
    SpecError, PipelineError
        If Dask is asked for and not installed, or gives no workers.
    """
    if engine.kind == "dask":
        with dask_workers(engine) as workers:
            yield workers
    elif engine.workers > 1:
        with Processes(engine.workers) as processes:
            yield processes
    else:
        yield OneWorker()
