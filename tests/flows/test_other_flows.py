"""The plan and audit flows, and the release command without a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from funnel.errors import DataError, LeakageExceeded
from tests.projects import make_project
from tests.releases import make_release
from tests.stage import Stage


@pytest.mark.usefixtures("in_process")
def test_plan_and_audit_as_flows(tmp_path: Path) -> None:
    from funnel.pipeline.flows.audit import audit
    from funnel.pipeline.flows.plan import plan

    spec = make_project(tmp_path)
    rows = plan(str(spec))
    assert rows[0]["mechanism"] == "optimal"
    assert rows[0]["usable"]
    folder = make_release(spec)
    assert all(check["state"] == "passed" for check in audit(str(folder.root.parent)))
    folder.data.write_bytes(folder.data.read_bytes()[:-10])
    with pytest.raises(LeakageExceeded, match=r"records\.parquet"):
        audit(str(folder.root))
    with pytest.raises(DataError, match="no release"):
        audit(str(tmp_path / "gone"))


def test_release_and_rerun_without_any_server(tmp_path: Path, stage: Stage) -> None:
    """What a newcomer does: the command alone, twice; the second run finds its steps cached and draws nothing.

    `make installs` does the first in an environment of its own.
    """
    spec = make_project(tmp_path)
    first = stage.run("release", spec)
    assert first.status == 0, first.stderr
    assert "Traceback" not in first.stderr
    said = first.stdout.splitlines()
    assert said[0].startswith("Published version 1.0.0: 3,000 records by optimal")
    assert said[-2] == f"Report:  {tmp_path}/releases/people/1.0.0/report.html"
    assert said[-1].startswith(f"Private: {tmp_path}/.funnel/internal/people/1.0.0 (")
    result = stage.run("release", spec, "--json").said
    assert (result["status"], result["cached"]) == ("unchanged", ["estimate", "optimise"])
