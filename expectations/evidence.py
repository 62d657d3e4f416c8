"""Evidence: a released table, its protocol, and what it was drawn with and from."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from funnel.alphabet import Alphabet
from funnel.drawn import DrawnCounts
from funnel.errors import SpecError
from funnel.findings.false_alarms import SHARES
from funnel.guarantees import Guarantee
from funnel.joint import Joint
from funnel.pipeline.expectations.custom.channel import Channel, snapshot_inputs
from funnel.pipeline.expectations.drawing import Drawing, JudgedDrawing
from funnel.pipeline.expectations.ordering import order_tables, source_order
from funnel.pipeline.expectations.rereading import ROWS, Reread, reread
from funnel.protocol import Protocol


@dataclass(frozen=True, eq=False)
class Evidence:
    """Everything needed to judge a release before it is published.

    Parameters
    ----------
    released : Path
        The parquet file about to be published.
    protocol : Protocol
        The published one.
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
    pair_counts : ndarray of integers, shape (a + 1, b), or DrawnCounts, which it becomes
        Drawn records by the protocol's input and output; the last row is for inputs outside its alphabet. Internal.
    significance : float
        Smallest p-value at which draws still count as draws from the protocol; see `funnel.findings.false_alarms`.
    drawing : Drawing, optional
        What the drawing left. Only whoever has nothing but a table and its protocol goes without.
    drawn_with : Protocol, optional
        What its records were drawn with, where that is not the published protocol: then that one is what the channels
        of all histories come to, and ``pair_counts`` are by the inputs of this one.
    drawn_from : Joint, optional
        Counts of (secret, what ``drawn_with`` reads).
    categories : mapping of column to sequence of str
        Of the columns of whole records, where these are published and the protocol is over their classes.

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
    pair_counts: DrawnCounts
    significance: float = SHARES["draws"]
    drawing: Drawing | None = None
    drawn_with: Protocol | None = None
    drawn_from: Joint | None = None
    categories: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        b, a = self.sampled.size
        given: object = self.pair_counts
        if not isinstance(given, DrawnCounts):
            table = np.array(given)
            if table.ndim != 2 or table.dtype.kind not in "iu" or (table < 0).any():
                raise SpecError(f"pair counts must be numbers of records in {a + 1} × {b} cells, not {table.dtype}")
            object.__setattr__(self, "pair_counts", DrawnCounts.of_pairs(table))
        if self.pair_counts.shape != (1, a + 1, b):
            raise SpecError(f"pair counts must be {a + 1} × {b} numbers of records, not {self.pair_counts.shape[1:]}")
        if self.published != self.protocol.outputs.columns:
            raise SpecError(
                f"the protocol writes the columns {list(self.protocol.outputs.columns)}, "
                f"not the published ones {list(self.published)}"
            )

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
        return {name: self.counted(table) for name, table in tables.items()}

    def table(self, name: str) -> pd.DataFrame:
        """One of the tables."""
        return self.tables[name]

    def counted(self, table: pd.DataFrame) -> pd.DataFrame:
        """A table with the number of records in the file on every line."""
        return table.assign(**{ROWS: self.reread.rows})

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
        drawn = {
            column: list(dict.fromkeys(symbol[j] for symbol in outputs.symbols))
            for j, column in enumerate(outputs.columns)
        }
        whole = {column: list(texts) for column, texts in self.categories.items()}
        secret = {column: texts for column, texts in drawn.items() if column in self.secret}
        return {**secret, **whole, **drawn}

    @property
    def known(self) -> tuple[Alphabet, ...]:
        """Alphabets whose categories may be named in a verdict; those in none could be anything of a source row."""
        return (self.protocol.outputs, self.joint.over_published(self.published).inputs)

    @property
    def sampled(self) -> Protocol:
        """What records were drawn with."""
        return self.protocol if self.drawn_with is None else self.drawn_with

    @cached_property
    def _channel(self) -> Channel:
        return Channel(self.sampled, self.joint if self.drawn_from is None else self.drawn_from, self.pair_counts)

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

    def _order_table(self, drawing: Drawing) -> pd.DataFrame:
        channel = self._in_snapshot(drawing)
        inputs, outputs, secret = channel.protocol.inputs, self.protocol.outputs, self.joint.secret
        if not drawing.shuffled:
            found = source_order(self.released, outputs, drawing.snapshot, inputs)
            return pd.DataFrame({"table": [found], "drawn": [channel.drawn]})
        return order_tables(
            self.released,
            outputs,
            self.reread.output_counts,
            drawing.snapshot,
            inputs,
            snapshot_inputs(channel),
            secret,
            np.append(self.joint.counts.sum(axis=1), 0),
        )

    def _in_snapshot(self, drawing: Drawing) -> Channel:
        """The channel by what the snapshot at hand has of every record.

        Which history the records of rows that are taken over had is no longer there: it is added up.
        """
        if self.drawn_with is None or not drawing.taken_over:
            return self._channel
        columns = tuple(name for name in self.drawn_with.inputs.columns if name in self.joint.inputs.columns)
        kept = [self.drawn_with.inputs.columns.index(name) for name in columns]
        b, a = self.protocol.size
        drawn, table = np.zeros((a + 1, b), dtype=np.int64), self.pair_counts.pairs
        for symbol, counts in zip(self.drawn_with.inputs.symbols, table, strict=False):
            drawn[self.protocol.inputs.get(tuple(symbol[j] for j in kept))] += counts
        drawn[a] += table[-1]
        return Channel(self.protocol, self.joint, DrawnCounts.of_pairs(drawn))


def _texts(alphabet: Alphabet, column: str) -> set[str]:
    position = alphabet.columns.index(column)
    return {symbol[position] for symbol in alphabet.symbols}
