"""Sanitising: from the rows of a table, or its whole records, to the rows of a release, by the code of the pipeline."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from funnel.protocol import Protocol
from funnel.sampling.answers import DRAW_ROWS, answers
from funnel.sampling.chunks import even_chunks, sliced
from funnel.sampling.donors import Classifier
from funnel.sampling.draw import OutputArray
from funnel.sampling.key_column import KEY_COLUMN, KeyColumn
from funnel.sampling.keyed import RecordKey
from funnel.sampling.output_columns import GROUP_ROWS
from funnel.sampling.output_values import published_by
from funnel.sampling.row_order import in_order, order_words
from funnel.sampling.row_words import WordKeys, words_for
from funnel.tables import read_batches

if TYPE_CHECKING:
    import pandas as pd
from typing import TYPE_CHECKING

import numpy as np

from funnel.alphabet import CLASS_COLUMN, Alphabet
from funnel.combinations import count_combinations
from funnel.errors import DataError, SpecError
from funnel.sampling.codes import InputEncoder
from funnel.sampling.donors import RECORD_COLUMN, Donors
from funnel.tables import arrow_numbers, arrow_texts

if TYPE_CHECKING:
    import pandas as pd

_BATCH_ROWS = 1 << 16


def sanitise(
    table: pd.DataFrame | pa.Table | str | os.PathLike[str],
    protocol: Protocol,
    key: RecordKey | None = None,
    *,
    shuffle: bool = True,
    classes: Classifier | None = None,
) -> pa.Table:
    """Draw the release of a table: every row's output under the protocol, and nothing else of the row.

    Without a key every call draws afresh, and publishing several draws of the same records adds up: their joint
    leakage is that of the joint channel (METHOD section 9). With a key the same record gets the same answer again,
    and the rows are those that ``funnel release`` draws for the same records, protocol, key and secret.

    Parameters
    ----------
    table : pandas.DataFrame, pyarrow.Table or path of a parquet file
        Has the columns the protocol reads, and those of the key.
    protocol : Protocol
    key : RecordKey, optional
        Columns whose values are unique to a record, and the release secret.
    shuffle : bool
        Whether rows come in a random order, each order with the same probability (with a key: in a pseudo-random order
        of the keys, the same each time); see `funnel.sampling.row_order` for the proof. Row order is outside the
        model: a source sorted by the secret gives the secret away unless rows are shuffled.
    classes : RecordClasses, optional
        Where the protocol is over classes of records, the questions that say which one a record is of
        (`funnel.fit_columns`). Whole records of the table are published then, after the secret if the protocol
        publishes it, with their class as last column.

    Returns
    -------
    pyarrow.Table
        One dictionary-typed column per published column, as many rows as the source.

    Raises
    ------
    DataError
        If the source cannot be read, a column is missing, or record keys are missing or repeated; with classes also if
        a column holds nulls, or nobody is a donor of a class.
    SpecError
        If the protocol is not over these classes.
    EntropyError
        If the system's random source fails a health test.
    OutputError
        If the temporary folder is full.

    Notes
    -----
    A file is read batch by batch. What is held is the released table; millions of rows that are to be ordered, and
    their keys, are in nameless temporary files. Values outside the input alphabet, nulls among them, draw from the
    protocol's marginal. A protocol does not say what numbers its values stand for: those that a spec asks for
    (``draw = "within"``) are in ``data/numbers.parquet`` of the release that ``funnel release`` makes.

    Examples
    --------
    >>> import funnel, pyarrow
    >>> table = pyarrow.table({"ill": ["yes", "no"] * 50, "size": ["small", "small", "large", "large"] * 25})
    >>> joint = funnel.Joint.from_table(table, secret=["ill"], inputs=["size"])
    >>> released = funnel.sanitise(table, funnel.fit("grr", joint, funnel.LIP(0.5)))
    >>> released.column_names, released.num_rows
    (['size'], 100)
    """
    donors = None if classes is None else donors_of(table, protocol, classes)
    published = published_by(protocol, donors)
    columns, outputs = published.columns(), published.size
    words = words_for(None if key is None else WordKeys.of(key, protocol))
    read = [*protocol.inputs.columns]
    if donors is not None:
        read = [*read[:-1], *donors.columns]
    wanted = dict.fromkeys([*read, *(key.columns if key is not None else ())])
    batches: Iterable[pa.RecordBatch] = sliced(read_batches(table, list(wanted), DRAW_ROWS), DRAW_ROWS)
    if donors is not None:
        batches = with_classes(batches, donors)
    with KeyColumn(key) if key is not None else nullcontext() as keys:
        chosen = answers(batches if keys is None else _with_digests(batches, keys), protocol, words)
        drawn = (replace(some, outputs=published.codes(some, words.to_donate)) for some in chosen)
        codes: Iterator[OutputArray]
        if shuffle:
            codes = in_order((order_words(some, outputs, words) for some in drawn), outputs, words)
        else:
            codes = (some.outputs for some in drawn)
        released = [columns.batch(chunk) for chunk in even_chunks(codes, GROUP_ROWS)]
    return pa.Table.from_batches(released, columns.schema)


def _with_digests(batches: Iterable[pa.RecordBatch], keys: KeyColumn) -> Iterator[pa.RecordBatch]:
    """The batches with the column that a snapshot has; keys are checked when all have been seen."""
    for batch in batches:
        digests = keys.column(batch)
        # Once a record has no key, nothing is drawn any more: batches are read only to count such records.
        if not digests.null_count:
            yield batch.append_column(KEY_COLUMN, digests)
    keys.check()


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
    over, width = protocol.inputs, len(classes.alphabet.columns)
    of_classes = over.columns[-width:], {symbol[-width:] for symbol in over.symbols}
    if over != protocol.outputs or of_classes != (classes.alphabet.columns, {*classes.alphabet.symbols}):
        raise SpecError("the protocol is not over these classes; take both of one solution of fit_columns")
    batches = read_batches(table, list(classes.columns), _BATCH_ROWS)
    counted, _ = count_combinations(batches, classes.columns)
    if not counted:
        raise DataError("the table has no row, so nothing can be drawn for it")
    records = Alphabet(classes.columns, tuple(sorted(counted)))
    counts = np.array([counted[symbol] for symbol in records.symbols], dtype=np.int64)
    donors = Donors.of(records, counts, classes, classes.columns)
    of_class = np.array([donors.classes.index(symbol[-1]) for symbol in over.symbols])
    somebody = donors.sizes[of_class] > 0
    if empty := len(np.unique(of_class[(protocol.matrix[:, somebody] > 0).any(axis=1) & ~somebody])):
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
