"""A real server and worker through five waves of a panel: each wave triggers a run, and all of them keep one bound."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import httpx
import pyarrow.parquet as pq

from funnel.release.layout import ReleaseFolder
from funnel.release.record import Record
from tests.flows.conftest import process_group
from tests.flows.test_server import prefect, wait_for
from tests.projects import ROOT, run_funnel
from tests.waves import WAVES, wave

PEOPLE = 600

SPEC = """
name = "panel"
title = "A panel"
secret = ["outwork"]
publish = ["income", "kids"]
record_key = ["id"]
guarantee = "lip:1.0"
frequencies.protection = "none"

[source]
path = "panel.parquet"

[history]
people = "same"

[metadata]
licence = "CC-BY-4.0"
"""


def test_four_triggered_runs_keep_one_bound_over_five_waves(tmp_path: Path, server: dict[str, str]) -> None:
    project = tmp_path / "project"
    project.mkdir()
    for part in ("flows", "tasks", "funnel", "expectations", "ledger"):
        shutil.copytree(ROOT / part, project / part, ignore=shutil.ignore_patterns("__pycache__"))
    described = (ROOT / "prefect.yaml").read_text().replace("data/adult.toml", "panel.toml")
    (project / "prefect.yaml").write_text(described.replace("releases/adult-education", "releases/panel"))
    spec = project / "panel.toml"
    spec.write_text(SPEC)
    pq.write_table(wave(WAVES[0], PEOPLE), project / "panel.parquet")
    prefect("work-pool", "create", "local-process", "--type", "process", "--overwrite", environment=server, cwd=project)
    prefect("deploy", "--all", environment=server, cwd=project)
    first = run_funnel("release", spec, environment=server)
    assert first.returncode == 0, first.stderr

    log = tmp_path / "worker.log"
    command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", "local-process", "--type", "process"]
    environment = {**os.environ, **server, "PREFECT_WORKER_QUERY_SECONDS": "1"}
    with process_group(command, environment, log, project) as worker:
        for number, year in enumerate(WAVES[1:], start=1):
            pq.write_table(wave(year, PEOPLE), project / "coming.parquet")
            (project / "coming.parquet").replace(project / "panel.parquet")
            changed = run_funnel("watch", spec, "--once", "--json", environment=server)
            assert json.loads(changed.stdout)["status"] == "changed", changed.stderr
            wait_for(project / "releases" / "panel" / f"1.{number}.0", worker, log)

    runs = httpx.post(
        f"{server['PREFECT_API_URL']}/flow_runs/filter",
        json={"flow_runs": {"tags": {"operator": "and_"}}, "deployments": {"name": {"any_": ["release"]}}},
        timeout=None,
    ).json()
    # The schedule of the deployment has planned others, of the coming months.
    triggered = [run for run in runs if not run["auto_scheduled"] and run["parameters"]["spec"].endswith("panel.toml")]
    assert len(triggered) == len(WAVES) - 1
    record = Record.read(ReleaseFolder(project / "releases" / "panel" / f"1.{len(WAVES) - 1}.0").record)
    assert record.history is not None
    assert (record.history.people, record.history.ordinal) == ("same", len(WAVES) - 1)
    assert record.history.level <= 1.0
    audited = run_funnel("audit", project / "releases" / "panel" / "latest")
    assert audited.returncode == 0, audited.stdout + audited.stderr
