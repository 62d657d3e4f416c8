"""Cells of a csv: none is a formula, numbers stay numbers, and every value can be had back."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.release.csv_cells import RULE, guarded, guarded_column
from tests.projects import SPEC, adult_rows, make_project
from tests.releases import make_release

STARTS = "=+-@\t\r\n"
values = st.one_of(st.text(), st.text(alphabet="'=+-@\t\r\n0123456789.eE aé", max_size=8))


def unguarded(cell: str) -> str:
    """The value of a cell: what `guarded` made it of."""
    return cell[1:] if re.match(r"'+[=+\-@\t\r\n]", cell) else cell


@given(st.lists(values, max_size=20))
def test_no_cell_is_a_formula_and_every_value_can_be_had_back(texts: list[str]) -> None:
    cells = [guarded(text) for text in texts]
    assert [unguarded(cell) for cell in cells] == texts
    for cell in cells:
        if cell[:1] and cell[0] in STARTS:
            float(cell)
    assert guarded_column(pa.array(texts, pa.string())).to_pylist() == cells


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers())
def test_numbers_stay_numbers(number: float) -> None:
    assert guarded(str(number)) == str(number)


@pytest.mark.parametrize("text", ["-5 to under 0", "-inf", "-5-3", "+1+1", "-5 or -3", "- ", "--1", "-0x1f", "-1\n"])
def test_what_only_begins_as_a_number_is_guarded(text: str) -> None:
    assert guarded(text) == f"'{text}"


def test_a_released_csv_holds_no_formula(tmp_path: Path) -> None:
    texts = ["=cmd|' /C calc'!A0", "+1+1", "-5", "@SUM(A1)", "\tx", "'=1", "'s-Hertogenbosch", "plain, quoted"]
    table = adult_rows()
    table = table.append_column("=town", pa.array([texts[i % len(texts)] for i in range(table.num_rows)]))
    spec = SPEC.replace("relationship", "=town").replace("lip:1.0", "ldp:2.0") + "\n[output]\ncsv = true\n"
    folder = make_release(make_project(tmp_path, spec, table))
    released = pq.read_table(folder.data).column("=town").to_pylist()
    assert set(released) & set(texts)
    header, *rows = csv.reader(io.StringIO(folder.csv.read_bytes().decode(), newline=""))
    assert header == ["'=town"]
    assert [unguarded(cell) for (cell,) in rows] == released
    assert not [cell for (cell,) in rows if cell[0] in STARTS and cell != "-5"]
    package = json.loads(folder.package.read_text())
    said = {resource["format"]: resource for resource in package["resources"]}
    assert said["csv"]["description"] == RULE
    assert "description" not in said["parquet"]
    assert said["csv"]["schema"]["fields"][0]["name"] == "'=town"
    assert {cell for (cell,) in rows} <= set(said["csv"]["schema"]["fields"][0]["categories"])
    assert set(released) <= set(said["parquet"]["schema"]["fields"][0]["categories"])
