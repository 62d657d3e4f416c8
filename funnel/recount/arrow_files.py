"""The cells of Arrow and ORC files: the one library that reads them unpacks them, DuckDB says what they hold.

The batches come by another way through that library than those that a release is made from (its datasets rather than
its readers of files); types, conversions and counts are DuckDB's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funnel.errors import DataError
from funnel.recount.cells import Kind
from funnel.recount.loaded_files import FORMATS, loaded_table
from funnel.recount.rows import EXPRESSIONS, KINDS, ROWS, Cells, failure

if TYPE_CHECKING:
    import duckdb


def arrow_names(form: str, file: Path, shown: str) -> tuple[str, ...]:
    """The columns of a file, in their order; parameters and errors as of `arrow_kinds`."""
    with _reading(shown):
        return tuple(_schema(form, file).names)


def arrow_kinds(
    database: duckdb.DuckDBPyConnection, form: str, file: Path, shown: str, columns: Sequence[str]
) -> dict[str, Kind]:
    """What the columns of a file hold, of those named that it has.

    Parameters
    ----------
    form : "arrow" or "orc"

    Raises
    ------
    DataError
        If it cannot be read, a column is there twice, or holds what has no categories.
    """
    with _reading(shown):
        schema = _schema(form, file)
    present = [column for column in columns if column in schema.names]
    for column in present:
        if schema.names.count(column) > 1:
            raise DataError(f"{shown} has the column {column!r} more than once")
    kinds = {}
    for column in present:
        stored = _plain(schema.field(column).type)
        kind = "decimal" if str(stored).startswith("decimal128") else KINDS.get(_named(database, stored))
        if kind is None:
            raise DataError(
                f"column {column!r} of {shown} is of a type that the second reader cannot tell the values of"
            )
        kinds[column] = Kind(kind, getattr(stored, "tz", None))
    return kinds


def arrow_cells(
    database: duckdb.DuckDBPyConnection, form: str, file: Path, shown: str, columns: Sequence[str]
) -> Iterator[tuple[Cells, int]]:
    """The distinct combinations of cells of a file, with their numbers of rows.

    Raises
    ------
    DataError
        If it cannot be read to its end, or lacks a column.
    """
    for rows in _answers(database, form, file, shown, columns, ", count(*)", "GROUP BY ALL"):
        for row in rows:
            yield row[:-1], row[-1]


def arrow_rows(
    database: duckdb.DuckDBPyConnection, form: str, file: Path, shown: str, columns: Sequence[str]
) -> Iterator[list[Cells]]:
    """The rows of a file in their order, some at a time.

    Raises
    ------
    DataError
        As `arrow_cells`.
    """
    return _answers(database, form, file, shown, columns, "", "")


def _answers(
    database: duckdb.DuckDBPyConnection,
    form: str,
    file: Path,
    shown: str,
    columns: Sequence[str],
    more: str,
    group: str,
) -> Iterator[list[Any]]:
    kinds = arrow_kinds(database, form, file, shown, columns)
    for column in columns:
        if column not in kinds:
            raise DataError(f"{shown} has no column {column!r}, so it cannot be counted again")
    chosen = [
        EXPRESSIONS.get(kinds[column].name, "CAST({} AS VARCHAR)").format(f"c{k}") for k, column in enumerate(columns)
    ]
    # No column at all, where the names of folders state all of them.
    selected = ", ".join(chosen) + more if chosen else more.removeprefix(", ")
    with _reading(shown):
        database.register("stored", _batches(form, file, columns))
        found = database.execute(f"SELECT {selected} FROM stored {group}")
        while rows := found.fetchmany(ROWS):
            yield rows
        database.unregister("stored")


def _schema(form: str, file: Path) -> Any:
    import pyarrow.dataset as ds
    from pyarrow import ipc

    if form in FORMATS:
        return loaded_table(form, file).schema
    if form == "arrow" and not _has_footer(file):
        with ipc.open_stream(str(file)) as reader:
            return reader.schema
    return ds.dataset(str(file), format="orc" if form == "orc" else "ipc").schema


def _batches(form: str, file: Path, columns: Sequence[str]) -> Any:
    """The columns as a stream of batches, by the names c0, c1, …, since names that differ in case are one to SQL."""
    import pyarrow as pa
    import pyarrow.dataset as ds
    from pyarrow import ipc

    stored = _schema(form, file)
    schema = pa.schema(
        [(f"c{k}", _plain(stored.field(column).type)) for k, column in enumerate(columns)] or [("nothing", pa.null())]
    )

    def found() -> Iterator[Any]:
        if form in FORMATS:
            yield from loaded_table(form, file).select(list(columns)).to_batches()
        elif form == "arrow" and not _has_footer(file):
            with ipc.open_stream(str(file)) as reader:
                yield from reader
        else:
            kind = "orc" if form == "orc" else "ipc"
            scanner = ds.dataset(str(file), format=kind).scanner(
                columns=list(columns), batch_readahead=1, use_threads=False
            )
            yield from scanner.to_batches()

    def plain() -> Iterator[Any]:
        for batch in found():
            batch.validate(full=True)
            arrays = [_as_plain(batch.column(column)).cast(schema.field(k).type) for k, column in enumerate(columns)]
            yield pa.RecordBatch.from_arrays(arrays or [pa.nulls(batch.num_rows)], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, plain())


def _has_footer(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(6) == b"ARROW1"


def _plain(kind: Any) -> Any:
    """The type of the values, in one that DuckDB has."""
    import pyarrow as pa

    values = kind.value_type if pa.types.is_dictionary(kind) else kind
    return {pa.float16(): pa.float32(), pa.string_view(): pa.string()}.get(values, values)


def _as_plain(array: Any) -> Any:
    return array.dictionary_decode() if hasattr(array, "dictionary_decode") else array


def _named(database: duckdb.DuckDBPyConnection, kind: Any) -> str:
    """How DuckDB calls a type."""
    import pyarrow as pa

    with suppress(failure(), pa.ArrowException):
        database.register("described", pa.table({"c0": pa.array([], kind)}))
        (row,) = database.execute("DESCRIBE SELECT * FROM described").fetchall()
        database.unregister("described")
        return str(row[1])
    return ""


@contextmanager
def _reading(shown: str) -> Iterator[None]:
    import pyarrow as pa

    # Known before: a reading that is given up may end when nothing can be imported any more.
    failed, failures = False, (pa.ArrowException, failure(), OSError, UnicodeDecodeError)
    try:
        yield
    except failures:
        failed = True
    if failed:
        # Raised outside the handler: the original message may quote a cell.
        raise DataError(f"{shown} cannot be read to its end by the second reader, so the release cannot be judged")
