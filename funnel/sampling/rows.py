"""Sanitising: from rows of a table to rows of a release, in batches of bounded memory."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from funnel.errors import SpecError
from funnel.protocol import Protocol
from funnel.sampling.chunks import RowArray, even_chunks
from funnel.sampling.codes import CodeArray, InputEncoder
from funnel.sampling.columns import GROUP_ROWS, OutputColumns
from funnel.sampling.distinct import DistinctKeys
from funnel.sampling.draw import ChannelSampler, OutputArray
from funnel.sampling.keyed import (
    RecordKey,
    count_missing_keys,
    key_digests,
    key_marks,
    missing_keys_error,
    repeated_keys_error,
    words_of,
)
from funnel.sampling.shuffle import BUCKET_ROWS, Directory, order_rows, shuffle_rows
from funnel.sampling.words import WordSource, WordStream
from funnel.tables import read_batches

if TYPE_CHECKING:
    import pandas as pd

# The arrays made for so many rows stay in the processor's cache.
BATCH_ROWS = 1 << 16
Observer = Callable[[CodeArray, OutputArray], None]
# Outputs, inputs and, where a record key orders them, tags.
_Drawn = tuple[OutputArray, CodeArray, npt.NDArray[np.uint64]]
_NO_TAGS = np.empty(0, dtype=np.uint64)


def sanitise(
    table: pd.DataFrame | pa.Table | str | os.PathLike[str],
    protocol: Protocol,
    key: RecordKey | None = None,
    *,
    shuffle: bool = False,
) -> pa.Table:
    """Draw the release of a table: every row's output under the protocol, and nothing else of the row.

    Without a key every call draws afresh, and publishing several draws of the same records adds up: their joint
    leakage is that of the joint channel (METHOD section 9). With a key the same record gets the same answer again.

    Parameters
    ----------
    table : pandas.DataFrame, pyarrow.Table or path of a parquet file
        Has the columns the protocol reads, and those of the key.
    protocol : Protocol
    key : RecordKey, optional
        Columns whose values are unique to a record, and the release secret.
    shuffle : bool
        Whether rows come in a random order (with a key: in a pseudo-random order of the keys, the same each time).
        Row order is outside the model: a source sorted by the secret gives the secret away unless rows are shuffled.

    Returns
    -------
    pyarrow.Table
        One dictionary-typed column per published column, as many rows as the source.

    Raises
    ------
    DataError
        If the source cannot be read, a column is missing, or record keys are missing or repeated.
    EntropyError
        If the system's random source fails a health test.
    OutputError
        If the temporary folder is full.

    Notes
    -----
    The source is streamed; what is held is one output code per row. Values outside the input alphabet, nulls among
    them, draw from the protocol's marginal. To stream the release as well, and to count, use `sanitised_codes`.

    Examples
    --------
    >>> import funnel, pyarrow
    >>> table = pyarrow.table({"ill": ["yes", "no"] * 50, "size": ["small", "small", "large", "large"] * 25})
    >>> joint = funnel.Joint.from_table(table, secret=["ill"], inputs=["size"])
    >>> released = funnel.sanitise(table, funnel.fit("grr", joint, funnel.LIP(0.5)))
    >>> released.column_names, released.num_rows
    (['size'], 100)
    """
    columns = dict.fromkeys([*protocol.inputs.columns, *(key.columns if key is not None else ())])
    drawn = list(sanitised_codes(read_batches(table, list(columns), BATCH_ROWS), protocol, key, shuffle=shuffle))
    return release_table(np.concatenate(drawn) if drawn else np.empty(0, dtype=np.uint8), protocol)


def sanitised_codes(
    batches: Iterable[pa.RecordBatch],
    protocol: Protocol,
    key: RecordKey | None = None,
    *,
    shuffle: bool = True,
    observe: Observer | None = None,
    words: WordSource | None = None,
    chunk_rows: int = GROUP_ROWS,
    directory: Directory = None,
) -> Iterator[OutputArray]:
    """Output codes of a stream of rows, shuffled or in order, in even chunks: what a release file is written from.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        The source, read once; any batch sizes.
    protocol : Protocol
    key : RecordKey, optional
        As in `sanitise`. The result then depends on the records, the protocol and the secret alone: with ``shuffle``
        not even on the order of the source.
    shuffle : bool
        As in `sanitise`, here on by default.
    observe : callable, optional
        Called with the input codes (-1 outside the alphabet) and output codes of every batch before they are
        shuffled, such as `PairCounts.add`.
    words : callable, optional
        Source of random words; by default a new `WordStream`, made when the first row is asked for, so that a worker
        makes its own after a fork. Drives the shuffle too.
    chunk_rows : int
        Rows per yielded array; the last has fewer.
    directory : path, optional
        For temporary files; by default the system's.

    Yields
    ------
    ndarray of unsigned integers, shape (chunk_rows,)
        Positions in ``protocol.outputs``.

    Raises
    ------
    SpecError
        If both a key and words are given.
    DataError, EntropyError, OutputError
        As `sanitise`. Keys are counted over the whole stream, so with a key and without ``shuffle`` the error can come
        after the last chunk: publish nothing before the stream has ended.
    """
    _require_one(key, words)
    codes: Iterable[RowArray]
    if key is not None:
        keyed = _observed(_drawn_by_key(batches, protocol, key, directory, tagged=shuffle), observe)
        if shuffle:
            pairs = ((outputs, tags) for outputs, _, tags in keyed)
            codes = order_rows(pairs, bucket_rows=min(chunk_rows, BUCKET_ROWS), directory=directory)
        else:
            codes = (outputs for outputs, _, _ in keyed)
    else:
        source = words if words is not None else _fresh_words()
        codes = (outputs for outputs, _, _ in _observed(_drawn_afresh(batches, protocol, source), observe))
        if shuffle:
            codes = shuffle_rows(codes, source, bucket_rows=min(chunk_rows, BUCKET_ROWS), directory=directory)
    return even_chunks(codes, chunk_rows)


def sanitise_batches(
    batches: Iterable[pa.RecordBatch],
    protocol: Protocol,
    key: RecordKey | None = None,
    *,
    words: WordSource | None = None,
    directory: Directory = None,
) -> Iterator[tuple[OutputArray, CodeArray]]:
    """Output codes and input codes of a stream of rows, in the order of the source, at most 65,536 rows at a time.

    Parameters are those of `sanitised_codes`, which also shuffles.

    Raises
    ------
    DataError
        Also after the last batch, if record keys are missing or repeated: publish nothing before the stream has ended.
    SpecError
        If both a key and words are given.
    """
    _require_one(key, words)
    drawn = (
        _drawn_by_key(batches, protocol, key, directory, tagged=False)
        if key is not None
        else _drawn_afresh(batches, protocol, words if words is not None else _fresh_words())
    )
    return ((outputs, inputs) for outputs, inputs, _ in drawn)


def release_table(codes: npt.NDArray[np.integer[Any]], protocol: Protocol) -> pa.Table:
    """The published columns of output codes, as `funnel.sampling.columns.OutputColumns` makes them.

    Raises
    ------
    DataError
        If a code is outside the output alphabet.
    """
    return pa.Table.from_batches([OutputColumns(protocol).batch(codes)])


def word_purpose(protocol: Protocol) -> str:
    """What a record's word is for: the published columns, so that successive protocols for them are coupled."""
    return "release " + json.dumps(list(protocol.outputs.columns))


def order_purpose(protocol: Protocol) -> str:
    """What a record's tag is for: an order that is another one under another protocol, so that it links no versions."""
    return f"record order {protocol.digest}"


def _fresh_words() -> WordSource:
    """A source of words whose stream is made by the process that first draws from it."""
    streams: list[WordStream] = []

    def words(n: int) -> npt.NDArray[np.uint64]:
        if not streams:
            streams.append(WordStream())
        return streams[0].words(n)

    return words


def _require_one(key: RecordKey | None, words: WordSource | None) -> None:
    if key is not None and words is not None:
        raise SpecError("give a record key or a source of random words, not both")


def _drawn_afresh(batches: Iterable[pa.RecordBatch], protocol: Protocol, words: WordSource) -> Iterator[_Drawn]:
    encoder, sampler = InputEncoder(protocol.inputs), ChannelSampler.from_protocol(protocol)
    for batch in _sliced(batches):
        codes = encoder.codes(batch)
        yield sampler.draw(codes, words(len(codes))), codes, _NO_TAGS


def _drawn_by_key(
    batches: Iterable[pa.RecordBatch], protocol: Protocol, key: RecordKey, directory: Directory, *, tagged: bool
) -> Iterator[_Drawn]:
    encoder, sampler = InputEncoder(protocol.inputs), ChannelSampler.from_protocol(protocol)
    missing = 0
    with DistinctKeys(directory) as keys:
        for batch in _sliced(batches):
            missing += count_missing_keys(batch, key)
            if missing:
                # Nothing can be released any more; go on only to say how many records have no key.
                continue
            digests = key_digests(batch, key)
            keys.add(key_marks(batch, key, digests))
            codes = encoder.codes(batch)
            outputs = sampler.draw(codes, words_of(digests, key, word_purpose(protocol)))
            yield outputs, codes, words_of(digests, key, order_purpose(protocol)) if tagged else _NO_TAGS
        if missing:
            raise missing_keys_error(missing, key)
        repeated = keys.repeated()
        if repeated:
            raise repeated_keys_error(repeated, key)


def _observed(drawn: Iterable[_Drawn], observe: Observer | None) -> Iterator[_Drawn]:
    for outputs, inputs, tags in drawn:
        if observe is not None:
            observe(inputs, outputs)
        yield outputs, inputs, tags


def _sliced(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for start in range(0, batch.num_rows, BATCH_ROWS):
            yield batch.slice(start, BATCH_ROWS)
