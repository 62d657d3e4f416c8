"""The whole way on a real server and worker: deploy, append rows to the source, and the triggered run publishes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pyarrow.parquet as pq

from tests.flows.conftest import process_group
from tests.projects import ROOT, adult_rows, make_project, run_funnel


def prefect(*arguments: str, environment: dict[str, str], cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "prefect", "--no-prompt", *arguments],
        env={**os.environ, **environment},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def wait_for(release: Path, worker: subprocess.Popen[bytes], log: Path) -> None:
    while not release.exists():
        said = log.read_text()
        assert worker.poll() is None, said[-4000:]
        # The worker lives on when a run of it fails.
        assert "exited with status code" not in said, said[-4000:]
        time.sleep(0.5)


def test_appended_rows_start_a_run_that_publishes_the_next_version(tmp_path: Path, server: dict[str, str]) -> None:
    spec = make_project(tmp_path / "project")
    project = tmp_path / "project"
    for part in ("flows", "tasks", "funnel", "expectations"):
        shutil.copytree(ROOT / part, project / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "prefect.yaml", project)
    prefect("work-pool", "create", "local-process", "--type", "process", "--overwrite", environment=server, cwd=project)
    prefect("deploy", "--all", environment=server, cwd=project)
    described = httpx.get(f"{server['PREFECT_API_URL']}/deployments/name/release/release", timeout=None).json()
    assert [schedule["schedule"]["cron"] for schedule in described["schedules"]] == ["0 5 1 * *"]
    assert described["parameters"] == {"spec": "data/adult.toml"}

    first = run_funnel("release", spec, environment=server)
    assert first.returncode == 0, first.stderr
    # Even the first look knows what was released.
    unchanged = run_funnel("watch", spec, "--once", "--json", environment=server)
    assert json.loads(unchanged.stdout)["status"] == "unchanged"

    log = tmp_path / "worker.log"
    command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", "local-process", "--type", "process"]
    environment = {**os.environ, **server, "PREFECT_WORKER_QUERY_SECONDS": "1"}
    with process_group(command, environment, log, project) as worker:
        pq.write_table(adult_rows(0, 3400), project / "people.parquet")
        changed = run_funnel("watch", spec, "--once", "--json", environment=server)
        assert json.loads(changed.stdout)["status"] == "changed", changed.stderr
        release = project / "releases" / "people" / "1.1.0"
        wait_for(release, worker, log)
    assert (project / "releases" / "people" / "latest").resolve() == release
    assert pq.read_metadata(release / "data" / "records.parquet").num_rows == 3400
    package = json.loads((release / "datapackage.json").read_text())
    assert (package["version"], package["funnel:privacy"]["records"]) == ("1.1.0", 3400)


def test_watching_without_a_server_says_what_to_do(tmp_path: Path) -> None:
    spec = make_project(tmp_path)
    environment = {name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"}
    done = subprocess.run(
        [sys.executable, "-m", "funnel", "watch", str(spec), "--once"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 12
    assert "PREFECT_API_URL" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_server_that_does_not_answer_loses_no_change(tmp_path: Path) -> None:
    spec = make_project(tmp_path)
    nobody = {"PREFECT_API_URL": "http://127.0.0.1:9/api"}
    assert run_funnel("watch", spec, "--once", environment=nobody).returncode == 0
    pq.write_table(adult_rows(0, 2000), tmp_path / "people.parquet")
    for _ in range(2):
        failed = run_funnel("watch", spec, "--once", environment=nobody)
        assert failed.returncode == 12
        assert "did not take the event" in failed.stderr
        assert "Traceback" not in failed.stderr
