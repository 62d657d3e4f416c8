"""Evidence: what a released table was drawn with and from, beside the table and its protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from funnel.alphabet import Alphabet
from funnel.audit.false_alarms import SHARES
from funnel.drawn import DrawnCounts
from funnel.errors import SpecError
from funnel.guarantees import Guarantee
from funnel.joint import Joint
from funnel.pipeline.expectations.custom.channel import Channel, snapshot_inputs
from funnel.pipeline.expectations.drawing import Drawing, JudgedDrawing
from funnel.pipeline.expectations.ordering import order_tables, source_order
from funnel.pipeline.expectations.table_evidence import ROWS, TableEvidence
from funnel.protocol import Protocol

if TYPE_CHECKING:
    from funnel.pipeline.expectations.custom.base import ReleaseExpectation

__all__ = ["ROWS", "Evidence"]


@dataclass(frozen=True, eq=False)
class Evidence(TableEvidence):
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
        Smallest p-value at which draws still count as draws from the protocol; see `funnel.audit.false_alarms`.
    drawing : Drawing, optional
        What the drawing left. Only whoever has nothing but a table and its protocol goes without.
    drawn_with : Protocol, optional
        What its records were drawn with, where that is not the published protocol: then that one is what the channels
        of all histories come to, and ``pair_counts`` are by the inputs of this one.
    drawn_from : Joint, optional
        Counts of (secret, what ``drawn_with`` reads).
    public : Joint, optional
        The law that everything public is about, where noise protects the counts, with what these may be.
    categories : mapping of column to sequence of str
        Of the columns of whole records, where these are published and the protocol is over their classes.

    Raises
    ------
    SpecError
        If the counts do not fit the protocol, or it writes other columns than the published ones.
    """

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
    public: Joint | None = None
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
        """The tables to judge by name: those of the released table, the channel and, if it is known, the drawing.

        Raises
        ------
        ReleaseRefused
            If the file cannot be read as parquet.
        """
        tables = {"channel": self._channel.table(), "published": self._published.table()}
        if self.drawing is not None:
            tables["drawing"] = JudgedDrawing(self.drawing, self._channel).table()
            tables["order"] = self._order_table(self.drawing)
        return {**super().tables, **{name: self.counted(table) for name, table in tables.items()}}

    def declared(self) -> list[ReleaseExpectation]:
        """What is expected of it."""
        from funnel.pipeline.expectations.suite import declare

        return declare(self)

    @property
    def declared_categories(self) -> dict[str, list[str]]:
        """See `TableEvidence`."""
        drawn = super().declared_categories
        whole = {column: list(texts) for column, texts in self.categories.items()}
        secret = {column: texts for column, texts in drawn.items() if column in self.secret}
        return {**secret, **whole, **drawn}

    @property
    def known(self) -> tuple[Alphabet, ...]:
        """Alphabets whose categories may be named in a verdict."""
        return (self.protocol.outputs, self.joint.over_published(self.published).inputs)

    @property
    def sampled(self) -> Protocol:
        """What records were drawn with."""
        return self.protocol if self.drawn_with is None else self.drawn_with

    @cached_property
    def _channel(self) -> Channel:
        return Channel(self.sampled, self.joint if self.drawn_from is None else self.drawn_from, self.pair_counts)

    @cached_property
    def _published(self) -> Channel:
        """The channel that public files tell of, whose level is that of the version alone."""
        b, a = self.protocol.size
        drawn = self.pair_counts if self.drawn_with is None else DrawnCounts.total((1, a + 1, b), [])
        return Channel(self.protocol, self.joint if self.public is None else self.public, drawn)

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
