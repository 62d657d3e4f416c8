"""Documents of a release about its channel: joint law and drawn pairs, which are internal, and the protocol."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from funnel.alphabet import Alphabet
from funnel.drawn import DrawnCounts
from funnel.errors import DataError
from funnel.joint import IntArray, Joint
from funnel.protocol import Protocol
from funnel.release.channel import Symbols, built
from funnel.release.document import Count, Document
from funnel.release.protocol_document import ProtocolDocument

# Beyond so many pairs only those that were drawn are written.
LARGEST_TABLE = 2**20

__all__ = [
    "DrawsDocument",
    "JointDocument",
    "ProtocolDocument",
    "drawn_pairs",
    "draws_document",
    "joint_document",
    "read_draws",
    "read_joint",
]


class JointDocument(Document):
    """Counts of records by secret (rows) and by published columns; internal."""

    described: ClassVar[str] = "the joint law"
    schema_: Literal["funnel/joint/1"] = Field(default="funnel/joint/1", alias="schema")
    counts: tuple[tuple[Count, ...], ...] = Field(min_length=1)
    secret: Symbols
    inputs: Symbols

    @cached_property
    def joint(self) -> Joint:
        """The joint law."""
        return Joint.from_counts(self.counts, self.secret.alphabet(), self.inputs.alphabet())

    @model_validator(mode="after")
    def _is_a_law(self) -> Self:
        built(lambda: self.joint)
        return self

    @classmethod
    def upgraded(cls, version: int, content: Any) -> Any:
        """Before version 1 it only did not name its schema."""
        return content


class DrawsDocument(Document):
    """Records by the input that they drew with (the last row: outside the alphabet) and by output; internal.

    By secret too, sparse: ``cells`` are numbers of cells, in C order, of the table of (secret, input, output) whose
    last secret and last input stand for values outside their alphabets, and ``records`` their counts. ``probe`` is what
    the sampler answered where outputs meet (`funnel.sampling.probe`). None in documents from before they were kept.
    Of a wide table there are no ``pairs``, which follow from the cells, but their ``shape``: lines and columns.
    """

    described: ClassVar[str] = "the table of drawn pairs"
    schema_: Literal["funnel/draws/3"] = Field(default="funnel/draws/3", alias="schema")
    pairs: tuple[tuple[Count, ...], ...] | None = Field(min_length=2)
    shape: tuple[Count, Count] | None
    secret: Symbols | None
    cells: tuple[Count, ...] | None
    records: tuple[Count, ...] | None
    probe: str | None = Field(pattern=r"^[0-9a-f]{32}$")

    @cached_property
    def counts(self) -> DrawnCounts | None:
        """The counts by secret, if they were kept."""
        if self.secret is None or self.cells is None or self.records is None:
            return None
        cells, records = (np.array(numbers, dtype=np.int64) for numbers in (self.cells, self.records))
        return DrawnCounts((len(self.secret.symbols) + 1, *self._lines_and_columns), cells, records)

    @cached_property
    def drawn(self) -> DrawnCounts:
        """Records by input and output, shape (1, a + 1, b)."""
        if self.pairs is not None:
            return DrawnCounts.of_pairs(np.array(self.pairs, dtype=np.int64))
        if self.counts is None:
            raise DataError("the stored draws have neither pairs nor counts by secret")
        return DrawnCounts.of_pairs(self.counts)

    @property
    def _lines_and_columns(self) -> tuple[int, int]:
        if self.pairs is not None:
            return len(self.pairs), len(self.pairs[0])
        return self.shape or (0, 0)

    @model_validator(mode="after")
    def _is_a_table(self) -> Self:
        if (self.pairs is None) == (self.shape is None):
            raise ValueError("has either pairs or their shape")
        if len({len(row) for row in self.pairs or ()}) > 1:
            raise ValueError("has rows of different length")
        if max(map(max, filter(None, self.pairs or ())), default=0) >= 2**63:
            raise ValueError("counts more than 64 bits hold")
        if len({part is None for part in (self.secret, self.cells, self.records)}) > 1:
            raise ValueError("counts by secret only in part")
        if max((*(self.cells or ()), *(self.records or ())), default=0) >= 2**63:
            raise ValueError("counts more than 64 bits hold")
        counts = built(lambda: self.counts)
        drawn = built(lambda: self.drawn)
        if counts is not None and not DrawnCounts.of_pairs(counts).agrees_with(drawn):
            raise ValueError("counts by secret other records than without")
        return self

    @classmethod
    def upgraded(cls, version: int, content: Any) -> Any:
        """Before version 1 it did not name its schema; before version 2 it held the pairs only; before 3 always."""
        if version == 2:
            return {**content, "shape": None}
        return {**content, "secret": None, "cells": None, "records": None, "probe": None, "shape": None}


def joint_document(joint: Joint) -> JointDocument:
    """The document of a joint law."""
    return JointDocument(
        counts=tuple(map(tuple, joint.counts.tolist())),
        secret=Symbols.of(joint.secret),
        inputs=Symbols.of(joint.inputs),
    )


def read_joint(text: str | bytes, place: str = "") -> Joint:
    """Read back a `joint_document`; ``place`` is named if it is damaged.

    Raises
    ------
    DataError
        If the text is damaged.
    """
    return JointDocument.from_json(text, place).joint


def draws_document(
    pairs: IntArray | DrawnCounts,
    counts: DrawnCounts | None = None,
    secret: Alphabet | None = None,
    probe: str | None = None,
) -> DrawsDocument:
    """The document of drawn pairs, shape (a + 1, b), and, where they were kept, of counts by secret and the probe."""
    drawn = DrawnCounts.of_pairs(pairs)
    _, lines, columns = drawn.shape
    wide = counts is not None and lines * columns > LARGEST_TABLE
    return DrawsDocument(
        pairs=None if wide else tuple(map(tuple, drawn.pairs.tolist())),
        shape=(lines, columns) if wide else None,
        secret=None if secret is None else Symbols.of(secret),
        cells=None if counts is None else tuple(counts.cells.tolist()),
        records=None if counts is None else tuple(counts.records.tolist()),
        probe=probe,
    )


def read_draws(text: str | bytes, protocol: Protocol, place: str = "") -> DrawnCounts:
    """Counts of drawn (input, output) pairs, shape (1, a + 1, b), from a `draws_document`.

    Raises
    ------
    DataError
        If the text is damaged or does not fit the protocol.
    """
    return drawn_pairs(DrawsDocument.from_json(text, place), protocol)


def drawn_pairs(document: DrawsDocument, protocol: Protocol) -> DrawnCounts:
    """The counts of drawn pairs in a document, shape (1, a + 1, b).

    Raises
    ------
    DataError
        If they do not fit the protocol.
    """
    b, a = protocol.size
    pairs = document.drawn
    if pairs.shape != (1, a + 1, b):
        raise DataError(f"the stored counts of drawn pairs have shape {pairs.shape[1:]}, not {(a + 1, b)}")
    return pairs
