"""Exported: labelled files that other readers, and funnel itself, read back as the records of the release."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest
from click.testing import CliRunner

import funnel
from funnel.analysis.codebook import codebook
from funnel.analysis.exported import Variable, cut_labels, export_release, names_for, variables_of
from funnel.audit.check import State, overall
from funnel.cli import main
from funnel.drafting.choice import Answers
from funnel.drafting.command import GivenSource, draft_file
from funnel.errors import DataError, SpecError
from funnel.progress import quiet
from funnel.readers.formats import open_source
from funnel.readers.formats.loaded import label_of, labels_of
from funnel.recount.source import recount
from funnel.release.layout import ReleaseFolder
from funnel.source.counting import count_joint
from funnel.spec import ReleaseSpec
from tests.audits import recheck
from tests.projects import spec_of
from tests.releases import make_release

DDI = {"ddi": "ddi:codebook:2_5"}


@pytest.mark.parametrize("ending", [".sav", ".zsav", ".dta"])
def test_the_records_are_read_back_by_the_package_and_by_funnel(
    published: ReleaseFolder, tmp_path: Path, ending: str
) -> None:
    released = funnel.load_release(published.root)
    path = export_release(released, tmp_path / f"people{ending}")
    read = pyreadstat.read_dta if ending == ".dta" else pyreadstat.read_sav
    frame, described = read(str(path), apply_value_formats=True)
    assert frame.astype(str).equals(released.table().to_pandas().astype(str))
    assert described.column_labels == ["relationship", "Sex, as the census has it"]
    for one in variables_of(released):
        assert list(described.variable_value_labels[one.column].values()) == list(one.categories)
    if ending != ".dta":
        assert "lip:1.0" in described.notes[0]
    # As a source of another release: the same categories, as often.
    secret, public = released.columns[1], released.columns[0]
    spec = spec_of(path.name, tmp_path, secret=[secret], publish=[public])
    joint = count_joint(spec, quiet)
    again = funnel.Joint.from_table(released.table(), [secret], [public])
    assert dict(zip(joint.inputs.symbols, joint.counts.sum(axis=0), strict=True)) == dict(
        zip(again.inputs.symbols, again.counts.sum(axis=0), strict=True)
    )


def test_a_codebook_has_every_variable_with_its_categories_and_how_common_they_are(
    published: ReleaseFolder, tmp_path: Path
) -> None:
    released = funnel.load_release(published.root)
    root = ET.parse(export_release(released, tmp_path / "people.xml")).getroot()
    assert root.tag == "{ddi:codebook:2_5}codeBook"
    assert root.findtext("ddi:stdyDscr/ddi:citation/ddi:titlStmt/ddi:titl", namespaces=DDI) == released.package["title"]
    assert released.privacy.meaning in str(
        root.findtext("ddi:stdyDscr/ddi:dataAccs/ddi:useStmt/ddi:disclaimer", namespaces=DDI)
    )
    variables = root.findall("ddi:dataDscr/ddi:var", DDI)
    assert [one.get("name") for one in variables] == list(released.columns)
    table = released.table().to_pandas()
    for one in variables:
        counts = table[one.get("name")].value_counts()
        for category in one.findall("ddi:catgry", DDI):
            value = category.findtext("ddi:catValu", namespaces=DDI)
            assert category.findtext("ddi:catStat", namespaces=DDI) == str(counts.get(value, 0))
        assert one.findtext("ddi:sumStat", namespaces=DDI) == "1000"
    assert root.findtext("ddi:fileDscr/ddi:fileTxt/ddi:dimensns/ddi:caseQnty", namespaces=DDI) == "1000"


# The elements that are used, in the order of codebook.xsd of DDI-Codebook 2.5 (2014-01-28), which is in no package that
# the lock file could name; the others have texts alone.
ORDER = {
    "codeBook": "docDscr stdyDscr fileDscr dataDscr",
    "docDscr": "citation",
    "stdyDscr": "citation stdyInfo method dataAccs",
    "citation": "titlStmt rspStmt prodStmt distStmt verStmt",
    "titlStmt": "titl IDNo",
    "rspStmt": "AuthEnty",
    "prodStmt": "prodDate",
    "distStmt": "contact",
    "verStmt": "version",
    "stdyInfo": "subject abstract",
    "subject": "keyword",
    "method": "dataColl",
    "dataColl": "cleanOps",
    "dataAccs": "useStmt",
    "useStmt": "conditions disclaimer",
    "fileDscr": "fileTxt",
    "fileTxt": "fileName dimensns fileType",
    "dimensns": "caseQnty varQnty",
    "dataDscr": "var",
    "var": "labl sumStat txt catgry varFormat",
    "catgry": "catValu catStat",
}
# What the schema asks of them besides: the children without which they are not valid, the attributes, and the values
# that these can take where the schema lists them.
NEEDED = {"codeBook": {"stdyDscr"}, "stdyDscr": {"citation"}, "citation": {"titlStmt"}, "titlStmt": {"titl"}}
ATTRIBUTES = {
    "codeBook": {"version", "ID", "{http://www.w3.org/XML/1998/namespace}lang"},
    "prodDate": {"date"},
    "version": {"date"},
    "contact": {"email"},
    "fileDscr": {"ID", "URI"},
    "var": {"ID", "name", "files", "intrvl"},
    "sumStat": {"type"},
    "catgry": {"missing"},
    "catStat": {"type"},
    "varFormat": {"type"},
}
VALUES = {
    ("codeBook", "version"): {"2.5"},
    ("var", "intrvl"): {"contin", "discrete"},
    ("sumStat", "type"): {"mean", "medn", "mode", "vald", "invd", "min", "max", "stdev", "other"},
    ("catgry", "missing"): {"Y", "N"},
    ("catStat", "type"): {"freq", "percent", "crosstab", "other"},
    ("varFormat", "type"): {"character", "numeric"},
}


def test_a_codebook_keeps_the_rules_of_the_schema(
    published: ReleaseFolder,
) -> None:
    released = funnel.load_release(published.root)
    contact = {"title": "An office", "email": "office@example.org", "roles": ["publisher"], "role": "publisher"}
    package = {**released.package, "name": "2024-people", "contributors": [contact]}
    package |= {"keywords": ["work", "pay"], "description": "Whom we asked."}
    column = ("a", "About a.", "What it is.", ("x", "(missing)"), np.array([1, 2]))
    root = ET.fromstring(codebook(package, released.privacy, [column]))
    used, names = set(), [element.get("ID") for element in root.iter() if element.get("ID") is not None]
    assert len(set(names)) == len(names)
    for element in root.iter():
        name = element.tag.removeprefix("{ddi:codebook:2_5}")
        order = ORDER.get(name, "").split()
        children = [child.tag.removeprefix("{ddi:codebook:2_5}") for child in element]
        assert [order.index(child) for child in children] == sorted(order.index(child) for child in children), name
        assert re.fullmatch(r"[A-Za-z_][\w.-]*", element.get("ID", "none")), element.get("ID")
        assert NEEDED.get(name, set()) <= set(children), name
        assert set(element.keys()) <= ATTRIBUTES.get(name, set()), name
        assert name != "var" or element.get("name")
        assert set(element.get("files", "").split()) <= set(names)
        for key, value in element.items():
            assert value in VALUES.get((name, key), {value}), (name, key)
        # None of these may stand twice.
        assert not {"rspStmt", "prodStmt", "distStmt", "catValu", "varFormat"} & {
            child for child in children if children.count(child) > 1
        }
        used |= {name, *children}
    assert {"txt", "keyword", "abstract", "sumStat"} <= used
    assert [one.text for one in root.iter("{ddi:codebook:2_5}labl")] == ["About a."]
    assert [one.get("missing") for one in root.iter("{ddi:codebook:2_5}catgry")] == [None, "Y"]


def test_names_are_those_that_packages_take() -> None:
    columns = ["marital-status", "marital status", "Marital_Status", "2nd", "by", "Größe", "str8", "-", "x" * 40]
    found = names_for(columns, 32)
    assert found[:5] == ["marital_status", "marital_status_2", "Marital_Status_3", "v_2nd", "by_"]
    assert found[5:8] == ["Gr_e", "str8_", "column"]
    assert len(found[8]) == 32
    assert len({name.lower() for name in found}) == len(columns)


def released_as(texts: list[str], categories: list[str], title: str = "T", column: str = "size") -> Any:
    """A release of one column with these values."""
    return released_with({column: (texts, categories)}, title)


def released_with(columns: dict[str, tuple[list[str], list[str]]], title: str = "T") -> Any:
    """A release of columns with these values of these categories."""
    fields = [{"name": name, "categories": categories} for name, (_, categories) in columns.items()]
    package = {"name": "n", "title": title, "resources": [{"schema": {"fields": fields}}]}
    table = pa.table({name: pa.array(texts).dictionary_encode() for name, (texts, _) in columns.items()})
    privacy = SimpleNamespace(guarantee="lip:1.0", meaning="A bound.")
    return SimpleNamespace(package=package, table=lambda: table, version="1.0.0", privacy=privacy)


def test_whole_numbers_stay_what_they_are(tmp_path: Path) -> None:
    path = export_release(released_as(["10", "2", "10", "-1"], ["-1", "2", "10"]), tmp_path / "n.sav")
    frame, described = pyreadstat.read_sav(str(path))
    assert frame["size"].tolist() == [10, 2, 10, -1]
    assert described.variable_value_labels == {}
    # A number that is not written as such is a text as any.
    assert Variable("size", "size", "", ("01", "2"), np.zeros(1, dtype=np.int64)).numbers is None


# Categories in no order of letters, one of them without a record; numbers; missing values in both.
COLUMNS = {
    "health": (["fair", "(missing)", "very good", "東 – höchst", "fair", "bad"] * 20,
               ["very good", "fair", "bad", "no record", "東 – höchst", "(missing)"]),
    "rooms": (["10", "2", "(missing)", "-1", "2", "3"] * 20, ["-1", "2", "3", "10", "(missing)"]),
    "owner": (["yes", "no"] * 60, ["yes", "no"]),
}  # fmt: skip


@pytest.mark.parametrize("ending", [".sav", ".zsav", ".dta", ".parquet"])
def test_nothing_of_values_is_lost_on_the_way_out_and_in(tmp_path: Path, ending: str) -> None:
    path = export_release(released_with(COLUMNS), tmp_path / f"people{ending}")
    spec = spec_of(path.name, tmp_path, secret=["owner"], publish=["health", "rooms"])
    source = open_source(spec)
    rows = pa.Table.from_batches(source.batches(list(COLUMNS)))
    for name, (texts, categories) in COLUMNS.items():
        assert rows[name].cast(pa.string()).to_pylist() == [None if text == "(missing)" else text for text in texts]
        labels = () if name == "rooms" else tuple(text for text in categories if text != "(missing)")
        assert labels_of(source.schema.field(name)) == labels
    assert pa.types.is_integer(source.schema.field("rooms").type)
    # As a draft lists them for the next release.
    draft_file(GivenSource(str(path)), tmp_path / "s.toml", True, quiet, Answers(("owner",), ("health", "rooms")))
    drafted = ReleaseSpec.load(tmp_path / "s.toml")
    assert drafted.categories["health"] == ("very good", "fair", "bad", "東 – höchst", "(missing)")
    assert count_joint(drafted, quiet).n == 120
    assert sum(recount(drafted).counts.values()) == 120


def test_labels_of_variables_go_from_a_labelled_file_through_a_release_into_all_others(tmp_path: Path) -> None:
    about = {"health": "Health, “in general” – höchst", "Rooms": "Rooms of the dwelling", "owner": "Owns it\nor not"}
    frame = pd.DataFrame({"owner": [1, 2] * 300, "health": [1, 2, 3] * 200, "Rooms": [1, 2, 3, 4] * 150})
    labels = {"owner": {1: "yes", 2: "no"}, "health": {1: "very good", 2: "fair", 3: "bad"}}
    told = [about[name] for name in frame]
    pyreadstat.write_sav(frame, str(tmp_path / "t.sav"), column_labels=told, variable_value_labels=labels)
    answers = Answers(("owner",), ("owner", "health", "Rooms"))
    draft_file(GivenSource(str(tmp_path / "t.sav")), tmp_path / "s.toml", True, quiet, answers)
    assert ReleaseSpec.load(tmp_path / "s.toml").metadata.labels == about | {"owner": "Owns it or not"}
    made = make_release(tmp_path / "s.toml")
    assert overall(recheck(made)) == State.PASSED
    released = funnel.load_release(made.root)
    expected = [(about | {"owner": "Owns it or not"})[name] for name in released.columns]
    for ending in (".sav", ".zsav", ".dta", ".parquet"):
        path = export_release(released, tmp_path / f"people{ending}")
        again = open_source(spec_of(path.name, tmp_path, secret=["owner"], publish=["health", "Rooms"]))
        assert [label_of(again.schema.field(name)) for name in released.columns] == expected
    root = ET.parse(export_release(released, tmp_path / "people.xml")).getroot()
    assert [one.text for one in root.iter("{ddi:codebook:2_5}labl")] == expected


def test_a_name_that_a_package_does_not_take_stands_before_the_label(tmp_path: Path) -> None:
    released = released_as(["a"], ["a"], column="marital-status")
    for label, shown in ((None, "marital-status"), ("Legal status", "marital-status: Legal status")):
        if label is not None:
            released.package["resources"][0]["schema"]["fields"][0]["title"] = label
        path = export_release(released, tmp_path / "n.dta", force=True)
        assert pyreadstat.read_dta(str(path))[1].column_names_to_labels == {"marital_status": shown}


def test_labelled_parquet_is_what_pandas_polars_and_duckdb_read(tmp_path: Path) -> None:
    path = export_release(released_with(COLUMNS), tmp_path / "people.parquet")
    texts, categories = COLUMNS["health"]
    frame = pd.read_parquet(path)
    assert list(frame["health"].cat.categories) == categories[:-1]
    with duckdb.connect() as base:
        of_duckdb = base.sql(f"FROM '{path}'").df()
    for found in (frame["health"], pl.read_parquet(path)["health"], of_duckdb["health"]):
        assert [None if text != text or text is None else text for text in found.to_list()] == [
            None if text == "(missing)" else text for text in texts
        ]
    said = pq.read_schema(path)
    assert said.metadata[b"title"] == b"T, version 1.0.0"
    assert said.metadata[b"bound"] == b"lip:1.0"
    assert json.loads(said.field("health").metadata[b"labels"]) == categories[:-1]


LONG_TITLE = "Haushalte und Wohnverhältnisse nach Bezirken, erhoben im Frühjahr " + "Donaudampfschifffahrt" * 5


@pytest.mark.parametrize("ending", [".sav", ".zsav", ".dta"])
@pytest.mark.parametrize(
    ("title", "column"), [(LONG_TITLE, "x"), ("T", "wie viele Räume " * 20), (LONG_TITLE, "ä" * 300)]
)
def test_a_title_that_a_package_cuts_is_whole_elsewhere_and_a_sentence_says_so(
    tmp_path: Path, title: str, column: str, ending: str
) -> None:
    released, column = released_as(["a"], ["a"], title, column.strip()), column.strip()
    path = export_release(released, tmp_path / f"n{ending}")
    frame, described = (pyreadstat.read_dta if ending == ".dta" else pyreadstat.read_sav)(str(path))
    whole, said = f"{title}, version 1.0.0", cut_labels(released, path)
    assert frame.shape == (1, 1)
    assert said is not None
    assert whole.startswith(described.file_label)
    assert column.startswith(described.column_labels[0])
    cut = said.partition("only a part of the ")[2]
    assert ("title" in cut) is (described.file_label != whole)
    assert ("label of column 1" in cut) is (described.column_labels[0] != column)
    if ending == ".dta":
        assert said.startswith("Stata keeps 80 characters of a title and 80 of a label")
        assert "funnel export RELEASE FILE.xml" in said
    else:
        notes = "".join(described.notes).replace(" ", "")
        if title == LONG_TITLE:
            assert f"title: {whole}".replace(" ", "") in notes
        if described.column_labels[0] != column:
            assert f"label of column 1: {column}".replace(" ", "") in notes


@pytest.mark.parametrize("ending", [".sav", ".dta", ".xml"])
def test_nothing_is_said_where_nothing_is_cut(tmp_path: Path, ending: str) -> None:
    title = "ä" * 24 if ending == ".sav" else "ä" * 65
    released = released_as(["a"], ["a"], title)
    assert cut_labels(released, tmp_path / f"n{ending}") is None
    if ending != ".xml":
        path = export_release(released, tmp_path / f"n{ending}")
        read = pyreadstat.read_dta if ending == ".dta" else pyreadstat.read_sav
        assert read(str(path))[1].file_label == f"{title}, version 1.0.0"


def test_what_cannot_be_written_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    long = "ä" * 61
    with pytest.raises(DataError, match=r"1 labels of 'size' are longer than the 120 bytes .* Stata"):
        export_release(released_as([long], [long]), tmp_path / "n.sav")
    assert pyreadstat.read_dta(str(export_release(released_as([long], [long]), tmp_path / "n.dta")))[0].shape == (1, 1)
    with pytest.raises(SpecError, match=r"is there already; .* --force"):
        export_release(released_as(["a"], ["a"]), tmp_path / "n.dta")
    export_release(released_as(["a"], ["a"]), tmp_path / "n.dta", force=True)
    with pytest.raises(SpecError, match=r"ends in none of \.sav, \.zsav, \.dta, \.parquet, \.xml"):
        export_release(released_as(["a"], ["a"]), tmp_path / "n.csv")
    with pytest.raises(DataError, match=r"values of 'size' that datapackage\.json lacks"):
        export_release(released_as(["b"], ["a"]), tmp_path / "n.xml")
    assert [path.name for path in tmp_path.iterdir()] == ["n.dta"]


def test_the_command_checks_first(published: ReleaseFolder, tmp_path: Path) -> None:
    copy = tmp_path / "1.0.0"
    shutil.copytree(published.root, copy)
    told = CliRunner().invoke(main, ["export", str(copy), str(tmp_path / "people.dta")])
    assert (told.exit_code, told.stdout) == (0, f"wrote {tmp_path / 'people.dta'}\n")
    with (copy / "data" / "records.parquet").open("ab") as file:
        file.write(b" ")
    told = CliRunner().invoke(main, ["export", str(copy), str(tmp_path / "changed.dta")])
    assert told.exit_code == 7
    assert not (tmp_path / "changed.dta").exists()
