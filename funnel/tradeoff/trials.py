"""Trials: one function of many tables and bounds, by all workers, each result remembered by all that it depends on."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from funnel.joint import Joint
from funnel.measures.utilities import Utility
from funnel.progress import Progress, quiet
from funnel.release.cache import Cache
from funnel.release.files import private_folder
from funnel.sampling.engine import Workers

_FILE = "point.json"

R = TypeVar("R", bound=Any)


@dataclass(frozen=True)
class Trials:
    """Who does the trials of a plan, and where they are remembered.

    Parameters
    ----------
    workers : Workers
    cache : Cache, optional
        What was made of the same counts by the same code is taken from it, and what is new kept as it is there: trials
        that were stopped go on where they were.
    progress : callable
    """

    workers: Workers
    cache: Cache | None = None
    progress: Progress = quiet

    def results(self, function: Callable[..., R], tasks: Sequence[tuple[Any, ...]], kind: type[R]) -> list[R]:
        """What a function makes of tasks, in their order.

        Parameters
        ----------
        function : callable
            At the top of a module, of a task's values; returns a ``kind``.
        tasks : sequence of tuples
            Each of a joint distribution first, then of JSON values, and perhaps of a utility.
        kind : frozen dataclass of plain values

        Raises
        ------
        PipelineError
            If workers keep dying.
        """
        made: dict[int, R] = {}
        cache = self.cache
        keys = [None if cache is None else cache.key(function.__qualname__, *_content(task)) for task in tasks]
        for i, key in enumerate(keys):
            kept = None if cache is None or key is None else cache.find(key)
            if kept is not None:
                made[i] = kind(**json.loads(kept[_FILE]))
        missing = [i for i in range(len(tasks)) if i not in made]
        self.progress("comparing budgets", len(made), len(tasks))
        private = None if cache is None else private_folder(cache.folder)
        with TemporaryDirectory(prefix=".tables-", dir=private) as folder:
            handed = _handed(function, [tasks[i] for i in missing], Path(folder))
            for place, result in self.workers.run(_called, handed):
                i = missing[place]
                made[i] = result
                if cache is not None and (key := keys[i]) is not None:
                    cache.keep(key, {_FILE: json.dumps(asdict(result)).encode()})
                self.progress("comparing budgets", len(made), len(tasks))
        return [made[i] for i in range(len(tasks))]


def _content(task: tuple[Any, ...]) -> list[object]:
    """All that the result of a task depends on, as JSON values."""
    joint, *rest = task
    found: list[object] = [joint.digest]
    for one in rest:
        found += one.content if isinstance(one, Utility) else [one]
    return found


def _handed(function: Callable[..., R], tasks: Sequence[tuple[Any, ...]], folder: Path) -> list[tuple[Any, ...]]:
    """Tasks that name a file in place of their distribution: small enough for a pipe whose reader may be dead."""
    files: dict[int, str] = {}
    for joint, *_ in tasks:
        if id(joint) not in files:
            path = folder / str(len(files))
            path.write_bytes(pickle.dumps(joint))
            files[id(joint)] = str(path)
    return [(function, files[id(joint)], *rest) for joint, *rest in tasks]


def _called(function: Callable[..., R], path: str, *rest: object) -> R:
    # Written by the process that started this one, into a folder of its own.
    joint: Joint = pickle.loads(Path(path).read_bytes())
    return function(joint, *rest)
