"""Releases with every engine: whoever counts and draws, the same is published, also after deaths on the way."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest
from distributed import Client

from funnel.errors import OutputError, PipelineError
from funnel.pipeline.flows.pipeline import run_release
from funnel.pipeline.flows.release import release as flow
from funnel.pipeline.tasks.step import listening
from funnel.readers.source_files import file_digest
from funnel.release.layout import ReleaseFolder, versions
from funnel.spec import ReleaseSpec
from tests.flows.small_partitions import SMALL
from tests.projects import ROOT, adult_rows, make_project
from tests.stage import Stage

SECRET = "ADULT_SECRET"
PROCESSES = "workers = 2"
DASK = 'kind = "dask"\nworkers = 2'
# Workers of a scheduler that runs somewhere else, until its group of processes is killed.
CLUSTER = """
import sys
from distributed import LocalCluster

with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=sys.argv[1]) as cluster:
    print(cluster.scheduler_address, flush=True)
    sys.stdin.read()
"""
# A quarter of the sample.
PEOPLE = 12_200


@pytest.fixture(scope="module", autouse=True)
def small_partitions() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for place, value in SMALL.items():
            patch.setattr(place, value)
        patch.setattr("funnel.sampling.dask_workers._CONNECT_SECONDS", 3)
        patch.setenv(SECRET, hashlib.sha256(b"engines").hexdigest())
        yield


@pytest.fixture(scope="module")
def adult() -> pa.Table:
    """The beginning of the embedded sample, with a number for every person."""
    table = adult_rows(0, PEOPLE)
    return table.append_column("id", pa.array([i * 7919 % 100003 for i in range(table.num_rows)]))


@pytest.fixture(scope="module")
def expected(small_partitions: None, adult: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What one worker publishes."""
    spec = project(tmp_path_factory.mktemp("one"), adult)
    assert release(spec)["fresh"]
    return digests(spec)


def release(spec: Path) -> dict[str, Any]:
    return run_release(ReleaseSpec.load(spec), False, False)[0]


def project(folder: Path, adult: pa.Table, engine: str = "") -> Path:
    text = (ROOT / "data" / "adult-education.toml").read_text(encoding="utf-8")
    publish = 'publish = ["education"]'
    for before, after in {
        publish: f'{publish}\nrecord_key = ["id"]\nrecord_secret = "environment:{SECRET}"',
        '"adult.parquet"': '"people.parquet"',
        '"../releases"': '"releases"',
        '"../.funnel"': '".funnel"',
        "csv = false": "csv = true",
        # Which mechanism it is does not matter here, and this one need not be searched for.
        'name = "auto"': 'name = "grr" ',
    }.items():
        assert before in text
        text = text.replace(before, after)
    # Every release would draw noise of its own, and have a protocol of its own.
    text, found = re.subn(
        r"^\[frequencies\].*\n(?:.+\n)+", '[frequencies]\nprotection = "none"\n', text, flags=re.MULTILINE
    )
    assert found == 1
    # Some values are rare in a part of the sample.
    return make_project(folder, f'{text}\n[disclosure]\non_breach = "report"\n\n[engine]\n{engine}\n', adult)


def published(spec: Path) -> ReleaseFolder:
    return ReleaseFolder((spec.parent / "releases" / "adult-education" / "latest").resolve())


def digests(spec: Path) -> dict[str, str]:
    """Of all that does not tell when it was made, and of what was counted and drawn."""
    folder = published(spec)
    files = (folder.data, folder.csv, folder.protocol, folder.joint, folder.draws)
    return {path.name: file_digest(path) for path in files}


def rows_folder(spec: Path) -> Path:
    return spec.parent / ".funnel" / "adult-education" / "rows"


def written(spec: Path) -> dict[str, tuple[int, int]]:
    """Partitions that are drawn, told from others of the same name by their place on the disk and their time.

    A worker that is killed between writing a partition and its record has not drawn it.
    """
    records = rows_folder(spec).glob("*/partition-*.codes.json")
    found = {path.stem: path.with_suffix("").stat() for path in records}
    return {name: (stat.st_ino, stat.st_mtime_ns) for name, stat in found.items()}


def worker_processes() -> list[psutil.Process]:
    """Processes that work for this one; not those that only start others or keep count."""
    mine = {child.pid: child for child in psutil.Process().children(recursive=True)}
    starts = {
        pid for pid, child in mine.items() if "forkserver" in " ".join(child.cmdline()) and child.ppid() not in mine
    }
    return [
        child
        for pid, child in mine.items()
        if pid not in starts and any(word in " ".join(child.cmdline()) for word in ("forkserver", "spawn_main"))
    ]


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    process = subprocess.Popen(
        [sys.executable, "-c", CLUSTER, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        cwd=ROOT,
    )
    assert process.stdin is not None
    with process.stdin, process.stdout:
        try:
            yield process.stdout.readline().strip(), process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """As `tests.tasks.test_disk_full`, also for processes that are started to work for this one."""
    starters = [child for child in psutil.Process().children() if "forkserver" in " ".join(child.cmdline())]
    before = [(child, child.rlimit(psutil.RLIMIT_FSIZE)) for child in (psutil.Process(), *starters)]
    for child, (_, hard) in before:
        child.rlimit(psutil.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        for child, limits in before:
            child.rlimit(psutil.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("engine", [PROCESSES, DASK])
def test_a_full_disk_under_the_workers_is_told_and_the_next_run_succeeds(
    tmp_path: Path, adult: pa.Table, expected: dict[str, str], engine: str
) -> None:
    spec = project(tmp_path, adult, engine)
    with ExitStack() as stack:

        def fill(what: str, done: int, total: int | None) -> None:
            if what == "drawing" and not done:
                stack.enter_context(files_of_at_most(10_000))

        with listening(fill), pytest.raises(OutputError) as caught:
            release(spec)
    folder = next(rows_folder(spec).iterdir())
    assert str(caught.value) == (
        f"cannot write or read {folder}: File too large; make room or give permission, then run the release again"
    )
    assert list(folder.iterdir()) == []
    assert worker_processes() == []
    assert list(published(spec).root.parent.iterdir()) == []
    by_one_worker(spec)
    release(spec)
    assert digests(spec) == expected


@pytest.mark.parametrize("engine", [PROCESSES, DASK])
def test_processes_and_dask_publish_the_same_though_a_worker_is_killed(
    in_process: None, tmp_path: Path, adult: pa.Table, expected: dict[str, str], engine: str
) -> None:
    spec = project(tmp_path, adult, engine)
    killed: list[int] = []

    def kill(what: str, done: int, total: int | None) -> None:
        if what == "drawing" and done and not killed:
            workers = worker_processes()
            assert len(workers) == 2
            killed.append(workers[0].pid)
            workers[0].kill()

    with listening(kill):
        # Inside a flow of the orchestrator, whose steps are tasks of its own.
        flow(str(spec))
    assert killed
    assert digests(spec) == expected
    assert worker_processes() == []


def test_an_existing_scheduler_counts_and_draws_and_its_death_is_told(
    tmp_path: Path, adult: pa.Table, expected: dict[str, str]
) -> None:
    with cluster(tmp_path / "scratch") as (address, process):
        engine = f'kind = "dask"\nscheduler = "{address}"'
        spec = project(tmp_path / "same", adult, engine)
        with Client(address, set_as_default=False) as client:
            client.get_task_stream()
            release(spec)
            done = [(task["key"].split("-")[1], task["worker"]) for task in client.get_task_stream()]
        assert digests(spec) == expected
        # All of the work, by both of its workers.
        assert (
            sorted(name for name, _ in done) == ["count_partition"] * 9 + ["draw_partition"] * 9 + ["write_part"] * 16
        )
        assert len({worker for _, worker in done}) == 2

        spec = project(tmp_path / "dying", adult, engine)

        def kill(what: str, done: int, total: int | None) -> None:
            if what == "drawing" and done and process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

        with listening(kill), pytest.raises(PipelineError) as caught:
            release(spec)
        assert str(caught.value).startswith("the Dask scheduler is gone")
        assert "\n" not in str(caught.value)
    taken_up(spec, expected)


def test_what_was_drawn_before_the_command_was_killed_is_taken_up(
    tmp_path: Path, adult: pa.Table, expected: dict[str, str], stage: Stage
) -> None:
    spec = project(tmp_path, adult, PROCESSES)
    command = stage.start(
        "release",
        spec,
        dies="did drawing",
        prepare="tests.flows.small_partitions.cut_in_own_session",
        environment={SECRET: os.environ[SECRET]},
    )
    assert command.end().status == -signal.SIGKILL
    # Its workers notice, and end by themselves.
    while any(os.getsid(pid) == command.pid for pid in psutil.pids() if psutil.pid_exists(pid)):
        time.sleep(0.1)
    taken_up(spec, expected)


def by_one_worker(spec: Path) -> None:
    """The engine does not matter to a further run."""
    spec.write_text(spec.read_text(encoding="utf-8").partition("[engine]")[0], encoding="utf-8")


def taken_up(spec: Path, expected: dict[str, str]) -> None:
    """Nothing is published of a run that failed; the next run draws only what that had not drawn."""
    series = published(spec).root.parent
    assert versions(series) == []
    kept = written(spec)
    assert kept
    by_one_worker(spec)
    found: dict[str, tuple[int, int]] = {}

    def look(what: str, done: int, total: int | None) -> None:
        if what == "writing in random order":
            found.update(written(spec))

    with listening(look):
        assert release(spec)["status"] == "published"
    assert {name: found[name] for name in kept} == kept
    assert digests(spec) == expected
    assert not rows_folder(spec).exists()
    assert sorted(path.name for path in series.iterdir()) == ["1.0.0", "latest", "versions.json"]
