"""Versions about the same people of values as they are, by exact counts: right on average, as both audits find."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from funnel.audit.recheck import recheck
from funnel.errors import FunnelError
from funnel.pipeline.flows.forget import command
from funnel.recount.histories import recount_histories
from funnel.register.register import Register
from funnel.release.layout import ReleaseFolder
from funnel.release.public_report import PublicReport
from funnel.spec import ReleaseSpec
from tests.flows.test_history import SPEC as PANEL
from tests.flows.test_history import project, run
from tests.flows.test_units import SPEC as ENCOUNTERS
from tests.flows.test_units import encounters
from tests.flows.test_units import project as of_units
from tests.sabotage.patching import Patch, patched
from tests.waves import WAVES, wave

SPEC = PANEL.replace('"lip:0.5"', '"lip:0.3"\nmechanism = "invariant"') + 'register = "people"\n'
PEOPLE = 1200


def released(folder: Path, spec: ReleaseSpec, table: pa.Table | None = None) -> ReleaseFolder:
    if table is not None:
        pq.write_table(table, folder / "people.parquet")
    version = ReleaseFolder(Path(run(spec)["folder"]))
    assert [check for check in recheck(version) if check.failed] == []
    return version


def off(register: Register) -> list[float]:
    """By how many records a value of each version is published too often or too rarely on average, from its tables."""
    found = []
    for entry in register.entries:
        place = register.root / entry.folder
        whose = "people" if entry.first_rows is None else "rows"
        people, nodes, followed, channels = (
            pq.read_table(place / f"{name}.parquet").to_pandas() for name in (whose, "nodes", "followed", "channels")
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


UNITS = ENCOUNTERS.replace('"lip:0.5"', '"lip:0.3"\nmechanism = "invariant"')


def patients(folder: Path, version: int = 0) -> ReleaseSpec:
    """A project of 500 patients, of whom some 190 have two rows or more and 30 have three."""
    path = of_units(folder, UNITS)
    rows = encounters(version)
    more = rows.set_column(0, "patient", pc.add(rows["patient"], 10_000))
    pq.write_table(pa.concat_tables([rows, more]), folder / "encounters.parquet")
    return ReleaseSpec.load(path)


def test_rows_of_patients_are_right_on_average_in_two_versions(tmp_path: Path) -> None:
    first, second = (released(tmp_path, patients(tmp_path, version)) for version in (0, 1))
    spec = ReleaseSpec.load(tmp_path / "spec.toml")
    register = Register.of(spec.workspace_folder, "encounters")
    assert 0 < max(off(register)) < 1 + 1e-6
    history = recount_histories(register.root)
    assert [(one.complaints, one.broken) for one in history.versions] == [((), ())] * 2
    for folder, version in zip((first, second), history.versions, strict=True):
        assert 0 < version.level <= 0.3
        # Third rows are fewer than a hundred, and each value is as likely for all of them.
        assert {row for row, _ in version.by_row} == {1, 2, 3}
        unchanged = PublicReport.read(folder.numbers).unchanged
        assert unchanged.share > 0.5
        text = folder.readme.read_text(encoding="utf-8")
        assert "for all rows together, whoever they are of" in text
        assert "`means`" not in text
        assert set(pq.read_table(folder.data)["ward"].to_pylist()) == set("abc")


@pytest.mark.parametrize(
    ("patch", "refusal"),
    [
        (
            Patch(
                "funnel.history.following",
                "return right_on_average(step, whole) if corrects else step",
                "return right_on_average(step, whole) if corrects and observed.row == 1 else step",
            ),
            "is not right on average",
        ),
        (
            Patch("funnel.history.following", "joint.n < FEWEST_ROWS", "joint.n < 3"),
            "tells of row 3 of people, which fewer than 100 have",
        ),
    ],
    ids=["second rows are as they come", "few rows are put right"],
)
def test_rows_that_are_not_right_or_tell_of_few_are_refused(tmp_path: Path, patch: Patch, refusal: str) -> None:
    spec = patients(tmp_path)
    with patched(patch), pytest.raises(FunnelError, match=refusal):
        run(spec)
    assert not list(tmp_path.glob("releases/encounters/1*"))
