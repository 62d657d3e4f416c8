"""The second readers of files, by format."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from funnel.errors import DataError
from funnel.recount.arrow_files import ArrowReader
from funnel.recount.loaded_files import FORMATS
from funnel.recount.rows import CsvReader, FileReader, ParquetReader, connect
from funnel.spec import ReleaseSpec


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
    if kind == "csv":
        yield CsvReader(spec.source.delimiter, spec.source.encoding)
    elif kind == "parquet":
        with connect() as database:
            yield ParquetReader(database)
    elif kind in ("arrow", "orc", *FORMATS):
        with connect() as database:
            yield ArrowReader(database, kind)
    else:
        raise DataError(f"sources of format {kind} have no second reader, so the release cannot be judged")
