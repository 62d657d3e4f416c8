"""Reading page by page: what is held does not grow with the file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from funnel.tables import open_paged


def test_what_is_held_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path, rows = tmp_path / "keys.parquet", 100_000
    numbers = np.random.default_rng(1)
    with pq.ParquetWriter(path, pa.schema([("key", pa.int64())]), use_dictionary=False) as writer:
        for _ in range(30):
            writer.write_batch(pa.record_batch({"key": numbers.integers(0, 2**62, rows)}))
    before, most = pa.total_allocated_bytes(), 0
    with open_paged(path) as file:
        for batch in file.iter_batches(10_000):
            assert batch.num_rows == 10_000
            most = max(most, pa.total_allocated_bytes() - before)
    assert 8 * 10_000 <= most < 8 * 30 * rows / 4


def test_texts_come_as_dictionaries_where_asked(tmp_path: Path) -> None:
    path = tmp_path / "texts.parquet"
    pq.write_table(pa.table({"a": ["x", "y", "x"], "b": ["x", "y", "x"]}), path)
    with open_paged(path, ["b"]) as file:
        schema = next(file.iter_batches()).schema
    assert not pa.types.is_dictionary(schema.field("a").type)
    assert pa.types.is_dictionary(schema.field("b").type)


def test_arrays_go_both_ways_without_pandas() -> None:
    script = """
import sys, numpy as np, pyarrow as pa
from funnel.tables import arrow_numbers, arrow_texts, numbers_of
for dtype in (np.int8, np.uint16, np.int32, np.uint64):
    values = np.array([0, 1, 127, 5], dtype=dtype)
    there = arrow_numbers(values)
    there.validate(full=True)
    assert there.to_pylist() == [0, 1, 127, 5], there
    assert (numbers_of(there.slice(1, 2)) == [1, 127]).all() and numbers_of(there).dtype == dtype
    assert numbers_of(there.slice(4)).shape == (0,)
assert arrow_numbers(np.arange(9)[::3]).to_pylist() == [0, 3, 6]
texts = arrow_texts(["", "Zoë", "b"])
texts.validate(full=True)
assert texts.to_pylist() == ["", "Zoë", "b"] and arrow_texts([]).to_pylist() == []
assert "pandas" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
