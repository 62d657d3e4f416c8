"""Tables in real databases for tests: one content, in PostgreSQL and in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg

from tests.ledger.servers import Server


def sqlite_table(folder: Path, columns: str, rows: Sequence[Sequence[Any]], name: str = "people.sqlite") -> str:
    """Make the table ``people`` in a file; returns its URL, relative to the folder."""
    connection = sqlite3.connect(folder / name)
    connection.execute(f"CREATE TABLE people ({columns})")
    marks = ", ".join("?" * len(rows[0]))
    connection.executemany(f"INSERT INTO people VALUES ({marks})", rows)
    connection.commit()
    connection.close()
    return f"sqlite:///{name}"


def postgres_table(server: Server, columns: str, rows: Sequence[Sequence[Any]]) -> str:
    """Make the table ``people`` in a schema of its own; returns the URL."""
    url = server.schema()
    with connected(url) as connection:
        connection.execute(f"CREATE TABLE people ({columns})".encode())
        with connection.cursor() as cursor:
            marks = ", ".join(["%s"] * len(rows[0]))
            cursor.executemany(f"INSERT INTO people VALUES ({marks})".encode(), rows)
    return url


def connected(url: str) -> psycopg.Connection[Any]:
    """A connection of the driver's own, committed when it is left."""
    return psycopg.connect(url.replace("+psycopg", ""))
