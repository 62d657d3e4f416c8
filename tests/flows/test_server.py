"""The whole way on a real server and worker: deploy, change the source, and the run that this triggers publishes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funnel.release.layout import ReleaseFolder
from funnel.release.record import Record
from tests.flows.conftest import process_group
from tests.projects import ROOT, adult_rows, make_project
from tests.stage import Stage
from tests.waves import COUNTED, WAVES, wave

PANEL = COUNTED.replace('["income"]', '["income", "kids"]')
# In the panel.
PEOPLE = 600
_UNTIL_THE_END = ExitStack()


@dataclass(frozen=True)
class Deployed:
    """A project whose flows are deployed, and a worker that runs them."""

    folder: Path
    worker: subprocess.Popen[bytes]
    log: Path

    def wait_for(self, release: Path) -> None:
        """Return when a version is the latest; fails if the worker does not make it."""
        latest = release.parent / "latest"
        while latest.resolve() != release:
            said = self.log.read_text()
            assert self.worker.poll() is None, said[-4000:]
            # The worker lives on when a run of it fails.
            assert "exited with status code" not in said, said[-4000:]
            assert "Traceback" not in said, said[-4000:]
            time.sleep(0.2)


@pytest.fixture(scope="module")
def deployed(server: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """What `funnel watch` tells the server of starts a run in it, whatever the spec is."""
    project = tmp_path_factory.mktemp("deployed") / "project"
    project.mkdir()
    for part in ("flows", "tasks", "funnel", "expectations", "ledger"):
        # With byte code, which every run would compile anew.
        shutil.copytree(ROOT / part, project / part)
    shutil.copy(ROOT / "prefect.yaml", project)
    pool = {"name": "local-process", "type": "process"}
    httpx.post(f"{server['PREFECT_API_URL']}/work_pools/", json=pool, timeout=None).raise_for_status()
    deployed = subprocess.run(
        [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all"],
        env={**os.environ, **server},
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert deployed.returncode == 0, deployed.stdout + deployed.stderr
    log = project.with_name("worker.log")
    command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", "local-process", "--type", "process"]
    environment = {**os.environ, **server, "PREFECT_WORKER_QUERY_SECONDS": "1"}
    with process_group(command, environment, log, project) as worker:
        yield Deployed(project, worker, log)


def test_changes_start_runs_of_which_the_first_publishes_under_one_bound(
    deployed: Deployed, server: dict[str, str], served: Stage
) -> None:
    described = httpx.get(f"{server['PREFECT_API_URL']}/deployments/name/release/release", timeout=None).json()
    assert [schedule["schedule"]["cron"] for schedule in described["schedules"]] == ["0 5 1 * *"]
    assert described["parameters"] == {"spec": "data/adult-education.toml"}

    project = deployed.folder
    spec = project / "panel.toml"
    spec.write_text(PANEL)
    pq.write_table(wave(WAVES[0], PEOPLE), project / "people.parquet")
    assert served.run("release", spec, "--json").said["version"] == "1.0.0"
    # Even the first look knows what was released.
    assert served.run("watch", spec, "--once", "--json").said["status"] == "unchanged"

    def change(year: int) -> pa.Table:
        coming = wave(year, PEOPLE)
        pq.write_table(coming, project / "coming.parquet")
        (project / "coming.parquet").replace(project / "people.parquet")
        assert served.run("watch", spec, "--once", "--json").said["status"] == "changed"
        return coming

    coming = change(WAVES[1])
    release = ReleaseFolder(project / "releases" / "panel" / "1.1.0")
    deployed.wait_for(release.root)
    assert pq.read_metadata(release.data).num_rows == len(coming)
    package = json.loads((release.root / "datapackage.json").read_text())
    assert (package["version"], package["funnel:privacy"]["records"]) == ("1.1.0", len(coming))
    record = Record.read(release.record)
    assert (record.history.people, record.history.ordinal) == ("same", 1)
    assert record.history.level <= 1.0
    audited = served.run("audit", release.root.parent / "latest")
    assert audited.status == 0, audited.stdout + audited.stderr

    # The next change starts a run of its own, which waits for a worker.
    deployed.worker.kill()
    change(WAVES[2])
    while len(triggered := triggered_runs(server)) < 2:
        time.sleep(0.2)
    assert [run["state_type"] for run in triggered] == ["COMPLETED", "SCHEDULED"]


def triggered_runs(server: dict[str, str]) -> list[dict[str, Any]]:
    """Runs of the deployment that changes of the panel started, the first one first."""
    runs = httpx.post(
        f"{server['PREFECT_API_URL']}/flow_runs/filter",
        json={"flow_runs": {"tags": {"operator": "and_"}}, "deployments": {"name": {"any_": ["release"]}}},
        timeout=None,
    ).json()
    # The schedule of the deployment has planned others, of the coming months.
    found = [run for run in runs if not run["auto_scheduled"] and run["parameters"]["spec"].endswith("panel.toml")]
    return sorted(found, key=lambda run: run["created"])


def test_watching_without_a_server_says_what_to_do(tmp_path: Path, stage: Stage) -> None:
    done = stage.run("watch", make_project(tmp_path), "--once")
    assert done.status == 12
    assert "PREFECT_API_URL" in done.stderr
    assert "Traceback" not in done.stderr


def use_the_server_of_the_environment() -> None:
    """For a command of a process that knew another one when it imported the orchestrator; tried again at once."""
    import httpcore
    from prefect.settings import PREFECT_API_URL, temporary_settings

    httpcore.NetworkBackend.sleep = lambda *_: None  # type: ignore[method-assign]
    _UNTIL_THE_END.enter_context(temporary_settings({PREFECT_API_URL: os.environ["PREFECT_API_URL"]}))


def test_a_server_that_does_not_answer_loses_no_change(tmp_path: Path, served: Stage) -> None:
    spec = make_project(tmp_path)
    nobody = {
        "environment": {"PREFECT_API_URL": "http://127.0.0.1:9/api"},
        "prepare": f"{use_the_server_of_the_environment.__module__}.{use_the_server_of_the_environment.__name__}",
    }
    assert served.run("watch", spec, "--once", **nobody).status == 0
    pq.write_table(adult_rows(0, 2000), tmp_path / "people.parquet")
    for _ in range(2):
        failed = served.run("watch", spec, "--once", **nobody)
        assert failed.status == 12
        assert "did not take the event" in failed.stderr
        assert "Traceback" not in failed.stderr
