"""A released file is read back as it is: counts, categories that only a dictionary declares, metadata."""

from __future__ import annotations

import base64
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

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


def test_no_other_metadata_passes_for_arrow_types(tmp_path: Path) -> None:
    path = tmp_path / "extension.parquet"
    field = pa.field("u", pa.string(), metadata={"ARROW:extension:metadata": "39, Never-married"})
    pq.write_table(pa.table([["a"], ["0"]], schema=pa.schema([field, pa.field("v", pa.string())])), path)
    assert reread(path, OUTPUTS).metadata == ("ARROW:extension:metadata",)


def test_metadata_of_single_columns_of_row_groups_are_found() -> None:
    """This library does not write any, others can."""
    groups = [[None, {b"of the first": b"1"}], [{b"of the second": b"2"}, None]]
    footer = SimpleNamespace(
        metadata=None,
        num_row_groups=2,
        num_columns=2,
        row_group=lambda i: SimpleNamespace(column=lambda j: SimpleNamespace(metadata=groups[i][j])),
    )
    assert rereading._metadata_keys(pa.schema([]), footer) == ("of the first", "of the second")


def test_rows_are_counted_and_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"u": ["a", None, "b", "a", "b"], "v": ["0", "0", None, "0", "1"]}), path)
    monkeypatch.setattr(rereading, "BATCH_ROWS", 2)
    with pq.ParquetFile(path) as file:
        footer = SimpleNamespace(metadata=None, num_row_groups=0, num_columns=0, num_rows=7, row_group=None)
        found = rereading._stream(file, file.schema_arrow, footer, OUTPUTS, OUTPUTS.columns)
    assert (found.rows, found.footer_rows) == (5, 7)
    assert [column.nulls for column in found.columns] == [1, 1]
    assert found.output_counts.tolist() == [2, 0, 1, 0, 2]


@pytest.mark.parametrize("kind", [pa.int64(), pa.binary()])
def test_only_dictionaries_of_strings_are_categories(tmp_path: Path, kind: pa.DataType) -> None:
    path = tmp_path / "other.parquet"
    values = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int8()), pa.array(["1", "2"]).cast(kind))
    pq.write_table(pa.table({"u": values, "v": ["0", "1"]}), path)
    assert not reread(path, OUTPUTS).columns[0].is_category


def test_a_category_that_is_hidden_behind_the_type_of_long_texts_is_found(tmp_path: Path) -> None:
    """The types beside the data say plain texts; its dictionary declares a value that nobody has."""
    path = tmp_path / "long.parquet"
    values = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int8()), pa.array(["a", "nobody"]))
    table = pa.table({"u": values, "v": pa.array(["0", "1"])})
    said = pa.schema([("u", pa.large_string()), ("v", pa.string())])
    with pq.ParquetWriter(path, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"ARROW:schema": base64.b64encode(said.serialize()).decode()})
    assert pq.read_schema(path).field("u").type == pa.large_string()
    assert dict(reread(path, OUTPUTS).categories["u"]) == {"a": 2, "nobody": 0}
