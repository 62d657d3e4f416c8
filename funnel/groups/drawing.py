"""Drawing: records under a grouped protocol, stage by stage, exact to the last bit of every weight."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from funnel.alphabet import Alphabet
from funnel.errors import DataError
from funnel.groups.protocol import SILENT, GroupedProtocol, Stage
from funnel.joint import IntArray
from funnel.protocol import WeightArray
from funnel.sampling.answers import DRAW_ROWS
from funnel.sampling.chunks import sliced
from funnel.sampling.codes import OUTSIDE, InputEncoder
from funnel.sampling.draw import ChannelSampler
from funnel.sampling.keyed import DIGEST_BYTES, RecordKey
from funnel.sampling.order import in_order, order_words
from funnel.sampling.row_words import FreshWords, KeyedWords, RowWords, WordKeys, words_for
from funnel.tables import arrow_texts

if TYPE_CHECKING:
    from funnel.sampling.words import WordArray


def read_columns(protocol: GroupedProtocol) -> list[str]:
    """The columns that a protocol reads, each once."""
    return list(dict.fromkeys(column for stage in protocol.stages for column in stage.columns))


def released(
    batches: Iterable[pa.RecordBatch], protocol: GroupedProtocol, key: RecordKey | None, shuffle: bool
) -> pa.Table:
    """What is published of the rows of some batches, as `funnel.sanitise` returns it.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        With the columns that the protocol reads and, where there is a key, the digests of keys.
    protocol : GroupedProtocol
    key : RecordKey, optional
        With it a record has one word for every stage, that of the protocol's digest and the stage: the same protocol
        draws the same again, and the words of two stages are independent.
    shuffle : bool

    Notes
    -----
    Holds one number for every row and column.
    """
    keys = None if key is None else WordKeys.of(key, protocol)
    draw, sampler = stage_words(keys, protocol), Sampler(protocol)
    kept: list[pa.RecordBatch] = []
    parts: list[IntArray] = []
    for batch in sliced(batches, DRAW_ROWS):
        parts.append(sampler.drawn(batch, draw))
        kept.append(batch)
    columns = len(protocol.columns)
    codes = np.concatenate(parts) if parts else np.empty((0, columns), dtype=np.int64)
    if shuffle and len(codes):
        codes = _shuffled(codes, kept, words_for(keys))
    return _table(protocol, codes)


def stage_words(keys: WordKeys | None, protocol: GroupedProtocol) -> list[RowWords]:
    """Words for every stage: fresh ones from one stream, or those of the protocol's digest and the stage."""
    if keys is None:
        fresh = FreshWords()
        return [fresh] * len(protocol.stages)
    decisions = (
        hashlib.sha256(f"{protocol.digest} stage {number}".encode()).digest()[:DIGEST_BYTES]
        for number in range(len(protocol.stages))
    )
    return [KeyedWords(replace(keys, decision=decision)) for decision in decisions]


@dataclass(frozen=True, eq=False)
class Step:
    """What some rows did at a stage, one entry a row.

    Attributes
    ----------
    classes : ndarray of int64
        -1 where nothing more is said.
    inputs : ndarray of int64
        -1 for a combination that the stage does not know.
    outputs : ndarray of int64
        What was drawn; -1 in class -1.
    words : ndarray of uint64
    """

    classes: IntArray
    inputs: IntArray
    outputs: IntArray
    words: WordArray


class Sampler:
    """Draws the labels of records.

    Attributes
    ----------
    stages : list of StageSampler
    codes : ndarray of int64, shape (rows, columns)
        Of the rows that were drawn last: positions in the labels of every column.
    """

    def __init__(self, protocol: GroupedProtocol) -> None:
        self._columns = len(protocol.columns)
        places = [{text: code for code, text in enumerate(protocol.labels[column])} for column in protocol.columns]
        self.stages = [StageSampler(stage, protocol, places) for stage in protocol.stages]
        self.codes: IntArray = np.empty((0, self._columns), dtype=np.int64)

    def steps(self, batch: pa.RecordBatch, words: Sequence[RowWords]) -> Iterator[Step]:
        """What the rows of a batch do at each stage; when all are taken, `codes` has what they are published as."""
        self.codes = np.empty((batch.num_rows, self._columns), dtype=np.int64)
        classes = np.zeros(batch.num_rows, dtype=np.int64)
        for stage, of_stage in zip(self.stages, words, strict=True):
            drawn_with = of_stage.to_draw(batch)
            step, classes = stage.draw(batch, classes, drawn_with, self.codes)
            yield step

    def drawn(self, batch: pa.RecordBatch, words: Sequence[RowWords]) -> IntArray:
        """Positions in the labels of every column, (rows, columns)."""
        for _ in self.steps(batch, words):
            pass
        return self.codes


class StageSampler:
    """Draws outputs of one stage.

    Let ``cum[y] = Σ_{y' ≤ y} w[y', x]`` and u the top 63 bits of the word: the output is ``#{y : cum[y] <= u}``, as in
    `funnel.sampling.draw.ChannelSampler`.
    """

    def __init__(self, stage: Stage, protocol: GroupedProtocol, places: list[dict[str, int]]) -> None:
        self._stage = stage
        self._encoder = InputEncoder(stage.alphabet)
        ahead = stage.ahead
        self._ahead = (
            None if ahead is None else InputEncoder(Alphabet((ahead.column,), tuple((v,) for v in ahead.values)))
        )
        self._at = [protocol.columns.index(column) for column in stage.columns]
        self._labels = [
            np.array([[places[j][text] for j, text in zip(self._at, label, strict=True)] for label in channel.labels])
            for channel in stage.channels
        ]
        self._nothing = np.array([places[j][text] for j, text in zip(self._at, stage.nothing, strict=True)])
        self._channels = np.array([channel for channel, _ in stage.classes], dtype=np.int64)
        self._following = [np.array(following, dtype=np.int64) for _, following in stage.classes]
        self._weights: dict[int, tuple[WeightArray, WeightArray]] = {}
        self._thresholds: dict[tuple[int, int], WeightArray] = {}

    def draw(
        self, batch: pa.RecordBatch, classes: IntArray, words: WordArray, codes: npt.NDArray[np.int64]
    ) -> tuple[Step, IntArray]:
        """Fill in the codes of the stage's columns; what rows did, and the class of every row at the next stage."""
        codes[:, self._at] = self._nothing
        inputs = self._inputs(batch)
        outputs = np.full(len(classes), SILENT, dtype=np.int64)
        after = np.full(len(classes), SILENT, dtype=np.int64)
        step = Step(classes, inputs, outputs, words)
        speaking = np.flatnonzero(classes != SILENT)
        if not len(speaking):
            return step, after
        channels = self._channels[classes[speaking]]
        # Rows of one channel and input, then those of one class, are handled together.
        order = np.lexsort((inputs[speaking], channels))
        rows, channels = speaking[order], channels[order]
        alike = np.flatnonzero(np.r_[True, (np.diff(channels) != 0) | (np.diff(inputs[rows]) != 0)])
        for start, stop in zip(alike.tolist(), [*alike[1:].tolist(), len(rows)], strict=True):
            channel = int(channels[start])
            some = self.answer(channel, int(inputs[rows[start]]), words[rows[start:stop]])
            outputs[rows[start:stop]] = some
            codes[rows[start:stop, None], self._at] = self._labels[channel][some]
        by_class = np.argsort(classes[rows], kind="stable")
        ends = np.flatnonzero(np.r_[True, np.diff(classes[rows][by_class]) != 0])
        for start, stop in zip(ends.tolist(), [*ends[1:].tolist(), len(rows)], strict=True):
            some = rows[by_class[start:stop]]
            after[some] = self._following[int(classes[some[0]])][outputs[some]]
        return step, after

    def answer(self, channel: int, place: int, words: WordArray) -> IntArray:
        """The outputs of an input of a channel for some words."""
        return np.searchsorted(self._of(channel, place), words >> np.uint64(1), side="right")

    def _inputs(self, batch: pa.RecordBatch) -> IntArray:
        codes = self._encoder.codes(batch)
        if self._ahead is None or self._stage.ahead is None:
            return codes
        place = self._ahead.codes(batch)
        classes = np.array(self._stage.ahead.classes, dtype=np.int64)[place]
        return np.where((codes == OUTSIDE) | (place == OUTSIDE), OUTSIDE, codes * self._stage.folds + classes)

    def _of(self, channel: int, place: int) -> WeightArray:
        """Thresholds of an input of a channel, (b,): the output is how many of them are at most the word."""
        if (channel, place) not in self._thresholds:
            if channel not in self._weights:
                self._weights[channel] = self._stage.channels[channel].words(self._stage.size)
            weights, marginal = self._weights[channel]
            column = marginal if place == OUTSIDE else weights[:, place]
            self._thresholds[channel, place] = np.cumsum(column, dtype=np.uint64)
        return self._thresholds[channel, place]


def _shuffled(codes: IntArray, batches: Sequence[pa.RecordBatch], words: RowWords) -> IntArray:
    """The rows in the order of `funnel.sampling.order`, by the number of what each row is published as."""
    distinct, numbers = np.unique(codes, axis=0, return_inverse=True)
    numbers = numbers.reshape(-1)
    if len(distinct) > 2**31:
        raise DataError("a table of more than 2^31 different records cannot be put in order")
    kind = ChannelSampler.output_type(len(distinct))

    def tagged() -> Iterator[WordArray]:
        start = 0
        for batch in batches:
            some = numbers[start : start + batch.num_rows]
            start += batch.num_rows
            # Only what is drawn and the rows that it belongs to take part in the order.
            yield order_words(batch, some.astype(kind), len(distinct), words)

    return distinct[np.concatenate(list(in_order(tagged(), len(distinct), words))).astype(np.int64)]


class GroupedColumns:
    """Turns numbers of published records into columns; as `funnel.sampling.OutputColumns`.

    Parameters
    ----------
    protocol : GroupedProtocol
    published : ndarray of integers, shape (records, columns)
        Positions in the labels of every column.
    """

    def __init__(self, protocol: GroupedProtocol, published: npt.NDArray[np.integer[Any]]) -> None:
        self._published: list[npt.NDArray[np.signedinteger[Any]]] = []
        self._categories: list[pa.Array] = []
        fields = []
        for j, column in enumerate(protocol.columns):
            texts = list(protocol.labels[column])
            dtype = next(t for t in (np.int8, np.int16, np.int32) if len(texts) <= np.iinfo(t).max + 1)
            self._published.append(published[:, j].astype(dtype))
            self._categories.append(arrow_texts(texts))
            kind = pa.dictionary(pa.from_numpy_dtype(np.dtype(dtype)), pa.string())
            fields.append(pa.field(column, kind, nullable=False))
        self.schema = pa.schema(fields)

    def batch(self, codes: npt.NDArray[np.integer[Any]]) -> pa.RecordBatch:
        """The columns of some rows, by the numbers of what they are published as."""
        arrays = [
            pa.DictionaryArray.from_arrays(pa.array(of_column[codes]), texts)
            for of_column, texts in zip(self._published, self._categories, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _table(protocol: GroupedProtocol, codes: IntArray) -> pa.Table:
    columns = GroupedColumns(protocol, codes)
    return pa.Table.from_batches([columns.batch(np.arange(len(codes)))], columns.schema)
