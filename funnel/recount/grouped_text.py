"""A grouped protocol as its text says it, and whether it is one: weights, classes, names and digest, read anew."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from funnel.errors import DataError

Values = tuple[str, ...]

FORMAT = "funnel-grouped-protocol/1"
BITS = 44
UNIT = 1 << BITS
SILENT = -1
# Sets that leave out so few values are named by these.
_FEW = 2


@dataclass(frozen=True)
class TextChannel:
    """A channel as it is written.

    Attributes
    ----------
    labels : tuple of tuple of str
        One text per column for every output.
    outputs : tuple of mapping of int to int
        For every output the weights of the inputs that it may come from.
    marginal : tuple of int
        Weights of a record whose input is in no output.
    """

    labels: tuple[Values, ...]
    outputs: tuple[Mapping[int, int], ...]
    marginal: tuple[int, ...]

    @cached_property
    def inputs(self) -> dict[int, list[tuple[int, int]]]:
        """Of every input that it knows the (output, weight) there are, in the order of the outputs."""
        found: dict[int, list[tuple[int, int]]] = {}
        for y, weights in enumerate(self.outputs):
            for x, weight in weights.items():
                found.setdefault(x, []).append((y, weight))
        return found

    @cached_property
    def rows(self) -> dict[int, int]:
        """Of every input that it knows the number of its row: inputs with the same weights share one."""
        numbers: dict[tuple[tuple[int, int], ...], int] = {}
        return {x: numbers.setdefault(tuple(ways), len(numbers)) for x, ways in self.inputs.items()}

    @cached_property
    def rare(self) -> list[tuple[int, int]]:
        """The same of every other input."""
        return [(y, weight) for y, weight in enumerate(self.marginal) if weight]


@dataclass(frozen=True)
class TextStage:
    """A stage as it is written.

    Attributes
    ----------
    columns : tuple of str
    symbols : tuple of tuple of str
    ahead : (column, mapping of value to class), or None
    channels : tuple of TextChannel
    classes : tuple of (channel, tuple of int)
        Of every class its channel, and where each of the outputs leads.
    """

    columns: Values
    symbols: tuple[Values, ...]
    ahead: tuple[str, Mapping[str, int]] | None
    channels: tuple[TextChannel, ...]
    classes: tuple[tuple[int, tuple[int, ...]], ...]

    @property
    def folds(self) -> int:
        """Inputs for a combination of values."""
        return 1 if self.ahead is None else max(self.ahead[1].values()) + 1

    @cached_property
    def places(self) -> dict[Values, int]:
        """The combinations of values by their number."""
        return {symbol: x for x, symbol in enumerate(self.symbols)}

    @cached_property
    def values(self) -> tuple[Values, ...]:
        """The values of every column, in their order: numbers in texts by value."""
        return tuple(tuple(sorted(set(column), key=natural)) for column in zip(*self.symbols, strict=True))

    @cached_property
    def nothing(self) -> Values:
        """What is published of its columns where nothing is said."""
        return tuple(label_of(of_column, set(of_column)) for of_column in self.values)

    def reads(self, columns: Sequence[str], record: Values) -> int:
        """The input of a record; -1 where the stage knows none."""
        x = self.places.get(tuple(record[columns.index(column)] for column in self.columns), -1)
        if x < 0 or self.ahead is None:
            return x
        place = self.ahead[1].get(record[columns.index(self.ahead[0])], -1)
        return -1 if place < 0 else x * self.folds + place


@dataclass(frozen=True)
class GroupedText:
    """A grouped protocol as its text says it.

    Attributes
    ----------
    columns : tuple of str
        As they are published.
    stages : tuple of TextStage
    guarantee : str
        The bound it says that it was made for.
    people : int
    content : mapping
        All that the text says.
    """

    columns: Values
    stages: tuple[TextStage, ...]
    guarantee: str
    people: int
    content: Mapping[str, Any]

    @classmethod
    def parse(cls, text: str | bytes) -> GroupedText:
        """Read the text of a ``protocol.json`` of groups.

        Raises
        ------
        DataError
            If it is none, or its numbers do not fit together so that nobody could draw by it.
        """
        try:
            content = json.loads(text)
            if content["format"] != FORMAT or content["denominator"] != UNIT:
                raise DataError("this is no grouped protocol with weights of 44 bits")
            stages = tuple(_stage(stage) for stage in content["stages"])
            guarantee = content["guarantee"]
            read = cls(
                tuple(map(str, content["columns"])),
                stages,
                str(guarantee if isinstance(guarantee, str) else guarantee["declared"]),
                _whole(content["people"]),
                content,
            )
            said = next(read._unfit(), None)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
            raise DataError(f"this is no grouped protocol: {type(error).__name__}") from error
        if said is not None:
            raise DataError(f"this is no grouped protocol: {said}")
        return read

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Places in a published record of what the stages publish one after the other."""
        return tuple(self.columns.index(column) for stage in self.stages for column in stage.columns)

    @cached_property
    def texts(self) -> dict[str, Values]:
        """All texts that may be published of every column: values in their order, then sets, then nothing."""
        found: dict[str, Values] = {}
        for stage in self.stages:
            for j, column in enumerate(stage.columns):
                texts = dict.fromkeys(label[j] for channel in stage.channels for label in channel.labels)
                values = dict.fromkeys(symbol[j] for symbol in stage.symbols)
                plain = [value for value in values if value in texts]
                sets = [text for text in texts if text not in values]
                found[column] = tuple(dict.fromkeys([*plain, *sets, stage.nothing[j]]))
        return {column: found[column] for column in self.columns}

    def behind(self, column: str) -> dict[str, set[str]]:
        """Of every text that may be published of a column, in their order, the values that it is a name of."""
        stage = next(stage for stage in self.stages if column in stage.columns)
        values = stage.values[stage.columns.index(column)]
        return {text: members_of(text, values) for text in self.texts[column]}

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of what is drawn by: columns, stages, weights."""
        drawn = {key: self.content[key] for key in ("format", "denominator", "columns", "stages")}
        text = json.dumps(drawn, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def _unfit(self) -> Iterator[str]:
        """Why nobody could draw by it."""
        of_stages = [column for stage in self.stages for column in stage.columns]
        if not self.columns or Counter(of_stages) != Counter(self.columns) or len(set(of_stages)) != len(of_stages):
            yield "its groups do not hold every published column once"
        for number, stage in enumerate(self.stages, 1):
            after = len(self.stages[number].classes) if number < len(self.stages) else 0
            yield from (f"stage {number} {said}" for said in _unfit_stage(stage, after))
            later = {column for one in self.stages[number:] for column in one.columns}
            if stage.ahead is not None and stage.ahead[0] not in later:
                yield f"stage {number} looks ahead at a column that does not come later"
        if len(self.stages[0].classes) != 1:
            yield "its first stage has not the one class in which every record begins"

    def misnamed(self) -> Iterator[tuple[int, int, int]]:
        """Stages, channels and outputs, counted from 1, whose name is not the set of the values that they mix."""
        for number, stage in enumerate(self.stages, 1):
            for place, channel in enumerate(stage.channels, 1):
                for y, (label, weights) in enumerate(zip(channel.labels, channel.outputs, strict=True), 1):
                    mixed = [stage.symbols[x // stage.folds] for x in weights]
                    names = tuple(
                        label_of(values, {symbol[j] for symbol in mixed}) for j, values in enumerate(stage.values)
                    )
                    if not weights or label != names:
                        yield number, place, y

    def unused(self) -> Iterator[tuple[int, str, int]]:
        """Channels and classes that no record can come to, with their stage: they would carry something else."""
        reached = {0}
        for number, stage in enumerate(self.stages, 1):
            channels = {channel for channel, _ in stage.classes}
            yield from ((number, "channel", place) for place in range(len(stage.channels)) if place not in channels)
            yield from ((number, "class", place) for place in range(len(stage.classes)) if place not in reached)
            reached = {then for place in reached for then in stage.classes[place][1] if then != SILENT}


def label_of(values: Sequence[str], members: set[str]) -> str:
    """The one name of a set of values of a column."""
    inside = [value for value in values if value in members]
    outside = [value for value in values if value not in members]
    if len(inside) == 1 and outside:
        return inside[0]
    told = _in_sets(values)
    text = " or ".join(told[value] for value in inside)
    if not outside:
        text = "any"
    elif len(outside) <= _FEW and len(outside) < len(inside):
        text = "any but " + " or ".join(told[value] for value in outside)
    while text in values:
        text += " (mixed)"
    return text


def members_of(text: str, values: Sequence[str]) -> set[str]:
    """The values that a published text stands for; none if it is no name of a value or a set."""
    if text in values:
        return {text}
    plain = text
    while plain.endswith(" (mixed)") and plain.removesuffix(" (mixed)") in values:
        plain = plain.removesuffix(" (mixed)")
    if plain == "any":
        return set(values)
    if plain.startswith("any but "):
        left_out = _listed(plain.removeprefix("any but "), values)
        return set(values) - left_out if left_out else set()
    return _listed(plain, values)


def _listed(text: str, values: Sequence[str]) -> set[str]:
    """Values of a list in their order: no name of a value in it can be taken for two."""
    ways: dict[int, set[str]] = {0: set()}
    for value, told in _in_sets(values).items():
        for at, so_far in sorted(ways.items(), reverse=True):
            start = at + len(" or ") if at else 0
            if (at == 0 or text.startswith(" or ", at)) and text.startswith(told, start):
                ways.setdefault(start + len(told), so_far | {value})
    return ways.get(len(text), set())


def _in_sets(values: Sequence[str]) -> dict[str, str]:
    """What values are called in sets: as they are, or all in quotes where one could be taken for a set itself."""
    if any(" or " in f" {value} " or value.startswith(("any but ", '"')) for value in values):
        return {value: '"' + value.replace('"', '""') + '"' for value in values}
    return {value: value for value in values}


def natural(text: str) -> tuple[list[tuple[int, float | str]], str]:
    """What texts are put in order by: runs of decimal digits by value and after letters, then the text itself."""
    parts = [part for part in re.split(r"(\d+)", text) if part]
    return [(1, float(part)) if part.isdecimal() else (0, part) for part in parts], text


def _unfit_stage(stage: TextStage, after: int) -> Iterator[str]:
    if not stage.symbols or any(len(symbol) != len(stage.columns) for symbol in stage.symbols):
        yield "has combinations of values that do not fit its columns"
    if len(set(stage.symbols)) != len(stage.symbols):
        yield "has a combination of values twice"
    if stage.ahead is not None and set(stage.ahead[1].values()) != set(range(stage.folds)):
        yield "has classes of values that are not numbered from 0 on"
    for place, following in stage.classes:
        if not 0 <= place < len(stage.channels) or len(following) != len(stage.channels[place].labels):
            yield "has a class without a channel that fits it"
        if any(not SILENT <= then < after for then in following):
            yield "has a class that leads to none of the next stage"
    size = len(stage.symbols) * stage.folds
    for channel in stage.channels:
        if not len(channel.labels) == len(channel.outputs) == len(channel.marginal):
            yield "has a channel whose outputs, weights and marginals are not as many"
        if any(len(label) != len(stage.columns) for label in channel.labels):
            yield "has an output that does not name its columns"
        if any(not 0 <= x < size or weight <= 0 for row in channel.outputs for x, weight in row.items()):
            yield "has a weight of an input that there is not, or one that is no weight"
        sums = [sum(weight for _, weight in some) for some in channel.inputs.values()]
        if any(total != UNIT for total in sums) or sum(channel.marginal) != UNIT or min(channel.marginal) < 0:
            yield "has weights of an input that do not add up to 2^44"


def _stage(content: Mapping[str, Any]) -> TextStage:
    ahead = content["ahead"]
    looked = None
    if ahead is not None:
        of_value = dict(zip(map(str, ahead["values"]), map(_whole, ahead["classes"]), strict=True))
        if len(of_value) != len(ahead["values"]):
            raise ValueError("a value twice")
        looked = (str(ahead["column"]), of_value)
    return TextStage(
        tuple(map(str, content["columns"])),
        tuple(tuple(map(str, symbol)) for symbol in content["symbols"]),
        looked,
        tuple(_channel(channel) for channel in content["channels"]),
        tuple((_whole(channel), tuple(map(_whole, following))) for channel, following in content["classes"]),
    )


def _channel(content: Mapping[str, Any]) -> TextChannel:
    outputs = []
    for inputs, weights in zip(content["inputs"], content["weights"], strict=True):
        outputs.append(dict(zip(map(_whole, inputs), map(_whole, weights), strict=True)))
        if len(outputs[-1]) != len(inputs):
            raise ValueError("an input twice")
    labels = tuple(tuple(map(str, label)) for label in content["labels"])
    return TextChannel(labels, tuple(outputs), tuple(map(_whole, content["marginal"])))


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("no whole number")
    return value
