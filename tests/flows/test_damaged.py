"""A published folder that was damaged, exchanged, restored or added to is never said to be unchanged."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from funnel.errors import LedgerError
from funnel.pipeline.flows.look import look
from funnel.pipeline.flows.pipeline import run_release
from funnel.readers.source_files import file_digest
from funnel.release.document import dump
from funnel.release.layout import ReleaseFolder
from funnel.spec import ReleaseSpec
from tests.projects import SPEC, make_project


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with two versions."""
    spec = make_project(tmp_path_factory.mktemp("damaged") / "project", SPEC + "\n[output]\ncsv = true\n")
    run_release(ReleaseSpec.load(spec), again=False, rotate=False)
    run_release(ReleaseSpec.load(spec), again=True, rotate=False)
    return spec.parent


@pytest.fixture
def project(published: Path, tmp_path: Path) -> Path:
    shutil.copytree(published, tmp_path / "project", symlinks=True)
    return tmp_path / "project"


def kept(folder: Path) -> Path:
    """The internal evidence of a version."""
    return folder.parents[2] / ".funnel" / "internal" / "people" / folder.name


def replaced(folder: Path, other: Path) -> None:
    for old, new in ((folder, other), (kept(folder), kept(other))):
        shutil.rmtree(old)
        shutil.copytree(new, old)


def renumbered(folder: Path, other: Path) -> None:
    """The older version in the place of the newer one, and made to say that it is the newer one."""
    replaced(folder, other)
    for path in (folder / "datapackage.json", kept(folder) / "release.json"):
        path.write_text(path.read_text().replace('"version": "1.0.0"', f'"version": "{folder.name}"'))
    record = kept(folder) / "release.json"
    content = json.loads(record.read_bytes())
    content["files"]["datapackage.json"] = file_digest(folder / "datapackage.json")
    record.write_bytes(dump(content))


def noted(folder: Path) -> None:
    """A changed report, and the digest that fits in the record beside it."""
    (folder / "report.html").write_text("changed")
    record = kept(folder) / "release.json"
    content = json.loads(record.read_bytes())
    content["files"]["report.html"] = file_digest(folder / "report.html")
    record.write_bytes(dump(content))


def linked(path: Path) -> None:
    """The same content, but in a place that may change."""
    path.rename(path.parent.parent.parent.parent / "elsewhere")
    path.symlink_to(path.parent.parent.parent.parent / "elsewhere")


DAMAGES: dict[str, Callable[[Path, Path], object]] = {
    "the counts are gone": lambda new, _: (kept(new) / "joint.json").unlink(),
    "the verdict is gone": lambda new, _: (kept(new) / "verdict.json").unlink(),
    "the table is gone": lambda new, old: (new / "data" / "records.parquet").unlink(),
    "the table is another one": lambda new, old: shutil.copy(old / "data" / "records.parquet", new / "data"),
    "the csv is gone": lambda new, old: (new / "data" / "records.csv").unlink(),
    "the report was changed": lambda new, old: (new / "report.html").write_text("changed"),
    "the report is a link": lambda new, old: linked(new / "report.html"),
    "the signature is gone": lambda new, old: (new / "signature.json").unlink(),
    "the signature is another one": lambda new, old: shutil.copy(old / "signature.json", new),
    "the record is gone": lambda new, old: (kept(new) / "release.json").unlink(),
    "all internal evidence is gone": lambda new, old: shutil.rmtree(kept(new)),
    "a file was added": lambda new, old: (new / "data" / "joint.json").write_text("{}"),
    "a link was added": lambda new, old: (new / "more").symlink_to("/etc/passwd"),
    "the record fits a changed report": lambda new, old: noted(new),
    "the older version was restored in its place": replaced,
    "the older version says that it is the newer one": renumbered,
    "the folder is empty": lambda new, old: (shutil.rmtree(new), new.mkdir()),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_was_damaged_is_not_unchanged(project: Path, damage: str) -> None:
    spec = ReleaseSpec.load(project / "people.toml")
    told, _ = run_release(spec, again=False, rotate=False)
    assert (told["status"], told["version"]) == ("unchanged", "1.0.1")
    series = project / "releases" / "people"
    before = {path.name for path in series.iterdir()}
    DAMAGES[damage](series / "1.0.1", series / "1.0.0")
    with pytest.raises(LedgerError) as caught:
        run_release(spec, again=False, rotate=False)
    assert "\n" not in str(caught.value)
    # Without the whole way it is refused too, or cannot be told.
    with suppress(LedgerError):
        assert look(spec) is None
    assert {path.name for path in series.iterdir()} == before


def test_a_version_that_was_deleted_is_known_to_have_been_there(project: Path) -> None:
    spec = ReleaseSpec.load(project / "people.toml")
    shutil.rmtree(project / "releases" / "people" / "1.0.1")
    told, done = run_release(spec, again=False, rotate=False)
    assert done is None or any("1.0.1" in warning for warning in told["warnings"])
    assert told["version"] != "1.0.1"


def test_the_key_outlives_the_versions(project: Path) -> None:
    spec = ReleaseSpec.load(project / "people.toml")
    key = run_release(spec, again=False, rotate=False)[0]["key"]
    shutil.rmtree(project / "releases")
    told, _ = run_release(spec, again=True, rotate=False)
    assert (told["status"], told["key"]) == ("published", key)
    folder = ReleaseFolder(Path(told["folder"]))
    assert json.loads(folder.signature.read_bytes())["public_key"] == key
