"""SIGKILL in the middle of every step, then a rerun: a correct release, and the previous one untouched meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq

from tests.projects import ROOT, adult_rows, make_project, run_funnel, tree

# What the command says when it is in the middle of ingest, estimate, optimise, sanitise, audit, validate and publish.
MIDDLE_OF_STEP = (
    "taking the snapshot",
    "counting",
    "fitting optimal",
    "drawing",
    "computing exact leakage",
    "judging the release",
    "publishing",
)


# The command, but it sends a signal to itself when it says that it is in the middle of a step: neither earlier nor
# later, however fast the machine is.
SIGNALLED = """
import os, sys
from funnel.console import Console
from funnel.cli import main

number, step, *arguments = sys.argv[1:]
told = Console.progress
sent = []

def progress(self, what, done, total):
    told(self, what, done, total)
    if step in what and not sent:
        sent.append(what)
        os.kill(os.getpid(), int(number))

Console.progress = progress
main(args=arguments, prog_name="funnel")
"""


def signalled(
    number: signal.Signals, step: str, *arguments: str | Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a command that gets a signal when it says that it is in ``step``."""
    return subprocess.run(
        [sys.executable, "-c", SIGNALLED, str(int(number)), step, *map(str, arguments)],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        start_new_session=True,
        check=False,
        cwd=ROOT,
    )


def test_killed_in_every_step_then_rerun(tmp_path: Path, server: dict[str, str]) -> None:
    spec = make_project(tmp_path)
    first = run_funnel("release", spec, "--json", environment=server)
    assert first.returncode == 0, first.stderr
    before = tree(tmp_path / "releases" / "people" / "1.0.0")
    pq.write_table(adult_rows(0, 3500), tmp_path / "people.parquet")
    series = tmp_path / "releases" / "people"
    for step in MIDDLE_OF_STEP:
        killed = signalled(signal.SIGKILL, step, "release", spec, "--again", environment=server)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
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
    assert all(check["state"] == "passed" for check in json.loads(audit.stdout)["checks"])


def test_interrupted_by_its_user(tmp_path: Path, server: dict[str, str]) -> None:
    """Ctrl-C ends a release with the usual status, without a traceback, and publishes nothing."""
    spec = make_project(tmp_path)
    stopped = signalled(signal.SIGINT, "judging the release", "release", spec, environment=server)
    assert stopped.returncode == 130, stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert not list((tmp_path / "releases" / "people").iterdir())


def test_terminated_by_the_system(tmp_path: Path, server: dict[str, str]) -> None:
    """SIGTERM ends a release as Ctrl-C does, with and without an orchestrator, also where the optimiser is at work."""
    for where, environment, steps in (("flow", server, ["drawing"]), ("alone", {}, ["fitting optimal", "publishing"])):
        spec = make_project(tmp_path / where)
        for step in steps:
            stopped = signalled(signal.SIGTERM, step, "release", spec, environment=environment)
            assert stopped.returncode == 143, (where, step, stopped.stderr)
            assert "defect" not in stopped.stderr
            assert "Traceback" not in stopped.stderr
            assert stopped.stderr.splitlines()[-1] == (
                "funnel: terminated; what was not yet published was thrown away"
            ), (where, step, stopped.stderr)
            assert not list((spec.parent / "releases" / "people").iterdir())
