"""A csv beside a parquet file: equal to the byte, or the first difference is told by the audit."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.audit.encoding import csv_difference
from funnel.release.csv_cells import guarded
from funnel.release.layout import ReleaseFolder
from tests.audits import verified
from tests.projects import SPEC, make_project
from tests.releases import make_release

OTHER = "is not that of the parquet file, as funnel writes it"
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=6)


@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=12), st.data())
def test_any_table_equals_its_csv_and_no_other(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("csv")
    table, copy = folder / "t.parquet", folder / "t.csv"
    pq.write_table(pa.table({"a": [a for a, _ in rows], "=b": [b for _, b in rows]}), table)

    def write(said: list[tuple[str, str]]) -> None:
        columns = {"a": [guarded(a) for a, _ in said], guarded("=b"): [guarded(b) for _, b in said]}
        pacsv.write_csv(pa.table(columns, schema=pa.schema([(name, pa.string()) for name in columns])), copy)

    write(rows)
    assert csv_difference(table, copy) is None
    write(rows[:-1])
    assert csv_difference(table, copy) == f"its row {len(rows):,} {OTHER}"
    write([*rows, rows[0]])
    assert csv_difference(table, copy) == "it has more than the rows of the parquet file"
    place = data.draw(st.integers(0, len(rows) - 1))
    write([*rows[:place], (rows[place][0], rows[place][1] + "x"), *rows[place + 1 :]])
    assert csv_difference(table, copy) == f"its row {place + 1} {OTHER}"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ReleaseFolder:
    return make_release(make_project(tmp_path_factory.mktemp("csv"), SPEC + "\n[output]\ncsv = true\n"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda content: content.replace(b"relationship", b"relation", 1),
            "its header is not that of the parquet file, as funnel writes it",
        ),
        (lambda content: content[: content.rindex(b"\n", 0, -1) + 1], f"its row 3,000 {OTHER}"),
        (lambda content: content[:-3], f"its row 3,000 {OTHER}"),
        (lambda content: content + b"\xff", "it has more than the rows of the parquet file"),
        (lambda content: b"", f"its header {OTHER}"),
    ],
)
def test_a_csv_that_says_otherwise_fails_the_audit(
    made: ReleaseFolder, tmp_path: Path, change: Callable[[bytes], bytes], said: str
) -> None:
    folder = ReleaseFolder(Path(shutil.copytree(made.root, tmp_path / made.root.name)))
    (check,) = verified(folder, ["csv"])
    assert check.passed
    folder.csv.write_bytes(change(folder.csv.read_bytes()))
    (check,) = verified(folder, ["csv"])
    assert check.failed
    assert check.detail == said
