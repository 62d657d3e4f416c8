"""Whole records: a table with the number and the class of every record, for a protocol over classes of records."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from funnel.alphabet import CLASS_COLUMN, Alphabet
from funnel.combinations import count_combinations
from funnel.errors import DataError, SpecError
from funnel.protocol import Protocol
from funnel.sampling.chunks import sliced
from funnel.sampling.codes import InputEncoder
from funnel.sampling.donors import RECORD_COLUMN, Classifier, Donors
from funnel.tables import arrow_numbers, arrow_texts, read_batches

if TYPE_CHECKING:
    import pandas as pd

_BATCH_ROWS = 1 << 16


def donors_of(
    table: pd.DataFrame | pa.Table | str | os.PathLike[str], protocol: Protocol, classes: Classifier
) -> Donors:
    """The different records of a table by their class: whose records are published for those that change it.

    Raises
    ------
    SpecError
        If the protocol is not over these classes.
    DataError
        If the table cannot be read, a column is missing or holds nulls, or nobody is of a class that records come to.
    """
    if protocol.inputs != protocol.outputs or protocol.inputs.symbols != tuple((name,) for name in classes.names):
        raise SpecError("the protocol is not over these classes; take both of one solution of fit_columns")
    batches = read_batches(table, list(classes.columns), _BATCH_ROWS)
    counted, _ = count_combinations(batches, classes.columns)
    if not counted:
        raise DataError("the table has no row, so nothing can be drawn for it")
    records = Alphabet(classes.columns, tuple(sorted(counted)))
    counts = np.array([counted[symbol] for symbol in records.symbols], dtype=np.int64)
    donors = Donors.of(records, counts, classes, classes.columns)
    somebody = donors.sizes > 0
    if empty := int((protocol.matrix[~somebody][:, somebody].any(axis=1)).sum()):
        raise DataError(
            f"no record of the table is of {empty:,} of the classes that others come to, so nobody is a donor there; "
            "fit the protocol to records that are more like these"
        )
    return donors


def with_classes(batches: Iterable[pa.RecordBatch], donors: Donors) -> Iterator[pa.RecordBatch]:
    """Batches with the number and the class of every record.

    Raises
    ------
    DataError
        If a record was not there when donors were counted.
    """
    names = arrow_texts(list(donors.classes))
    symbols = zip(*(np.array(texts, dtype=object)[codes] for texts, codes in _columns(donors)), strict=True)
    encoder = InputEncoder(Alphabet(donors.columns, tuple(symbols)))
    for batch in sliced(batches, _BATCH_ROWS):
        records = encoder.codes(batch)
        if (records < 0).any():
            raise DataError("the table changed while it was read; read it again")
        of_class = pa.DictionaryArray.from_arrays(arrow_numbers(donors.of_record[records].astype(np.int32)), names)
        batch = batch.append_column(RECORD_COLUMN, pa.array(records.astype(np.int32)))
        yield batch.append_column(CLASS_COLUMN, of_class)


def _columns(donors: Donors) -> Iterator[tuple[tuple[str, ...], np.ndarray]]:
    return zip(donors.categories, donors.codes.T, strict=True)
