"""Sources in databases: real ones, read at one moment, in an order that tells nothing, without a word of passwords."""

from __future__ import annotations

import datetime as dt
import sqlite3
import sys
import traceback
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from funnel.errors import DataError, SpecError
from funnel.progress import quiet
from funnel.readers.formats import Source, open_source, sql
from funnel.recount.source import recount, source_digest
from funnel.source.counting import count_joint
from funnel.spec import ReleaseSpec
from tests.funnel.source.databases import connected, postgres_table, sqlite_table
from tests.ledger.servers import PASSWORD, Server
from tests.projects import spec_of

Refusal = Callable[..., str]
START = "Zebediah"[:-1]
ROWS = [("b", 2), ("a", 1), (None, 1), ("Zebediah", 1), ("a", None), ("a", 1)]


def rows(source: Source, batch_rows: int = 2) -> list[tuple[Any, ...]]:
    batches = list(source.batches(["s", "x"], batch_rows))
    assert all(batch.num_rows <= batch_rows and batch.schema.names == ["s", "x"] for batch in batches)
    return [(row["s"], row["x"]) for batch in batches for row in batch.to_pylist()]


def counted_alike(spec: ReleaseSpec) -> None:
    """Both computations see the same table, and the same digest."""
    source = open_source(spec.reading)
    joint = count_joint(spec, quiet, source)
    again = recount(spec)
    assert again.table(joint.secret.symbols, joint.inputs.symbols) == joint.counts.tolist()
    assert again.rows == joint.n
    assert again.sha256 == source.digest() == source.files.digest() == source_digest(spec)


@pytest.fixture(params=["sqlite", "postgresql"])
def people(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., ReleaseSpec]:
    """Makes the spec of a table ``people`` with text ``s`` and whole numbers ``x``."""

    def made(content: Sequence[Sequence[Any]] = ROWS, columns: str = "s text, x integer", **said: Any) -> ReleaseSpec:
        if request.param == "sqlite":
            path = sqlite_table(tmp_path, columns, content)
        else:
            path = postgres_table(request.getfixturevalue("postgres"), columns, content)
        source = {"table": "people", **said.pop("source", {})}
        return spec_of(path, tmp_path, source={name: value for name, value in source.items() if value}, **said)

    return made


class TestReading:
    def test_a_table(self, people: Callable[..., ReleaseSpec]) -> None:
        spec = people()
        source = open_source(spec)
        assert (source.format, source.names) == ("sql", ("s", "x"))
        assert source.schema == pa.schema([("s", pa.string()), ("x", pa.int64())])
        assert sorted(rows(source), key=str) == sorted(ROWS, key=str)
        counted_alike(spec)

    def test_a_query(self, people: Callable[..., ReleaseSpec]) -> None:
        query = "-- the common ones: 100 % of them\nSELECT x AS s, count(*) AS x, 'a:b' AS c FROM people GROUP BY x; "
        spec = people(source={"table": None, "query": query}, recode={"x": {"bins": [2]}})
        assert sorted(rows(open_source(spec)), key=str) == [(1, 4), (2, 1), (None, 1)]
        counted_alike(spec)

    def test_order_is_of_the_values_alone(self, people: Callable[..., ReleaseSpec], tmp_path: Path) -> None:
        content = [*ROWS, ("é", 3), ("B", 2), ("", 2)]
        first = open_source(people(content))
        (tmp_path / "people.sqlite").unlink(missing_ok=True)
        second = open_source(people(content[::-1]))
        assert rows(first) == rows(second)
        assert first.digest() == second.digest()

    def test_what_changes_is_another_source(self, people: Callable[..., ReleaseSpec], tmp_path: Path) -> None:
        before = open_source(people()).digest()
        for content in ([*ROWS, ROWS[0]], ROWS[1:], [("b", 3), *ROWS[1:]]):
            (tmp_path / "people.sqlite").unlink(missing_ok=True)
            assert open_source(people(content)).digest() != before

    def test_names_and_two_passes_at_once(self, people: Callable[..., ReleaseSpec]) -> None:
        columns = '"a ""b"" %s" text, "S t" integer, s text'
        spec = people([("p", 1, "x"), ("q", 2, "y")], columns, publish=['a "b" %s'])
        source = open_source(spec)
        one, other = (source.batches(["s"], 1) for _ in range(2))
        assert [batch["s"][0].as_py() for pair in zip(one, other, strict=True) for batch in pair] == [
            "x",
            "x",
            "y",
            "y",
        ]
        counted_alike(spec)

    def test_a_record_key(self, people: Callable[..., ReleaseSpec]) -> None:
        spec = people([("a", 1, 7), ("b", 2, 8)], "s text, x integer, person integer", record_key=["person"])
        counted_alike(spec)

    @settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        st.lists(st.tuples(st.sampled_from([None, 0, -1, 2**60]), st.sampled_from([None, 0.1, 1e16, 5e-324, -0.0, 7])))
    )
    def test_numbers_of_sqlite(self, tmp_path_factory: pytest.TempPathFactory, content: list[tuple[Any, Any]]) -> None:
        folder = tmp_path_factory.mktemp("sqlite")
        path = sqlite_table(folder, "s, x", [*content, (1, 1.5), (2, 2)])
        spec = spec_of(path, folder, source={"table": "people"}, recode={"x": {"bins": [1.7]}})
        assert open_source(spec).schema.field("x").type == pa.float64()
        counted_alike(spec)


TYPES: list[tuple[str, list[Any]]] = [
    ("varchar(9)", ["a", "Ä", None]),
    ("char(3)", ["a", "b  ", None]),
    ("mood", ["low", "high", None]),
    ("uuid", ["00000000-0000-0000-0000-000000000001", None, None]),
    ("boolean", [True, False, None]),
    ("smallint", [1, -5, None]),
    ("bigint", [2**62, 0, None]),
    ("real", [0.1, float("nan"), 1e20]),
    ("double precision", [0.1, float("inf"), -0.0]),
    ("numeric", [Decimal("1.50"), Decimal("1.5"), Decimal("NaN")]),
    ("date", [dt.date(2020, 1, 2), dt.date(1, 1, 1), None]),
    ("time", [dt.time(1, 2), dt.time(1, 2, 3, 400), None]),
    ("timestamp", [dt.datetime(1969, 1, 2, 3), dt.datetime(2020, 1, 2, 3, 4, 5, 6), None]),
    ("timestamptz", [dt.datetime(2020, 6, 2, 3, tzinfo=dt.UTC), dt.datetime(1900, 1, 1, tzinfo=dt.UTC), None]),
]


class TestPostgres:
    @pytest.mark.parametrize(("kind", "values"), TYPES, ids=[kind for kind, _ in TYPES])
    def test_types(self, postgres: Server, tmp_path: Path, kind: str, values: list[Any]) -> None:
        url = postgres.schema()
        with connected(url) as connection:
            connection.execute("CREATE TYPE mood AS ENUM ('low', 'high')")
            connection.execute(f"CREATE TABLE people (s text, x {kind})".encode())
            for s, x in zip("aba", values, strict=True):
                connection.execute(f"INSERT INTO people VALUES (%s, %s::{kind})".encode(), (s, x))
        counted_alike(spec_of(url, tmp_path, source={"table": "people"}))

    @pytest.mark.parametrize("kind", ["json", "bytea", "interval", "integer[]", "point"])
    def test_types_without_categories(self, postgres: Server, tmp_path: Path, refusal: Refusal, kind: str) -> None:
        url = postgres.schema()
        with connected(url) as connection:
            connection.execute(f"CREATE TABLE people (s text, x {kind})".encode())
        spec = spec_of(url, tmp_path, source={"table": "people"})
        assert "column 'x' of table people is of type" in refusal(lambda: open_source(spec))
        with pytest.raises(DataError):
            recount(spec)

    def test_a_schema_and_its_table(self, postgres: Server, tmp_path: Path) -> None:
        url = postgres_table(postgres, "s text, x text", [("a", "1"), ("b", "2")])
        schema = url.rpartition("%3D")[2]
        assert (
            len(
                rows(open_source(spec_of(url.partition("&options")[0], tmp_path, source={"table": f"{schema}.people"})))
            )
            == 2
        )

    def test_one_moment(self, postgres: Server, tmp_path: Path) -> None:
        url = postgres_table(postgres, "s text, x integer", ROWS)
        source = open_source(spec_of(url, tmp_path, source={"table": "people"}))
        before = rows(source)
        with connected(url) as connection:
            connection.execute("UPDATE people SET x = 99")
        assert rows(source) == before
        assert source.digest() == source.files.digest()
        assert source_digest(spec_of(url, tmp_path, source={"table": "people"})) != source.digest()

    def test_writes_while_it_is_read_are_not_seen(
        self, postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        url = postgres_table(postgres, "s text, x integer", ROWS)
        asked = sql._Reading.kinds

        def then_written(self: Any, connection: Any, columns: Any) -> Any:
            found = asked(self, connection, columns)
            with connected(url) as other:
                other.execute("INSERT INTO people VALUES ('late', 1)")
            return found

        source = open_source(spec_of(url, tmp_path, source={"table": "people"}))
        monkeypatch.setattr(sql._Reading, "kinds", then_written)
        assert ("late", 1) not in rows(source)

    def test_nothing_can_be_written(self, postgres: Server, tmp_path: Path, refusal: Refusal) -> None:
        url = postgres_table(postgres, "s text, x integer", ROWS)
        with connected(url) as connection:
            connection.execute(
                "CREATE FUNCTION gone() RETURNS integer LANGUAGE sql AS 'DELETE FROM people RETURNING 1'"
            )
        for query in ("SELECT s, gone() AS x FROM people", "SELECT s, x FROM people) AS t; DELETE FROM people; --"):
            spec = spec_of(url, tmp_path, source={"query": query})
            refusal(lambda spec=spec: open_source(spec).digest())
            with pytest.raises(DataError):
                recount(spec)
        with connected(url) as connection:
            assert connection.execute("SELECT count(*) FROM people").fetchone() == (len(ROWS),)

    def test_rows_are_sent_some_at_a_time(
        self, postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        url = postgres_table(postgres, "s text, x integer", [("a", 1), ("b", 2)])
        monkeypatch.setattr("funnel.readers.formats.sql._FETCHED_ROWS", 7)
        query = "SELECT s, x + n AS x, (SELECT count(*) FROM pg_cursors) AS c FROM people, generate_series(1, 50) AS n"
        source = open_source(spec_of(url, tmp_path, publish=["x", "c"], source={"query": query}))
        batches = list(source.batches(["s", "c"]))
        assert max(batch.num_rows for batch in batches) == 7
        assert {row["c"] for batch in batches for row in batch.to_pylist()} == {1}


class TestRefusals:
    def test_a_table_that_is_not_there(self, people: Callable[..., ReleaseSpec], refusal: Refusal) -> None:
        message = refusal(lambda: open_source(people(source={"table": "peple"})))
        assert "peple" in message
        assert "check table or query" in message

    def test_a_column_that_is_not_there(self, people: Callable[..., ReleaseSpec], refusal: Refusal) -> None:
        assert "did you mean 'x'" in refusal(lambda: open_source(people(publish=["X "])))

    def test_a_query_that_is_none(self, people: Callable[..., ReleaseSpec], refusal: Refusal) -> None:
        message = refusal(lambda: open_source(people(source={"table": None, "query": "SELEC 1"})))
        assert "check table or query" in message

    def test_a_value_that_cannot_be_read(self, postgres: Server, tmp_path: Path, refusal: Refusal) -> None:
        url = postgres_table(postgres, "s text, x date", [("a", "infinity"), ("Zebediah", "2020-01-01")])
        message = refusal(lambda: open_source(spec_of(url, tmp_path, source={"table": "people"})).digest())
        assert "cast it to text in a query" in message

    def test_an_error_that_quotes_a_row(self, postgres: Server, tmp_path: Path, refusal: Refusal) -> None:
        url = postgres_table(postgres, "s text, x text", [("a", "1"), ("b", "Zebediah")])
        spec = spec_of(url, tmp_path, source={"query": "SELECT s, CAST(x AS integer) AS x FROM people"})
        refusal(lambda: open_source(spec).digest())
        refusal(lambda: recount(spec))

    def test_cells_of_several_types(self, tmp_path: Path, refusal: Refusal) -> None:
        for value, told in (("Zebediah", "texts as well as numbers"), (b"\x00", "binary data")):
            path = sqlite_table(tmp_path, "s, x", [("a", 1), ("b", value)], f"{told[:2]}.sqlite")
            spec = spec_of(path, tmp_path, source={"table": "people"})
            assert told in refusal(lambda spec=spec: open_source(spec))
            refusal(lambda spec=spec: recount(spec))

    def test_text_that_is_none(self, tmp_path: Path, refusal: Refusal) -> None:
        path = sqlite_table(tmp_path, "s, x", [("a", "1"), ("b", "2")])
        with sqlite3.connect(tmp_path / "people.sqlite") as connection:
            connection.execute("UPDATE people SET x = CAST(x'5A656265646961FF' AS TEXT) WHERE s = 'a'")
        connection.close()
        refusal(lambda: open_source(spec_of(path, tmp_path, source={"table": "people"})).digest(), START)

    def test_files_that_are_no_database(self, tmp_path: Path, refusal: Refusal) -> None:
        (tmp_path / "people.sqlite").write_bytes(b"Zebediah" * 1000)
        spec = spec_of("sqlite:///people.sqlite", tmp_path, source={"table": "people"})
        assert "cannot be read" in refusal(lambda: open_source(spec))
        (tmp_path / "people.sqlite").unlink()
        assert "there is no database" in refusal(lambda: open_source(spec))
        assert not (tmp_path / "people.sqlite").exists()

    def test_without_the_packages(self, postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        url = postgres_table(postgres, "s text, x text", [("a", "1"), ("b", "2")])
        for package, extra in (("psycopg", "postgres"), ("sqlalchemy", "pipeline")):
            with monkeypatch.context() as without:
                without.setitem(sys.modules, package, None)
                with pytest.raises(SpecError, match=rf"pip install 'funnel\[{extra}\]'"):
                    open_source(spec_of(url, tmp_path, source={"table": "people"}))


class TestPasswords:
    def url(self, server: Server, url: str, password: str) -> str:
        rest = url.partition("?")[2].partition("&options")[2]
        return f"postgresql+psycopg://steward:{quote(password, safe='')}@127.0.0.1:{server.port}/shared?options{rest}"

    def test_come_from_the_environment(self, postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        url = postgres_table(postgres, "s text, x text", [("a", "1"), ("b", "2")])
        monkeypatch.setenv("CENSUS", self.url(postgres, url, PASSWORD))
        spec = spec_of("environment:CENSUS", tmp_path, source={"table": "people"})
        counted_alike(spec)
        shown = repr(spec) + spec.text + open_source(spec).address + repr(open_source(spec)) + repr(spec.database)
        for form in (PASSWORD, quote(PASSWORD, safe=""), "Zebediah"):
            assert form not in shown
        assert f"postgresql://127.0.0.1:{postgres.port}/shared" in shown

        monkeypatch.setenv("PGPASSWORD", PASSWORD)
        without = self.url(postgres, url, "x").replace(":x@", "@")
        counted_alike(spec_of(without, tmp_path, source={"table": "people"}))

    def test_a_wrong_one_is_not_told(self, postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        url = postgres_table(postgres, "s text, x text", [("a", "1"), ("b", "2")])
        monkeypatch.setenv("CENSUS", self.url(postgres, url, "Zebediah wrong"))
        spec = spec_of("environment:CENSUS", tmp_path, source={"table": "people"})
        for action in (lambda: open_source(spec), lambda: recount(spec)):
            with pytest.raises(DataError) as caught:
                action()
            assert "Zebediah" not in "".join(traceback.format_exception(caught.value))
            assert "steward" not in str(caught.value)

    def test_a_variable_that_is_not_set(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("CENSUS", raising=False)
        with pytest.raises(SpecError, match=r"CENSUS, which .* is not set"):
            open_source(spec_of("environment:CENSUS", tmp_path, source={"table": "people"}))
        monkeypatch.setenv("CENSUS", "mysql://a:Zebediah@b/c")
        with pytest.raises(SpecError) as caught:
            open_source(spec_of("environment:CENSUS", tmp_path, source={"table": "people"}))
        assert "Zebediah" not in str(caught.value)
