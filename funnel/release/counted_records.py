"""Counted records: exact counts of (secret, record) of a wide table, as a file; internal."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

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


def records_file(joint: Joint) -> bytes:
    """Counted records as a parquet file."""
    content = io.BytesIO()
    pq.write_table(records_table(joint), content, compression="zstd")
    return content.getvalue()


def read_records(file: Path | bytes, secret: Sequence[str], order: Mapping[str, Sequence[str]] | None = None) -> Joint:
    """Read counted records back.

    Parameters
    ----------
    file : Path or bytes
    secret : sequence of str
        The columns of the secret.
    order : mapping of column to sequence of str, optional
        The values of secret columns in their order; by default as people read them, numbers by value.

    Raises
    ------
    DataError
        If they cannot be read, or are no counts.
    """
    try:
        with open_paged(io.BytesIO(file) if isinstance(file, bytes) else file) as opened:
            table = opened.read().unify_dictionaries().combine_chunks()
        inputs = tuple(name for name in table.column_names if name not in (*secret, COUNT))
        s, secrets = _symbols(table, tuple(secret))
        # Wherever a secret comes first, what is read is the same.
        places = sorted(range(len(s)), key=_rank(s, tuple(secret), order))
        s, secrets = tuple(s[i] for i in places), np.argsort(places)[secrets]
        x, records = _symbols(table, inputs)
        counts = np.zeros((len(s), len(x)), dtype=np.int64)
        np.add.at(counts, (secrets, records), table.column(COUNT).to_numpy())
    except (OSError, KeyError, ValueError, TypeError, AttributeError, pa.ArrowException) as error:
        place = "" if isinstance(file, bytes) else f" {file}"
        raise DataError(f"the counted records{place} are missing or damaged; restore them or release again") from error
    return Joint.from_counts(counts, Alphabet(tuple(secret), s), Alphabet(inputs, x))


def _column(texts: list[str], places: IntArray) -> pa.DictionaryArray:
    known = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    codes = np.array([known[text] for text in texts], dtype=np.int32)[places]
    return pa.DictionaryArray.from_arrays(pa.array(codes), arrow_texts(list(known)))


def _rank(
    symbols: Sequence[tuple[str, ...]], columns: tuple[str, ...], order: Mapping[str, Sequence[str]] | None
) -> Callable[[int], tuple[Any, ...]]:
    if order is None:
        return lambda i: tuple(map(natural_key, symbols[i]))
    ranks = [{value: rank for rank, value in enumerate(order[column])} for column in columns]
    return lambda i: tuple(rank[text] for rank, text in zip(ranks, symbols[i], strict=True))


def _symbols(table: pa.Table, columns: tuple[str, ...]) -> tuple[tuple[tuple[str, ...], ...], IntArray]:
    """Symbols in the order in which they come first, and the number of that of each row."""
    texts = zip(*(table.column(name).to_pylist() for name in columns), strict=True)
    known: dict[tuple[str, ...], int] = {}
    numbers = np.array([known.setdefault(symbol, len(known)) for symbol in texts], dtype=np.int64)
    return tuple(known), numbers
