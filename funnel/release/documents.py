"""Documents of a release about its channel: joint law, drawn pairs and random words, all internal, and the protocol."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from funnel.alphabet import Alphabet
from funnel.class_parts import ClassParts
from funnel.drawn import DrawnCounts
from funnel.errors import DataError
from funnel.joint import Joint
from funnel.protocol import Protocol
from funnel.release.document import Count, CountRow, CountTable, Document, Symbols, built
from funnel.release.protocol_document import ProtocolDocument
from funnel.word_statistics import WordStatistics

__all__ = [
    "DrawsDocument",
    "JointDocument",
    "PartsDocument",
    "ProtocolDocument",
    "WordsDocument",
    "drawn_pairs",
    "draws_document",
    "joint_document",
    "read_draws",
    "read_joint",
    "words_document",
]


class JointDocument(Document):
    """Counts of records by secret (rows) and by published columns; internal."""

    described: ClassVar[str] = "the joint law"
    schema_: Literal["funnel/joint/1"] = Field(default="funnel/joint/1", alias="schema")
    counts: CountTable
    secret: Symbols
    inputs: Symbols

    @cached_property
    def joint(self) -> Joint:
        """The joint law."""
        return Joint.from_counts(self.counts, self.secret.alphabet(), self.inputs.alphabet())

    @model_validator(mode="after")
    def _is_a_distribution(self) -> Self:
        built(lambda: self.joint)
        return self


class PartsDocument(Document):
    """The people with each value of a column in every part of a class, ``joint.json`` being about these; internal.

    Of every input ``class_of`` is the number of its class.
    """

    described: ClassVar[str] = "the people of parts of classes"
    schema_: Literal["funnel/parts/1"] = Field(default="funnel/parts/1", alias="schema")
    classes: Symbols
    class_of: CountRow
    known: tuple[tuple[str, str], ...] = Field(min_length=1)
    people: CountTable

    @cached_property
    def parts(self) -> ClassParts:
        """The same for a joint law."""
        class_of, people = (np.array(numbers, dtype=np.int64) for numbers in (self.class_of, self.people))
        return ClassParts(self.classes.alphabet(), class_of, people, self.known)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        built(lambda: self.parts)
        return self


class DrawsDocument(Document):
    """Records by secret, by the input that they drew with, and by output; internal.

    ``cells`` are numbers of cells, in C order, of the table of (secret, input, output) whose last secret and last input
    stand for values outside their alphabets, and ``records`` their counts; ``shape`` are its inputs and outputs.
    ``probe`` is what the sampler answered where outputs meet, and ``donors``, where whole records are published, whose
    place records took (`funnel.sampling.probe`).
    """

    described: ClassVar[str] = "the table of drawn pairs"
    schema_: Literal["funnel/draws/1"] = Field(default="funnel/draws/1", alias="schema")
    shape: tuple[Count, Count]
    secret: Symbols
    cells: CountRow
    records: CountRow
    probe: str = Field(pattern=r"^[0-9a-f]{32}$")
    donors: str | None = Field(default=None, pattern=r"^[0-9a-f]{32}$")

    @cached_property
    def counts(self) -> DrawnCounts:
        """The counts by secret, input and output, shape (c + 1, a + 1, b)."""
        cells, records = (np.array(numbers, dtype=np.int64) for numbers in (self.cells, self.records))
        return DrawnCounts((len(self.secret.symbols) + 1, *self.shape), cells, records)

    @cached_property
    def pairs(self) -> DrawnCounts:
        """Records by input and output, shape (1, a + 1, b)."""
        return DrawnCounts.of_pairs(self.counts)

    @model_validator(mode="after")
    def _is_a_table(self) -> Self:
        if max((*self.cells, *self.records), default=0) >= 2**63:
            raise ValueError("counts more than 64 bits hold")
        built(lambda: self.counts)
        return self


def joint_document(joint: Joint) -> JointDocument:
    """The document of a joint law."""
    return JointDocument.like(joint)


def read_joint(text: str | bytes, place: str = "") -> Joint:
    """Read back a `joint_document`; ``place`` is named if it is damaged.

    Raises
    ------
    DataError
        If the text is damaged.
    """
    return JointDocument.from_json(text, place).joint


def draws_document(counts: DrawnCounts, secret: Alphabet, probe: str, donors: str | None = None) -> DrawsDocument:
    """The document of drawn counts, shape (c + 1, a + 1, b), of what their secrets are, and of the probes."""
    return DrawsDocument.like(counts, shape=counts.shape[1:], secret=secret, probe=probe, donors=donors)


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
    if document.shape != (a + 1, b):
        raise DataError(f"the stored counts of drawn pairs have shape {document.shape}, not {(a + 1, b)}")
    return document.pairs


class WordsDocument(Document):
    """Statistics of the words that rows, donors of whole records, and the order of rows were drawn with; internal."""

    described: ClassVar[str] = "the document of random words"
    schema_: Literal["funnel/words/1"] = Field(default="funnel/words/1", alias="schema")
    streams: Mapping[Literal["draw", "donors", "order"], WordStatistics]

    @property
    def statistics(self) -> dict[str, WordStatistics]:
        """The statistics by purpose: ``draw``, ``donors``, ``order``."""
        return {str(purpose): stream for purpose, stream in self.streams.items()}


def words_document(words: Mapping[str, WordStatistics]) -> WordsDocument:
    """The document of statistics by purpose."""
    return WordsDocument.model_validate({"schema": "funnel/words/1", "streams": words})
