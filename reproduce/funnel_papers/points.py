"""Points: measured by whatever workers there are, and kept under a digest of distribution, settings and code."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import funnel
from funnel.progress import Progress, quiet
from funnel.release.cache import Cache
from funnel.release.provenance import software
from funnel.sampling.engine import OneWorker, Workers
from funnel_papers.distributions import Distribution
from funnel_papers.experiment import Experiment, Point, Results, Size
from funnel_papers.rows import Row

_FILE = "point.json"
# What shows or judges releases and papers, and computes nothing that is measured here.
_SHOWS = ("pipeline", "report", "recount", "audit", "release", "register")
_PAGES = (
    "command.py",
    "drawing.py",
    "errata.py",
    "experiment.py",
    "flow.py",
    "page.py",
    "running.py",
    "steps.py",
    "registry.py",
    "privacy_funnel.py",
    "alip.py",
    "rldp.py",
)


def measured(
    experiment: Experiment,
    size: Size,
    data: Path,
    cache: Cache,
    workers: Workers | None = None,
    progress: Progress = quiet,
) -> Results:
    """Measure all points of a figure, those that are known already excepted.

    Parameters
    ----------
    experiment : Experiment
    size : Size
    data : path
        Of Adult.
    cache : Cache
        Every point is kept in it once it is measured: an interrupted run goes on where it was. Figures that need the
        same point share it.
    workers : Workers, optional
        This very process by default.
    progress : callable, optional
        Told the points that are done, and all.

    Raises
    ------
    DataError
        If Adult cannot be read.
    SolverError
        If a result is above what bounds it.
    """
    xs = tuple(experiment.xs(size))
    points = list(experiment.points(size))
    results = Results(xs)
    keys = [_key(point, xs, data) for point in points]
    known = {i: kept for i, key in enumerate(keys) if (kept := _found(cache, key)) is not None}
    what = f"figure {experiment.name}"
    progress(what, len(known), len(points))
    missing = [i for i in range(len(points)) if i not in known]
    tasks = [
        (points[i].measure, points[i].distribution, _xs(points[i], xs), dict(points[i].settings), str(data))
        for i in missing
    ]
    for place, made in (OneWorker() if workers is None else workers).run(_measured, tasks):
        i = missing[place]
        known[i] = made
        cache.keep(keys[i], {_FILE: json.dumps(made, allow_nan=False).encode()})
        progress(what, len(known), len(points))
    for i, point in enumerate(points):
        results.add(point, known[i]["row"])
        results.seconds += known[i]["seconds"]
    experiment.check(results)
    return results


def _measured(
    measure: Callable[..., Row], distribution: Distribution, xs: Sequence[float], settings: dict[str, Any], data: str
) -> dict[str, Any]:
    """One point, by whatever worker."""
    started = time.process_time()
    row = measure(distribution.joint(Path(data)), xs, **settings)
    return {"row": row, "seconds": round(time.process_time() - started, 3)}


def _xs(point: Point, xs: tuple[float, ...]) -> tuple[float, ...]:
    return xs if point.at is None else (xs[point.at],)


def _found(cache: Cache, key: str) -> dict[str, Any] | None:
    kept = cache.find(key)
    return None if kept is None else dict(json.loads(kept[_FILE]))


def _key(point: Point, xs: tuple[float, ...], data: Path) -> str:
    name = f"{point.measure.__module__}.{point.measure.__qualname__}"
    said = [code(), name, _xs(point, xs), point.distribution.content(data), sorted(point.settings.items())]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


@lru_cache(maxsize=1)
def code() -> str:
    """SHA-256 of this package, without what only shows or judges, and of the versions of what computes.

    Unlike the digest that releases are made under, it stays the same when a page or a chart is mended: an hour of
    measuring is not done again for that.
    """
    total = hashlib.sha256(repr(sorted(software().items())).encode())
    root = Path(funnel.__file__).parent
    for folder, folders, files in os.walk(root):
        here = Path(folder).relative_to(root)
        folders[:] = sorted(name for name in folders if not (here == Path() and name in _SHOWS))
        for name in sorted(files):
            if name.endswith(".py"):
                _add(total, (here / name).as_posix(), Path(folder) / name)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.name not in _PAGES:
            _add(total, f"papers/{path.name}", path)
    return total.hexdigest()


def _add(total: hashlib._Hash, name: str, path: Path) -> None:
    total.update(f"{name}\0".encode())
    total.update(hashlib.sha256(path.read_bytes()).digest())
