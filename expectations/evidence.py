"""Evidence: all that a release is judged by, and the small tables that Great Expectations judges."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from funnel.alphabet import Alphabet
from funnel.audit.false_alarms import SHARES
from funnel.errors import SpecError
from funnel.guarantees import Guarantee
from funnel.joint import IntArray, Joint
from funnel.pipeline.expectations.custom.channel import Channel, snapshot_inputs
from funnel.pipeline.expectations.drawing import Drawing, JudgedDrawing
from funnel.pipeline.expectations.ordering import order_tables, source_order
from funnel.pipeline.expectations.rereading import Reread, reread
from funnel.protocol import Protocol

# The column of every table that holds the number of records in the file: whatever is judged, none is a failure.
ROWS = "rows_in_file"


@dataclass(frozen=True, eq=False)
class Evidence:
    """Everything needed to judge a release before it is published.

    Parameters
    ----------
    released : Path
        The parquet file about to be published.
    protocol : Protocol
        What its records were drawn with.
    joint : Joint
        Counts of (secret, input) in the snapshot, shape (c, a).
    guarantee : Guarantee
        The declared bound.
    snapshot_rows : int
        Records in the snapshot that was sanitised.
    secret : tuple of str
        Secret columns of the source.
    published : tuple of str
        Columns of the release, in order.
    pair_counts : ndarray of integers, shape (a + 1, b)
        Drawn records by the protocol's input and output; the last row is for inputs outside its alphabet. Internal.
    significance : float
        Smallest p-value at which draws still count as draws from the protocol; see `funnel.audit.false_alarms`.
    drawing : Drawing, optional
        What the drawing left. Only whoever has nothing but a table and its protocol goes without.

    Raises
    ------
    SpecError
        If the counts do not fit the protocol, or it writes other columns than the published ones.
    """

    released: Path
    protocol: Protocol
    joint: Joint
    guarantee: Guarantee
    snapshot_rows: int
    secret: tuple[str, ...]
    published: tuple[str, ...]
    pair_counts: IntArray
    significance: float = SHARES["draws"]
    drawing: Drawing | None = None

    def __post_init__(self) -> None:
        b, a = self.protocol.size
        counts = np.array(self.pair_counts)
        if counts.shape != (a + 1, b) or counts.dtype.kind not in "iu" or (counts < 0).any():
            raise SpecError(f"pair counts must be {a + 1} × {b} numbers of records, not {counts.dtype} {counts.shape}")
        if self.published != self.protocol.outputs.columns:
            raise SpecError(
                f"the protocol writes the columns {list(self.protocol.outputs.columns)}, "
                f"not the published ones {list(self.published)}"
            )
        counts = counts.astype(np.int64)
        counts.setflags(write=False)
        object.__setattr__(self, "pair_counts", counts)

    @cached_property
    def reread(self) -> Reread:
        """What the file holds; read once.

        Raises
        ------
        ReleaseRefused
            If it cannot be read as parquet.
        """
        return reread(self.released, self.protocol.outputs)

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables to judge by name: file, columns, categories, outputs, channel and, if it is known, the drawing.

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
            "channel": self._channel.table(),
        }
        if self.drawing is not None:
            tables["drawing"] = JudgedDrawing(self.drawing, self._channel).table()
            tables["order"] = self._order_table(self.drawing)
        return {name: table.assign(**{ROWS: self.reread.rows}) for name, table in tables.items()}

    @cached_property
    def _channel(self) -> Channel:
        return Channel(self.protocol, self.joint, self.pair_counts)

    def _order_table(self, drawing: Drawing) -> pd.DataFrame:
        inputs, outputs, secret = self.protocol.inputs, self.protocol.outputs, self.joint.secret
        if not drawing.shuffled:
            found = source_order(self.released, outputs, drawing.snapshot, inputs)
            return pd.DataFrame({"table": [found], "drawn": [self.pair_counts]})
        return order_tables(
            self.released,
            outputs,
            self.reread.output_counts,
            drawing.snapshot,
            inputs,
            snapshot_inputs(self._channel),
            secret,
            np.append(self.joint.counts.sum(axis=1), 0),
        )

    def _file_table(self) -> pd.DataFrame:
        found = self.reread
        return pd.DataFrame({"footer_rows": [found.footer_rows], "metadata": [found.metadata]})

    def _column_table(self) -> pd.DataFrame:
        rows = [(column.name, column.type, column.is_category, column.nulls) for column in self.reread.columns]
        return pd.DataFrame(rows, columns=["name", "type", "is_category", "nulls"])

    def _category_table(self) -> pd.DataFrame:
        """Categories by column; those in no alphabet are not named, because they could be anything of a source row."""
        rows: list[tuple[str, bool, str | None, int]] = []
        for column in self.published:
            if column not in self.reread.categories:
                rows.append((column, False, None, 0))
                continue
            named = _texts(self.protocol.outputs, column) | _texts(self.joint.inputs, column)
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
