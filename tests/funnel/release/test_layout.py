"""Versions of a release: their order, their succession, and where the latest is found."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.errors import DataError
from funnel.release.layout import ReleaseFolder, Version, find_release, next_version, versions

some_version = st.builds(Version, *(st.integers(0, 50),) * 3)


@given(some_version, st.booleans(), st.booleans())
def test_every_next_version_is_later_and_says_what_changed(version: Version, fields: bool, data: bool) -> None:
    following = next_version(version, fields, data)
    assert following > version
    assert Version.parse(str(following)) == following
    assert (following.major > version.major) == fields
    assert (following.minor > version.minor) == (data and not fields)


def test_the_first_version() -> None:
    assert str(next_version(None, True, True)) == "1.0.0"


@pytest.mark.parametrize("name", ["1.0", "01.0.0", "1.0.0.0", "v1.0.0", "latest", "", "1.0.x", ".incoming-1"])
def test_other_folders_are_no_versions(name: str, tmp_path: Path) -> None:
    assert Version.parse(name) is None
    with pytest.raises(ValueError, match="is no version"):
        Version.of(name)
    (tmp_path / "1.0.0").mkdir()
    (tmp_path / (name or "x")).mkdir()
    assert versions(tmp_path) == [Version(1, 0, 0)]


def test_nothing_there_is_no_release(tmp_path: Path) -> None:
    assert versions(tmp_path / "gone") == []
    with pytest.raises(DataError, match="no release at"):
        find_release(tmp_path / "gone")


def test_a_release_is_found_by_its_version_or_its_series(tmp_path: Path) -> None:
    version = ReleaseFolder(tmp_path / "people" / "1.0.0")
    version.root.mkdir(parents=True)
    (tmp_path / "people" / "latest").symlink_to("1.0.0")
    places = (tmp_path / "people", tmp_path / "people" / "latest", version.root)
    for missing in (version.protocol, version.package):
        for place in places:
            with pytest.raises(DataError, match=r"is not a release: it lacks protocol\.json or datapackage\.json"):
                find_release(place)
        missing.write_text("{}")
    assert [find_release(place).root for place in places] == [version.root.resolve()] * 3
