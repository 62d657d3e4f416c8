"""Evidence: the released table as another reader finds it, in small tables for Great Expectations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from funnel.protocol import Protocol
from funnel.recount.arrow_files import ParquetReader
from funnel.recount.published import count_published
from funnel.recount.rows import connect

ROWS = "rows_in_file"
"""The column of every table of evidence that holds the number of records in the file: none is a failure."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """A released table, and what it is declared to hold.

    Parameters
    ----------
    released : Path
        The parquet file about to be published.
    protocol : Protocol
        The published one, of b outputs.
    columns : tuple of str
        The columns of the release, in order: those of the protocol, and of whole records all of theirs.
    drawn : sequence of int, shape (b,)
        How often every output was drawn.
    """

    released: Path
    protocol: Protocol
    columns: tuple[str, ...]
    drawn: Sequence[int]

    @cached_property
    def counts(self) -> dict[tuple[str, ...], int]:
        """Records of the file by their values in the columns of the protocol, read by DuckDB."""
        return count_published(self.released, self.protocol.outputs.columns)

    def table(self, name: str) -> pd.DataFrame:
        """The columns of the file; or its records by position of their output, -1 for those that hold none.

        Raises
        ------
        DataError
            If the file cannot be read.
        """
        if name == "columns":
            with connect() as database:
                names = ParquetReader(database).names(self.released, self.released.name)
            return self.counted(pd.DataFrame({"name": names}))
        place = self.protocol.outputs.get
        known = {place(symbol): count for symbol, count in self.counts.items() if place(symbol) >= 0}
        known[-1] = sum(self.counts.values()) - sum(known.values())
        return self.counted(pd.DataFrame({"output": list(known), "records": list(known.values())}))

    def counted(self, table: pd.DataFrame) -> pd.DataFrame:
        """A table with the number of records in the file on every line."""
        return table.assign(**{ROWS: sum(self.counts.values())})
