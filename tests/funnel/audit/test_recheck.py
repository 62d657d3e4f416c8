"""Auditing a published release from its files: an honest one passes, and every tampering is noticed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funnel.audit.recheck import recheck
from funnel.errors import DataError
from funnel.release.layout import ReleaseFolder, find_release
from funnel.source import file_digest
from tests.projects import make_project
from tests.releases import make_release


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> ReleaseFolder:
    return make_release(make_project(tmp_path_factory.mktemp("audit")))


@pytest.fixture
def release(honest: ReleaseFolder, tmp_path: Path) -> ReleaseFolder:
    shutil.copytree(honest.root, tmp_path / "1.0.0")
    return ReleaseFolder(tmp_path / "1.0.0")


def failed(release: ReleaseFolder) -> set[str]:
    return {check.name for check in recheck(release) if not check.passed}


def test_an_honest_release_passes_every_check(honest: ReleaseFolder) -> None:
    names = [check.name for check in recheck(honest)]
    assert failed(honest) == set()
    assert names[-4:] == ["leakage", "records", "counts", "draws"]
    assert find_release(honest.root.parent) == honest


def test_without_the_internal_folder_the_leakage_is_not_vouched_for(release: ReleaseFolder) -> None:
    shutil.rmtree(release.audit)
    checks = recheck(release)
    assert all(check.passed for check in checks)
    assert checks[-1].name == "leakage"
    assert checks[-1].detail.startswith("not checked")


def resigned(release: ReleaseFolder) -> None:
    """Make the declared digests those of the altered files, as a careful forger would."""
    package = json.loads(release.package.read_text())
    for resource in package["resources"]:
        resource["hash"] = f"sha256:{file_digest(release.root / resource['path'])}"
    package["funnel:privacy"]["protocol"]["hash"] = f"sha256:{file_digest(release.protocol)}"
    release.package.write_text(json.dumps(package))


def rewrite(release: ReleaseFolder, change: Callable[[pa.Table], pa.Table]) -> None:
    pq.write_table(change(pq.read_table(release.data)), release.data)


def test_a_release_from_before_documents_named_their_schema_is_audited(release: ReleaseFolder) -> None:
    for path in (release.joint, release.draws, release.protocol):
        content = json.loads(path.read_text())
        del content["schema"]
        if path == release.protocol:
            block = content.pop("guarantee")
            content |= {"guarantee": block["declared"], "bound": block | {"guarantee": block.pop("kind")}}
        path.write_text(json.dumps(content))
    resigned(release)
    assert failed(release) == set()


def test_altered_rows_are_noticed_even_with_new_digests(release: ReleaseFolder) -> None:
    rewrite(release, lambda table: table.slice(1))
    assert failed(release) == {"file data/records.parquet", "records", "counts"}
    resigned(release)
    assert failed(release) == {"records", "counts"}


def test_foreign_values_and_columns_are_noticed(release: ReleaseFolder) -> None:
    name = pq.read_schema(release.data).names[0]
    rewrite(release, lambda table: pa.table({name: ["Jane Doe"] * table.num_rows}))
    resigned(release)
    [check] = [check for check in recheck(release) if not check.passed]
    assert check.name == "values"
    assert "Jane" not in check.detail
    rewrite(release, lambda table: table.append_column("name", pa.array(["x"] * table.num_rows)))
    resigned(release)
    assert failed(release) == {"values"}


def test_a_weaker_joint_law_is_noticed(release: ReleaseFolder) -> None:
    """Counts that contradict the declared bound: the level is computed again, not believed."""
    joint = json.loads(release.joint.read_text())
    joint["counts"][0], joint["counts"][-1] = joint["counts"][-1], joint["counts"][0]
    joint["counts"] = [[count**2 for count in row] for row in joint["counts"]]
    release.joint.write_text(json.dumps(joint))
    assert "leakage" in failed(release)


def test_draws_that_do_not_fit_the_protocol_are_noticed(release: ReleaseFolder) -> None:
    draws = json.loads(release.draws.read_text())
    draws["pairs"][0], draws["pairs"][1] = draws["pairs"][1], draws["pairs"][0]
    release.draws.write_text(json.dumps(draws))
    # The marginal is what it was: only a test for each input symbol sees it.
    assert failed(release) == {"draws"}


def test_another_declared_bound_is_noticed(release: ReleaseFolder) -> None:
    package = json.loads(release.package.read_text())
    package["funnel:privacy"]["guarantee"] = "lip:0.5"
    release.package.write_text(json.dumps(package))
    assert failed(release) == {"bound"}


@pytest.mark.parametrize("path", ["../outside.parquet", "/etc/passwd", "data/gone.parquet"])
def test_a_path_outside_the_release_is_not_followed(release: ReleaseFolder, path: str) -> None:
    (release.root.parent / "outside.parquet").write_bytes(b"x")
    package = json.loads(release.package.read_text())
    package["resources"][0]["path"] = path
    release.package.write_text(json.dumps(package))
    [check] = [check for check in recheck(release) if not check.passed]
    assert (check.name, check.detail) == (f"file {path}", "is missing")


def test_unreadable_documents_are_errors(release: ReleaseFolder) -> None:
    package = release.package.read_text()
    release.package.write_text("[]")
    with pytest.raises(DataError, match="not a Data Package"):
        recheck(release)
    release.package.write_text(package)
    release.protocol.write_text(release.protocol.read_text().replace('"weights"', '"wights"'))
    with pytest.raises(DataError, match=r"protocol\.json is damaged: weights is missing \(and 1 more\)$"):
        recheck(release)


@pytest.mark.parametrize("name", ["joint", "draws"])
def test_damaged_evidence_fails_its_check(release: ReleaseFolder, name: str) -> None:
    path: Path = getattr(release, name)
    path.write_text(path.read_text().replace("[", "[-1,", 1))
    assert failed(release) == {"internal evidence"}
    path.unlink()
    assert failed(release) == ({"internal evidence"} if name == "draws" else set())
