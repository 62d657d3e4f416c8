"""Register tables: the files of a register with their columns and digests, and the head that names its entries."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from funnel.errors import DataError
from funnel.recount.reading import read

if TYPE_CHECKING:
    import duckdb

    from funnel.recount.register_files import Entry

ENTRY = "entry.json"
PEOPLE, ROWS, FORGOTTEN, EXPECTED = "people.parquet", "rows.parquet", "forgotten.parquet", "expected.parquet"
DONORS, ROW_DONORS = "donors.parquet", "row_donors.parquet"
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
    DONORS: {"high": "UBIGINT", "low": "UBIGINT", "of_high": "UBIGINT", "of_low": "UBIGINT"},
    ROW_DONORS: {
        "high": "UBIGINT",
        "low": "UBIGINT",
        "row": "INTEGER",
        "of_high": "UBIGINT",
        "of_low": "UBIGINT",
        "of_row": "INTEGER",
    },
    PEOPLE: {"high": "UBIGINT", "low": "UBIGINT", "cell": "INTEGER", "changed": "TINYINT", "node": "BIGINT"},
    ROWS: {"high": "UBIGINT", "low": "UBIGINT", "row": "INTEGER", "cell": "INTEGER", "node": "BIGINT"},
}
_LARGEST = 1 << 28
HEAD = "head.json"


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


def asked(
    database: duckdb.DuckDBPyConnection,
    path: Path,
    query: str,
    values: Sequence[object] = (),
    failed: str = "cannot be counted",
) -> list[tuple[Any, ...]]:
    """The answer to a query on a table of a register, which it names $FILE."""
    import duckdb

    file = str(path).replace("'", "''")
    try:
        return database.execute(query.replace("$FILE", f"'{file}'"), list(values)).fetchall()
    except duckdb.Error:
        raise damaged(path, failed) from None


def table_rows(database: duckdb.DuckDBPyConnection, path: Path, limit: str = "") -> list[tuple[Any, ...]]:
    """The rows of a table of a register, which has its columns and no others.

    Raises
    ------
    DataError
        If it has others, or is no parquet file.
    """
    rows = asked(database, path, f"SELECT * FROM read_parquet($FILE) {limit}", failed="cannot be read as parquet")
    if [(name, str(kind)) for name, kind, *_ in database.description or ()] != list(COLUMNS[path.name].items()):
        raise DataError(
            f"{path} has other columns than this version of funnel reads; check it with the version that wrote it, or "
            "restore the register from a backup if somebody changed it"
        )
    return rows


def require_columns(database: duckdb.DuckDBPyConnection, path: Path) -> None:
    """See that a table of a register has its columns, as `table_rows` does, and read no row."""
    table_rows(database, path, "LIMIT 0")


def _is_count(number: int) -> bool:
    return number >= 0


Count = Annotated[int, _is_count]


@dataclass(frozen=True)
class Named:
    """An entry as the head of a register names it.

    Attributes
    ----------
    folder : str
    entry, people : str
        SHA-256 of ``entry.json`` and of the table of its people.
    missing : int
        People who are counted in the entry and not in that table, as they are forgotten.
    rows : str or None
        SHA-256 of the table of their rows, where people have several.
    donors : str or None
        SHA-256 of the table of whose records were published, where these are whole.
    """

    folder: str
    entry: str
    people: str
    missing: Count
    rows: str | None = None
    donors: str | None = None


@dataclass(frozen=True)
class Head:
    """The head of a register.

    Attributes
    ----------
    named : tuple of Named
    forgotten : str or None
        SHA-256 of the table of those who are forgotten.
    digests : tuple of str
        SHA-256 of the heads before it, and of itself.
    """

    named: tuple[Named, ...]
    forgotten: str | None
    digests: tuple[str, ...]


def read_head(folder: Path) -> Head:
    """The head that a folder holds.

    Raises
    ------
    DataError
        If there is none, or it cannot be read.
    """
    path = folder / HEAD
    try:
        content = file_content(path)
        said = json.loads(content)
        digests = (*map(str, said["earlier"]), hashlib.sha256(content).hexdigest())
        return Head(read(tuple[Named, ...], said["entries"]), said["forgotten"], digests)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise damaged(path, "is no head of a register") from None


def head_complaints(head: Head, entries: Sequence[Entry]) -> Iterator[str]:
    """What the head of a register says otherwise than the entries that are there.

    Raises
    ------
    DataError
        If the people of an entry cannot be read.
    """
    if len(head.named) != len(entries):
        yield "the head of the register names other entries than there are"
        return
    for one, found in zip(head.named, entries, strict=True):
        # An entry that is prepared has a name that begins otherwise.
        if not found.folder.name.endswith(one.folder):
            yield "the head of the register names other entries than there are"
        if one.entry != found.digest:
            yield f"the entry {one.folder} is not the one that the head of the register names"
        if one.people != file_digest(found.people):
            yield f"the people of {one.folder} are not those that the head of the register names"
        if one.rows != (None if found.chapter.units is None else file_digest(found.rows)):
            yield f"the rows of {one.folder} are not those that the head of the register names"
        if one.donors != (None if found.donors is None else file_digest(found.donors)):
            yield f"the donors of {one.folder} are not those that the head of the register names"


def chain_complaints(entries: Sequence[Entry]) -> Iterator[str]:
    """Entries that do not name the one before them."""
    previous = None
    for entry in entries:
        if entry.previous != previous:
            yield f"the entry {entry.folder.name} does not follow the one before it"
        previous = entry.digest
