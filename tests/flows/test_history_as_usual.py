"""Versions about the same people of values as they are, by exact counts: right on average, as both audits find."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from funnel.audit.recheck import recheck
from funnel.pipeline.flows.forget import command
from funnel.recount.histories import recount_histories
from funnel.register.register import Register
from funnel.release.layout import ReleaseFolder
from funnel.release.public_report import PublicReport
from funnel.spec import ReleaseSpec
from tests.flows.test_history import SPEC as PANEL
from tests.flows.test_history import project, run
from tests.waves import WAVES, wave

SPEC = PANEL.replace('"lip:0.5"', '"lip:0.3"\nmechanism = "invariant"') + 'register = "people"\n'
PEOPLE = 1200


def released(folder: Path, spec: ReleaseSpec, table: pa.Table) -> ReleaseFolder:
    pq.write_table(table, folder / "wave.parquet")
    version = ReleaseFolder(Path(run(spec)["folder"]))
    assert [check for check in recheck(version) if check.failed] == []
    return version


def off(register: Register) -> list[float]:
    """By how many records a value of each version is published too often or too rarely on average, from its tables."""
    found = []
    for entry in register.entries:
        place = register.root / entry.folder
        people, nodes, followed, channels = (
            pq.read_table(place / f"{name}.parquet").to_pandas() for name in ("people", "nodes", "followed", "channels")
        )
        values = len(entry.joint.inputs)
        rows = np.zeros((channels["channel"].max() + 1, values, values))
        rows[channels["channel"], channels["output"], channels["input"]] = channels["weight"] / 2.0**63
        channel_of = dict(zip(followed["node"], followed["channel"], strict=True))
        before = nodes["parent"].to_numpy()[people["node"].to_numpy() - entry.first]
        x = people["cell"].to_numpy() % values
        drawn_by = np.array([channel_of[node] for node in before])
        found.append(float(np.abs(rows[drawn_by, :, x].sum(axis=0) - np.bincount(x, minlength=values)).max()))
    return found


@pytest.mark.parametrize("protection", ["none", "threshold"])
def test_three_waves_are_right_on_average_and_pass_their_audits(tmp_path: Path, protection: str) -> None:
    spec = project(tmp_path, SPEC.replace('"none"', f'"{protection}"'))
    folders = [released(tmp_path, spec, wave(year, PEOPLE)) for year in WAVES[:3]]
    register = Register.of(tmp_path / ".funnel", "people")
    assert max(off(register)) < 1 + 1e-6
    history = recount_histories(register.root)
    assert [(one.complaints, one.broken) for one in history.versions] == [((), ())] * 3
    assert all(one.level <= 0.3 for one in history.versions)
    for place, folder in enumerate(folders):
        unchanged = PublicReport.read(folder.numbers).unchanged
        assert unchanged is not None
        # The secret of every version is bounded, which costs some of what the newest alone would leave as it is.
        assert unchanged.share > 0.6
        text = folder.readme.read_text(encoding="utf-8")
        assert ("to within a record each" in text) is (place > 0)
        assert "`means`" not in text
        assert ("not even rounded" in folder.report.read_text(encoding="utf-8")) is (place == 0)
        assert set(pq.read_table(folder.data)["income"].to_pylist()) == {f"fifth {k}" for k in range(1, 6)}


def test_a_version_is_right_on_average_where_people_are_forgotten(tmp_path: Path) -> None:
    spec = project(tmp_path, SPEC)
    for year in WAVES[:2]:
        released(tmp_path, spec, wave(year, PEOPLE))
    gone = np.intersect1d(*(wave(year, PEOPLE)["id"].to_numpy() for year in WAVES[1:3]))[:12].tolist()
    for one in gone:
        done = CliRunner().invoke(command, [str(tmp_path / "panel.toml"), "--id", f"id={one}", "--yes"])
        assert done.exit_code == 0, done.output
    released(tmp_path, spec, wave(WAVES[2], PEOPLE))
    (*_, last) = recount_histories(tmp_path / ".funnel" / "registers" / "people").versions
    assert (last.complaints, last.broken) == ((), ())
