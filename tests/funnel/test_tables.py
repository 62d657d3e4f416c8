"""Reading page by page: what is held does not grow with the file."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import funnel
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


ROWS = {
    "town": ["a", "b", "a", "c", "b", "a"] * 20,
    "age": [20, 30, 20, 40, 30, 20] * 20,
    "ill": ["no", "yes", "no", "no", "yes", "yes"] * 20,
}


def polars_table() -> Any:
    return pl.DataFrame(ROWS)


def polars_categories() -> Any:
    return pl.DataFrame(ROWS, schema={"town": pl.Categorical, "age": pl.Int16, "ill": pl.Enum(["yes", "no"])})


def duckdb_table() -> Any:
    given = pa.table(ROWS)
    return duckdb.connect().from_arrow(given)


class Stream:
    """A table of nothing but the interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return pa.table(ROWS).__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("made", [polars_table, polars_categories, duckdb_table, Stream])
def test_a_table_of_any_library_is_read_as_an_arrow_stream(made: Callable[[], Any]) -> None:
    whole = funnel.Joint.from_table(pa.table(ROWS), ["ill"], ["town", "age"])
    joint = funnel.Joint.from_table(made(), ["ill"], ["town", "age"])

    def cells(one: funnel.Joint) -> dict[tuple[Any, Any], int]:
        pairs = [(s, x) for s in one.secret.symbols for x in one.inputs.symbols]
        return {pair: int(n) for pair, n in zip(pairs, one.counts.ravel(), strict=True)}

    assert cells(joint) == cells(whole)
    protocol = funnel.fit("grr", joint, funnel.LIP(0.5))
    released = funnel.sanitise(made(), protocol)
    # And back: what is released is a table of that library again, without a copy by hand.
    assert pl.DataFrame(released).shape == (120, 2)
    assert duckdb.sql("select count(*) from released").fetchall() == [(120,)]
    counts = funnel.estimate(pl.DataFrame(released), protocol)
    assert counts.frequencies.sum() == pytest.approx(1.0)


def test_whole_records_are_made_of_an_arrow_stream() -> None:
    ill = ["yes", "no", "no", "no", "no"] * 100 + ["no", "yes", "yes", "yes", "yes"] * 100
    people = pl.DataFrame({"town": ["a"] * 500 + ["b"] * 500, "age": [20, 30] * 500, "ill": ill})
    found = funnel.fit_columns(people, ["town", "age"], funnel.LIP(1.0), secret=["ill"], least=50)
    expected = funnel.fit_columns(people.to_arrow(), ["town", "age"], funnel.LIP(1.0), secret=["ill"], least=50)
    assert found.protocol.digest == expected.protocol.digest


def test_a_stream_that_can_be_read_once_is_refused_and_no_empty_table() -> None:
    reader = pa.RecordBatchReader.from_batches(pa.table(ROWS).schema, pa.table(ROWS).to_batches())
    with pytest.raises(funnel.DataError, match=r"can be read only once.*pass read_all\(\)"):
        funnel.Joint.from_table(reader, ["ill"], ["town"])


def test_a_stream_that_breaks_is_one_sentence() -> None:
    class Broken:
        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
            raise pa.ArrowInvalid("row 17 is Ann")

    with pytest.raises(funnel.DataError, match="cannot be read as an Arrow stream") as refused:
        funnel.Joint.from_table(Broken(), ["ill"], ["town"])
    assert "Ann" not in str(refused.value)


def test_a_column_that_a_stream_lacks_is_named() -> None:
    with pytest.raises(funnel.DataError, match="column 'job' is not in the table, which has town, age, ill"):
        funnel.Joint.from_table(polars_table(), ["ill"], ["job"])


def test_a_lazy_table_has_to_be_collected() -> None:
    with pytest.raises(funnel.DataError, match="not LazyFrame; a lazy one has to be collected first"):
        funnel.Joint.from_table(polars_table().lazy(), ["ill"], ["job"])


def test_columns_are_named_by_texts() -> None:
    numbered: Any = 0
    with pytest.raises(funnel.DataError, match="column 0 is named by a int; name columns by texts"):
        funnel.Joint.from_table(pd.DataFrame([[1, 2]] * 4), [numbered], ["b"])


@pytest.mark.parametrize("cut", [True, False])
def test_intervals_and_periods_of_pandas_are_their_texts_in_order(cut: bool) -> None:
    spans = pd.cut(pd.Series([1, 12, 3, 30]), [0, 10, 20, 40])
    table = pd.DataFrame({"span": spans if cut else pd.arrays.IntervalArray(spans), "ill": ["y", "n"] * 2})
    joint = funnel.Joint.from_table(table, ["ill"], ["span"])
    assert joint.inputs.symbols == (("(0, 10]",), ("(10, 20]",), ("(20, 40]",))
    assert joint.counts.sum(axis=0).tolist() == [2, 1, 1]
    months = table.assign(span=pd.period_range("2025-12", periods=4, freq="M"))
    assert funnel.Joint.from_table(months, ["ill"], ["span"]).inputs.symbols[0] == ("2025-12",)
    with pytest.raises(funnel.DataError, match="holds nulls"):
        funnel.Joint.from_table(table.assign(span=pd.cut([1, 2, 3, 99], [0, 10])), ["ill"], ["span"])
