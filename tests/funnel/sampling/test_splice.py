"""One file from several: what pyarrow and DuckDB read from it is what they read from the parts."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.errors import DataError
from funnel.sampling.splice import splice

SCHEMA = pa.schema([pa.field("x", pa.dictionary(pa.int8(), pa.string()), nullable=False), ("n", pa.int64())])


def write(path: Path, rows: int, group_rows: int = 100, **settings: object) -> pa.Table:
    choice = np.random.default_rng(rows)
    codes = pa.array(choice.integers(0, 3, rows).astype(np.int8))
    columns = [pa.DictionaryArray.from_arrays(codes, pa.array(["a", "b", "c"])), pa.array(choice.integers(0, 99, rows))]
    table = pa.table(columns, schema=SCHEMA)
    with pq.ParquetWriter(path, SCHEMA, **settings) as writer:
        writer.write_table(table, row_group_size=group_rows)
    return table


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.integers(1, 900), min_size=1, max_size=5),
    st.sampled_from(
        [
            {},
            {"compression": "zstd", "write_page_index": True},
            {"write_statistics": False, "version": "1.0"},
            {"data_page_version": "2.0", "write_page_checksum": True},
        ]
    ),
)
def test_a_spliced_file_holds_the_rows_of_its_parts(tmp_path_factory, sizes, settings) -> None:  # type: ignore[no-untyped-def]
    folder = tmp_path_factory.mktemp("parts")
    parts = [folder / f"{i}.parquet" for i in range(len(sizes))]
    tables = [write(part, rows, **settings) for part, rows in zip(parts, sizes, strict=True)]
    assert splice(parts, folder / "whole.parquet") == sum(sizes)
    with pq.ParquetFile(folder / "whole.parquet", page_checksum_verification=True) as file:
        assert file.read() == pa.concat_tables(tables)
        assert file.schema_arrow == SCHEMA
        assert file.metadata.num_rows == sum(sizes)
        # Every row group can be read alone, backwards too, and says where it is.
        assert file.num_row_groups == sum(-(-rows // 100) for rows in sizes)
        last = file.read_row_group(file.num_row_groups - 1)
        assert last == tables[-1].slice(tables[-1].num_rows - last.num_rows)
        alone = pq.ParquetFile(parts[0]).metadata.row_group(0).to_dict()
        assert file.metadata.row_group(0).to_dict() == alone
    # By a reader that shares no code with the writer, and counts rows by the footer.
    whole = folder / "whole.parquet"
    assert asked(f"SELECT count(*) FROM '{whole}'") == [(sum(sizes),)]
    assert asked(f"SELECT num_rows FROM parquet_file_metadata('{whole}')") == [(sum(sizes),)]
    groups = asked(f"SELECT DISTINCT row_group_id, row_group_num_rows FROM parquet_metadata('{whole}') ORDER BY 1")
    assert groups == list(enumerate(min(100, rows - start) for rows in sizes for start in range(0, rows, 100)))
    read = asked(f"SELECT x::VARCHAR, n FROM read_parquet('{whole}')")
    assert read == [(row["x"], row["n"]) for table in tables for row in table.to_pylist()]


def asked(question: str) -> list[tuple[object, ...]]:
    with duckdb.connect(config={"threads": 1}) as connection:
        return connection.sql(question).fetchall()


def test_one_part_stays_as_it_is(tmp_path: Path) -> None:
    """So that reading a footer and writing it back changes nothing."""
    for i, written in enumerate([{}, {"compression": "zstd"}, {"write_page_index": True}]):
        part = tmp_path / f"{i}.parquet"
        write(part, 2000, **written)  # type: ignore[arg-type]
        splice([part], tmp_path / "whole.parquet")
        assert (tmp_path / "whole.parquet").read_bytes() == part.read_bytes()


def test_parts_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    good, other, bad = (tmp_path / f"{name}.parquet" for name in ("good", "other", "bad"))
    write(good, 500)
    pq.write_table(pa.table({"y": [1]}), other)
    with pytest.raises(DataError, match=r"other\.parquet has another schema"):
        splice([good, other], tmp_path / "whole.parquet")
    content = good.read_bytes()
    for damaged in (b"", b"PAR1", content[:-100], b"XXXX" + content[4:], content[:-40] + bytes(32) + content[-8:]):
        bad.write_bytes(damaged)
        with pytest.raises(DataError, match=r"bad\.parquet"):
            splice([bad], tmp_path / "whole.parquet")
    with pytest.raises(DataError, match="no parts"):
        splice([], tmp_path / "whole.parquet")
