"""Engines: the workers that a spec asks for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from funnel.sampling import OneWorker, Processes, Workers
from funnel.settings import EngineSettings


@contextmanager
def workers_of(engine: EngineSettings) -> Iterator[Workers]:
    """The workers of an engine, for as long as the block lasts."""
    yield OneWorker() if engine.workers == 1 else Processes(engine.workers)
