"""Register tables: the files in the folder of an entry, their columns and digests, and what is said of damaged ones."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funnel.errors import DataError

if TYPE_CHECKING:
    import duckdb

ENTRY = "entry.json"
PEOPLE, ROWS, FORGOTTEN, EXPECTED = "people.parquet", "rows.parquet", "forgotten.parquet", "expected.parquet"
COLUMNS = {
    "nodes.parquet": {"parent": "BIGINT", "output": "INTEGER"},
    "changes.parquet": {
        "version": "INTEGER",
        "before": "INTEGER",
        "after": "INTEGER",
        "changed_before": "TINYINT",
        "changed_after": "TINYINT",
        "records": "BIGINT",
    },
    "channels.parquet": {"channel": "INTEGER", "input": "INTEGER", "output": "INTEGER", "weight": "UBIGINT"},
    "followed.parquet": {"node": "BIGINT", "channel": "INTEGER"},
    "effective.parquet": {"input": "INTEGER", "output": "INTEGER", "weight": "UBIGINT"},
    EXPECTED: {"node": "BIGINT", "people": "DOUBLE"},
    FORGOTTEN: {"high": "UBIGINT", "low": "UBIGINT"},
    PEOPLE: {"high": "UBIGINT", "low": "UBIGINT", "cell": "INTEGER", "changed": "TINYINT", "node": "BIGINT"},
    ROWS: {"high": "UBIGINT", "low": "UBIGINT", "row": "INTEGER", "cell": "INTEGER", "node": "BIGINT"},
}
_LARGEST = 1 << 28


def damaged(path: Path, what: str) -> DataError:
    """The error of a file of a register that is not what it should be."""
    return DataError(f"{path} {what}; restore the register from a backup")


def file_digest(path: Path) -> str:
    """SHA-256 of a file of a register.

    Raises
    ------
    DataError
        If it cannot be read.
    """
    try:
        with path.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError:
        raise damaged(path, "is gone or cannot be read") from None


def file_content(path: Path) -> bytes:
    try:
        with path.open("rb") as opened:
            content = opened.read(_LARGEST + 1)
    except OSError:
        raise damaged(path, "is gone or cannot be read") from None
    if len(content) > _LARGEST:
        raise damaged(path, "is larger than any such file")
    return content


def table_rows(database: duckdb.DuckDBPyConnection, path: Path, query: str) -> list[Any]:
    import duckdb

    try:
        return database.execute(query, [str(path)]).fetchall()
    except duckdb.Error:
        raise damaged(path, "cannot be read as parquet") from None


def require_columns(database: duckdb.DuckDBPyConnection, path: Path) -> None:
    """See that a table of a register has its columns, and no others.

    Raises
    ------
    DataError
        If it has others, or is no parquet file.
    """
    found = table_rows(database, path, "SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM read_parquet(?))")
    if dict(found) != COLUMNS[path.name]:
        raise DataError(
            f"{path} has other columns than this version of funnel reads; check it with the version that wrote it, or "
            "restore the register from a backup if somebody changed it"
        )
