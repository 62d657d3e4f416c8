"""Partitions of a snapshot: counted one by one they are counted together; and what the system says of a full disk."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from funnel.joint import Joint
from funnel.sampling.dask_workers import workers_of
from funnel.sampling.engine import OneWorker, Processes
from funnel.sampling.parts import count_partition
from funnel.settings.work import EngineSettings
from funnel.storage import writing_in
from tests.snapshots import planned, snapshot


def test_partitions_counted_one_by_one_are_counted_together(tmp_path: Path) -> None:
    source = snapshot(tmp_path)
    order = {"x": ["a", "b"], "z": ["0", "1", "elsewhere"]}
    groups = planned(source, "work", shuffle=True, keyed=False).groups
    assert len(groups) > 1
    parts = [count_partition(str(source), one, ("x",), ("z",), order) for one in groups]
    whole = Joint.from_table(pq.read_table(source), "x", "z")
    assert sum(part.n for part in parts) == whole.n
    assert (Joint.from_parts(parts, order).counts == whole.counts).all()


def test_an_error_without_a_file_names_the_folder(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left on device") as caught, writing_in(tmp_path):
        raise OSError(28, "Error writing bytes to file: row 17")
    assert (caught.value.errno, caught.value.filename) == (28, str(tmp_path))
    assert caught.value.strerror == os.strerror(28)
    for other in (OSError(13, "Permission denied", "/x"), OSError("not of the system"), KeyError("x")):
        with pytest.raises(type(other)) as kept, writing_in(tmp_path):
            raise other
        assert kept.value is other


def test_the_workers_of_an_engine() -> None:
    with workers_of(EngineSettings()) as workers:
        assert isinstance(workers, OneWorker)
    with workers_of(EngineSettings(workers=2)) as workers:
        assert isinstance(workers, Processes)
        assert dict(workers.run(abs, [(-3,), (2,)])) == {0: 3, 1: 2}
