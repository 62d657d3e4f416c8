"""A released file is read back as it is: counts, categories that only a dictionary declares, metadata."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from funnel.alphabet import Alphabet
from funnel.pipeline.expectations import rereading
from funnel.pipeline.expectations.rereading import reread

OUTPUTS = Alphabet(("u", "v"), (("a", "0"), ("b", "0"), ("b", "1"), ("c", "1")))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("01")), min_size=1, max_size=30),
    group=st.integers(1, 7),
    as_text=st.booleans(),
)
def test_counts_are_those_of_the_rows(tmp_path: Path, rows: list[tuple[str, str]], group: int, as_text: bool) -> None:
    columns = [pa.array(list(values)) for values in zip(*rows, strict=True)]
    table = pa.table([values if as_text else values.dictionary_encode() for values in columns], names=["u", "v"])
    path = tmp_path / "rows.parquet"
    pq.write_table(table, path, row_group_size=group)
    with pytest.MonkeyPatch.context() as patch:
        # Batches that end in the middle of row groups.
        patch.setattr(rereading, "BATCH_ROWS", 3)
        found = reread(path, OUTPUTS)
    expected = Counter(rows)
    assert found.rows == found.footer_rows == len(rows)
    assert found.output_counts[:-1].tolist() == [expected[symbol] for symbol in OUTPUTS.symbols]
    assert found.output_counts.sum() == len(rows)
    assert found.categories["u"] == Counter(u for u, _ in rows)
    assert found.categories["v"] == Counter(v for _, v in rows)
    assert [column.is_category for column in found.columns] == [not as_text] * 2


@pytest.mark.parametrize("store_schema", [True, False], ids=["as categories", "as text"])
def test_a_category_that_only_the_dictionary_declares_is_found(tmp_path: Path, store_schema: bool) -> None:
    path = tmp_path / "unused.parquet"
    values = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int8()), pa.array(["a", "nobody"]))
    pq.write_table(pa.table({"u": values, "v": ["0", "1"]}), path, store_schema=store_schema)
    found = reread(path, OUTPUTS)
    assert dict(found.categories["u"]) == {"a": 2, "nobody": 0}
    assert found.columns[0].is_category is store_schema


def test_dictionaries_of_all_row_groups_are_joined(tmp_path: Path) -> None:
    path = tmp_path / "groups.parquet"
    schema = pa.schema([("u", pa.dictionary(pa.int8(), pa.string())), ("v", pa.string())])
    with pq.ParquetWriter(path, schema) as writer:
        for dictionary in (["a", "b"], ["c", "a"]):
            values = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array(dictionary))
            writer.write_table(pa.table({"u": values, "v": ["1"]}))
    assert dict(reread(path, OUTPUTS).categories["u"]) == {"a": 1, "b": 0, "c": 1}


def test_metadata_keys_of_file_schema_and_fields_are_found_but_not_arrow_types(tmp_path: Path) -> None:
    path = tmp_path / "metadata.parquet"
    fields = [pa.field("u", pa.string(), metadata={"of field": "1"}), pa.field("v", pa.string())]
    table = pa.table([["a"], ["0"]], schema=pa.schema(fields, metadata={"of schema": "2"}))
    with pq.ParquetWriter(path, table.schema) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"of file": "3"})
    assert reread(path, OUTPUTS).metadata == ("of field", "of file", "of schema")
    pq.write_table(pa.table({"u": ["a"], "v": ["0"]}), path)
    assert reread(path, OUTPUTS).metadata == ()


def test_columns_that_are_not_published_are_described_but_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "more.parquet"
    pq.write_table(pa.table({"u": ["a"], "v": ["0"], "w": pa.array([None], pa.int64())}), path)
    found = reread(path, OUTPUTS)
    assert [(column.name, column.type, column.nulls) for column in found.columns][2] == ("w", "int64", 1)
    assert set(found.categories) == {"u", "v"}
