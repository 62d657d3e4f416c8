"""Versions of a release: their order, their succession, and where the latest is found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.errors import DataError
from funnel.release.layout import ReleaseFolder, Version, find_release, next_version, require_one_channel, versions

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


@pytest.mark.parametrize(
    ("content", "grouped"),
    [
        ('{"format": "funnel-grouped-protocol/1"}', True),
        ('{"format": "funnel-protocol/1"}', False),
        # A value that is called like the format of another kind.
        ('{"format": "funnel-protocol/1", "symbols": [["funnel-grouped-protocol/1"]]}', False),
        # One that comes before it in the alphabet, and none at all.
        ('{"format": "blind/1", "symbols": [["funnel-grouped-protocol/1"]]}', False),
        ('{"name": "funnel-grouped-protocol/1"}', False),
        ('["funnel-grouped-protocol/1"]', False),
        ('{"format": "funnel-grouped-protocol/1"', False),
        ("[" * 100_000 + '"funnel-grouped-protocol/1"', False),
    ],
)
def test_groups_are_told_by_the_format_of_the_protocol_alone(tmp_path: Path, content: str, grouped: bool) -> None:
    (tmp_path / "protocol.json").write_text(content)
    assert ReleaseFolder(tmp_path).is_grouped is grouped


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    assert not ReleaseFolder(tmp_path).is_grouped
    os.mkfifo(tmp_path / "protocol.json")
    assert not ReleaseFolder(tmp_path).is_grouped


def test_no_protocol_that_no_release_can_have_is_read(tmp_path: Path) -> None:
    with (tmp_path / "protocol.json").open("wb") as file:
        file.truncate((1 << 28) + 1)
    assert not ReleaseFolder(tmp_path).is_grouped


def test_what_needs_one_channel_refuses_groups_and_takes_all_else(tmp_path: Path) -> None:
    folder = ReleaseFolder(tmp_path)
    folder.protocol.write_text('{"format": "funnel-protocol/1"}')
    require_one_channel(folder)
    folder.protocol.write_text('{"format": "funnel-grouped-protocol/1"}')
    with pytest.raises(DataError, match=r"were published in groups, .*; channels\.parquet has the probabilities"):
        require_one_channel(folder)
