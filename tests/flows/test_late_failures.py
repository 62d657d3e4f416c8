"""What fails once a version is in its place: the version is said to be published, and the next run does the rest."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from funnel.errors import FunnelError, OutputError
from funnel.pipeline.flows.pipeline import run_release
from funnel.release import series, series_index
from funnel.release.layout import INDEX, LATEST, ReleaseFolder
from funnel.release.series_index import SeriesIndex
from funnel.spec import ReleaseSpec
from tests.projects import SPEC, adult_rows, make_project


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("late"), SPEC, adult_rows(0, 400))


@pytest.fixture
def spec(project: Path, tmp_path: Path) -> ReleaseSpec:
    shutil.copytree(project.parent, tmp_path / "project")
    return ReleaseSpec.load(tmp_path / "project" / project.name)


def run(spec: ReleaseSpec) -> dict[str, Any]:
    return run_release(spec, again=False, rotate=False)[0]


def root_of(spec: ReleaseSpec) -> Path:
    return spec.output_folder / spec.name


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), INDEX)


def nonsense(*_: object) -> None:
    raise ValueError("a row of the source")


def refused(*_: object) -> None:
    raise OutputError("the list of versions cannot be signed")


@pytest.mark.parametrize(
    ("module", "name", "failure", "said"),
    [
        (series_index, "write_whole", full, f"{INDEX}: No space left on device"),
        (series_index, "signing_key", nonsense, "a file of the series is not what it should be"),
        (series, "write_index", refused, "the list of versions cannot be signed"),
    ],
)
def test_what_fails_late_says_that_the_version_is_published_and_the_next_run_does_it(
    spec: ReleaseSpec,
    monkeypatch: pytest.MonkeyPatch,
    module: Any,
    name: str,
    failure: Callable[..., None],
    said: str,
) -> None:
    root = root_of(spec)
    with monkeypatch.context() as patch:
        # As soon as the version is there, and not in what puts right before.
        known = getattr(module, name)
        patch.setattr(module, name, lambda *given: (failure if (root / "1.0.0").exists() else known)(*given))
        with pytest.raises(OutputError) as caught:
            run(spec)
    assert str(caught.value) == (
        f"version 1.0.0 is published, and what is left to do failed: {said}; the next run of this release does it"
    )
    assert "row of the source" not in str(caught.value)
    folder = ReleaseFolder(root / "1.0.0")
    rows = folder.data.read_bytes()
    assert not (root / LATEST).exists()
    told = run(spec)
    assert (told["status"], told["version"]) == ("unchanged", "1.0.0")
    assert folder.data.read_bytes() == rows
    assert str((root / LATEST).readlink()) == "1.0.0"
    assert [one.version for one in SeriesIndex.read(root / INDEX).listed.versions] == ["1.0.0"]


@pytest.mark.parametrize("kind", ["folder", "pipe", "link to nothing"])
def test_what_is_no_file_in_the_place_of_the_list_ends_the_run_before_anything_is_drawn(
    spec: ReleaseSpec, kind: str
) -> None:
    root = root_of(spec)
    root.mkdir(parents=True)
    hostile = root / INDEX
    if kind == "folder":
        hostile.mkdir()
    elif kind == "pipe":
        os.mkfifo(hostile)
    else:
        hostile.symlink_to(root / "nowhere")
    with pytest.raises(FunnelError, match=rf"{INDEX} is no file, and the list of all versions is written there; move"):
        run(spec)
    assert [path.name for path in root.iterdir() if not path.name.startswith(".")] == [INDEX]
    hostile.rmdir() if kind == "folder" else hostile.unlink()
    assert run(spec)["version"] == "1.0.0"
