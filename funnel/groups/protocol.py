"""GroupedProtocol: groups of columns published one after the other, as exact integer weights."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from funnel.alphabet import Alphabet
from funnel.errors import DataError, SpecError
from funnel.groups.ahead import Ahead
from funnel.groups.labels import set_label
from funnel.joint import IntArray
from funnel.protocol import WORD_BITS, WeightArray

FORMAT: Final = "funnel-grouped-protocol/1"
# Weights are whole multiples of 2^-44: 14 digits, and 2^19 of the words that are drawn from.
BITS: Final = 44
UNIT: Final = 2**BITS
# After an output with this for its next class nothing more is said of the record.
SILENT: Final = -1


@dataclass(frozen=True)
class StageChannel:
    """A channel of one stage: sparse weights, by output.

    Attributes
    ----------
    labels : tuple of tuple of str
        b outputs, one text per column of the stage. Several may have the same: they differ in what comes next.
    inputs : tuple of tuple of int
        For every output the inputs that it may come from, rising.
    weights : tuple of tuple of int
        Their weights, each > 0; over all outputs those of an input sum to 2^44.
    marginal : tuple of int
        Weights, summing to 2^44, of a record with an input that is in none of `inputs`.
    """

    labels: tuple[tuple[str, ...], ...]
    inputs: tuple[tuple[int, ...], ...]
    weights: tuple[tuple[int, ...], ...]
    marginal: tuple[int, ...]

    @classmethod
    def of(cls, labels: Sequence[tuple[str, ...]], weights: IntArray, marginal: IntArray) -> StageChannel:
        """From weights (b, a); inputs whose column is zero are in no output."""
        places = [np.flatnonzero(row) for row in weights]
        return cls(
            tuple(labels),
            tuple(tuple(place.tolist()) for place in places),
            tuple(tuple(row[place].tolist()) for row, place in zip(weights, places, strict=True)),
            tuple(int(weight) for weight in marginal.tolist()),
        )

    def __len__(self) -> int:
        return len(self.labels)

    def table(self, size: int) -> IntArray:
        """Weights (b, size); a zero column for inputs that are in no output."""
        table = np.zeros((len(self), size), dtype=np.int64)
        for row, inputs, weights in zip(table, self.inputs, self.weights, strict=True):
            row[list(inputs)] = weights
        return table

    def words(self, size: int) -> tuple[WeightArray, WeightArray]:
        """Weights (b, size) and marginal (b,) of 63 bits, as samplers take them; every column sums to 2^63."""
        shift = np.uint64(WORD_BITS - BITS)
        marginal = np.array(self.marginal, dtype=np.uint64) << shift
        weights = self.table(size).astype(np.uint64) << shift
        weights[:, ~weights.any(axis=0)] = marginal[:, None]
        return weights, marginal


@dataclass(frozen=True)
class Stage:
    """What is published of one group of columns.

    Attributes
    ----------
    columns : tuple of str
    symbols : tuple of tuple of str
        The a' combinations of their values.
    ahead : Ahead or None
        Classes of a later column that are read besides. Input ``x·classes + class`` is that combination and class.
    channels : tuple of StageChannel
    classes : tuple of (int, tuple of int)
        Classes of prefixes: the channel of each, and for every output the class at the next stage, or -1 where
        nothing more is said. At the last stage all are -1.
    """

    columns: tuple[str, ...]
    symbols: tuple[tuple[str, ...], ...]
    ahead: Ahead | None
    channels: tuple[StageChannel, ...]
    classes: tuple[tuple[int, tuple[int, ...]], ...]

    @property
    def folds(self) -> int:
        """How many inputs there are for a combination of values."""
        return 1 if self.ahead is None else self.ahead.number

    @property
    def size(self) -> int:
        """a, the number of inputs of its channels."""
        return len(self.symbols) * self.folds

    @cached_property
    def alphabet(self) -> Alphabet:
        """The combinations of values as an alphabet."""
        return Alphabet(self.columns, self.symbols)

    @cached_property
    def nothing(self) -> tuple[str, ...]:
        """What is published of its columns where nothing is said, one text each: ``"any"``."""
        values = [tuple(dict.fromkeys(column)) for column in zip(*self.symbols, strict=True)]
        return tuple(set_label(of_column, np.ones(len(of_column), dtype=np.bool_)) for of_column in values)


@dataclass(frozen=True)
class GroupedProtocol:
    """Groups of columns published one after the other, each given what the record already shows.

    A record begins in class 0 of the first stage. There its input is drawn through the channel of its class, the label
    of the output is published, and the output leads to the record's class at the next stage. In class -1 nothing more
    is said: the columns that are left are published as ``"any"``.

    Parameters
    ----------
    columns : tuple of str
        The columns as they are published, in the order of the table.
    stages : tuple of Stage
    guarantee : str
        The bound on the whole record that it was made for, such as ``"lip:1.0"``.
    people : int
        How many people are expected, at least, where a channel was made for a prefix.

    Raises
    ------
    SpecError
        If the stages do not fit together, or the weights of an input do not sum to 2^44.

    Examples
    --------
    >>> import funnel
    >>> inputs = funnel.Alphabet(("size", "colour"), (("small", "red"), ("small", "blue"), ("large", "red")))
    >>> joint = funnel.Joint.from_counts([[30, 40, 10], [10, 20, 50]], inputs=inputs)
    >>> protocol = funnel.publish_groups(joint, [["size"], ["colour"]], funnel.LIP(0.5)).protocol
    >>> [stage.columns for stage in protocol.stages], protocol.denominator == 2**44
    ([('size',), ('colour',)], True)
    >>> funnel.GroupedProtocol.from_json(protocol.to_json()) == protocol
    True
    """

    columns: tuple[str, ...]
    stages: tuple[Stage, ...]
    guarantee: str = ""
    people: int = 0

    def __post_init__(self) -> None:
        if sorted(self.columns) != sorted(column for stage in self.stages for column in stage.columns):
            raise SpecError("the groups of a protocol must hold every published column once")
        for number, stage in enumerate(self.stages):
            last = number == len(self.stages) - 1
            after = 0 if last else len(self.stages[number + 1].classes)
            for channel, following in stage.classes:
                if not 0 <= channel < len(stage.channels) or len(following) != len(stage.channels[channel]):
                    raise SpecError(f"a class of stage {number + 1} has no channel that fits it")
                if any(not SILENT <= place < after for place in following):
                    raise SpecError(f"a class of stage {number + 1} leads to none of the next stage")
            for of_stage in stage.channels:
                _check(of_stage, stage, number + 1)
        if not self.stages or len(self.stages[0].classes) != 1:
            raise SpecError("the first stage of a grouped protocol has one class, in which every record begins")

    @property
    def denominator(self) -> int:
        """What the weights of an input sum to: 2^44."""
        return UNIT

    @cached_property
    def labels(self) -> dict[str, tuple[str, ...]]:
        """All texts that may be published of every column: true values first, then sets, and ``"any"``."""
        found: dict[str, dict[str, None]] = {}
        for stage in self.stages:
            for j, column in enumerate(stage.columns):
                values = dict.fromkeys(symbol[j] for symbol in stage.symbols)
                texts = dict.fromkeys(label[j] for channel in stage.channels for label in channel.labels)
                found[column] = {
                    **{value: None for value in values if value in texts},
                    **{text: None for text in texts if text not in values},
                    stage.nothing[j]: None,
                }
        return {column: tuple(found[column]) for column in self.columns}

    @cached_property
    def meant(self) -> dict[str, dict[str, frozenset[str]]]:
        """Of every text that may be published of a column the true values that it may stand for."""
        found: dict[str, dict[str, set[str]]] = {}
        for stage in self.stages:
            for j, column in enumerate(stage.columns):
                values = {symbol[j] for symbol in stage.symbols}
                texts = found.setdefault(column, {stage.nothing[j]: values})
                for channel in stage.channels:
                    for label, inputs in zip(channel.labels, channel.inputs, strict=True):
                        texts.setdefault(label[j], set()).update(stage.symbols[x // stage.folds][j] for x in inputs)
        return {column: {text: frozenset(values) for text, values in found[column].items()} for column in self.columns}

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of columns and stages."""
        content = {key: value for key, value in self._content().items() if key not in ("guarantee", "people")}
        text = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def _content(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "guarantee": self.guarantee,
            "people": self.people,
            "denominator": UNIT,
            "columns": list(self.columns),
            "stages": [_stage_content(stage) for stage in self.stages],
        }

    def to_dict(self) -> dict[str, Any]:
        """The protocol as JSON-ready values, with its digest."""
        return {**self._content(), "digest": self.digest}

    def to_json(self) -> str:
        """The protocol as JSON text; `from_json` reads it back to the same digest. Weights are below 2^53."""
        return json.dumps(self.to_dict(), ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> GroupedProtocol:
        """Read what `to_json` wrote.

        Raises
        ------
        DataError
            If it is no such protocol, or its digest is another one.
        """
        try:
            content = json.loads(text)
        except ValueError as error:
            raise DataError("this is no grouped protocol: it is not JSON") from error
        return cls.from_dict(content)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> GroupedProtocol:
        """Read what `to_dict` made.

        Raises
        ------
        DataError
            As `from_json`.
        """
        try:
            if content["format"] != FORMAT or content["denominator"] != UNIT:
                raise DataError(f"this is no {FORMAT} with weights of {BITS} bits")
            stages = tuple(_stage_of(stage) for stage in content["stages"])
            protocol = cls(tuple(content["columns"]), stages, content["guarantee"], content["people"])
            digest = content["digest"]
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise DataError(f"this is no grouped protocol: {type(error).__name__}") from error
        if protocol.digest != digest:
            raise DataError("the grouped protocol was changed: its digest is not the one it states")
        return protocol


def _check(channel: StageChannel, stage: Stage, number: int) -> None:
    if not len(channel) == len(channel.inputs) == len(channel.weights) == len(channel.marginal):
        raise SpecError(f"a channel of stage {number} has not the same number of labels, inputs, weights and marginals")
    sums: dict[int, int] = {}
    for label, inputs, weights in zip(channel.labels, channel.inputs, channel.weights, strict=True):
        if len(label) != len(stage.columns) or len(inputs) != len(weights) or len(set(inputs)) != len(inputs):
            raise SpecError(f"an output of stage {number} does not fit its columns or its inputs")
        for place, weight in zip(inputs, weights, strict=True):
            if not 0 <= place < stage.size or weight <= 0:
                raise SpecError(f"an output of stage {number} has an input that is none, or a weight that is none")
            sums[place] = sums.get(place, 0) + weight
    if any(total != UNIT for total in sums.values()) or sum(channel.marginal) != UNIT or min(channel.marginal) < 0:
        raise SpecError(f"weights of stage {number} do not sum to 2^{BITS}")


def _stage_content(stage: Stage) -> dict[str, Any]:
    ahead = stage.ahead
    return {
        "columns": list(stage.columns),
        "symbols": [list(symbol) for symbol in stage.symbols],
        "ahead": None
        if ahead is None
        else {"column": ahead.column, "values": list(ahead.values), "classes": list(ahead.classes)},
        "channels": [
            {
                "labels": [list(label) for label in channel.labels],
                "inputs": [list(row) for row in channel.inputs],
                "weights": [list(row) for row in channel.weights],
                "marginal": list(channel.marginal),
            }
            for channel in stage.channels
        ],
        "classes": [[channel, list(following)] for channel, following in stage.classes],
    }


def _stage_of(content: dict[str, Any]) -> Stage:
    ahead = content["ahead"]
    return Stage(
        tuple(content["columns"]),
        tuple(tuple(symbol) for symbol in content["symbols"]),
        None if ahead is None else Ahead(ahead["column"], tuple(ahead["values"]), tuple(ahead["classes"])),
        tuple(
            StageChannel(
                tuple(tuple(label) for label in channel["labels"]),
                tuple(tuple(row) for row in channel["inputs"]),
                tuple(tuple(row) for row in channel["weights"]),
                tuple(channel["marginal"]),
            )
            for channel in content["channels"]
        ),
        tuple((channel, tuple(following)) for channel, following in content["classes"]),
    )
