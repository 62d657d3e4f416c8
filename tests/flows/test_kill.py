"""SIGKILL in the middle of every step, then a rerun: a correct release, and the previous one untouched meanwhile."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pyarrow.parquet as pq

from tests.projects import adult_rows, make_project, tree
from tests.stage import Stage

# What the command says when it is in the middle of ingest, estimate, optimise, sanitise, audit, validate and publish
# (which audits first).
MIDDLE_OF_STEP = (
    "taking the snapshot",
    "counting",
    "fitting optimal",
    "drawing",
    "computing exact leakage",
    "judging the release",
    "auditing the release",
    "publishing",
)

# Of these, where the steps are tasks of a server: the first one, one that leaves files half-done, the last one.
ON_THE_SERVER = ("taking the snapshot", "drawing", "publishing")


def test_killed_in_every_step_then_rerun(tmp_path: Path, served: Stage, stage: Stage) -> None:
    spec = make_project(tmp_path)
    assert served.run("release", spec, "--json").said["status"] == "published"
    before = tree(tmp_path / "releases" / "people" / "1.0.0")
    pq.write_table(adult_rows(0, 3500), tmp_path / "people.parquet")
    series = tmp_path / "releases" / "people"
    for step in MIDDLE_OF_STEP:
        commands = served if step in ON_THE_SERVER else stage
        killed = commands.run("release", spec, "--again", dies=f"says {step}")
        assert killed.status == -signal.SIGKILL, killed.stderr
        # Nothing new is visible, whatever was being written.
        assert (series / "latest").readlink() == Path("1.0.0")
        assert {path.name for path in series.iterdir() if not path.name.startswith(".")} == {
            "1.0.0",
            "latest",
            "versions.json",
        }
        assert tree(series / "1.0.0") == before
    said = served.run("release", spec, "--json").said
    assert (said["status"], said["version"], said["rows"]) == ("published", "1.1.0", 3500)
    # What earlier runs had finished is used again; what they left half-done is gone.
    assert said["cached"] == ["estimate", "optimise"]
    assert {path.name for path in series.iterdir()} == {"1.0.0", "1.1.0", "latest", "versions.json"}
    assert tree(series / "1.0.0") == before
    audit = stage.run("audit", series, "--json")
    assert audit.status == 0, audit.stdout
    assert all(check["state"] == "passed" for check in json.loads(audit.stdout)["checks"])


def test_interrupted_by_its_user(tmp_path: Path, served: Stage) -> None:
    """Ctrl-C ends a release with the usual status, without a traceback, and publishes nothing."""
    spec = make_project(tmp_path)
    stopped = served.run("release", spec, dies="says judging the release", by=signal.SIGINT)
    assert stopped.status == 130, stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert not list((tmp_path / "releases" / "people").iterdir())


def test_terminated_by_the_system(tmp_path: Path, served: Stage, stage: Stage) -> None:
    """SIGTERM ends a release as Ctrl-C does, with and without an orchestrator, also where the optimiser is at work."""
    for where, commands, steps in (("flow", served, ["drawing"]), ("alone", stage, ["fitting optimal", "publishing"])):
        spec = make_project(tmp_path / where)
        for step in steps:
            stopped = commands.run("release", spec, dies=f"says {step}", by=signal.SIGTERM)
            assert stopped.status == 143, (where, step, stopped.stderr)
            assert "defect" not in stopped.stderr
            assert "Traceback" not in stopped.stderr
            assert stopped.stderr.splitlines()[-1] == (
                "funnel: terminated; what was not yet published was thrown away"
            ), (where, step, stopped.stderr)
            assert not list((spec.parent / "releases" / "people").iterdir())
