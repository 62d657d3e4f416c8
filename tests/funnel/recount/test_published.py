"""Published records read back: their counts, and a csv that says what the parquet file says."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel import DataError
from funnel.audit.encoding import csv_difference
from funnel.recount.published import count_published, in_csv
from funnel.release.csv_cells import guarded, guarded_column

CELLS = st.text(st.sampled_from(list("ab'=+-@\t\r\n\",;1.e5 é")), min_size=1, max_size=5)
ROWS = st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=12)


def _write(folder: Path, rows: list[tuple[str, str]]) -> tuple[Path, Path]:
    columns = [pa.array([row[k] for row in rows], pa.string()) for k in range(2)]
    pq.write_table(pa.table(dict(zip("xy", columns, strict=True))), folder / "t.parquet", row_group_size=5)
    pacsv.write_csv(pa.table({"x": guarded_column(columns[0]), "y": guarded_column(columns[1])}), folder / "t.csv")
    return folder / "t.csv", folder / "t.parquet"


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("-5", "-5"),
        ("+.5e3", "+.5e3"),
        ("-5 to 6", "'-5 to 6"),
        ("'=1", "''=1"),
        ("'s", "'s"),
        ("'", "'"),
        ("\t", "'\t"),
    ],
)
def test_cells_by_hand(value: str, cell: str) -> None:
    assert in_csv(value) == guarded(value) == cell


@given(CELLS)
def test_the_rule_of_cells_is_that_of_the_release(value: str) -> None:
    assert in_csv(value) == guarded(value)


@settings(max_examples=12, deadline=None)
@given(ROWS)
def test_counts_and_copies_of_any_text(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]) -> None:
    copy, table = _write(tmp_path_factory.mktemp("published"), rows)
    assert count_published(table, ("x", "y")) == {row: rows.count(row) for row in rows}
    assert count_published(table, ("y",)) == {(y,): [one for _, one in rows].count(y) for _, y in rows}
    assert csv_difference(table, copy) is None


ROWS_AS_WRITTEN = [("a", "=1"), ("b", "2"), ("c", "3")]


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        (["x,y", "a,'=1", "b,2"], "row 3"),
        (["x,y", "a,'=1", "b,2", "c,3", "c,3"], "more than the rows"),
        (["x,y", "a,'=1", "c,3", "b,2"], "row 2"),
        (["x,y", "a,=1", "b,2", "c,3"], "row 1"),
        (["x,y", "a,'=1", "b,'2", "c,3"], "row 2"),
        (["x,y", "a,'=1", "b,2", "c,3 "], "row 3"),
        (["y,x"], "header"),
        (["x"], "header"),
        (["x,y,z"], "header"),
        (["X,y"], "header"),
    ],
)
def test_a_copy_that_says_something_else(tmp_path: Path, lines: list[str], place: str) -> None:
    copy, table = _write(tmp_path, ROWS_AS_WRITTEN)
    quoted = ("".join(",".join(f'"{cell}"' for cell in line.split(",")) + "\n") for line in lines)
    copy.write_text("".join(quoted))
    assert place in (csv_difference(table, copy) or "")


def test_a_cell_without_a_value_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": ["a", None]}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="without a value"):
        count_published(tmp_path / "t.parquet", ("x",))


def test_dictionaries_are_texts(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": pa.array(["a", "b", "a"]).dictionary_encode()}), tmp_path / "t.parquet")
    assert count_published(tmp_path / "t.parquet", ("x",)) == {("a",): 2, ("b",): 1}
