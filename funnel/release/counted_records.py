"""Counted records: exact counts of (secret, record) of a wide table, as a file; internal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from funnel.alphabet import Alphabet, natural_key
from funnel.errors import DataError
from funnel.joint import IntArray, Joint
from funnel.tables import arrow_texts, open_paged

COUNT = "funnel:count"


def records_table(joint: Joint) -> pa.Table:
    """Every (secret, record) that occurs: secret columns, published columns, how many people; in the order of symbols.

    Texts are dictionary columns whose dictionaries list them in the order in which symbols have them.
    """
    records, secrets = np.nonzero(joint.counts.T)
    arrays = [
        _column([symbol[j] for symbol in alphabet.symbols], places)
        for alphabet, places in ((joint.secret, secrets), (joint.inputs, records))
        for j in range(len(alphabet.columns))
    ]
    counts = pa.array(joint.counts[secrets, records].astype(np.int64))
    return pa.table([*arrays, counts], names=[*joint.secret.columns, *joint.inputs.columns, COUNT])


def write_records(path: Path, joint: Joint) -> None:
    """Write counted records to a parquet file; secret and published columns share it, so none may be both."""
    pq.write_table(records_table(joint), path, compression="zstd")


def read_records(path: Path, secret: tuple[str, ...]) -> Joint:
    """Read counted records back; ``secret`` are the columns of the secret.

    Raises
    ------
    DataError
        If they cannot be read, or are no counts.
    """
    try:
        with open_paged(path) as file:
            table = file.read().unify_dictionaries().combine_chunks()
        inputs = tuple(name for name in table.column_names if name not in (*secret, COUNT))
        s, secrets = _symbols(table, secret)
        # By their names, so that what is read is the same wherever a secret comes first.
        order = sorted(range(len(s)), key=lambda i: tuple(map(natural_key, s[i])))
        s, secrets = tuple(s[i] for i in order), np.argsort(order)[secrets]
        x, records = _symbols(table, inputs)
        counts = np.zeros((len(s), len(x)), dtype=np.int64)
        np.add.at(counts, (secrets, records), table.column(COUNT).to_numpy())
    except (OSError, KeyError, ValueError, TypeError, AttributeError, pa.ArrowException) as error:
        raise DataError(f"the counted records {path} are missing or damaged; restore them or release again") from error
    return Joint.from_counts(counts, Alphabet(secret, s), Alphabet(inputs, x))


def _column(texts: list[str], places: IntArray) -> pa.DictionaryArray:
    known = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    codes = np.array([known[text] for text in texts], dtype=np.int32)[places]
    return pa.DictionaryArray.from_arrays(pa.array(codes), arrow_texts(list(known)))


def _symbols(table: pa.Table, columns: tuple[str, ...]) -> tuple[tuple[tuple[str, ...], ...], IntArray]:
    """Symbols in the order in which they come first, and the number of that of each row."""
    texts = zip(*(table.column(name).to_pylist() for name in columns), strict=True)
    known: dict[tuple[str, ...], int] = {}
    numbers = np.array([known.setdefault(symbol, len(known)) for symbol in texts], dtype=np.int64)
    return tuple(known), numbers
