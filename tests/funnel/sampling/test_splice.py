"""One file from several: what pyarrow and DuckDB read from it is what they read from the parts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from funnel.errors import DataError
from funnel.sampling import splice as splice_module
from funnel.sampling.splice import Struct, _footer, _move, splice

SCHEMA = pa.schema([pa.field("x", pa.dictionary(pa.int8(), pa.string()), nullable=False), ("n", pa.int64())])


def write(path: Path, rows: int, group_rows: int = 100, **settings: object) -> pa.Table:
    choice = np.random.default_rng(rows)
    codes = pa.array(choice.integers(0, 3, rows).astype(np.int8))
    columns = [pa.DictionaryArray.from_arrays(codes, pa.array(["a", "b", "c"])), pa.array(choice.integers(0, 99, rows))]
    table = pa.table(columns, schema=SCHEMA)
    with pq.ParquetWriter(path, SCHEMA, **settings) as writer:
        writer.write_table(table, row_group_size=group_rows)
    return table


@settings(max_examples=10, deadline=None)
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


@pytest.mark.parametrize(
    "written", [{}, {"write_page_index": True}, {"bloom_filter_options": {"n": {"ndv": 99}}, "write_page_index": True}]
)
def test_whatever_the_footer_points_at_is_there(tmp_path: Path, written: dict[str, object]) -> None:
    """Pages, their indexes and filters, which readers of whole files pass over: the bytes are those of the parts."""
    parts = [tmp_path / f"{i}.parquet" for i in range(3)]
    for i, part in enumerate(parts):
        write(part, 150 + 100 * i, **written)  # type: ignore[arg-type]
    whole = tmp_path / "whole.parquet"
    splice(parts, whole)
    groups = list(_groups(whole))
    alone = [(part.read_bytes(), group) for part in parts for group in _groups(part)]
    content = whole.read_bytes()
    for group, (source, original) in zip(groups, alone, strict=True):
        assert group[3] == original[3]
        pairs = list(zip(_places(group), _places(original), strict=True))
        assert len(pairs) > 4
        for place, before in pairs:
            assert content[place : place + 8] == source[before : before + 8]
    for n in (0, 7, 98, 99):
        expected = sum(int((pq.read_table(part)["n"].to_numpy() == n).sum()) for part in parts)
        assert asked(f"SELECT count(*) FROM '{whole}' WHERE n = {n}") == [(expected,)]
        assert pq.read_table(whole, filters=[("n", "=", n)]).num_rows == expected


def _groups(path: Path) -> list[Struct]:
    groups: list[Struct] = _footer(path)[4][1][1]
    return groups


def _places(group: Struct) -> Iterator[int]:
    """All places in a row group: of itself, of pages and filters, and of the indexes of pages."""
    yield group[5][1]
    for chunk in group[1][1][1]:
        yield from (
            fields[number][1]
            for fields, numbers in ((chunk[3][1], (9, 11, 14)), (chunk, (4, 6)))
            for number in numbers
            if number in fields
        )


def test_row_groups_are_numbered_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the writer of the parts numbers them."""
    real, parts = splice_module._footer, [tmp_path / f"{i}.parquet" for i in range(3)]

    def numbered(part: Path) -> Struct:
        footer = real(part)
        for i, group in enumerate(footer[4][1][1]):
            group[7] = (4, i)
        return footer

    for i, part in enumerate(parts):
        write(part, 150 + 100 * i)
    monkeypatch.setattr(splice_module, "_footer", numbered)
    splice(parts, tmp_path / "whole.parquet")
    assert [group[7] for group in real(tmp_path / "whole.parquet")[4][1][1]] == [(4, i) for i in range(2 + 3 + 4)]


def test_every_place_moves_and_nothing_else() -> None:
    """Also those that no writer fills today."""

    def group(shift: int, old: int, ordinal: int) -> Struct:
        meta_data = {1: (5, 2), 5: (6, 77), 7: (6, 300), **{place: (6, place + shift) for place in (9, 10, 11, 14)}}
        chunk = {2: (6, old), 3: (12, meta_data), 4: (6, 40 + shift), 5: (5, 8), 6: (6, 60 + shift), 7: (5, 9)}
        return {1: (9, (12, [chunk])), 2: (6, 300), 3: (6, 77), 5: (6, 4 + shift), 6: (6, 200), 7: (4, ordinal)}

    for old in (0, 25):
        moved = group(0, old, 0)
        _move(moved, 1000, 5)
        # 0 where the writer leaves a field unused that is deprecated.
        assert moved == group(1000, old + 1000 if old else 0, 5)
    without = {1: (9, (12, [{2: (6, 0), 3: (12, {9: (6, 4)})}])), 3: (6, 77)}
    _move(without, 1000, 5)
    assert without == {1: (9, (12, [{2: (6, 0), 3: (12, {9: (6, 1004)})}])), 3: (6, 77)}


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
    # Of the same columns, but saying something else of them.
    pq.write_table(write(good, 500).replace_schema_metadata({"said": "else"}), other)
    with pytest.raises(DataError, match=r"other\.parquet has another schema"):
        splice([good, other], tmp_path / "whole.parquet")
    content = good.read_bytes()
    for damaged in (b"", b"PAR1", content[:-100], b"XXXX" + content[4:], content[:-40] + bytes(32) + content[-8:]):
        bad.write_bytes(damaged)
        with pytest.raises(DataError, match=r"bad\.parquet"):
            splice([bad], tmp_path / "whole.parquet")
    # A footer that would begin before the data does.
    bad.write_bytes(b"PAR1" + (1).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(DataError, match=r"bad\.parquet is no parquet file"):
        splice([bad], tmp_path / "whole.parquet")
    with pytest.raises(DataError, match="no parts"):
        splice([], tmp_path / "whole.parquet")


# What Thrift's compact protocol can say, also where no footer of today says it.
_numbers = st.integers(-(2**63), 2**63 - 1)
_plain = st.one_of(
    st.tuples(st.just(1), st.booleans()),
    st.tuples(st.just(3), st.integers(0, 255)),
    st.tuples(st.sampled_from([4, 5, 6]), _numbers),
    st.tuples(st.just(7), st.binary(min_size=8, max_size=8)),
    st.tuples(st.just(8), st.binary(max_size=200)),
)


def _lists(element: st.SearchStrategy[tuple[int, object]]) -> st.SearchStrategy[tuple[int, object]]:
    def of(first: tuple[int, object]) -> st.SearchStrategy[tuple[int, object]]:
        same = st.lists(element.filter(lambda one: one[0] == first[0]).map(lambda one: one[1]), max_size=20)
        return st.tuples(st.sampled_from([9, 10]), st.tuples(st.just(first[0]), same))

    return element.flatmap(of)


_structs = st.recursive(
    st.dictionaries(st.integers(1, 400), _plain, max_size=6),
    lambda inner: st.dictionaries(
        st.integers(1, 400),
        st.one_of(_plain, _lists(_plain), st.tuples(st.just(12), inner), _lists(st.tuples(st.just(12), inner))),
        max_size=4,
    ),
    max_leaves=6,
)


def _typed(fields: Struct) -> Struct:
    """As it is read: in a structure, though not in a list, true and false are types of their own."""

    def typed(kind: int, value: Any) -> tuple[int, Any]:
        if kind == 1:
            return (1 if value else 2), value
        if kind == 12:
            return kind, _typed(value)
        if kind in (9, 10) and value[0] == 12:
            return kind, (12, [_typed(one) for one in value[1]])
        return kind, value

    return {number: typed(*field) for number, field in fields.items()}


@settings(max_examples=60, deadline=None)
@given(_structs)
# Truth values in a list, a short one and a long one; a number far from the one before it.
@example({1: (9, (1, [True, False])), 2: (10, (2, [False] * 20)), 300: (1, True)})
def test_what_is_written_is_read_back(fields: Struct) -> None:
    out = bytearray()
    splice_module._write_struct(out, fields)
    reader = splice_module._Reader(bytes(out))
    assert reader.struct() == _typed(fields)
    assert reader.at_end
    for cut in range(0, len(out), 1 + len(out) // 20):
        with pytest.raises(IndexError):
            splice_module._Reader(bytes(out[:cut])).struct()


def test_a_part_that_shrinks_while_it_is_copied_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(b"abc")
    with (
        (tmp_path / "part").open("rb") as source,
        (tmp_path / "whole").open("wb") as target,
        pytest.raises(DataError, match="cut short while it was read"),
    ):
        splice_module._copy(source, target, 4)


@pytest.mark.parametrize("footer", [b"\x1f\x00", b"\x18\x7f", b"\x15\x02\x00", b"\x15\x02", b"\x00\x00"])
def test_a_footer_that_is_none_is_refused(tmp_path: Path, footer: bytes) -> None:
    """An unknown type, a text that is cut short, fields that are missing, no end, and something after the end."""
    part = tmp_path / "part.parquet"
    part.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(DataError, match=r"the footer of the part part\.parquet is damaged"):
        splice([part], tmp_path / "whole.parquet")
