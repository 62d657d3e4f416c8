"""Releases of a table in a database: judged from it, unchanged while it says the same, silent about its password."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest

from funnel.errors import DataError
from funnel.pipeline.flows.watch import look_once
from funnel.release.layout import ReleaseFolder
from funnel.release.record import Record
from tests.funnel.source.databases import connected, postgres_table
from tests.ledger.servers import PASSWORD, Server
from tests.projects import SPEC, adult_rows, tree
from tests.releases import release

SOURCE = 'path = "environment:CENSUS"\ntable = "people"'


def test_a_table_is_released_and_watched(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    table = adult_rows().select(["marital-status", "relationship"]).append_column("id", pa.array(range(3000)))
    columns = '"marital-status" text, relationship text, id integer'
    url = postgres_table(postgres, columns, [tuple(row.values()) for row in table.to_pylist()])
    place = f"127.0.0.1:{postgres.port}/shared?options{url.partition('&options')[2]}"
    monkeypatch.setenv("CENSUS", f"postgresql+psycopg://steward:{quote(PASSWORD, safe='')}@{place}")
    path = tmp_path / "people.toml"
    path.write_text('record_key = ["id"]\n' + SPEC.replace('path = "people.parquet"', SOURCE))

    first = release(path)
    assert (first["status"], first["version"]) == ("published", "1.0.0")
    # The rows change places in the table, and nothing else.
    with connected(url) as connection:
        connection.execute('UPDATE people SET "marital-status" = "marital-status" WHERE id % 3 = 0')
    assert release(path)["status"] == "unchanged"

    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    assert look_once(path)["status"] == "unchanged"
    with connected(url) as connection:
        connection.execute("DELETE FROM people WHERE id = 5")
        # The next version is about other people, as the spec says.
        connection.execute("UPDATE people SET id = id + 3000")
    second = release(path)
    assert second["version"] == "1.1.0"
    folder = ReleaseFolder(tmp_path / "releases" / "people" / "1.1.0")
    # Portals are told which version was before.
    assert '"dcat:prev": {\n    "@id": "../1.0.0/"' in folder.catalogue.read_text(encoding="utf-8")
    assert Record.read(folder.record).rows == 2999
    assert "table people" in folder.report.read_text()

    told = capfd.readouterr()
    said = b"".join(tree(tmp_path).values()) + (told.out + told.err).encode()
    for form in (PASSWORD, quote(PASSWORD, safe=""), "steward"):
        assert form.encode() not in said
    public = b"\n".join(tree(tmp_path / "releases").values())
    # A digest, a share or a size of a file may have the digits of the port by chance: it is told as that of an address.
    assert not re.search(rb"127\.0\.0\.1|localhost|[a-z]:%d|port=%d" % (postgres.port, postgres.port), public)

    # A database that is gone is told of without its password.
    monkeypatch.setenv("CENSUS", f"postgresql+psycopg://steward:{quote(PASSWORD, safe='')}@127.0.0.1:9/shared")
    with pytest.raises(DataError, match=r"postgresql://127\.0\.0\.1:9/shared cannot be read") as caught:
        release(path)
    assert "Zebediah" not in repr(caught.value)
