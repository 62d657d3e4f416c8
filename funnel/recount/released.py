"""The protocol of a release as its file says it, read anew, with what it leaks and tells on counts made anew."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

from funnel.errors import DataError
from funnel.recount.channel import Channel, Row, SparseRow, Symbols, entries_of, spread
from funnel.recount.count_box import CountBox
from funnel.recount.levels import PlainLevel, level_of
from funnel.recount.part_beliefs import KnownValues, beliefs
from funnel.recount.promise import Promise
from funnel.recount.source import Recount


@dataclass(frozen=True)
class ReleasedProtocol:
    """What a ``protocol.json`` says: the channel that data users are told about.

    Attributes
    ----------
    input_columns, output_columns : tuple of str
    inputs, outputs : tuple of tuple of str
        Distinct symbols, a value for each column.
    weights : tuple of rows of int, b × i
        Plain; sparse where the file leaves zeros out.
    marginal : tuple of int, b
        Of records whose input is not among the inputs.
    denominator : int
    sparse : bool
        Whether the file leaves weights of zero out.
    """

    input_columns: tuple[str, ...]
    inputs: Symbols
    output_columns: tuple[str, ...]
    outputs: Symbols
    weights: tuple[Row, ...]
    marginal: tuple[int, ...]
    denominator: int
    sparse: bool = False

    @classmethod
    def parse(cls, text: str | bytes) -> Self:
        """Read the text of a ``protocol.json``.

        Raises
        ------
        DataError
            If it is none: symbols that do not fit the columns or come twice, weights of another shape, or numbers that
            are not written as whole decimal numbers.
        """
        try:
            said = json.loads(text)
            columns, inputs = alphabet_of(said["inputs"])
            sparse = said["format"] == "funnel-protocol/2"
            protocol = cls(
                columns,
                inputs,
                *alphabet_of(said["outputs"]),
                tuple(_rows(said["weights"], len(inputs), sparse)),
                tuple(map(_whole, said["marginal"])),
                _whole(said["denominator"]),
                sparse,
            )
        except (ValueError, KeyError, TypeError, RecursionError):
            raise DataError("the protocol of the release cannot be read, so nothing can be said about it") from None
        b, i = len(protocol.outputs), len(protocol.inputs)
        if len(protocol.weights) != b or len(protocol.marginal) != b or any(len(row) != i for row in protocol.weights):
            raise DataError("the weights of the protocol do not fit its inputs and outputs")
        if min(protocol.marginal, default=0) < 0 or sum(protocol.marginal) != protocol.denominator:
            raise DataError("the marginal of the protocol does not add up to its denominator")
        return protocol

    def level(self, guarantee: str | Promise, counted: Recount, box: CountBox | None = None) -> PlainLevel:
        """`level_of` these counts; over all in a box around them where there is one, in the order of ``counted``.

        Raises
        ------
        SpecError, DataError
            As `level_of`; also if the protocol reads other columns.
        """
        channel, known = self.channel(counted), None
        if counted.having:
            counts = counted.table(counted.secret, counted.inputs)
            held_out = None if counted.held_out is None else [counted.held_out[s] for s in counted.secret]
            known = KnownValues(
                counts,
                counted.inputs,
                self.outputs,
                channel.weights,
                self.denominator,
                counted.having,
                held_out=held_out,
            )
        return level_of(guarantee, channel, counted.inputs, box, known)

    def channel(self, counted: Recount) -> Channel:
        """The protocol with counts, in their order; between parts of classes with what is believed of these.

        Raises
        ------
        DataError
            If the protocol reads other columns.
        """
        if self.input_columns == counted.published_columns:
            read, reads_secret = counted.inputs, False
        elif self.input_columns == counted.secret_columns + counted.published_columns:
            read, reads_secret = tuple(s + x for s in counted.secret for x in counted.inputs), True
        else:
            raise DataError(f"the protocol reads the columns {', '.join(self.input_columns)}, not those of the spec")
        place = {symbol: k for k, symbol in enumerate(self.inputs)}
        # What the protocol does not know is drawn from its marginal.
        chosen = [place.get(symbol, len(self.inputs)) for symbol in read]
        counts = counted.table(counted.secret, counted.inputs)
        if counted.having:
            counts = beliefs(counts, counted.inputs, counted.secret)
        return Channel.of(counts, self._chosen(chosen), self.denominator, reads_secret)

    def _chosen(self, places: Sequence[int]) -> list[Row]:
        """The weights of some inputs, by their places; the one beyond the last is outside the alphabet."""
        if not self.sparse:
            whole = [(*row, other) for row, other in zip(self.weights, self.marginal, strict=True)]
            return [[row[k] for k in places] for row in whole]
        becomes: dict[int, list[int]] = {}
        for there, k in enumerate(places):
            becomes.setdefault(k, []).append(there)
        outside = len(self.inputs)
        return [
            spread(
                SparseRow({**dict(entries_of(row)), **({outside: other} if other else {})}, outside + 1),
                becomes,
                len(places),
            )
            for row, other in zip(self.weights, self.marginal, strict=True)
        ]


def alphabet_of(said: dict[str, Any]) -> tuple[tuple[str, ...], Symbols]:
    """Columns and symbols of an alphabet in a document.

    Raises
    ------
    ValueError, KeyError, TypeError
        If it is none.
    """
    columns, symbols = tuple(said["columns"]), tuple(tuple(symbol) for symbol in said["symbols"])
    texts = [*columns, *(part for symbol in symbols for part in symbol)]
    if not columns or not all(isinstance(text, str) for text in texts):
        raise ValueError
    if any(len(symbol) != len(columns) for symbol in symbols) or len(set(symbols)) != len(symbols):
        raise ValueError
    return columns, symbols


def _rows(rows: list[object], width: int, sparse: bool) -> Iterator[Row]:
    """Plain rows, whichever way they are written, or sparse ones."""
    short = sparse or all(isinstance(row, dict) for row in rows)
    for row in rows:
        found: Row = _sparse_row(row, width) if short else _row(row)
        yield found if sparse else tuple(found)


def _row(row: object) -> tuple[int, ...]:
    if not isinstance(row, list):
        raise ValueError
    return tuple(map(_whole, row))


def _sparse_row(row: object, width: int) -> SparseRow:
    """The weights of an output: those that are not zero, by the positions of their inputs."""
    if not isinstance(row, dict):
        raise ValueError
    weights: dict[int, int] = {}
    for place, weight in row.items():
        x = _whole(place)
        if x >= width or str(x) != place or _whole(weight) == 0:
            raise ValueError
        weights[x] = _whole(weight)
    return SparseRow(weights, width)


def _whole(text: object) -> int:
    # As text: readers that take numbers for doubles would round them.
    if not isinstance(text, str) or not re.fullmatch(r"[0-9]{1,20}", text, re.ASCII):
        raise ValueError
    return int(text)
