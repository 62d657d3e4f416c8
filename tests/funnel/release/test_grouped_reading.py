"""Releases of groups as their readers open them: channels that are told are read, and damaged ones refused by name."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funnel.errors import DataError
from funnel.release.channel_rows import read_channel_rows
from funnel.release.estimated import estimate_numbers_of, estimate_release
from funnel.release.layout import ReleaseFolder
from tests.groups import grouped_release


@pytest.fixture
def folder(tmp_path: Path) -> ReleaseFolder:
    shutil.copytree(grouped_release().root, tmp_path / "1.0.0", ignore=shutil.ignore_patterns("audit"))
    return ReleaseFolder(tmp_path / "1.0.0")


def test_shares_follow_from_public_files(folder: ReleaseFolder) -> None:
    found = estimate_release(folder, "race")
    # Of one value alone enough people are there to be told of; it is not taken for everybody's.
    assert found.cells == (("White",),)
    assert found.frequencies == pytest.approx([0.85], abs=0.02)
    assert found.records == pq.read_metadata(folder.data).num_rows
    assert ((found.lower <= found.frequencies) & (found.frequencies <= found.upper))[~np.isnan(found.errors)].all()


def test_means_are_those_of_the_intervals_that_the_package_tells(folder: ReleaseFolder) -> None:
    found = estimate_numbers_of(folder, "age")
    assert found.cells == ((),)
    # Bins from 17 to 90 that end at 30 and at 50 are taken for their middles, which moves a mean by as much as is said.
    assert 17 <= found.mean_lower[0] < found.mean_upper[0] <= 90
    assert found.mean_lower[0] - found.within[0] < 38.6 < found.mean_upper[0] + found.within[0]
    other = estimate_numbers_of(folder, "age", numbers=dict.fromkeys(_ages(folder), 40.0))
    assert (other.mean_lower[0], other.mean_upper[0]) == pytest.approx((40, 40))


def _ages(folder: ReleaseFolder) -> set[str]:
    return {row[2] for row in read_channel_rows(folder.channels) if row[:2] == ("age", None) and row[2] is not None}


def test_channels_of_another_release_are_refused(folder: ReleaseFolder) -> None:
    table = pq.read_table(folder.channels)
    other = pa.array(["elsewhere"] * len(table))
    pq.write_table(table.set_column(0, "first", other), folder.channels)
    with pytest.raises(DataError, match="is about other columns"):
        estimate_release(folder, "race")


def test_a_damaged_table_of_channels_is_one_sentence(folder: ReleaseFolder) -> None:
    table = pq.read_table(folder.channels)
    assert len(read_channel_rows(folder.channels)) == len(table)
    pq.write_table(table.drop_columns(["share"]), folder.channels)
    with pytest.raises(DataError, match="is no table of effective channels"):
        read_channel_rows(folder.channels)
    empty = pa.nulls(len(table), pa.float64())
    place = table.column_names.index("probability")
    pq.write_table(table.set_column(place, "probability", empty), folder.channels)
    with pytest.raises(DataError, match="has a row without column, share or probability"):
        read_channel_rows(folder.channels)
    folder.channels.write_bytes(b"PAR1 and no more")
    with pytest.raises(DataError, match="cannot be read as parquet"):
        read_channel_rows(folder.channels)
