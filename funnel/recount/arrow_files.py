"""The cells of parquet files, read by DuckDB, and of Arrow and ORC files, unpacked by the one library that reads them.

The batches come by another way through that library than those that a release is made from (its datasets rather than
its readers of files); types, conversions and counts are DuckDB's.
"""

from __future__ import annotations

import base64
import binascii
import datetime
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funnel.errors import DataError
from funnel.recount.cells import Kind
from funnel.recount.rows import KINDS, TypedReader, failure, unknown_type

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import pyarrow as pa


@dataclass(frozen=True)
class _Described:
    """What a parquet file says of its columns: their names and whether they are too wide, their types, and zones."""

    fields: list[tuple[str, bool]]
    kinds: list[str]
    zones: dict[str, str]


class ParquetReader(TypedReader):
    """Reads parquet files."""

    _last: tuple[object, _Described] | None = None

    def names(self, file: Path, shown: str) -> tuple[str, ...]:
        return tuple(name for name, _ in self._fields(file, shown))

    def table(self, file: Path, shown: str, columns: Sequence[str]) -> str:
        aliases = ", ".join(f"c{k}" for k in range(len(self._described(file, shown).fields)))
        return f"{_table(file)} AS source({aliases})"

    def layout(self, file: Path, shown: str, columns: Sequence[str]) -> dict[str, tuple[int, Kind]]:
        described = self._described(file, shown)
        layout: dict[str, tuple[int, Kind]] = {}
        for place, ((name, wide), stored) in enumerate(zip(described.fields, described.kinds, strict=True)):
            if name not in columns:
                continue
            if name in layout:
                raise DataError(f"{shown} has the column {name!r} more than once")
            kind = "decimal" if stored.startswith("DECIMAL(") else KINDS.get(stored)
            if kind is None or wide:
                raise unknown_type(name, shown)
            zoned = stored in ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS")
            layout[name] = (place, Kind(kind, described.zones.get(name, "UTC") if zoned else None))
        return layout

    def _described(self, file: Path, shown: str) -> _Described:
        """Asked once of the file that was read last: whoever reads it sees that its content stays the same."""
        try:
            state = file.stat()
        except OSError:
            raise self._unreadable(shown) from None
        same = (file, state.st_ino, state.st_size, state.st_mtime_ns)
        if self._last is None or self._last[0] != same:
            fields = self._fields(file, shown)
            described = self._query(shown, f"DESCRIBE SELECT * FROM {_table(file)}", [])
            if len(fields) != len(described):
                raise DataError(
                    f"{shown} has a schema that two of its readers see in two ways, so it cannot be counted again"
                )
            stored = "SELECT value FROM parquet_kv_metadata(?) WHERE key = 'ARROW:schema'"
            zones = zones_of(self._query(shown, stored, [_escaped(file)]), shown)
            self._last = same, _Described(fields, [str(entry[1]) for entry in described], zones)
        return self._last[1]

    def _fields(self, file: Path, shown: str) -> list[tuple[str, bool]]:
        # Name, number of children, logical type and precision of all nodes of the schema, a tree in order.
        nodes = "SELECT name, num_children, logical_type, precision FROM parquet_schema(?)"
        return _top_level(self._query(shown, nodes, [_escaped(file)]))

    def _query(self, shown: str, query: str, names: list[str]) -> list[Any]:
        """All rows that answer a question about a file itself."""
        with suppress(failure()):
            return self.database.execute(query, names).fetchall()
        # Raised outside the handler: the original message may quote the file.
        raise self._unreadable(shown)

    @staticmethod
    def _unreadable(shown: str) -> DataError:
        return DataError(f"{shown} cannot be read as parquet by the second reader, so the release cannot be judged")


def _top_level(schema: list[tuple[str, int | None, str | None, int | None]]) -> list[tuple[str, bool]]:
    """Names of the columns, and whether a decimal is wider than the second reader's."""
    columns = []
    place = 1
    for _ in range(schema[0][1] or 0):
        name, _, logical, precision = schema[place]
        columns.append((name, "Decimal" in (logical or "") and (precision or 0) > 38))
        open_ = 1
        while open_:
            open_ += (schema[place][1] or 0) - 1
            place += 1
    return columns


def _table(file: Path) -> str:
    return f"read_parquet('{_escaped(file).replace(chr(39), chr(39) * 2)}', hive_partitioning = false)"


def _escaped(file: Path) -> str:
    """A path whose name is no pattern."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in str(file))


def zones_of(stored: Sequence[tuple[bytes]], shown: str) -> dict[str, str]:
    """The time zone of every column that has one.

    The format itself says only that points in time are counted from 1970 in Greenwich; the zone that they are to be
    written in stands in a schema that Arrow stores with the file.

    Parameters
    ----------
    stored : sequence of tuple of bytes
        What the file has under ``ARROW:schema``: nothing, or one value.
    shown : str
        The name of the file, for messages.

    Raises
    ------
    DataError
        If it is damaged.
    """
    import pyarrow as pa
    from pyarrow import ipc

    if not stored:
        return {}
    try:
        fields = list(ipc.read_schema(pa.BufferReader(base64.b64decode(stored[0][0]))))
        return {field.name: field.type.tz for field in fields if pa.types.is_timestamp(field.type) and field.type.tz}
    except (pa.ArrowException, binascii.Error, OSError, UnicodeDecodeError):
        raise DataError(f"the schema that is stored in {shown} is damaged, so its times have no text") from None


class ArrowReader(TypedReader):
    """Reads files of Arrow, ORC, statistics packages and Excel."""

    def __init__(self, database: duckdb.DuckDBPyConnection, form: str, sheet: str | None = None) -> None:
        super().__init__(database)
        self._form = form
        self._sheet = sheet

    def names(self, file: Path, shown: str) -> tuple[str, ...]:
        return tuple(self._schema(file, shown).names)

    def layout(self, file: Path, shown: str, columns: Sequence[str]) -> dict[str, tuple[int, Kind]]:
        schema, layout = self._schema(file, shown), {}
        for place, column in enumerate(columns):
            if column not in schema.names:
                continue
            if schema.names.count(column) > 1:
                raise DataError(f"{shown} has the column {column!r} more than once")
            stored = _plain(schema.field(column).type)
            kind = "decimal" if str(stored).startswith("decimal128") else KINDS.get(_named(self.database, stored))
            if kind is None:
                raise unknown_type(column, shown)
            layout[column] = (place, Kind(kind, getattr(stored, "tz", None)))
        return layout

    def table(self, file: Path, shown: str, columns: Sequence[str]) -> str:
        self.database.register("stored", _batches(_dataset(self._form, file, self._sheet), columns))
        return "stored"

    def failures(self) -> tuple[type[Exception], ...]:
        import pyarrow as pa

        return (pa.ArrowException, failure(), OSError, UnicodeDecodeError)

    def _schema(self, file: Path, shown: str) -> Any:
        with suppress(*self.failures()):
            return _dataset(self._form, file, self._sheet).schema
        # Raised outside the handler: the original message may quote a cell.
        raise DataError(f"{shown} cannot be read to its end by the second reader, so the release cannot be judged")


def _dataset(form: str, file: Path, sheet: str | None) -> Any:
    """What a file holds, as a dataset to be read once."""
    import pyarrow.dataset as ds
    from pyarrow import ipc

    if form in FORMATS:
        return ds.dataset(loaded_table(form, file, sheet))
    if form == "arrow" and not _has_footer(file):
        return ds.dataset(ipc.open_stream(str(file)))
    return ds.dataset(str(file), format="orc" if form == "orc" else "ipc")


def _batches(stored: Any, columns: Sequence[str]) -> Any:
    """The columns as a stream of batches, by the names c0, c1, …, since names that differ in case are one to SQL."""
    import pyarrow as pa

    schema = pa.schema(
        [(f"c{k}", _plain(stored.schema.field(column).type)) for k, column in enumerate(columns)]
        or [("nothing", pa.null())]
    )

    def plain() -> Iterator[Any]:
        for batch in stored.to_batches(columns=list(columns), batch_readahead=1, use_threads=False):
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


FORMATS = ("stata", "spss", "sas", "excel")


def loaded_table(form: str, file: Path, sheet: str | None = None) -> pa.Table:
    """A file as a table of typed columns, labels in place of the codes of columns most of whose codes have one."""
    import pyarrow as pa

    frame, labels = _frame(form, file, sheet)
    return pa.table({str(name): _typed(frame[name], labels.get(str(name), {})) for name in frame.columns})


def _frame(form: str, file: Path, sheet: str | None) -> tuple[pd.DataFrame, Mapping[str, Mapping[Any, str]]]:
    import pandas as pd

    if form == "stata":
        reader: Any
        with pd.io.stata.StataReader(file, convert_categoricals=False, preserve_dtypes=False) as reader:
            frame, sets = reader.read(), reader.value_labels()
            # Which set of labels a column has is no part of what pandas documents.
            named = zip(frame.columns, vars(reader)["_lbllist"], strict=True)
        return frame, {str(name): sets[one] for name, one in named if one in sets}
    if form == "excel":
        place = 0 if sheet is None else sheet
        frame = pd.read_excel(file, sheet_name=place, header=None, dtype=object, na_values=[], keep_default_na=False)
        frame = frame.replace({"": None})
        head, body = frame.iloc[0], frame.iloc[1:].dropna(how="all")
        kept = [place for place, name in enumerate(head) if not pd.isna(name) and str(name).strip()]
        return body.iloc[:, kept].set_axis([str(head.iloc[place]).strip() for place in kept], axis=1), {}
    import pyreadstat

    read: Mapping[str, Callable[[str], Any]] = {
        ".por": pyreadstat.read_por,
        ".sas7bdat": pyreadstat.read_sas7bdat,
        ".xpt": pyreadstat.read_xport,
    }
    frame, described = read.get(file.suffix.lower(), pyreadstat.read_sav)(str(file))
    return frame, described.variable_value_labels


def _typed(values: pd.Series[Any], labels: Mapping[Any, str]) -> pa.Array:
    import pandas as pd
    import pyarrow as pa

    if labels:
        codes = values.dropna().drop_duplicates()
        if 0 < codes.isin(list(labels)).sum() * 2 >= len(codes):
            texts = {code: labels.get(code) or _text(code) for code in {*codes.tolist(), *labels}}
            often = Counter(texts.values())
            for code in labels:
                if often[texts[code]] > 1:
                    texts[code] = f"{texts[code]} ({_text(code)})"
            return pa.array([None if pd.isna(code) else texts[code] for code in values.tolist()], pa.string())
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        midnight = (values.dropna() == values.dropna().dt.normalize()).all()
        return (
            pa.array(values.dt.date.where(values.notna(), None), pa.date32())
            if midnight
            else pa.array(values.astype("datetime64[us]"))
        )
    if pd.api.types.is_numeric_dtype(values.dtype) and not pd.api.types.is_bool_dtype(values.dtype):
        return _numbers([None if pd.isna(value) else value for value in values.tolist()])
    cells = [None if pd.isna(value) else value for value in values.tolist()]
    cells = [value.to_pydatetime() if isinstance(value, pd.Timestamp) else value for value in cells]
    there = [value for value in cells if value is not None]
    if there and all(isinstance(value, bool) for value in there):
        return pa.array(cells, pa.bool_())
    if there and {type(value) for value in there} <= {int, float}:
        return _numbers(cells)
    if there and all(isinstance(value, datetime.date) for value in there):
        stamps = pd.to_datetime(pd.Series(cells, dtype=object))
        return _typed(stamps, {})
    return pa.array([None if value is None else _text(value) for value in cells], pa.string())


def _numbers(cells: list[Any]) -> pa.Array:
    import pyarrow as pa

    there = [value for value in cells if value is not None]
    if all(value == int(value) and abs(value) < 2**53 for value in there):
        return pa.array([None if value is None else int(value) for value in cells], pa.int64())
    return pa.array([None if value is None else float(value) for value in cells], pa.float64())


def _text(value: Any) -> str:
    number = isinstance(value, float) or type(value) is int
    return str(int(value)) if number and float(value).is_integer() else str(value)
