"""An opened source, whatever its format: its columns, their types, its digest, and its rows in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from funnel.errors import DataError

if TYPE_CHECKING:
    from funnel.databases import Database
    from funnel.settings.source import SourceSettings

BATCH_ROWS = 1 << 17

Read = Callable[[Sequence[str], int], Iterator[pa.RecordBatch]]


class SourceSpec(Protocol):
    """What a source is opened by: all that its readers know of a spec."""

    @property
    def source(self) -> SourceSettings:
        """The section ``[source]``."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""

    @property
    def filtering(self) -> SourceSpec:
        """The same with the columns of the conditions on records."""

    @property
    def source_address(self) -> str:
        """Absolute path or URL; of a database, what of it may be shown."""

    @property
    def source_title(self) -> str:
        """What the source is called."""

    @property
    def database(self) -> Database:
        """The database of a source that is in one."""

    @property
    def workspace_folder(self) -> Path:
        """The folder of private working files."""


class Content(Protocol):
    """What an opened source consists of."""

    @property
    def address(self) -> str:
        """Path or URL, as people may see it."""

    def digest(self) -> str:
        """SHA-256 of it."""


@dataclass(frozen=True)
class Source:
    """An opened, checked source; made by `funnel.readers.formats.open_source`.

    Attributes
    ----------
    files : Content
        The one file, all files of a dataset, or what was read from a database.
    format : str
        Name of its format.
    name : str
        What it is called in messages: the last part of its address, or a table.
    names : tuple of str
        All columns, in the order of the (first) file; those stated by names of folders last.
    schema : pyarrow.Schema
        The columns the spec needs, with their types; text for every column of a csv file or stated by folders.
    n_rows : int or None
        Rows, where the source tells before it is read.
    """

    files: Content
    format: str
    name: str
    names: tuple[str, ...]
    schema: pa.Schema
    n_rows: int | None
    read: Read = field(repr=False)
    now: Callable[[], str] = field(repr=False)

    @property
    def address(self) -> str:
        """Path or URL of the source."""
        return self.files.address

    def digest(self) -> str:
        """SHA-256 of what is at the address now: files that came or went since the source was opened count.

        Of a database, whose rows were read at one moment, that of these rows.

        Raises
        ------
        DataError
            If it cannot be read.
        """
        return self.now()

    def batches(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Stream the named columns, in this order, at most ``batch_rows`` rows at a time.

        Memory is bounded by the batch, never by a file, and one file is open at a time. Empty cells of a csv file are
        empty texts.

        Raises
        ------
        DataError
            If a file is damaged or a column is not one the source was opened for; no row is quoted.
        """
        for column in columns:
            if column not in self.schema.names:
                raise DataError(f"{self.name} was not opened for the column {column!r}; name it in the spec")
        yield from self.read(columns, batch_rows)
