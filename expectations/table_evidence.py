"""Table evidence: a released table and its protocol, which is all that somebody who has nothing else can judge by."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from funnel.alphabet import Alphabet
from funnel.pipeline.expectations.rereading import Reread, reread
from funnel.protocol import Protocol

if TYPE_CHECKING:
    from funnel.pipeline.expectations.custom.base import ReleaseExpectation

# The column of every table that holds the number of records in the file: whatever is judged, none is a failure.
ROWS = "rows_in_file"


@dataclass(frozen=True, eq=False)
class TableEvidence:
    """A released table and its protocol.

    Parameters
    ----------
    released : Path
        Parquet.
    protocol : Protocol
        What its records were drawn with.
    """

    released: Path
    protocol: Protocol

    @cached_property
    def reread(self) -> Reread:
        """What the file holds; read once.

        Raises
        ------
        ReleaseRefused
            If it cannot be read as parquet.
        """
        return reread(self.released, self.protocol.outputs, tuple(self.declared_categories))

    @property
    def declared_categories(self) -> dict[str, list[str]]:
        """The categories of every column of the file, in its order."""
        outputs = self.protocol.outputs
        return {
            column: list(dict.fromkeys(symbol[j] for symbol in outputs.symbols))
            for j, column in enumerate(outputs.columns)
        }

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables to judge by name: file, columns, categories and outputs.

        Raises
        ------
        ReleaseRefused
            If the file cannot be read as parquet.
        """
        tables = {
            "file": self._file_table(),
            "columns": self._column_table(),
            "categories": self._category_table(),
            "outputs": self._output_table(),
        }
        return {name: self.counted(table) for name, table in tables.items()}

    def table(self, name: str) -> pd.DataFrame:
        """One of the tables."""
        return self.tables[name]

    def counted(self, table: pd.DataFrame) -> pd.DataFrame:
        """A table with the number of records in the file beside every line."""
        return table.assign(**{ROWS: self.reread.rows})

    def declared(self) -> list[ReleaseExpectation]:
        """What is expected of it."""
        from funnel.pipeline.expectations.suite import declare_table

        return declare_table(self)

    @property
    def known(self) -> tuple[Alphabet, ...]:
        """Alphabets whose categories may be named in a verdict; those in none could be anything of a source row."""
        return (self.protocol.outputs,)

    def _file_table(self) -> pd.DataFrame:
        found = self.reread
        return pd.DataFrame({"footer_rows": [found.footer_rows], "metadata": [found.metadata]})

    def _column_table(self) -> pd.DataFrame:
        rows = [(column.name, column.type, column.is_category, column.nulls) for column in self.reread.columns]
        return pd.DataFrame(rows, columns=["name", "type", "is_category", "nulls"])

    def _category_table(self) -> pd.DataFrame:
        """Categories by column."""
        rows: list[tuple[str, bool, str | None, int]] = []
        for column, declared in self.declared_categories.items():
            if column not in self.reread.categories:
                rows.append((column, False, None, 0))
                continue
            texts = (_texts(alphabet, column) for alphabet in self.known if column in alphabet.columns)
            named: Collection[str] = set(declared).union(*texts)
            for category, records in self.reread.categories[column].items():
                rows.append((column, True, category if category in named else None, records))
        return pd.DataFrame(rows, columns=["column", "readable", "category", "records"])

    def _output_table(self) -> pd.DataFrame:
        """Released records by position of the output symbol; -1 for records that hold none."""
        counts = self.reread.output_counts
        return pd.DataFrame({"output": [*range(len(counts) - 1), -1], "records": counts})


def _texts(alphabet: Alphabet, column: str) -> set[str]:
    position = alphabet.columns.index(column)
    return {symbol[position] for symbol in alphabet.symbols}
