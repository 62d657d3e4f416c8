"""Effective channels: what becomes of every column, and pair of columns, whatever else a record shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from funnel.errors import SpecError
from funnel.groups.protocol import BITS, SILENT, GroupedProtocol
from funnel.groups.prove import stage_inputs
from funnel.groups.records import Records
from funnel.joint import FloatArray, IntArray, Joint


@dataclass(frozen=True, eq=False)
class Shown:
    """How likely every record is to be published as what: entries of a sparse matrix, k of them.

    Attributes
    ----------
    joint : Joint
    protocol : GroupedProtocol
    rows : ndarray of int64, shape (k,)
        Records of the joint law.
    published : ndarray of int64, shape (k,)
        Positions in `codes`.
    likely : ndarray, shape (k,)
        P(published | record).
    codes : ndarray of int64, shape (m, columns)
        Distinct published records, as positions in the labels of every column.
    """

    joint: Joint
    protocol: GroupedProtocol
    rows: IntArray
    published: IntArray
    likely: FloatArray
    codes: IntArray

    @classmethod
    def of(cls, joint: Joint, protocol: GroupedProtocol) -> Shown:
        """Follow every record through all stages.

        Raises
        ------
        DataError
            If the joint law is not over the columns and values of the protocol.
        """
        places = [{text: code for code, text in enumerate(protocol.labels[column])} for column in protocol.columns]
        at = [[protocol.columns.index(column) for column in stage.columns] for stage in protocol.stages]
        nothing = np.empty(len(protocol.columns), dtype=np.int64)
        for stage, columns in zip(protocol.stages, at, strict=True):
            for j, text in zip(columns, stage.nothing, strict=True):
                nothing[j] = places[j][text]
        readings = [stage_inputs(joint, stage) for stage in protocol.stages]
        tables = [
            [np.ldexp(channel.table(stage.size).astype(np.float64), -BITS) for channel in stage.channels]
            for stage in protocol.stages
        ]
        there = np.flatnonzero(joint.counts.any(axis=0))
        left = [(0, 0, there, np.ones(len(there)), nothing)]
        rows: list[IntArray] = []
        likely: list[FloatArray] = []
        codes: list[IntArray] = []
        while left:
            number, place, some, shows, so_far = left.pop()
            stage = protocol.stages[number]
            channel, following = stage.classes[place]
            inputs = readings[number][some]
            for label, row, after in zip(
                stage.channels[channel].labels, tables[number][channel], following, strict=True
            ):
                shown = row[inputs] * shows
                kept = shown > 0
                if not kept.any():
                    continue
                now = so_far.copy()
                for j, text in zip(at[number], label, strict=True):
                    now[j] = places[j][text]
                if after == SILENT:
                    rows.append(some[kept])
                    likely.append(shown[kept])
                    codes.append(now)
                else:
                    left.append((number + 1, after, some[kept], shown[kept], now))
        distinct, numbers = np.unique(np.array(codes), axis=0, return_inverse=True)
        published = np.repeat(numbers.reshape(-1), [len(part) for part in rows])
        return cls(joint, protocol, np.concatenate(rows), published, np.concatenate(likely), distinct)

    @cached_property
    def records(self) -> Records:
        """The records of the joint law."""
        return Records.of(self.joint)

    @cached_property
    def masses(self) -> FloatArray:
        """The share of all people that each entry is, (entries,)."""
        return np.asarray(self.likely * self.joint.p_input[self.rows])

    @property
    def information(self) -> float:
        """I(X;Y) of whole records, nats."""
        order = np.lexsort((self.rows, self.published))
        rows, published = self.rows[order], self.published[order]
        starts = np.flatnonzero(np.r_[True, (np.diff(rows) != 0) | (np.diff(published) != 0)])
        together = np.add.reduceat(self.masses[order], starts)
        law = np.bincount(published[starts], weights=together)
        p = self.joint.p_input[rows[starts]]
        return float((together * np.log(together / (law[published[starts]] * p))).sum())

    @cached_property
    def plain(self) -> dict[str, float]:
        """The share of people of whom every column is published as its plain, true value."""
        law = np.bincount(self.published, weights=self.masses, minlength=len(self.codes))
        shares = {}
        for j, column in enumerate(self.protocol.columns):
            values = {symbol[self.joint.inputs.columns.index(column)] for symbol in self.joint.inputs.symbols}
            true = np.array([text in values for text in self.protocol.labels[column]])
            shares[column] = float(law[true[self.codes[:, j]]].sum())
        return shares

    def channel(self, columns: Sequence[str]) -> EffectiveChannel:
        """W(y|x) of one column, or of several together.

        Raises
        ------
        SpecError
            If a column is not published.
        """
        inputs = self.joint.inputs
        if unknown := [column for column in columns if column not in self.protocol.columns]:
            raise SpecError(f"column {unknown[0]!r} is not published by this protocol")
        places = [inputs.columns.index(column) for column in columns]
        symbols = list(dict.fromkeys(tuple(symbol[j] for j in places) for symbol in inputs.symbols))
        number = {symbol: x for x, symbol in enumerate(symbols)}
        of_row = np.array([number[tuple(symbol[j] for j in places)] for symbol in inputs.symbols], dtype=np.int64)
        at = [self.protocol.columns.index(column) for column in columns]
        found, of_published = np.unique(self.codes[:, at], axis=0, return_inverse=True)
        flat = of_published.reshape(-1)[self.published] * len(symbols) + of_row[self.rows]
        masses = np.bincount(flat, weights=self.masses, minlength=len(found) * len(symbols))
        table = masses.reshape(len(found), len(symbols))
        labels = tuple(
            tuple(self.protocol.labels[column][code] for column, code in zip(columns, row, strict=True))
            for row in found.tolist()
        )
        law = table.sum(axis=0)
        there = law > 0
        return EffectiveChannel(
            tuple(columns),
            tuple(symbol for symbol, seen in zip(symbols, there.tolist(), strict=True) if seen),
            labels,
            table[:, there] / law[there],
            law[there],
        )


@dataclass(frozen=True, eq=False)
class EffectiveChannel:
    """What becomes of some columns, averaged over all that else is in a record.

    Attributes
    ----------
    columns : tuple of str
    inputs : tuple of tuple of str
        a combinations of true values.
    outputs : tuple of tuple of str
        b combinations of published texts.
    matrix : ndarray, shape (b, a)
        W(y|x); columns sum to 1.
    law : ndarray, shape (a,)
        p(x).
    """

    columns: tuple[str, ...]
    inputs: tuple[tuple[str, ...], ...]
    outputs: tuple[tuple[str, ...], ...]
    matrix: FloatArray
    law: FloatArray

    @property
    def information(self) -> float:
        """I of these columns and what is published of them, nats."""
        masses = self.matrix * self.law
        some = masses > 0
        independent = masses.sum(axis=1, keepdims=True) * self.law
        return max(0.0, float((masses[some] * np.log(masses[some] / independent[some])).sum()))

    @property
    def entropy(self) -> float:
        """H of these columns, nats."""
        # Of a column with one value the sum of shares is one but for rounding, and there is nothing to know.
        law = self.law[self.law > 0] / self.law.sum()
        return max(0.0, float(-(law * np.log(law)).sum()))
