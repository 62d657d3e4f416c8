"""Hierarchies: a table of levels is as good as the groups it comes to, and a wrong one is told of in one sentence."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from funnel.errors import SpecError
from funnel.spec import ReleaseSpec
from tests.projects import spec_of

TABLE = "\ufeffcode,name,part\n01,Utrecht,west\n02,Gouda,west\n03,Emmen,east\n04,,\n\n"
GROUPS = {"west": ["01", "02"], "east": ["03"]}


def spec(folder: Path, **recode: Any) -> ReleaseSpec:
    return spec_of("t.csv", folder, recode={"x": recode})


def test_a_level_is_the_groups_it_comes_to(tmp_path: Path) -> None:
    (tmp_path / "places.csv").write_text(TABLE)
    made = spec(tmp_path, hierarchy="places.csv", level="part", minimum_count=5)
    assert made == spec(tmp_path, groups=GROUPS, minimum_count=5)
    assert made.digest == spec(tmp_path, groups=GROUPS, minimum_count=5).digest
    # A value map: every value has a name of its own.
    named = spec(tmp_path, hierarchy="places.csv", level="name")
    assert named.recode["x"].group_of == {"01": "Utrecht", "02": "Gouda", "03": "Emmen"}
    (tmp_path / "places.csv").write_text(TABLE.replace("02,Gouda,west", "02,Gouda,south"))
    assert spec(tmp_path, hierarchy="places.csv", level="part", minimum_count=5).digest != made.digest


@pytest.mark.parametrize(
    ("table", "said", "told"),
    [
        (TABLE, {"hierarchy": "none.csv", "level": "part"}, "cannot be read: No such file"),
        (
            TABLE,
            {"hierarchy": "places.csv", "level": "prt"},
            "'prt' is no column of places.csv after its first;",
        ),
        (TABLE, {"hierarchy": "places.csv", "level": "code"}, "no column of places.csv"),
        (TABLE, {"hierarchy": "places.csv"}, "must have both"),
        (TABLE, {"level": "part"}, "must have both"),
        (TABLE, {"hierarchy": "places.csv", "level": "part", "groups": GROUPS}, "give one of the two"),
        (
            TABLE + "01,Utrecht,east\n",
            {"hierarchy": "places.csv", "level": "part"},
            "the value '01' into two groups",
        ),
        (TABLE + "05,Ede\n", {"hierarchy": "places.csv", "level": "part"}, "another number of values"),
        ("", {"hierarchy": "places.csv", "level": "part"}, "it has none"),
        ('a,b\n"1,2', {"hierarchy": "places.csv", "level": "b"}, "not csv in UTF-8"),
    ],
)
def test_a_wrong_one_is_told_of(tmp_path: Path, table: str, said: dict[str, Any], told: str) -> None:
    (tmp_path / "places.csv").write_text(table)
    with pytest.raises(SpecError) as caught:
        spec(tmp_path, **said)
    assert told in str(caught.value)
    assert str(caught.value).startswith("[recode.x]")


def _written(folder: Path, kind: str) -> Any:
    """A table of levels in another format, as a spec names it."""
    codes, parts = ["01", "02", "03", "04"], ["west", "west", "east", None]
    table = pa.table({"code": codes, "part": parts})
    if kind == "feather":
        feather.write_feather(table, folder / "places.feather")
        return "places.feather"
    if kind == "parquet":
        pq.write_table(table, folder / "places.parquet")
        return "places.parquet"
    if kind == "csv with semicolons":
        (folder / "p.csv").write_text(
            "code;part\n" + "".join(f"{c};{p or ''}\n" for c, p in zip(codes, parts, strict=True))
        )
        return {"path": "p.csv", "delimiter": ";"}
    with closing(sqlite3.connect(folder / "places.db")) as database, database:
        database.execute("CREATE TABLE places (code TEXT, part TEXT)")
        database.executemany("INSERT INTO places VALUES (?, ?)", zip(codes, parts, strict=True))
    path = f"sqlite:///{folder / 'places.db'}"
    if kind == "query":
        return {"path": path, "query": "SELECT code, part FROM places WHERE part IS NOT NULL"}
    return {"path": path, "table": "places"}


@pytest.mark.parametrize("kind", ["parquet", "feather", "csv with semicolons", "table", "query"])
def test_a_table_may_be_whatever_a_source_may_be(tmp_path: Path, kind: str) -> None:
    made = spec(tmp_path, hierarchy=_written(tmp_path, kind), level="part")
    assert made.recode["x"].group_of == {"01": "west", "02": "west", "03": "east"}
    assert made.digest == spec(tmp_path, groups=GROUPS).digest


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"hierarchy": {"path": "none.parquet"}, "level": "part"}, "there is no source file"),
        ({"hierarchy": {"path": "places.parquet"}, "level": "prt"}, "prt"),
        ({"hierarchy": {"path": "places.parquet"}, "level": "code"}, "its first column"),
        ({"hierarchy": {"path": "places.parquet", "tabel": "x"}, "level": "part"}, "tabel"),
        ({"hierarchy": {"path": "postgresql://u:p@h/d", "table": "x"}, "level": "part"}, "password"),
        ({"hierarchy": 3, "level": "part"}, "must have both"),
    ],
)
def test_a_wrong_source_of_levels_is_told_of(tmp_path: Path, said: dict[str, Any], told: str) -> None:
    _written(tmp_path, "parquet")
    with pytest.raises(SpecError) as caught:
        spec(tmp_path, **said)
    assert told in str(caught.value)
    assert str(caught.value).startswith("[recode.x]")


def test_three_typos_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        spec_of("t.csv", tmp_path, wieght="x", numbers={"x": {"whole": True, "drw": "within", "decimal": 2}})
    for told in ("wieght", "drw", "decimal"):
        assert told in str(caught.value)
    for near in ("mean weight?", "mean draw?", "mean decimals?"):
        assert near in str(caught.value)
