"""Nearest known records: what a protocol does with records that the distribution it was made for does not have."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from funnel.donors.pairing import agreements, hashed, spread
from funnel.joint import IntArray
from funnel.protocol import Protocol
from funnel.sampling.answers import DRAW_ROWS
from funnel.sampling.codes import InputEncoder
from funnel.sampling.columns import OutputColumns
from funnel.tables import read_batches

if TYPE_CHECKING:
    import pandas as pd


def nearest_known(table: pd.DataFrame | pa.Table | str | os.PathLike[str], protocol: Protocol) -> pa.Table:
    """The records of a table, those that a protocol does not know replaced by close ones that it knows.

    A protocol made for protected counts or for synthetic records publishes a record that these lack as a random one.
    Replaced first by a known record that agrees with it in as many columns as any does, it keeps most of its values.
    Which of several is a function of the record alone, so that the same record is always replaced by the same one, and
    over records as likely as the protocol's marginal has it. The bound is that of known records: it is about the
    distribution that the protocol was made for, which gives no probability to others.

    Parameters
    ----------
    table : pandas.DataFrame, pyarrow.Table or path of a parquet file
        Has the columns the protocol reads.
    protocol : Protocol
        Its outputs are its inputs, as `funnel.fit_columns` makes it.

    Returns
    -------
    pyarrow.Table
        The columns of the protocol, in the order of the rows; to be given to `funnel.sanitise`. Not to be published.

    Raises
    ------
    DataError
        If the table cannot be read or lacks a column.

    Notes
    -----
    A sort of the known records for each of about a hundred sets of columns. Nulls agree with nothing.
    """
    columns, encoder = OutputColumns(protocol), InputEncoder(protocol.inputs)
    batches = list(read_batches(table, list(protocol.inputs.columns), DRAW_ROWS))
    codes = [encoder.codes(batch) for batch in batches]
    unknown = [np.flatnonzero(of_batch < 0) for of_batch in codes]
    values = [dict[str, int]() for _ in protocol.inputs.columns]
    known = np.array(
        [[of_column.setdefault(text, len(of_column)) for of_column, text in zip(values, symbol, strict=True)]
         for symbol in protocol.inputs.symbols]
    )  # fmt: skip
    asked = [_codes(batch.take(pa.array(rows)), protocol, values) for batch, rows in zip(batches, unknown, strict=True)]
    if asked and sum(map(len, asked)):
        found = _nearest(known, np.concatenate(asked), protocol.marginal.astype(np.float64))
        for of_batch, rows, some in zip(
            codes, unknown, np.split(found, np.cumsum([len(rows) for rows in unknown])[:-1]), strict=True
        ):
            of_batch[rows] = some
    return pa.Table.from_batches([columns.batch(of_batch) for of_batch in codes], columns.schema)


def _codes(batch: pa.RecordBatch, protocol: Protocol, values: list[dict[str, int]]) -> IntArray:
    """The numbers of the values of some rows, (rows, columns); of values that no known record has, larger ones."""
    codes = np.empty((batch.num_rows, len(values)), dtype=np.int64)
    for j, (name, known) in enumerate(zip(protocol.inputs.columns, values, strict=True)):
        for i, value in enumerate(batch.column(name).to_pylist()):
            text = str(value)
            place = None if value is None else known.get(text)
            # As far as 32 bits go, one for each text.
            new = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest())
            codes[i, j] = len(known) + new if place is None else place
    return codes


def _nearest(known: IntArray, asked: IntArray, weights: np.ndarray) -> IntArray:
    """Of every record asked about, (m, columns), the place among those known, (a, columns), of one that is nearest."""
    theirs, ours = hashed(known), hashed(asked)
    # A number in [0, 1) that is a function of the record.
    chance = spread(ours.sum(axis=1, dtype=np.uint64)) / 2.0**64
    found = np.full(len(asked), -1, dtype=np.int64)
    for kept in agreements(known.shape[1]):
        left = np.flatnonzero(found < 0)
        if not len(left):
            break
        keys = theirs[:, list(kept)].sum(axis=1, dtype=np.uint64)
        order = np.argsort(keys, kind="stable")
        upto = np.concatenate([[0.0], np.cumsum(weights[order])])
        wanted = ours[left][:, list(kept)].sum(axis=1, dtype=np.uint64)
        first, last = (np.searchsorted(keys[order], wanted, side=side) for side in ("left", "right"))
        some = np.flatnonzero(last > first)
        at = upto[first[some]] + chance[left[some]] * (upto[last[some]] - upto[first[some]])
        place = np.clip(np.searchsorted(upto, at, side="right") - 1, first[some], last[some] - 1)
        found[left[some]] = order[place]
    return found
