"""Answers: the outputs of a stream of rows under a protocol. All that is released is drawn here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import pyarrow as pa

from funnel.protocol import Protocol
from funnel.sampling.chunks import sliced
from funnel.sampling.codes import CodeArray, InputEncoder
from funnel.sampling.draw import ChannelSampler, OutputArray, SparseSampler
from funnel.sampling.random_words import WordArray
from funnel.sampling.row_words import RowWords

# The arrays made for so many rows stay in the processor's cache.
DRAW_ROWS = 1 << 16


@dataclass(frozen=True)
class Answers:
    """What was drawn for some rows.

    Attributes
    ----------
    batch : pyarrow.RecordBatch
        The rows.
    inputs : ndarray of int64, shape (rows,)
        Input codes, -1 outside the alphabet.
    outputs : ndarray of unsigned integers, shape (rows,)
        Output codes.
    words : ndarray of uint64, shape (rows,)
        What they were drawn with.
    """

    batch: pa.RecordBatch
    inputs: CodeArray
    outputs: OutputArray
    words: WordArray


def answers(batches: Iterable[pa.RecordBatch], protocol: Protocol, words: RowWords) -> Iterator[Answers]:
    """Draw an output for every row, in the order of the rows, at most 65,536 at a time.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        Have the columns that the protocol reads, and what ``words`` need. Read as the answers are taken.
    protocol : Protocol
    words : RowWords
        `FreshWords` or `KeyedWords`.

    Raises
    ------
    DataError
        If a column is missing, there twice, or not of a plain type.
    EntropyError
        If the source of random words fails.
    """
    encoder, sampler = InputEncoder(protocol.inputs), sampler_of(protocol)
    for batch in sliced(batches, DRAW_ROWS):
        inputs, drawn_with = encoder.codes(batch), words.to_draw(batch)
        yield Answers(batch, inputs, sampler.draw(inputs, drawn_with), drawn_with)


def sampler_of(protocol: Protocol) -> ChannelSampler | SparseSampler:
    """The sampler that draws under a protocol in this process."""
    return _sampler(_Channel(protocol.digest, protocol))


@dataclass(frozen=True)
class _Channel:
    """A protocol that is known by its digest, however often it is sent to a worker."""

    digest: str
    protocol: Protocol = field(compare=False)


@lru_cache(maxsize=2)
def _sampler(channel: _Channel) -> ChannelSampler | SparseSampler:
    """Made once in a process: for hundreds of symbols its tables take as long as a good part of a partition."""
    if channel.protocol.is_sparse:
        return SparseSampler(channel.protocol)
    return ChannelSampler.from_protocol(channel.protocol)
