"""Partitions: every row group in exactly one, whatever their sizes; and parts named by whole bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.protocol import Protocol
from funnel.sampling.partitions import partition_groups, plan_rows
from tests.snapshots import KEY, NOISY, OTHER


def write(path: Path, sizes: list[int]) -> Path:
    schema = pa.schema([("x", pa.int64())])
    with pq.ParquetWriter(path, schema) as writer:
        for size in sizes:
            writer.write_table(pa.table({"x": np.arange(size)}, schema=schema), row_group_size=max(1, size))
    return path


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 30), max_size=12), st.integers(1, 60))
def test_row_groups_are_cut_without_gap_or_overlap(tmp_path_factory, sizes, rows) -> None:  # type: ignore[no-untyped-def]
    path = write(tmp_path_factory.mktemp("cut") / "snapshot.parquet", sizes)
    cut = partition_groups(sizes, rows)
    assert [group for start, stop in cut for group in range(start, stop)] == list(range(len(sizes)))
    held = [sum(sizes[start:stop]) for start, stop in cut]
    for (start, stop), count in zip(cut, held, strict=True):
        # No more than asked for, unless one group is more; and another group would have been too many.
        assert count <= rows or stop - start == 1
        assert stop == len(sizes) or count + sizes[stop] > rows
    plan = plan_rows(path, "", NOISY, path.parent, shuffle=True, partition_rows=rows, part_rows=7)
    assert plan.groups == cut
    assert plan.rows == sum(sizes)
    # The smallest power of two whose parts are small enough.
    assert plan.parts == next(1 << bits for bits in range(20) if sum(sizes) <= 7 << bits)


def test_what_the_rows_depend_on_is_in_the_digest(tmp_path: Path) -> None:
    """Working files of another plan are not taken for this one's."""
    path = write(tmp_path / "snapshot.parquet", [10, 10])

    def digest(sha: str = "", protocol: Protocol = NOISY, **settings: object) -> str:
        return plan_rows(path, sha, protocol, tmp_path, **{"shuffle": True, "record_key": KEY} | settings).digest  # type: ignore[arg-type]

    others = [
        digest("other"),
        # For the same columns, so that the key of the words is the same; the order without a shuffle too.
        digest(protocol=OTHER),
        digest(shuffle=False),
        digest(record_key=None),
        digest(record_key=type(KEY)(KEY.columns, bytes(range(1, 33)))),
        digest(partition_rows=10),
        digest(part_rows=5),
    ]
    assert len({digest(), *others}) == 8
    assert digest(record_key=None) != digest(record_key=None, protocol=OTHER)
    assert digest() == digest()
