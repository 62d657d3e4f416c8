"""The second readers of files, by format: each gives the kinds of columns, and cells as texts that lose nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from funnel.errors import DataError
from funnel.recount.arrow_files import arrow_cells, arrow_kinds, arrow_names, arrow_rows
from funnel.recount.cells import TEXT, Kind
from funnel.recount.loaded_files import FORMATS
from funnel.recount.rows import (
    Cells,
    connect,
    csv_cells,
    csv_names,
    csv_rows,
    parquet_cells,
    parquet_kinds,
    parquet_names,
    parquet_rows,
)
from funnel.spec import ReleaseSpec

if TYPE_CHECKING:
    import duckdb


class FileReader(Protocol):
    """Reads files of one format."""

    def names(self, file: Path, shown: str) -> tuple[str, ...]:
        """All columns of a file, in their order."""

    def kinds(self, file: Path, shown: str, columns: Sequence[str]) -> dict[str, Kind]:
        """What columns hold, of those named that the file has."""

    def cells(self, file: Path, shown: str, columns: Sequence[str]) -> Iterator[tuple[Cells, int]]:
        """Combinations of cells with numbers of rows, some perhaps more than once."""

    def rows(self, file: Path, shown: str, columns: Sequence[str]) -> Iterator[Sequence[Cells]]:
        """The rows in their order, some at a time."""


@contextmanager
def file_reader(spec: ReleaseSpec) -> Iterator[FileReader]:
    """The second reader of the source of a spec.

    Raises
    ------
    DataError
        If its format has none: a release of such a source cannot be judged.
    PipelineError
        If DuckDB is not installed.
    """
    kind = spec.source.format
    with ExitStack() as stack:
        if kind == "csv":
            yield _Csv(spec.source.delimiter, spec.source.encoding)
        elif kind == "parquet":
            yield _Parquet(stack.enter_context(connect()))
        elif kind in ("arrow", "orc", *FORMATS):
            yield _Arrow(stack.enter_context(connect()), kind)
        else:
            raise DataError(f"sources of format {kind} have no second reader, so the release cannot be judged")


@dataclass(frozen=True)
class _Csv:
    delimiter: str
    encoding: str

    def names(self, file: Path, shown: str) -> tuple[str, ...]:
        return csv_names(file, shown, self.delimiter, self.encoding)

    def kinds(self, file: Path, shown: str, columns: Sequence[str]) -> dict[str, Kind]:
        return dict.fromkeys(columns, TEXT)

    def cells(self, file: Path, shown: str, columns: Sequence[str]) -> Iterator[tuple[Cells, int]]:
        return csv_cells(file, shown, columns, self.delimiter, self.encoding)

    def rows(self, file: Path, shown: str, columns: Sequence[str]) -> Iterator[Sequence[Cells]]:
        return csv_rows(file, shown, columns, self.delimiter, encoding=self.encoding)


@dataclass(frozen=True)
class _Parquet:
    database: duckdb.DuckDBPyConnection

    def names(self, file: Path, shown: str) -> tuple[str, ...]:
        return parquet_names(self.database, file, shown)

    def kinds(self, file: Path, shown: str, columns: Sequence[str]) -> dict[str, Kind]:
        return parquet_kinds(self.database, file, shown, columns)

    def cells(self, file: Path, shown: str, columns: Sequence[str]) -> Iterator[tuple[Cells, int]]:
        return parquet_cells(self.database, file, shown, columns)

    def rows(self, file: Path, shown: str, columns: Sequence[str]) -> Iterator[Sequence[Cells]]:
        return parquet_rows(self.database, file, shown, columns)


@dataclass(frozen=True)
class _Arrow:
    database: duckdb.DuckDBPyConnection
    format: str

    def names(self, file: Path, shown: str) -> tuple[str, ...]:
        return arrow_names(self.format, file, shown)

    def kinds(self, file: Path, shown: str, columns: Sequence[str]) -> dict[str, Kind]:
        return arrow_kinds(self.database, self.format, file, shown, columns)

    def cells(self, file: Path, shown: str, columns: Sequence[str]) -> Iterator[tuple[Cells, int]]:
        return arrow_cells(self.database, self.format, file, shown, columns)

    def rows(self, file: Path, shown: str, columns: Sequence[str]) -> Iterator[Sequence[Cells]]:
        return arrow_rows(self.database, self.format, file, shown, columns)
