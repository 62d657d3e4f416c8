"""Workers of Dask, on a real cluster of separate processes, one of which is killed on the way."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import distributed
import psutil
import pyarrow.parquet as pq
import pytest
from distributed.client import FutureCancelledError
from distributed.comm import CommClosedError

from funnel.errors import EntropyError, PipelineError, SpecError
from funnel.joint import Joint
from funnel.readers.source_files import file_digest
from funnel.sampling.dask_workers import DaskWorkers, workers_of
from funnel.sampling.engine import release_rows
from funnel.sampling.parts import count_partition
from funnel.settings.work import EngineSettings
from tests.snapshots import ROWS, planned, snapshot


def test_a_killed_worker_changes_nothing(tmp_path: Path) -> None:
    source = snapshot(tmp_path)
    release_rows(planned(source, "one", shuffle=True, keyed=True), tmp_path / "one.parquet")
    plan = planned(source, "dask", shuffle=True, keyed=True)
    killed: list[int] = []
    with workers_of(EngineSettings(kind="dask", workers=2)) as workers:
        assert isinstance(workers, DaskWorkers)
        processes = workers.client.run(os.getpid)
        assert len(set(processes.values()) | {os.getpid()}) == 3

        def kill(what: str, done: int, total: int | None) -> None:
            if not killed and done < ROWS:
                killed.append(next(iter(processes.values())))
                os.kill(killed[0], signal.SIGKILL)

        release_rows(plan, tmp_path / "dask.parquet", workers, kill)
        assert killed
        assert file_digest(tmp_path / "dask.parquet") == file_digest(tmp_path / "one.parquet")
        # Counting distributes over the same partitions.
        order = {"x": ["a", "b"], "z": ["0", "1", "elsewhere"]}
        tasks = [(str(source), groups, ("x",), ("z",), order) for groups in plan.groups]
        counted = Joint.from_parts([part for _, part in workers.run(count_partition, tasks)], order)
        whole = Joint.from_table(pq.read_table(source), "x", "z")
        assert (counted.counts == whole.counts).all()
        # An error of a task is that of the release.
        (tmp_path / "dask").rename(tmp_path / "elsewhere")
        with pytest.raises(FileNotFoundError):
            release_rows(plan, tmp_path / "again.parquet", workers)


@pytest.mark.parametrize("moment", ["before they start", "when they have started", "when they work"])
def test_an_interrupt_while_workers_start_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], moment: str
) -> None:
    start = distributed.LocalCluster

    def reached(now: str) -> None:
        if now == moment:
            os.kill(os.getpid(), signal.SIGINT)

    def interrupted(**settings: Any) -> Any:
        reached("before they start")
        cluster = start(**settings)
        reached("when they have started")
        return cluster

    def work() -> None:
        reached("when they work")
        threading.Event().wait()

    monkeypatch.setattr(distributed, "LocalCluster", interrupted)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = psutil.Process().children(recursive=True)
    engine = EngineSettings(kind="dask", workers=1)
    with pytest.raises(KeyboardInterrupt), workers_of(engine):
        work()
    left = [child for child in psutil.Process().children(recursive=True) if child not in before]
    assert not [child for child in left if "spawn_main" in " ".join(child.cmdline())]
    assert list(tmp_path.iterdir()) == []
    assert "Traceback" not in capfd.readouterr().err


def test_a_scheduler_that_is_not_there_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funnel.sampling.dask_workers._CONNECT_SECONDS", 1)
    engine = EngineSettings(kind="dask", scheduler="tcp://127.0.0.1:9")
    with (
        pytest.raises(PipelineError, match=r"no workers of Dask can be had at tcp://127\.0\.0\.1:9"),
        workers_of(engine),
    ):
        pass


def test_the_workers_of_a_scheduler_that_runs_already() -> None:
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, protocol="tcp"
        ) as cluster,
        workers_of(EngineSettings(kind="dask", scheduler=cluster.scheduler_address)) as workers,
    ):
        assert dict(workers.run(divmod, [(7, 2), (9, 4)])) == {0: (3, 1), 1: (2, 1)}


def test_without_its_packages_dask_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(SpecError, match=r"pip install 'funnel\[dask\]'"), workers_of(EngineSettings(kind="dask")):
        pass


class Asked:
    """Stands for a client whose tasks all end in one error, and remembers what it was told to forget."""

    loop = None

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.asked: list[Any] = []
        self.cancelled: list[Any] = []

    def submit(self, function: Callable[..., Any], *arguments: Any, **_: Any) -> Any:
        future: Future[Any] = Future()
        future.set_exception(self.error)
        self.asked.append(future)
        return future

    def cancel(self, futures: list[Any]) -> None:
        self.cancelled.extend(futures)


@pytest.mark.parametrize(
    ("error", "kind", "sentence"),
    [
        (distributed.KilledWorker("task", None, 4), PipelineError, "died again and again over one partition"),
        (FutureCancelledError("task", "lost"), PipelineError, r"scheduler is gone \(FutureCancelledError\)"),
        (CommClosedError("row 17"), PipelineError, r"scheduler is gone \(CommClosedError\)"),
        (OSError(28, "No space left on device"), OSError, "No space left on device"),
        (EntropyError("stuck"), EntropyError, "stuck"),
    ],
)
def test_what_ends_a_task_is_told_apart_and_all_others_are_given_up(
    monkeypatch: pytest.MonkeyPatch, error: Exception, kind: type[Exception], sentence: str
) -> None:
    monkeypatch.setattr(distributed, "as_completed", lambda futures, loop: iter(futures))
    client = Asked(error)
    with pytest.raises(kind, match=sentence) as caught:
        list(DaskWorkers(client).run(divmod, [(7, 2), (9, 4)]))  # type: ignore[arg-type]
    assert "row 17" not in str(caught.value)
    assert client.cancelled == client.asked
    assert len(client.asked) == 2
