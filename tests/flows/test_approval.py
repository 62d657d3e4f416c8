"""Releases that wait for approval: whole and unseen until somebody gives it, and then published by the same way."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import fsspec
import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from funnel.cli import main
from funnel.errors import FunnelError, LedgerError, OutputError, PipelineError, ReleaseRefused, SpecError
from funnel.pipeline.flows.look import look, reject
from funnel.pipeline.flows.pipeline import run_approved, run_release
from funnel.pipeline.tasks.step import listening
from funnel.release.approval import Approval
from funnel.release.layout import ReleaseFolder, Version
from funnel.release.public_report import PublicReport
from funnel.release.record import Record
from funnel.release.signature import SignatureDocument
from funnel.spec import ReleaseSpec
from tests.projects import PLAIN, adult_rows, make_project, tree
from tests.releases import make_released
from tests.stage import Stage

ASKING = PLAIN + "\n[approval]\nrequired = true\n"
OFFICER = "<b>A. Okafor</b>, data protection officer"


def funnel(*arguments: str | Path) -> Result:
    """The command, without a server."""
    return CliRunner(env={"PREFECT_API_URL": None}).invoke(main, [str(one) for one in arguments])


def run(spec: Path, again: bool = False) -> dict[str, Any]:
    return run_release(ReleaseSpec.load(spec), again, False)[0]


def approve(spec: Path, version: str | None = None, by: str = OFFICER) -> dict[str, Any]:
    asked = None if version is None else Version.parse(version)
    return run_approved(ReleaseSpec.load(spec), Approval.given(by, "seen"), asked)[0]


def seen(spec: Path) -> list[str]:
    """What readers of the output folder find."""
    return sorted(path.name for path in (spec.parent / "releases" / "people").iterdir() if path.name[0] != ".")


def refused(spec: Path, error: type[FunnelError], words: str, **how: Any) -> None:
    before = tree(spec.parent / "releases")
    with pytest.raises(error) as caught:
        approve(spec, **how)
    assert words in str(caught.value), str(caught.value)
    assert "\n" not in str(caught.value)
    assert tree(spec.parent / "releases") == before


def test_a_release_waits_for_whoever_answers_for_it(tmp_path: Path) -> None:
    spec = make_project(tmp_path, ASKING)
    first = funnel("release", spec)
    assert first.exit_code == 0, first.output
    folder = tmp_path / "releases" / "people" / ".held-1.0.0"
    said = first.stdout.splitlines()
    assert said[0].startswith("Held version 1.0.0 for approval, unpublished: 3,000 records by grr")
    assert f"Release: {folder}" in said
    assert said[-1].startswith("Look at the report, then: funnel approve SPEC --approver")
    assert seen(spec) == []
    before = tree(folder)
    assert "signature.json" not in before

    # Nothing is drawn again, and nothing of it is touched.
    told = json.loads(funnel("release", spec, "--json").stdout)
    assert (told["status"], told["version"], told["drawn"], told["rows"]) == ("held", "1.0.0", False, 3000)
    assert told["folder"] == str(folder)
    assert "has waited for approval since" in funnel("release", spec).stdout
    assert run(spec) == told
    # Also where nothing is known of the last run.
    (tmp_path / ".funnel" / "people" / "settled.json").unlink()
    assert run(spec) == told
    assert tree(folder) == before
    assert seen(spec) == []

    others: list[str] = []

    def another(what: str, done: int, total: int | None) -> None:
        if what == "judging the release" and not others:
            with pytest.raises(PipelineError) as caught:
                approve(spec, by="B. Second")
            others.append(str(caught.value))

    with listening(another):
        told = approve(spec)
    assert others == ["another run is making the release people; wait until it has ended"]
    assert (told["status"], told["version"], told["approved_by"]) == ("published", "1.0.0", OFFICER)
    assert (told["fresh"], told["drawn"]) == (True, False)
    assert seen(spec) == ["1.0.0", "latest", "versions.json"]
    assert not folder.exists()
    released = ReleaseFolder(tmp_path / "releases" / "people" / "1.0.0")
    # The rows that were looked at, and no others.
    assert released.data.read_bytes() == before["data/records.parquet"]
    record = Record.read(released.record)
    assert record.approval == Approval(by=OFFICER, at=told["approved_at"], note="seen")
    (kept,) = (tmp_path / ".funnel" / "people" / "records").glob("*/1.0.0.json")
    assert Record.read(kept) == record
    numbers = PublicReport.read(released.numbers)
    assert (numbers.approval.by, numbers.approval.at) == (OFFICER, told["approved_at"])
    assert "seen" not in numbers.approval.model_dump().values()
    page = released.report.read_text()
    assert "&lt;b&gt;A. Okafor&lt;/b&gt;, data protection officer" in page
    assert OFFICER not in page
    assert told["approved_at"] in page
    # What was approved is signed, the name with it.
    assert "report.html" in {file.path for file in SignatureDocument.read(released.signature).manifest.files}
    audited = funnel("audit", released.root.parent)
    assert audited.exit_code == 0, audited.output

    late = funnel("approve", spec, "--approver", "B. Second", "--json")
    assert late.exit_code == 9
    message = json.loads(late.stdout)["message"]
    assert message.startswith("no version waits for approval; version 1.0.0 was published on ")
    assert "with the approval of <b>A. Okafor</b>" in message
    assert run(spec)["status"] == "unchanged"


def test_a_held_version_gives_way_to_what_is_newer(tmp_path: Path) -> None:
    spec = make_released(tmp_path, PLAIN)
    spec.write_text(ASKING)
    assert run(spec)["status"] == "unchanged"

    pq.write_table(adult_rows(0, 2500), tmp_path / "people.parquet")
    held = run(spec)
    assert (held["status"], held["version"], held["drawn"]) == ("held", "1.1.0", True)
    rows = ReleaseFolder(Path(held["folder"])).data.read_bytes()

    # Another title: judged again on the same rows, which nobody outside has seen, under a number of its own.
    spec.write_text(ASKING.replace("People of a test", "Better title"))
    refused(spec, ReleaseRefused, "the source, the spec or funnel has changed since version 1.1.0 was held")
    retitled = run(spec)
    assert (retitled["status"], retitled["version"]) == ("held", "1.1.1")
    assert (retitled["drawn"], retitled["fresh"]) == (False, True)
    assert retitled["warnings"][-1].startswith("version 1.1.0, which was held for approval, is superseded")
    assert ReleaseFolder(Path(retitled["folder"])).data.read_bytes() == rows
    refused(spec, LedgerError, "version 1.1.0 does not wait for approval, but version 1.1.1 does", version="1.1.0")

    # The source that was published is back: what is held can no longer be judged.
    pq.write_table(adult_rows(), tmp_path / "people.parquet")
    spec.write_text(ASKING)
    assert look(ReleaseSpec.load(spec)) is None
    refused(spec, ReleaseRefused, "nothing was published: the source, the spec or funnel has changed", version="1.1.1")
    back = run(spec)
    assert (back["status"], back["version"]) == ("unchanged", "1.0.0")
    assert back["warnings"][0].startswith("version 1.1.1, which was held for approval, is superseded")
    assert "warnings" not in run(spec)
    assert sorted(path.name for path in (tmp_path / "releases" / "people").iterdir()) == [
        "1.0.0",
        "latest",
        "versions.json",
    ]


def test_a_rejected_version_is_removed_and_not_drawn_again(tmp_path: Path) -> None:
    spec = make_released(tmp_path, ASKING)
    done = funnel("approve", spec, "--approver", "A. Okafor", "--reject", "rare cells")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("Version 1.0.0 was rejected by A. Okafor on ")
    assert done.stdout.splitlines()[0].endswith(": rare cells")
    assert list((tmp_path / "releases" / "people").iterdir()) == []
    told = run(spec)
    assert (told["status"], told["version"], told["by"], told["reason"]) == (
        "rejected",
        "1.0.0",
        "A. Okafor",
        "rare cells",
    )
    assert list((tmp_path / "releases" / "people").iterdir()) == []
    with pytest.raises(LedgerError, match=r"version 1\.0\.0 was rejected on .* by A\. Okafor: rare cells"):
        reject(ReleaseSpec.load(spec), Approval.given("A. Okafor", "twice"))
    # Knowingly, or where nobody is asked any more; the number is used.
    spec.write_text(PLAIN)
    published = run(spec)
    assert (published["status"], published["version"], published["fresh"]) == ("published", "1.0.1", True)


def test_a_held_version_that_was_changed_is_neither_approved_of_nor_published(tmp_path: Path) -> None:
    spec = make_released(tmp_path, ASKING)
    folder = ReleaseFolder(tmp_path / "releases" / "people" / ".held-1.0.0")
    content = folder.data.read_bytes()
    folder.data.write_bytes(content + b" ")
    refused(spec, LedgerError, "'data/records.parquet' was changed after the release was judged")
    for release in (run, lambda one: look(ReleaseSpec.load(one))):
        with pytest.raises(LedgerError, match="is not what was judged"):
            release(spec)
    spec.write_text(PLAIN)
    with pytest.raises(FunnelError, match="changed since they were drawn"):
        run(spec)
    assert seen(spec) == []

    # As it was, it is published where nobody is asked any more.
    folder.data.write_bytes(content)
    assert look(ReleaseSpec.load(spec)) is None
    told = run(spec)
    assert (told["status"], told["version"], "approved_by" in told) == ("published", "1.0.0", False)
    released = ReleaseFolder(Path(told["folder"]))
    assert released.data.read_bytes() == content
    assert Record.read(released.record).approval is None
    # The setting says nothing of what is released.
    spec.write_text(ASKING)
    assert run(spec)["status"] == "unchanged"


def test_an_approval_that_is_killed_leaves_it_held(tmp_path: Path, stage: Stage) -> None:
    spec = make_released(tmp_path, ASKING)
    before = tree(tmp_path / "releases" / "people" / ".held-1.0.0")
    stopped = stage.run("approve", spec, "--approver", "A", dies="says taken from the cache", by=signal.SIGTERM)
    assert stopped.stderr.splitlines()[-1] == (
        "funnel: terminated; what was held waits still, unless it was published before"
    )
    killed = stage.run("approve", spec, "--approver", "A", dies="says publishing")
    assert killed.status == -signal.SIGKILL, killed.stderr
    assert seen(spec) == []
    assert tree(tmp_path / "releases" / "people" / ".held-1.0.0") == before
    assert run(spec)["status"] == "held"
    done = funnel("approve", spec, "--approver", "A. Okafor")
    assert done.stdout.startswith("Published version 1.0.0: 3,000 records by grr"), done.output
    assert done.stdout.splitlines()[0].endswith(", approved by A. Okafor.")
    assert sorted(path.name for path in (tmp_path / "releases" / "people").iterdir()) == [
        "1.0.0",
        "latest",
        "versions.json",
    ]


def test_a_version_that_waits_is_not_at_the_url(tmp_path: Path) -> None:
    url = f"memory://{tmp_path.name}/out"
    spec = make_project(tmp_path, ASKING + f'[output]\nfolder = "{url}"\n')
    storage = fsspec.filesystem("memory")

    def objects() -> list[str]:
        return sorted(path.removeprefix(f"/{tmp_path.name}/out/people/") for path in storage.find(url))

    held = run(spec)
    assert held["status"] == "held"
    assert objects() == []
    rows = ReleaseFolder(Path(held["folder"])).data.read_bytes()

    def broken(what: str, done: int, total: int | None) -> None:
        if what == "uploading datapackage.json":
            raise ConnectionResetError(104, "Connection reset by peer")

    with listening(broken), pytest.raises(OutputError):
        approve(spec)
    assert "1.0.0/datapackage.json" not in objects()
    told = approve(spec)
    assert (told["version"], told["folder"], told["fresh"]) == ("1.0.0", f"{url}/people/1.0.0", True)
    assert "1.0.0/datapackage.json" in objects()
    assert not [name for name in objects() if "internal" in name or "held" in name]
    assert storage.cat_file(f"{url}/people/1.0.0/data/records.parquet") == rows
    assert run(spec)["status"] == "unchanged"


def test_a_rotated_secret_waits_with_its_version(tmp_path: Path) -> None:
    keyed = PLAIN.replace('publish = ["relationship"]', 'publish = ["relationship"]\nrecord_key = ["id"]')
    table = adult_rows(0, 400).append_column("id", pa.array(range(400)))
    spec = make_project(tmp_path, keyed, table)
    run(spec)
    spec.write_text(keyed + "[approval]\nrequired = true\n")
    rotated, _ = run_release(ReleaseSpec.load(spec), False, True)
    assert (rotated["status"], rotated["fresh"], rotated["drawn"]) == ("held", True, True)
    # It is not forgotten, and not taken for the one of what is published.
    assert run(spec)["status"] == "held"
    told = approve(spec)
    assert (told["version"], told["fresh"], told["drawn"]) == (rotated["version"], True, False)
    first, second = (
        Record.read(ReleaseFolder(tmp_path / "releases" / "people" / version).record)
        for version in ("1.0.0", told["version"])
    )
    assert second.rotated == first.origin.secret != second.origin.secret
    assert run(spec)["status"] == "unchanged"


@pytest.mark.usefixtures("in_process")
def test_flows_say_that_somebody_has_something_to_do(tmp_path: Path, server: dict[str, str]) -> None:
    from funnel.pipeline.flows.release import approve as approving
    from funnel.pipeline.flows.release import release

    spec = make_project(tmp_path, ASKING.replace('name = "people"', 'name = "signed"'))
    state = release(str(spec), return_state=True)
    assert (state.name, state.is_completed()) == ("WaitingForApproval", True)
    assert "version 1.0.0 waits for approval" in str(state.message)
    told = release(str(spec))
    assert (told["status"], told["version"]) == ("held", "1.0.0")
    query = {"artifacts": {"key": {"like_": "signed-%"}}}

    def artifacts() -> dict[str, str]:
        found = httpx.post(f"{server['PREFECT_API_URL']}/artifacts/filter", json=query, timeout=None).json()
        return {entry["key"]: str(entry["data"]) for entry in found}

    # Figures of what nobody has approved are not shown.
    assert set(artifacts()) == {"signed-approval"}
    assert "1.0.0 waits for approval" in artifacts()["signed-approval"]
    with pytest.raises(SpecError, match="the name of who approves"):
        approving(str(spec), " ")
    told = approving(str(spec), OFFICER, version="1.0.0")
    assert (told["status"], told["version"], told["approved_by"]) == ("published", "1.0.0", OFFICER)
    assert set(artifacts()) == {f"signed-{kind}" for kind in ("approval", "summary", "lift", "mechanisms")}


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ("[approval]\nrequred = true\n", "required"),
        ('[approval]\nrequired = "yes"\n', "approval"),
        ("[aproval]\nrequired = true\n", "approval"),
        ("approval = true\n", "approval"),
    ],
)
def test_a_spec_that_misspells_it_publishes_nothing(tmp_path: Path, section: str, words: str) -> None:
    text = f"{section}{PLAIN}" if section.startswith("approval") else PLAIN + section
    with pytest.raises(SpecError, match=words) as caught:
        ReleaseSpec.parse(text, tmp_path / "people.toml")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ([], 2, "Missing option '--approver'"),
        (["--by", "A"], 2, "the option --by is called --approver now"),
        (["--approver", ""], 3, "the name of who approves or rejects must not be empty"),
        (["--approver", "A\nB"], 3, "must be one line without control characters"),
        (["--approver", "A", "--version", "latest"], 3, "such as 1.1.0"),
        (["--approver", "A", "--reject", ""], 3, "the note or reason must not be empty"),
        (["--approver", "A", "--reject", "no", "--note", "yes"], 2, "--note goes with an approval"),
        (["--approver", "A"], 9, "no version waits for approval; funnel release SPEC holds one where the spec says"),
    ],
)
def test_a_command_that_is_wrong_is_told_so(tmp_path: Path, arguments: list[str], status: int, words: str) -> None:
    done = funnel("approve", make_project(tmp_path, ASKING), *arguments)
    assert done.exit_code == status, done.output
    assert words in " ".join(done.output.split())


def test_a_workspace_that_is_gone_approves_of_nothing(tmp_path: Path) -> None:
    spec = make_released(tmp_path, ASKING)
    folder = tmp_path / "releases" / "people" / ".held-1.0.0"
    shutil.rmtree(tmp_path / ".funnel")
    refused(spec, LedgerError, "was held from another workspace; approve of it or reject it there")
    assert folder.is_dir()
