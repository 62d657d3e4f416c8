"""The series index: an old copy, a withdrawn version and another index are known as what they are."""

from __future__ import annotations

import json
import secrets
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import fsspec
import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import funnel
from funnel.audit.check import State
from funnel.audit.recheck import Told
from funnel.cli import main
from funnel.errors import LeakageExceeded
from funnel.progress import quiet
from funnel.readers.source_files import file_digest
from funnel.release.layout import INDEX, LATEST, ReleaseFolder
from funnel.release.series_index import ListedVersion, SeriesIndex, VersionList
from funnel.release.sharing import share_at, whole_release
from funnel.release.signature import SignatureDocument, signing_key
from tests.audits import recheck
from tests.projects import SPEC, adult_rows, make_project
from tests.releases import make_release
from tests.schemas import validated_file

OTHER = "ab" * 32


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> ReleaseFolder:
    return make_release(make_project(tmp_path_factory.mktemp("newest"), SPEC, adult_rows(0, 1000)))


def listed(version: str, signature: str = OTHER, withdrawn: bool = False) -> ListedVersion:
    return ListedVersion(version=version, signature=signature, withdrawn=withdrawn)


def index_of(project: ReleaseFolder, *versions: ListedVersion, **changes: Any) -> bytes:
    """An index with the version that is there and others, signed with the key of the workspace."""
    here = listed("1.0.0", file_digest(project.signature))
    key = changes.pop("key", None) or signing_key(project.root.parents[2] / ".funnel")
    given = {"series": "people", "versions": (here, *versions), **changes}
    return SeriesIndex.signed(VersionList(**given), key).to_bytes()


def result(folder: ReleaseFolder, told: Told | None = None) -> tuple[State | None, str]:
    found = [check for check in recheck(folder, told or Told(public=True)) if check.name == "newest version"]
    return (found[0].state, found[0].detail) if found else (None, "")


def audit(*arguments: object) -> tuple[int, str]:
    shown = CliRunner().invoke(main, ["audit", "--public", *map(str, arguments)], catch_exceptions=False)
    return shown.exit_code, shown.stdout


def test_a_release_is_listed_in_the_index_of_its_series(honest: ReleaseFolder) -> None:
    index = SeriesIndex.read(honest.root.parent / INDEX)
    assert validated_file(honest.root.parent / INDEX) == "versions"
    assert index.holds()
    assert index.public_key == SignatureDocument.read(honest.signature).public_key
    assert index.listed.versions == (listed("1.0.0", file_digest(honest.signature)),)
    assert result(honest) == (State.PASSED, f"version 1.0.0 is the newest of 1 in {INDEX}")
    assert audit(honest.root.parent)[0] == 0


def test_an_old_copy_in_the_place_of_the_newest_fails(project: ReleaseFolder, tmp_path: Path) -> None:
    """The newest version is gone and ``latest`` names the one before; or a copy is said to be the newest."""
    index = index_of(project, listed("1.1.0"))
    (project.root.parent / INDEX).write_bytes(index)
    for shown in (project.root.parent, project.root.parent / LATEST):
        code, said = audit(shown)
        assert code == 7
        assert "FAIL newest version: version 1.0.0 is not the newest one, 1.1.0" in said
    with pytest.raises(LeakageExceeded, match="is not the newest one"):
        funnel.load_release(project.root.parent).verify()
    # Whoever asks for it by its number gets it, and is told.
    code, said = audit(project.root)
    assert code == 0
    assert "version 1.0.0 is an older one, for 1.1.0 is the newest, of 2" in said
    copy = tmp_path / "people-2026"
    shutil.copytree(project.root, copy)
    (tmp_path / "theirs.json").write_bytes(index)
    code, said = audit(copy)
    assert code == 0
    assert "whether it is the newest could not be checked" in said
    for place in (tmp_path / "theirs.json", f"file://{tmp_path}/theirs.json"):
        assert audit(copy, "--index", place)[0] == 7
    with pytest.raises(LeakageExceeded, match="is not the newest one"):
        funnel.load_release(copy).verify(index=tmp_path / "theirs.json")
    assert audit(copy, "--index", tmp_path / "none.json")[0] == 4
    assert audit(copy, "--index", f"file://{tmp_path}/none.json")[0] == 4


def test_at_a_url_the_index_beside_the_versions_tells(project: ReleaseFolder) -> None:
    url = f"memory://{secrets.token_hex(6)}"
    share_at(whole_release(project.root), url, quiet)
    for shown in (f"{url}/people", f"{url}/people/latest", f"{url}/people/1.0.0"):
        code, said = audit(shown)
        assert code == 0
        assert f"version 1.0.0 is the newest of 1 in {INDEX}" in said
    # What the publisher has there lists a newer one, which somebody took away again.
    storage, root = fsspec.core.url_to_fs(f"{url}/people")
    storage.pipe_file(f"{root}/{INDEX}", index_of(project, listed("1.1.0")))
    assert [audit(f"{url}/people{end}")[0] for end in ("", "/latest", "/1.0.0")] == [7, 7, 0]
    storage.rm_file(f"{root}/{INDEX}")
    assert [audit(f"{url}/people{end}")[0] for end in ("", "/latest", "/1.0.0")] == [13, 13, 0]


def test_a_series_that_lacks_its_index_is_not_said_to_be_checked(project: ReleaseFolder) -> None:
    (project.root.parent / INDEX).unlink()
    code, said = audit(project.root.parent)
    assert code == 13
    assert "could not be checked newest version:" in said
    assert audit(project.root)[0] == 0


def test_a_withdrawn_version_fails_by_whatever_name(project: ReleaseFolder) -> None:
    here = listed("1.0.0", file_digest(project.signature), withdrawn=True)
    (project.root.parent / INDEX).write_bytes(index_of(project, versions=(here,)))
    for shown in (project.root.parent, project.root):
        code, said = audit(shown)
        assert code == 7
        assert "version 1.0.0 was withdrawn by its publisher" in said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"key": Ed25519PrivateKey.generate()}, "was signed with key"),
        ({"series": "others"}, "is of another series"),
        ({"versions": (listed("1.0.0"),)}, "version 1.0.0 is not the one that"),
        ({"versions": (listed("1.1.0"),)}, "does not list version 1.0.0"),
    ],
)
def test_another_index_fails(project: ReleaseFolder, changes: dict[str, Any], said: str) -> None:
    content = index_of(project, **changes)
    (project.root.parent / INDEX).write_bytes(content)
    for told in (Told(public=True), Told(public=True, key=SignatureDocument.read(project.signature).public_key)):
        state, found = result(project, told)
        assert state is State.FAILED
        assert said in found
    # Given from elsewhere it is judged alike.
    state, found = result(project, Told(public=True, index=content))
    assert state is State.FAILED


def test_what_was_not_signed_fails(project: ReleaseFolder) -> None:
    """A list that was changed, one in other words, and what is no list at all."""
    place = project.root.parent / INDEX
    content = json.loads(index_of(project, listed("1.1.0")))
    changed = json.dumps({**content, "listed": {**content["listed"], "versions": content["listed"]["versions"][:1]}})
    spaced = json.dumps(json.loads(place.read_bytes()))
    for text in (changed, spaced, "{}", "", "[]", '{"schema": "funnel/versions/2"}', json.dumps({**content, "x": 1})):
        place.write_text(text)
        assert result(project)[0] is State.FAILED


def test_the_index_may_lie_neither_outside_nor_behind_a_link(project: ReleaseFolder, tmp_path: Path) -> None:
    place = project.root.parent / INDEX
    place.rename(tmp_path / "elsewhere.json")
    place.symlink_to(tmp_path / "elsewhere.json")
    assert audit(project.root.parent)[0] == 4


def test_a_list_has_every_version_once_and_in_order() -> None:
    for versions in ((), (listed("1.1.0"), listed("1.0.0")), (listed("1.0.0"), listed("1.0.0"))):
        with pytest.raises(ValueError, match=r"versions|once"):
            VersionList(series="people", versions=versions)
    kept = VersionList(series="people", versions=(listed("1.9.0"), listed("1.10.0"), listed("2.0.0", withdrawn=True)))
    assert kept.newest == "1.10.0"
    assert replace(Told(), index=b"").index == b""
