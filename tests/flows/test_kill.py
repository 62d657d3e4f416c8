"""SIGKILL in the middle of every step, then a rerun: a correct release, and the previous one untouched meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pyarrow.parquet as pq

from tests.projects import ROOT, adult_rows, funnel_command, make_project, run_funnel, tree

# What the command says when it is in the middle of ingest, estimate, optimise, sanitise, audit, validate and publish.
MIDDLE_OF_STEP = (
    "taking the snapshot",
    "counting",
    "fitting grr",
    "drawing",
    "computing exact leakage",
    "judging the release",
    "publishing",
)


def kill_in(step: str, spec: Path, environment: dict[str, str]) -> None:
    """Start a release and kill it, without any chance to clean up, when it says that it is in ``step``."""
    process = subprocess.Popen(
        funnel_command("release", spec, "--again"),
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=ROOT,
    )
    assert process.stderr is not None
    with process.stderr:
        said = []
        for line in process.stderr:
            said.append(line)
            if step in line:
                os.kill(process.pid, signal.SIGKILL)
                break
    assert process.wait(60) == -signal.SIGKILL, "".join(said)


def test_killed_in_every_step_then_rerun(tmp_path: Path, server: dict[str, str]) -> None:
    spec = make_project(tmp_path)
    first = run_funnel("release", spec, "--json", environment=server)
    assert first.returncode == 0, first.stderr
    before = tree(tmp_path / "releases" / "people" / "1.0.0")
    pq.write_table(adult_rows(0, 3500), tmp_path / "people.parquet")
    series = tmp_path / "releases" / "people"
    for step in MIDDLE_OF_STEP:
        kill_in(step, spec, server)
        # Nothing new is visible, whatever was being written.
        assert (series / "latest").readlink() == Path("1.0.0")
        assert {path.name for path in series.iterdir() if not path.name.startswith(".")} == {"1.0.0", "latest"}
        assert tree(series / "1.0.0") == before
    last = run_funnel("release", spec, "--json", environment=server)
    assert last.returncode == 0, last.stderr
    said = json.loads(last.stdout)
    assert (said["status"], said["version"], said["rows"]) == ("published", "1.1.0", 3500)
    # What earlier runs had finished is used again; what they left half-done is gone.
    assert said["cached"] == ["estimate", "optimise"]
    assert {path.name for path in series.iterdir()} == {"1.0.0", "1.1.0", "latest"}
    assert tree(series / "1.0.0") == before
    audit = run_funnel("audit", series, "--json")
    assert audit.returncode == 0, audit.stdout
    assert all(check["passed"] for check in json.loads(audit.stdout)["checks"])


def test_interrupted_by_its_user(tmp_path: Path, server: dict[str, str]) -> None:
    """Ctrl-C ends a release with the usual status, without a traceback, and publishes nothing."""
    spec = make_project(tmp_path)
    process = subprocess.Popen(
        funnel_command("release", spec),
        env={**os.environ, **server},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=ROOT,
    )
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if "judging the release" in line:
            os.kill(process.pid, signal.SIGINT)
            break
    _, rest = process.communicate(timeout=60)
    text = "".join(said) + rest
    assert process.returncode == 130, text
    assert "Traceback" not in text
    assert not list((tmp_path / "releases" / "people").iterdir())
