"""Sources of statistics packages and Excel: labels, user-missing codes and types, and a second reader that agrees."""

from __future__ import annotations

import lzma
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyreadstat
import pytest

from funnel.drafting.choice import Answers
from funnel.drafting.command import GivenSource, draft_file
from funnel.errors import DataError, SpecError
from funnel.progress import quiet
from funnel.readers.formats import format_of, open_source
from funnel.readers.formats.loaded import column_of, labels_of
from funnel.recount.arrow_files import loaded_table
from funnel.recount.source import recount
from funnel.source.counting import count_joint
from funnel.spec import ReleaseSpec
from tests.projects import spec_of

SEX, PARTY = {1: "male", 2: "female"}, {3: "Greens", 1: "Reds", 2: "Blues", 9: "refused"}


def people() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "sex": [1, 2] * 30,
            "party": [1.0, 2, 3, 9, 2, 1] * 10,
            "age": [20.0 + k for k in range(59)] + [None],
            "height": [150.5 + k for k in range(60)],
            "born": [date(1990, 1 + k % 12, 1) for k in range(60)],
            "town": [["Delft", "Gouda", ""][k % 3] for k in range(60)],
        }
    )


def written(folder: Path, ending: str) -> Path:
    """The same people in a file of each kind; 9 is user-missing in SPSS, 97 the label of one of many ages."""
    path, table = folder / f"people{ending}", people()
    labels: dict[str, Any] = {"sex": SEX, "party": PARTY, "age": {97: "97 or older"}}
    if ending in (".sav", ".zsav"):
        pyreadstat.write_sav(
            table, path, variable_value_labels=labels, missing_ranges={"party": [9]}, compress=ending == ".zsav"
        )
    elif ending == ".dta":
        pyreadstat.write_dta(table, path, variable_value_labels=labels)
    elif ending == ".xpt":
        pyreadstat.write_xport(table, path)
    else:
        table.to_excel(path, index=False)
    return path


@pytest.mark.parametrize("ending", [".sav", ".zsav", ".dta", ".xpt", ".xlsx"])
def test_values_types_and_labels(tmp_path: Path, ending: str) -> None:
    path = written(tmp_path, ending)
    labelled = ending in (".sav", ".zsav", ".dta")
    spec = spec_of(path.name, tmp_path, secret=["party"], publish=["sex", "age", "height", "born", "town"])
    source = open_source(spec)
    kinds = dict(zip(source.schema.names, source.schema.types, strict=True))
    assert (kinds["age"], kinds["height"], kinds["born"]) == (pa.int64(), pa.float64(), pa.date32())
    assert kinds["sex"] == (pa.string() if labelled else pa.int64())
    assert labels_of(source.schema.field("party")) == (("Reds", "Blues", "Greens", "refused") if labelled else ())
    table = pa.Table.from_batches(source.batches(source.schema.names))
    parties = table["party"].to_pylist()
    # What the file says is missing is missing, and has no label.
    assert parties.count(None) == (10 if ending in (".sav", ".zsav") else 0)
    assert set(parties) - {None} <= ({*PARTY.values()} if labelled else {1, 2, 3, 9})
    assert table["age"].null_count == 1
    second = loaded_table(spec.source.format, path)
    assert second.select(table.column_names).to_pydict() == table.to_pydict()
    assert [second.schema.field(name).type for name in table.column_names] == source.schema.types


@pytest.mark.parametrize("ending", [".sav", ".dta", ".xlsx"])
def test_both_computations_count_the_same(tmp_path: Path, ending: str) -> None:
    path = written(tmp_path, ending)
    spec = spec_of(path.name, tmp_path, secret=["party"], publish=["sex", "town"])
    counted = count_joint(spec, quiet)
    assert counted.n == 60
    again = recount(spec)
    assert sorted(again.counts.values()) == sorted(counted.counts[counted.counts > 0].tolist())


def test_a_file_that_sas_wrote(tmp_path: Path) -> None:
    """Nothing but SAS writes this format: these are the irises of Fisher (1936) from the R package haven (MIT)."""
    path = tmp_path / "iris.sas7bdat"
    path.write_bytes(lzma.decompress(Path(__file__).with_name("iris.sas7bdat.xz").read_bytes()))
    columns = ("Species", "Sepal_Length", "Petal_Width")
    spec = spec_of(path.name, tmp_path, secret=["Species"], publish=[*columns[1:]])
    found = pa.Table.from_batches(open_source(spec).batches(columns))
    assert found.num_rows == 150
    assert found.slice(0, 1).to_pylist() == [{"Species": "setosa", "Sepal_Length": 5.1, "Petal_Width": 0.2}]
    assert sorted(set(found["Species"].to_pylist())) == ["setosa", "versic", "virgin"]
    assert pc.sum(found["Sepal_Length"]).as_py() == pytest.approx(876.5)
    draft_file(GivenSource(str(path)), tmp_path / "s.toml", False, quiet, Answers(("Species",), ("Petal_Width",)))
    spec = ReleaseSpec.load(tmp_path / "s.toml")
    counted, again = count_joint(spec, quiet), recount(spec)
    assert (counted.n, again.rows) == (150, 150)
    assert sorted(again.counts.values()) == sorted(counted.counts[counted.counts > 0].tolist())


def test_labels_of_most_values_take_the_place_of_codes() -> None:
    array, told = column_of([1.0, 2.0, 7.0, None], {1.0: "yes", 2.0: "no"})
    assert (array.to_pylist(), told) == (["yes", "no", "7", None], ["yes", "no"])
    array, told = column_of([1.0, 2.0, 3.0, 97.0], {97.0: "97 or older"})
    assert (array.to_pylist(), told) == ([1, 2, 3, 97], [])


@pytest.mark.parametrize("ending", [".sav", ".dta"])
def test_different_codes_stay_different_whatever_their_labels_are(tmp_path: Path, ending: str) -> None:
    table = pd.DataFrame({name: [-9, 1, 2, 3] * 15 for name in ("secret", "alike", "clash", "empty", "far")})
    labels: dict[str, dict[Any, str]] = {
        "secret": {-9: "refused", 1: "höchst – 東", 2: "b", 3: "c"},
        "alike": {-9: "Other", 1: "Other", 2: "Main"},
        "clash": {1: "2", 3: "x"},
        "empty": {-9: "", 1: "1", 2: "two"},
        "far": {-9: "n/a", 1: "x" * 100 + "A", 2: "x" * 100 + "B", 8: "nobody"},
    }
    write = pyreadstat.write_sav if ending == ".sav" else pyreadstat.write_dta
    write(table, str(tmp_path / f"t{ending}"), variable_value_labels=labels)
    spec = spec_of(f"t{ending}", tmp_path, secret=["secret"], publish=["alike", "clash", "empty", "far"])
    names = tuple(table)
    rows = pa.Table.from_batches(open_source(spec).batches(names)).slice(0, 4).to_pydict()
    assert rows["secret"] == ["refused", "höchst – 東", "b", "c"]
    assert rows["alike"] == ["Other (-9)", "Other (1)", "Main", "3"]
    assert rows["clash"] == ["-9", "2 (1)", "2", "x"]
    assert rows["empty"] == ["-9", "1", "two", "3"]
    assert rows["far"] == ["n/a", "x" * 100 + "A", "x" * 100 + "B", "3"]
    assert loaded_table(spec.source.format, tmp_path / f"t{ending}").select(names).slice(0, 4).to_pydict() == rows


def test_a_workbook_whose_first_sheet_is_odd(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    for row in (["s", None, "x"], ["a", 1, 5], [None, None, None], ["b", 2, "six"]):
        sheet.append(row)
    book.save(tmp_path / "t.xlsx")
    source = open_source(spec_of("t.xlsx", tmp_path))
    assert source.names == ("s", "x")
    assert pa.Table.from_batches(source.batches(["x"]))["x"].to_pylist() == ["5", "six"]
    sheet["A1"], sheet["B1"] = "x", "s"
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(DataError, match="two columns named 'x'"):
        open_source(spec_of("t.xlsx", tmp_path))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("t.sav", "a file of spss"),
        ("t.dta", "a file of stata"),
        ("t.sas7bdat", "a file of sas"),
        ("t.xlsx", "a workbook"),
    ],
)
def test_what_is_none_of_them_is_said(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / name).write_bytes(b"s,x\n1,2\n" * 99)
    with pytest.raises(DataError, match=f"{name} cannot be read as {said}"):
        open_source(spec_of(name, tmp_path))


def test_formats_are_told_by_names_and_others_are_listed() -> None:
    assert [format_of(f"t{ending}") for ending in (".dta", ".zsav", ".SAS7BDAT", ".xlsm")] == [
        *("stata", "spss", "sas", "excel")
    ]
    with pytest.raises(SpecError, match=r"cannot tell the format by '\.xls', as by .*\.sav.*\.xlsx"):
        spec_of("t.xls", ".")


def workbook_of(path: Path, sheets: dict[str, list[tuple[Any, ...]]]) -> None:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)


def test_the_sheet_that_a_spec_names(tmp_path: Path) -> None:
    of_year = {year: [("s", "x"), *((("a", "b")[k % 2], (k + k // year) % 3) for k in range(60))] for year in (7, 13)}
    workbook_of(
        tmp_path / "t.xlsx", {"Cover": [("Survey",)], **{f"20{year:02}": rows for year, rows in of_year.items()}}
    )
    for year, rows in of_year.items():
        spec = spec_of("t.xlsx", tmp_path, source={"path": "t.xlsx", "table": f"20{year:02}"})
        expected = Counter(map(str, (one[1] for one in rows[1:])))
        counted, again = count_joint(spec, quiet), recount(spec)
        assert counted.counts.sum(axis=0).tolist() == [expected[one] for (one,) in counted.inputs.symbols]
        assert sorted(again.counts.values()) == sorted(counted.counts[counted.counts > 0].tolist())
    with pytest.raises(DataError, match=r"has no sheet '2008'; did you mean 2007\?; it has Cover, 2007, 2013: correct"):
        open_source(spec_of("t.xlsx", tmp_path, source={"path": "t.xlsx", "table": "2008"}))


def test_a_draft_of_several_sheets_says_which(tmp_path: Path) -> None:
    rows = [("s", "x"), *((("a", "b")[k % 2], k % 3) for k in range(600))]
    path, answers = tmp_path / "t.xlsx", Answers(("s",), ("x",))

    def drafted(table: str | None = None) -> ReleaseSpec:
        draft_file(GivenSource(str(path), table), tmp_path / "s.toml", True, quiet, answers)
        return ReleaseSpec.load(tmp_path / "s.toml")

    workbook_of(path, {"Cover": [("Survey",), ("of 2024",)], "Data 1": rows})
    assert drafted().source.table == "Data 1"
    workbook_of(path, {"Data 1": rows, "Notes": [("x is a number",), ("s is a letter",)]})
    assert drafted().source.table is None
    workbook_of(path, {"Data 1": rows, "Data 2": rows[:300]})
    with pytest.raises(SpecError, match=r"t\.xlsx has 2 sheets with rows: say which to read, as in --table 'Data 1' "):
        drafted()
    assert count_joint(drafted("Data 2"), quiet).n == 299
