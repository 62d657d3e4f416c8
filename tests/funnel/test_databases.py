"""Addresses of databases in a spec: those that are read, and none with a password."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from funnel.databases import check_database, holds_password, names_database, resolved
from funnel.errors import SpecError
from tests.projects import spec_of


def refusal(path: str, said: dict[str, Any], **changes: Any) -> str:
    with pytest.raises(SpecError) as caught:
        spec_of(path, ".", source=said, **changes)
    return str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://steward:Zebediah@db/x",
        "postgresql+psycopg://steward:Zebediah%40@db:5432/x",
        "postgresql://steward:Zebe/diah@db/x",
        "postgresql://db/x?user=a&password=Zebediah",
        "postgresql://db/x?sslpassword=Zebediah",
        "postgresql://db/x?options=-c%20password%3DZebediah",
        "postgresql://db/x?PWD=Zebediah",
        "mysql://a:Zebediah@b/c",
    ],
)
def test_a_password_is_refused_and_not_repeated(url: str) -> None:
    assert holds_password(url)
    message = refusal(url, {"table": "people"})
    assert "holds a password" in message
    assert "Zebe" not in message


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://steward@db:5432/x",
        "postgresql://steward@/x?host=/run/pg&port=5433&passfile=/home/a/.pgpass",
        "postgresql:///x",
        "postgresql://[::1]:5432/x",
        "sqlite:///people.sqlite",
        "sqlite:////srv/people.sqlite",
        "environment:CENSUS",
    ],
)
def test_without_a_password_it_is_a_database(url: str) -> None:
    assert names_database(url)
    assert check_database(url) == url
    assert spec_of(url, ".", source={"table": "people"}).source.format == "sql"


@pytest.mark.parametrize("path", ["people.csv", "s3://bucket/x.parquet", "file:///x.csv", "postgresql.csv", "a/b/"])
def test_files_are_none(path: str) -> None:
    assert not names_database(path)


@pytest.mark.parametrize(
    ("path", "said", "told"),
    [
        ("sqlite:///p.sqlite", {}, 'table = "people" or query'),
        ("sqlite:///p.sqlite", {"table": "a", "query": "b"}, 'table = "people" or query'),
        ("sqlite:///p.sqlite", {"table": "a.b.c"}, "several points"),
        ("sqlite:///p.sqlite", {"table": ".a"}, '"schema.people"'),
        ("sqlite:///p.sqlite", {"query": " ; "}, "[source] query must be a query"),
        ("sqlite:///p.sqlite", {"table": "a", "format": "csv"}, "take format out"),
        ("people.csv", {"table": "a"}, "take table out"),
        ("people.csv", {"format": "sql", "table": "a"}, "path names files"),
        ("mysql://b/c", {"table": "a"}, "PostgreSQL and SQLite are"),
        ("postgresql+asyncpg://b/c", {"table": "a"}, "another driver"),
        ("postgresql://b", {"table": "a"}, "names no database"),
        ("sqlite://", {"table": "a"}, "must name a SQLite file"),
        ("sqlite:///a?mode=rw", {"table": "a"}, "must name a SQLite file"),
        ("environment:A B", {"table": "a"}, "environment:NAME"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(path: str, said: dict[str, Any], told: str) -> None:
    message = refusal(path, said)
    assert told in message
    assert "\n" not in message


def test_rows_of_a_database_are_shuffled() -> None:
    assert "take shuffle out" in refusal("sqlite:///p.sqlite", {"table": "a"}, output={"shuffle": False})


def test_where_a_database_is_counts_in_no_digest_and_its_table_does() -> None:
    one = spec_of("postgresql://one/x", ".", source={"table": "people"})
    assert one.digest == spec_of("environment:X", ".", source={"table": "people"}).digest
    assert one.digest != spec_of("environment:X", ".", source={"table": "others"}).digest
    assert one.coding_digest != spec_of("environment:X", ".", source={"table": "others"}).coding_digest


def test_a_file_is_found_from_the_folder_of_the_spec(tmp_path: Path) -> None:
    assert resolved("sqlite:///sub/p.sqlite", tmp_path).file == tmp_path / "sub" / "p.sqlite"
    assert resolved("sqlite:////srv/p.sqlite", tmp_path).file == Path("/srv/p.sqlite")
    assert resolved("environment:A", tmp_path, {"A": "sqlite:///p%20q.sqlite"}).file == tmp_path / "p q.sqlite"
    message = ""
    try:
        spec_of("sqlite:///releases/p.sqlite", tmp_path, source={"table": "people"})
    except SpecError as error:
        message = str(error)
    assert "[output] folder must not hold the source" in message


def test_what_is_shown_has_neither_user_nor_options(tmp_path: Path) -> None:
    url = "postgresql+psycopg://steward:Zebediah@db.example:5433/census?passfile=/x"
    database = resolved("environment:A", tmp_path, {"A": url})
    assert str(database) == "postgresql://db.example:5433/census"
    assert "Zebediah" not in repr(database)
    # A password that nobody escaped.
    for odd in ("Zeb@e/di?ah@db", "Zeb/ed@db", "Zeb:ed@db", "Zeb@ed@db"):
        database = resolved("environment:A", tmp_path, {"A": f"postgresql://steward:{odd}/x"})
        assert str(database) == "a PostgreSQL database"


@pytest.mark.parametrize("url", ["postgresql://a:Zebediah@[::1/x", "postgresql://a:Zebediah@\u2100.com/x"])
def test_what_cannot_be_split_is_not_quoted(tmp_path: Path, url: str) -> None:
    with pytest.raises(SpecError) as caught:
        resolved("environment:A", tmp_path, {"A": url})
    assert "Zebediah" not in str(caught.value)
    assert "Zebediah" not in refusal(url, {"table": "people"})
