"""Auditing a published release: three states, exit statuses of their own, and what a reader is told."""

from __future__ import annotations

import base64
import itertools
import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from funnel.audit import encoding
from funnel.audit.check import Result as Checked
from funnel.audit.check import State, overall
from funnel.audit.encoding import check_table
from funnel.audit.recheck import Told
from funnel.audit.released_columns import ReleasedColumns
from funnel.cli import main
from funnel.errors import DataError
from funnel.release.layout import ReleaseFolder, find_release
from funnel.release.protocol_document import ProtocolDocument
from funnel.release.signature import SignatureDocument
from funnel.sampling.output_columns import OutputColumns, ReleaseWriter
from tests.audits import recheck
from tests.copies import copied
from tests.funnel.audit.forging import Forger
from tests.projects import make_project
from tests.releases import make_release
from tests.schemas import validated


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> ReleaseFolder:
    return make_release(make_project(tmp_path_factory.mktemp("audit")))


@pytest.fixture
def public(honest: ReleaseFolder, tmp_path: Path) -> ReleaseFolder:
    """What a reader has."""
    shutil.copytree(honest.root, tmp_path / "public")
    return ReleaseFolder(tmp_path / "public")


def names(folder: ReleaseFolder, state: State, told: Told | None = None) -> set[str]:
    return {check.name for check in recheck(folder, told) if check.state is state}


def funnel_audit(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["audit", *map(str, arguments)], catch_exceptions=False)


def test_an_honest_release_passes_every_check(honest: ReleaseFolder) -> None:
    assert overall(recheck(honest)) is State.PASSED
    assert find_release(honest.root.parent) == honest
    shown = funnel_audit(honest.root.parent)
    assert shown.exit_code == 0
    assert shown.stdout.splitlines()[-1] == f"passed: {len(recheck(honest))} passed"


def test_a_state_is_never_better_than_that_of_its_worst_check() -> None:
    checks = {state: Checked("one", state, "") for state in State}
    passed, failed, unchecked = checks[State.PASSED], checks[State.FAILED], checks[State.UNCHECKED]
    assert overall([passed, passed]) is State.PASSED
    assert overall([passed, unchecked]) is State.UNCHECKED
    assert overall([unchecked, failed, passed]) is State.FAILED
    # Where nothing was checked, nothing is known.
    assert overall([]) is State.UNCHECKED


def test_a_public_copy_could_not_be_checked_in_full_unless_that_is_not_asked_for(public: ReleaseFolder) -> None:
    shown = funnel_audit(public.root)
    assert shown.exit_code == 13
    assert "could not be checked evidence: its internal evidence is not here" in shown.stdout
    assert shown.stderr.splitlines()[-1].startswith(f"funnel: the release {public.root} could not be checked in full")
    assert funnel_audit(public.root, "--public").exit_code == 0


def test_a_public_copy_with_internal_files_fails(honest: ReleaseFolder, tmp_path: Path) -> None:
    """Exact counts were copied along: whatever else holds, the copy must not be handed on."""
    copy = copied(honest, tmp_path / "copy")
    assert names(copy, State.FAILED, Told(public=True)) == set()
    shutil.copytree(copy.internal, copy.root / "internal")
    assert names(copy, State.FAILED, Told(public=True)) == {"files", "signature"}
    shown = funnel_audit(copy.root, "--public")
    assert shown.exit_code == 7
    assert "internal is a link, a pipe, a device or a folder of no release" in shown.stdout


def test_the_command_takes_the_folder_of_the_evidence(project: ReleaseFolder, tmp_path: Path) -> None:
    """Of a copy, or where the workspace is on another disk; with its workspace all is known."""
    shutil.copytree(project.root, tmp_path / "elsewhere" / "1.0.0")
    assert funnel_audit(tmp_path / "elsewhere" / "1.0.0").exit_code == 13
    shown = funnel_audit(tmp_path / "elsewhere" / "1.0.0", "--evidence", str(project.internal))
    assert shown.exit_code == 0, shown.stdout
    assert "pass kept record: the workspace keeps the same record" in shown.stdout
    assert funnel_audit(project.root, "--evidence", str(tmp_path / "gone")).exit_code == 2


def test_a_copy_has_no_internal_file(project: ReleaseFolder, tmp_path: Path) -> None:
    """Whatever of the folder of releases is copied, all of it or one version: nothing internal is in it."""
    inside = {path.name for path in project.root.parents[1].rglob("*") if path.is_file()}
    kept = {path.name for path in project.internal.iterdir()}
    assert {"joint.json", "draws.json", "release.json"} <= kept
    assert inside & kept == {"report.html", "report.json"}
    assert not project.internal.is_relative_to(project.root.parents[1])
    assert project.internal.parts[-3:] == ("internal", "people", "1.0.0")


@pytest.mark.parametrize("name", ["audit/joint.json", "data/people.csv", "joint.json", "records.csv"])
def test_files_that_no_release_has_fail_in_both_modes(project: ReleaseFolder, name: str) -> None:
    """In the publisher's folder as in a copy."""
    (project.root / name).parent.mkdir(exist_ok=True)
    (project.root / name).write_text("0,1\n")
    for told in (Told(), Told(public=True)):
        assert "files" in names(project, State.FAILED, told)


@pytest.mark.parametrize("name", ["people.csv", "joint.json.bak"])
def test_files_that_no_evidence_has_fail(project: ReleaseFolder, name: str) -> None:
    (project.internal / name).write_text("0,1\n")
    assert names(project, State.FAILED, Told()) == {"evidence"}
    assert names(project, State.FAILED, Told(public=True)) == set()


@pytest.mark.parametrize("part", ["joint", "draws", "findings", "verdict", "record", "spec", "internal"])
def test_taking_evidence_away_never_turns_a_failure_into_a_success(project: ReleaseFolder, part: str) -> None:
    """The joint distribution contradicts the bound, and is then removed; missing evidence fails."""
    forger = Forger(project)
    forger.edit(project.joint, lambda c: c.update(counts=[[n * n for n in row] for row in c["counts"]]))
    assert "leakage" in names(project, State.FAILED)
    gone: Path = getattr(project, part)
    shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
    assert names(project, State.FAILED) == {"evidence"} | (set() if part == "internal" else {"kept record"})
    assert funnel_audit(project.root).exit_code == 7


def test_a_release_that_is_not_signed_fails(public: ReleaseFolder) -> None:
    key = SignatureDocument.read(public.signature).public_key
    public.signature.unlink()
    for told in (Told(public=True), Told(public=True, key=key)):
        assert names(public, State.FAILED, told) == {"files", "signature"}
    assert funnel_audit(public.root, "--public").exit_code == 7


def test_the_key_tells_a_forged_release_from_a_true_one(public: ReleaseFolder, tmp_path: Path) -> None:
    key = SignatureDocument.read(public.signature).public_key
    raw = bytes.fromhex(key)
    pem = Ed25519PublicKey.from_public_bytes(raw).public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "key.pem").write_bytes(pem)
    (tmp_path / "key.hex").write_text(f"{key}\n")
    forms = (key, key.upper(), base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode().rstrip("="))
    for form in (*forms, pem.decode(), tmp_path / "key.pem", tmp_path / "key.hex"):
        assert funnel_audit(public.root, "--public", "--public-key", form).exit_code == 0
    for wrong in ("jane", "ab" * 31, tmp_path / "none", tmp_path):
        assert funnel_audit(public.root, "--public-key", wrong).exit_code == 3
    former = funnel_audit(public.root, "--key", key)
    assert former.exit_code == 2
    assert "the option --key is called --public-key now" in former.output
    Forger(public).sign()
    assert funnel_audit(public.root, "--public").exit_code == 0
    shown = funnel_audit(public.root, "--public", "--public-key", key)
    assert shown.exit_code == 7
    assert "FAIL signature: it was signed with key" in shown.stdout
    assert "proves only that no file was changed" in funnel_audit(public.root, "--public").stdout


def test_the_publisher_need_not_give_a_key(project: ReleaseFolder) -> None:
    Forger(project).sign()
    assert "signature" in names(project, State.FAILED)


def test_as_json_by_a_published_schema(public: ReleaseFolder) -> None:
    shown = funnel_audit(public.root, "--json")
    # One document, whatever was found: the status says it too.
    said = json.loads(shown.stdout)
    assert (shown.exit_code, len(shown.stdout.splitlines())) == (13, 1)
    assert validated(said) == "audit"
    assert said["state"] == "could not be checked"
    assert {
        "name": "values",
        "state": "passed",
        "detail": "3,000 records, all of them outputs of the protocol",
    } in said["checks"]


def test_nothing_that_a_release_says_is_obeyed_by_a_terminal(public: ReleaseFolder) -> None:
    forger = Forger(public)
    forger.package(lambda c: c.update({"name": "\x1b[2J\x9b31m\u202egpj.exe\nfunnel: all is well"}))
    forger.package(lambda c: c["resources"].append({"path": "\x1b]0;owned\x07"}))
    forger.report("lip:1.0", "\x1b[2J")
    for options in ((), ("--json",)):
        shown = funnel_audit(public.root, *options)
        assert shown.exit_code == 7
        assert all(line.isprintable() for line in (shown.stdout + shown.stderr).splitlines())
        assert "\nfunnel: all is well" not in shown.stdout + shown.stderr


def test_a_path_outside_the_release_is_not_followed(public: ReleaseFolder) -> None:
    """Its digest would tell an observer who sees the audit what is in the file."""
    (public.root.parent / "outside.parquet").write_bytes(b"x")
    for path in ("../outside.parquet", "/etc/passwd", "data/gone.parquet"):
        Forger(public).package(lambda c, path=path: c["resources"][0].update(path=path))
        shown = funnel_audit(public.root).output
        assert "root:" not in shown
        assert "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881" not in shown
        assert "package" in names(public, State.FAILED)
    public.protocol.unlink()
    public.protocol.symlink_to("/etc/passwd")
    with pytest.raises(DataError, match=r"protocol\.json is no file that can be read"):
        recheck(public)


def test_a_table_of_several_row_groups_is_as_funnel_writes_it(
    honest: ReleaseFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = ProtocolDocument.read(honest.protocol)
    codes = Forger(honest).codes()

    def state(*sizes: int) -> State:
        with ReleaseWriter(tmp_path / "t.parquet", OutputColumns(document.protocol)) as writer:
            for end, size in zip(itertools.accumulate(sizes), sizes, strict=True):
                writer.write(codes[end - size : end])
        assert pq.ParquetFile(tmp_path / "t.parquet").num_row_groups == len(sizes)
        values, parquet, table = check_table(
            tmp_path / "t.parquet", ReleasedColumns.of_outputs(document.protocol.outputs)
        )
        assert values.passed
        assert table is not None
        assert table.rows == 3000
        return parquet.state

    # So few rows are one row group, in whatever order.
    assert state(3000) is State.PASSED
    assert state(1000, 1000, 1000) is state(1500, 1500) is State.FAILED
    # In the order of the source; in random order, in a power of two of parts, as binomial chance makes them.
    monkeypatch.setattr("funnel.audit.encoding._GROUP_ROWS", 1200)
    monkeypatch.setattr("funnel.audit.encoding._PART_ROWS", 1000)
    assert state(1200, 1200, 600) is state(740, 755, 752, 753) is State.PASSED
    assert state(1200, 1800) is state(1000, 1000, 1000) is state(100, 900, 1000, 1000) is State.FAILED


def test_a_table_of_another_version_of_the_library_is_told_apart_from_a_forged_one(
    honest: ReleaseFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(encoding.WRITTEN, "compression", "gzip")
    document = ProtocolDocument.read(honest.protocol)
    _, parquet, _ = check_table(honest.data, ReleasedColumns.of_outputs(document.protocol.outputs))
    assert parquet.failed
    monkeypatch.setattr("pyarrow.__version__", "0.0.1")
    _, parquet, _ = check_table(honest.data, ReleasedColumns.of_outputs(document.protocol.outputs))
    assert parquet.state is State.UNCHECKED
    assert "install pyarrow==" in parquet.detail
