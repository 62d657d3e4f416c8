"""Reproduce: the figures of a paper measured, drawn and written as pages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from funnel.pipeline.tasks.step import step, tell
from funnel.progress import Progress, quiet
from funnel.release.cache import Cache
from funnel.release.files import write_whole
from funnel.sampling.engine import OneWorker, Processes, Workers
from funnel_papers.drawing import svg
from funnel_papers.experiment import Results, Size
from funnel_papers.page import Figure, html_page, index_of, markdown, numbers_of, page_of
from funnel_papers.points import code, measured
from funnel_papers.registry import PAPERS, experiments_of, paper

R = TypeVar("R")
CACHE = ".points"


@dataclass(frozen=True)
class Reproduction:
    """What a run was asked for.

    Attributes
    ----------
    paper : str
    size : Size
    adult : Path
        Adult as parquet.
    output : Path
        Of all papers.
    workers : int
        Processes.
    """

    paper: str
    size: Size
    adult: Path
    output: Path
    workers: int = 1

    @property
    def folder(self) -> Path:
        """Of this paper."""
        return self.output / self.paper

    @property
    def cache(self) -> Cache:
        """Of points, whatever paper they are of."""
        return Cache(self.output / CACHE)

    def file(self, figure: str) -> str:
        """The name of the file of a figure."""
        return f"{self.paper}-{figure}.svg"


class _Unknown(Exception):
    """A point is not known yet."""


class _Nobody:
    """Workers that measure nothing: only what is known already can be had."""

    def run(self, function: Callable[..., R], tasks: Sequence[tuple[object, ...]]) -> Iterator[tuple[int, R]]:
        """See `Workers`."""
        if tasks:
            raise _Unknown
        yield from ()


@step
def measure(asked: Reproduction, figure: str) -> Results:
    """Measure a figure, or as much of it as is not known; its orders hold.

    Raises
    ------
    SpecError, DataError, SolverError
    """
    if asked.workers == 1:
        return _measured(asked, figure, OneWorker(), _progress)
    with Processes(asked.workers) as processes:
        return _measured(asked, figure, processes, _progress)


@step
def draw(asked: Reproduction, figure: str, results: Results) -> str:
    """Draw a figure; the path of its file."""
    (experiment,) = experiments_of(paper(asked.paper), [figure])
    asked.folder.mkdir(parents=True, exist_ok=True)
    path = asked.folder / asked.file(figure)
    write_whole(path, svg(experiment, results).encode())
    return str(path)


@step
def write(asked: Reproduction) -> dict[str, Any]:
    """Write pages and numbers of a paper from all figures that are measured and drawn; return the numbers."""
    one = paper(asked.paper)
    figures = []
    for experiment in one.experiments:
        try:
            known = _measured(asked, experiment.name, _Nobody())
        except _Unknown:
            continue
        if (asked.folder / asked.file(experiment.name)).exists():
            figures.append(Figure(experiment, known, asked.file(experiment.name)))
    blocks = page_of(one, figures, asked.size)
    numbers = numbers_of(one, figures, asked.size, code())
    pictures = {figure.file: (asked.folder / figure.file).read_text(encoding="utf-8") for figure in figures}
    written = {
        f"{one.name}.md": markdown(blocks),
        f"{one.name}.html": html_page(blocks, pictures),
        "numbers.json": json.dumps(numbers, ensure_ascii=False, allow_nan=False, indent=1) + "\n",
    }
    for name, text in written.items():
        write_whole(asked.folder / name, text.encode())
    return numbers


@step
def document(asked: Reproduction, docs: str) -> list[str]:
    """Put page, figures and numbers of a paper into a folder of documentation, and renew its index; their names."""
    folder = Path(docs)
    folder.mkdir(parents=True, exist_ok=True)
    copied = {f"{asked.paper}-numbers.json": asked.folder / "numbers.json"}
    copied |= {path.name: path for path in [asked.folder / f"{asked.paper}.md", *asked.folder.glob("*.svg")]}
    for name, path in copied.items():
        write_whole(folder / name, path.read_bytes())
    found = {}
    for name, one in PAPERS.items():
        numbers = folder / f"{name}-numbers.json"
        if numbers.exists():
            found[name] = (one.title, json.loads(numbers.read_text(encoding="utf-8")))
    write_whole(folder / "index.md", markdown(index_of(found)).encode())
    return sorted([*copied, "index.md"])


def _measured(asked: Reproduction, figure: str, workers: Workers, progress: Progress = quiet) -> Results:
    (experiment,) = experiments_of(paper(asked.paper), [figure])
    return measured(experiment, asked.size, asked.adult, asked.cache, workers, progress)


def _progress(what: str, done: int, total: int | None) -> None:
    tell(f"{what}: {done:,} of {total:,} points", done, total)
