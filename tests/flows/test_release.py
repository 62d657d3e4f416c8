"""Releases, some as flows on a real server: versions, caching, reruns, and refusals that leave everything as it was."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funnel.errors import DataError, FunnelError, OutputError, PipelineError, ReleaseRefused, SpecError
from funnel.pipeline.flows.release import release as flow
from funnel.pipeline.tasks.step import listening
from funnel.protocol import Protocol
from funnel.release.internal_report import InternalReport
from funnel.release.layout import ReleaseFolder, find_release
from funnel.release.public_report import PublicReport
from funnel.release.series import open_series
from funnel.report.internal import render_internal
from funnel.report.public import render_public
from funnel.sampling.output_columns import OutputColumns
from funnel.spec import ReleaseSpec
from tests import chance
from tests.projects import ADULT, SPEC, adult_rows, make_project, tree
from tests.releases import make_released, release
from tests.stage import Stage

pytestmark = pytest.mark.usefixtures("in_process")


def latest(spec: Path) -> ReleaseFolder:
    return ReleaseFolder((spec.parent / "releases" / "people" / "latest").resolve())


def test_a_release_appears_whole_with_what_a_data_user_needs(tmp_path: Path) -> None:
    spec = make_project(
        tmp_path, SPEC.replace('guarantee = "lip:1.0"', 'guarantee = "ldp:1.5"') + "[output]\ncsv = true\n"
    )
    result = release(str(spec))
    folder = latest(spec)
    assert result["status"] == "published"
    assert result["version"] == "1.0.0" == folder.root.name
    names = {str(path.relative_to(folder.root)) for path in folder.root.rglob("*") if path.is_file()}
    assert names == {
        "data/records.parquet",
        "data/records.csv",
        "protocol.json",
        "datapackage.json",
        "report.html",
        "report.json",
        "annex.html",
        "signature.json",
        "README.md",
        "CITATION.cff",
        "dcat.jsonld",
        "protocol.csv",
        "estimator.csv",
    }
    kept = {"report.html", "report.json", "joint.json", "draws.json", "words.json", "findings.json", "verdict.json"}
    assert {path.name for path in folder.internal.iterdir()} == {*kept, "release.json", "spec.toml"}
    assert str(folder.internal) == result["internal"] == str(tmp_path / ".funnel" / "internal" / "people" / "1.0.0")
    table = pq.read_table(folder.data)
    assert table.num_rows == 3000
    assert table.column_names == ["relationship"]
    assert pa.types.is_dictionary(table.schema.field(0).type)
    assert table.schema.metadata is None
    document = json.loads(folder.protocol.read_text())
    protocol = Protocol.from_json(folder.protocol.read_text())
    assert document["guarantee"]["level"] <= 1.5
    # It follows from the weights and the prior.
    assert document["posterior"] is None
    assert document["prior"]["symbols"] == [list(symbol) for symbol in protocol.inputs.symbols]
    # The page is a function of the published figures, which the data package names.
    assert render_public(PublicReport.read(folder.numbers)).encode() == folder.report.read_bytes()
    package = json.loads(folder.package.read_text())
    assert package["funnel:privacy"]["report"]["path"] == "report.json"
    internal = InternalReport.read(folder.internal_numbers)
    assert render_internal(internal).encode() == folder.internal_report.read_bytes()
    judged = PublicReport.read(folder.numbers).judged
    assert [judgement.name for judgement in internal.verdict] == [one.name for one in judged]
    assert [resource["path"] for resource in package["resources"]] == ["data/records.csv", "data/records.parquet"]
    assert set(table.column(0).to_pylist()) <= set(package["resources"][1]["schema"]["fields"][0]["categories"])
    # No folder of a run in progress stays behind, and the private part is private.
    assert {path.name for path in folder.root.parent.iterdir()} == {"1.0.0", "latest", "versions.json"}
    assert folder.internal.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("text", "changed", "said"),
    [
        (SPEC.replace('[history]\npeople = "different"\n', ""), SPEC, "version 1.0.0 of this series was drawn before"),
        (SPEC, SPEC.replace('["relationship"]', '["sex", "race"]'), "these are the records of version 1.0.0"),
    ],
)
def test_other_records_are_refused_before_a_protocol_is_made_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, changed: str, said: str
) -> None:
    spec = make_released(tmp_path, text)
    if changed == SPEC:
        pq.write_table(adult_rows(0, 3500), tmp_path / "people.parquet")
    else:
        spec.write_text(changed)
    monkeypatch.setattr("funnel.pipeline.flows.pipeline.optimise", None)
    with pytest.raises(SpecError, match=said):
        release(str(spec))


def test_a_run_leaves_its_summary_in_the_orchestrator(tmp_path: Path, server: dict[str, str]) -> None:
    """Four artifacts: summary, lifts, comparison and a link to the report; none of them holds a row."""
    served = '\n[output]\nserved_at = "http://127.0.0.1:4300"\n'
    spec = make_project(tmp_path, SPEC.replace('name = "people"', 'name = "artifacts"') + served)
    state = flow(str(spec), return_state=True)
    assert (state.name, state.message) == (
        "Published",
        "published version 1.0.0: 3,000 records by optimal within lip:1.0",
    )
    again = flow(str(spec), return_state=True)
    assert (again.name, "version 1.0.0 is this release already" in str(again.message)) == ("Unchanged", True)
    result = state.result()
    query = {"artifacts": {"key": {"like_": "artifacts-%"}}}
    found = {
        entry["key"]: entry
        for entry in httpx.post(f"{server['PREFECT_API_URL']}/artifacts/filter", json=query, timeout=None).json()
    }
    assert set(found) == {f"artifacts-{kind}" for kind in ("summary", "lift", "mechanisms", "report")}
    # Every step was a task of the orchestrator, with a state of its own.
    runs = {"flow_runs": {"id": {"any_": [next(iter(found.values()))["flow_run_id"]]}}}
    tasks = httpx.post(f"{server['PREFECT_API_URL']}/task_runs/filter", json=runs, timeout=20).json()
    steps = (
        "ingest",
        "estimate",
        "protect",
        "disclose",
        "optimise",
        "follow",
        "sanitise",
        "audit",
        "describe",
        "validate",
        "explain",
        "publish",
    )
    assert sorted(task["name"].rpartition("-")[0] for task in tasks) == sorted(steps)
    assert {task["state_type"] for task in tasks} == {"COMPLETED"}
    assert "lip:1.0" in found["artifacts-summary"]["data"]
    assert result["status"] == "published"
    assert "(http://127.0.0.1:4300/artifacts/1.0.0/report.html)" in found["artifacts-report"]["data"]
    assert {row["mechanism"] for row in json.loads(found["artifacts-mechanisms"]["data"])} >= {"optimal", "grr"}
    lifts = json.loads(found["artifacts-lift"]["data"])
    assert len(lifts) == len(pq.read_table(ADULT, columns=["marital-status"]).slice(0, 3000).column(0).unique())
    numbers = [value for row in lifts for key, value in row.items() if key != "secret" and value is not None]
    assert max(numbers) <= 2.718282
    assert min(numbers) >= 0.367879


def test_a_publisher_is_warned_of_other_series_about_the_same_people(tmp_path: Path) -> None:
    """Of the same records under another name; other records are no matter."""
    assert not release(str(make_project(tmp_path)))["warnings"]
    place = make_project(tmp_path, SPEC.replace('"people"', '"again"', 1))
    (found,) = [one for one in release(str(place))["warnings"] if "adds up" in one]
    assert found.startswith("the same records were released as people, in this workspace")
    make_project(tmp_path, SPEC.replace('"people"', '"others"', 1), adult_rows(3000))
    assert not release(str(place))["warnings"]


def test_versions_follow_what_changed_and_nothing_is_redrawn_unasked(tmp_path: Path) -> None:
    spec = make_project(tmp_path)
    first = release(str(spec))
    assert (first["status"], first["cached"]) == ("published", [])
    before = tree(tmp_path / "releases")

    again = release(str(spec))
    assert (again["status"], again["cached"]) == ("unchanged", ["estimate", "optimise"])
    assert tree(tmp_path / "releases") == before

    # Another title: the same rows, taken over and not drawn again.
    spec.write_text(SPEC.replace("People of a test", "Better title"))
    retitled = release(str(spec))
    assert (retitled["version"], retitled["fresh"]) == ("1.0.1", False)
    rows = [ReleaseFolder(tmp_path / "releases/people" / version).data.read_bytes() for version in ("1.0.0", "1.0.1")]
    assert rows[0] == rows[1]

    # New data: a minor version, drawn afresh.
    pq.write_table(adult_rows(0, 3500), tmp_path / "people.parquet")
    newer = release(str(spec))
    assert (newer["version"], newer["fresh"], newer["rows"]) == ("1.1.0", True, 3500)

    # Other fields: a major version, if somebody wants it of the same people.
    spec.write_text(SPEC.replace('["relationship"]', '["sex", "race"]'))
    with pytest.raises(SpecError, match=r"these are the records of version 1\.1\.0, so people are the same"):
        release(str(spec))
    wider = release(str(spec), again=True)
    assert wider["version"] == "2.0.0"
    assert pq.read_table(latest(spec).data).column_names == ["sex", "race"]

    # Back to what was published before: those very rows, under a new version.
    spec.write_text(SPEC)
    back = release(str(spec))
    assert (back["version"], back["fresh"]) == ("3.0.0", False)
    folders = [ReleaseFolder(tmp_path / "releases/people" / version) for version in ("1.1.0", "3.0.0")]
    assert folders[0].data.read_bytes() == folders[1].data.read_bytes()
    assert len(list((tmp_path / ".funnel" / "people" / "snapshots").iterdir())) == 1

    # On demand only: the same draw again, counted as a further release of the same people.
    redrawn = release(str(spec), again=True)
    assert (redrawn["version"], redrawn["fresh"]) == ("3.0.1", True)
    after = tree(tmp_path / "releases")
    assert all(after[name] == content for name, content in before.items() if not name.endswith("versions.json"))


def test_cached_steps_are_made_anew_when_their_files_are_damaged(tmp_path: Path) -> None:
    spec = make_released(tmp_path)
    joint = next((tmp_path / ".funnel" / "people" / "joints").rglob("joint.json"))
    joint.write_text("{}")
    result = release(str(spec))
    assert (result["status"], result["cached"]) == ("unchanged", ["optimise"])


def refused(spec: Path, error: type[FunnelError], *words: str, by: Callable[..., Any] = release) -> None:
    """A further release fails with this error and leaves no trace."""
    before = tree(spec.parent / "releases")
    with pytest.raises(error) as caught:
        by(str(spec), again=True)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert tree(spec.parent / "releases") == before
    series = spec.parent / "releases" / "people"
    assert not [path for path in series.iterdir() if path.name.startswith(".")]


def test_a_failed_verdict_publishes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = make_released(tmp_path)
    real = OutputColumns.batch

    def swapped(self, codes):  # type: ignore[no-untyped-def]
        """A fault in writing: the first two outputs are exchanged."""
        return real(self, (codes.astype("int64") ^ (codes < 2)).astype("uint8"))

    monkeypatch.setattr(OutputColumns, "batch", swapped)
    refused(spec, ReleaseRefused, "expectations failed", "expect_", by=flow)


def test_a_full_disk_at_any_step_leaves_the_previous_release(tmp_path: Path) -> None:
    spec = make_released(tmp_path)
    for step in ("reading", "drawing", "computing", "judging", "writing the report", "publishing"):

        def full(what: str, done: int, total: int | None, step: str = step) -> None:
            if what.startswith(step):
                raise OSError(errno.ENOSPC, "No space left on device", "x.parquet")

        with listening(full):
            refused(spec, OutputError, "x.parquet: No space left on device", "then run the release again")


def test_a_source_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    spec = make_released(tmp_path)
    pq.write_table(adult_rows(100, 2900), tmp_path / "people.parquet")

    def change(what: str, done: int, total: int | None) -> None:
        if what == "taking the snapshot":
            (tmp_path / "people.parquet").write_bytes((tmp_path / "people.parquet").read_bytes() + b" ")

    with listening(change):
        refused(spec, DataError, "changed while it was read")


def test_two_runs_of_one_series_do_not_meet(tmp_path: Path) -> None:
    spec = make_project(tmp_path)
    with (
        open_series(ReleaseSpec.load(spec)),
        pytest.raises(PipelineError, match="another run"),
    ):
        release(str(spec))
    assert release(str(spec))["version"] == "1.0.0"


def test_errors_of_the_source_reach_the_caller_as_they_are(tmp_path: Path) -> None:
    spec = make_project(tmp_path)
    (tmp_path / "people.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(DataError, match=r"people\.parquet"):
        flow(str(spec))
    assert not (tmp_path / "releases" / "people" / "latest").exists()


def test_a_failed_run_leaves_what_to_do_in_the_orchestrator(tmp_path: Path, server: dict[str, str]) -> None:
    spec = make_project(
        tmp_path, SPEC.replace('name = "people"', 'name = "failing"').replace("relationship", "relation")
    )
    with pytest.raises(DataError, match="relation"):
        flow(str(spec))
    with pytest.raises(SpecError, match="there is no spec file"):
        flow(str(tmp_path / "nowhere.toml"))
    query = {"artifacts": {"key": {"any_": ["failing-failure", "release-failure"]}}}
    found = httpx.post(f"{server['PREFECT_API_URL']}/artifacts/filter", json=query, timeout=None).json()
    said = {entry["key"]: entry["data"] for entry in found}
    assert "did you mean" in said["failing-failure"]
    assert "exit status 4" in said["failing-failure"]
    assert "there is no spec file" in said["release-failure"]


def test_commands_on_the_stage_draw_the_same_in_every_run_and_each_its_own(stage: Stage, tmp_path: Path) -> None:
    """What `tests.chance` promises of them; without it one run in thousands is red by chance."""
    rows = []
    with chance.same_draws():
        for number, test in enumerate(("one", "one", "another")):
            spec = make_project(tmp_path / str(number), SPEC + '\n[mechanism]\nname = "grr"\n')
            chance.begin(test)
            # Copies of their own: one process refuses a key that it had before.
            assert stage.start("release", spec, "--json").end().said["status"] == "published"
            rows.append(latest(spec).data.read_bytes())
    assert chance.of_equal_releases(find_release(latest(spec).root)) < 1e-9
    assert rows[0] == rows[1] != rows[2]
