"""Documents of a release about its channel: joint distribution, pairs and random words (internal), and the protocol."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from funnel.alphabet import Alphabet
from funnel.class_parts import ClassParts, Known
from funnel.drawn import DrawnCounts
from funnel.errors import DataError, SpecError
from funnel.joint import IntArray, Joint
from funnel.protocol import Protocol
from funnel.release.document import Count, CountRow, CountTable, Document, Part, Symbols, built
from funnel.word_statistics import WordStatistics


class JointDocument(Document):
    """Counts of records by secret (rows) and by published columns; internal."""

    described: ClassVar[str] = "the joint distribution"
    schema_: Literal["funnel/joint/1"] = Field(default="funnel/joint/1", alias="schema")
    counts: CountTable
    secret: Symbols
    inputs: Symbols

    @cached_property
    def joint(self) -> Joint:
        """The joint distribution."""
        return Joint.from_counts(self.counts, self.secret.alphabet(), self.inputs.alphabet())

    @model_validator(mode="after")
    def _is_a_distribution(self) -> Self:
        built(lambda: self.joint)
        return self


class PeopleWith(Part):
    """People by their values of some columns, and by part: a table of as many axes, most of which is empty.

    ``people`` are the numbers that are not 0 in C order, and ``steps`` how many cells each is after the one before.
    """

    columns: tuple[str, ...] = Field(min_length=1)
    steps: CountRow
    people: CountRow

    def table(self, shape: Sequence[int]) -> IntArray:
        """All of the table, by what is known and by part; SpecError if it is larger than that shape."""
        cells, found = np.cumsum(np.array(self.steps, dtype=np.int64)), np.zeros(math.prod(shape), dtype=np.int64)
        if len(cells) != len(self.people) or (len(cells) and cells[-1] >= found.size):
            raise SpecError(f"there are other people by {', '.join(self.columns)} than these have values")
        found[cells] = self.people
        return found.reshape(-1, shape[-1])


class PartsDocument(Document):
    """The people with values of columns in every part of a class, ``joint.json`` being about these; internal.

    Of every input ``class_of`` is the number of its class. ``known`` is about every set of columns of which observers
    may know the values; these are in ``values``, of every column in order. ``held_out`` counts secrets (rows) and
    classes among the records by which classes were not chosen; null where all chose them.
    """

    described: ClassVar[str] = "the people of parts of classes"
    schema_: Literal["funnel/parts/1"] = Field(default="funnel/parts/1", alias="schema")
    classes: Symbols
    class_of: CountRow
    values: dict[str, tuple[str, ...]]
    known: tuple[PeopleWith, ...] = Field(min_length=1)
    held_out: CountTable | None

    @cached_property
    def parts(self) -> ClassParts:
        """The same for a joint distribution."""
        known: list[Known] = []
        tables = []
        for one in self.known:
            values = [self.values.get(column, ()) for column in one.columns]
            people = one.table([*map(len, values), len(self.class_of)])
            there = np.asarray(people.any(axis=1))
            symbols = [tuple(zip(one.columns, symbol, strict=True)) for symbol in product(*values)]
            known += [symbol for symbol, occurs in zip(symbols, there, strict=True) if occurs]
            tables.append(people[there])
        held_out = None if self.held_out is None else np.array(self.held_out, dtype=np.int64)
        return ClassParts(
            self.classes.alphabet(), np.array(self.class_of), np.concatenate(tables), tuple(known), held_out
        )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        built(lambda: self.parts)
        return self


def parts_document(parts: ClassParts) -> PartsDocument:
    """The document of the classes of parts, and of the people in these."""
    values: dict[str, dict[str, int]] = {}
    rows: dict[tuple[str, ...], list[int]] = {}
    for row, one in enumerate(parts.known):
        rows.setdefault(tuple(column for column, _ in one), []).append(row)
        if len(one) == 1:
            column, value = one[0]
            values.setdefault(column, {})[value] = len(values.get(column, ()))
    known = []
    for columns, numbers in rows.items():
        codes = [[values[column][value] for column, value in parts.known[row]] for row in numbers]
        places = np.ravel_multi_index(tuple(np.array(codes).T), [len(values[column]) for column in columns])
        people = parts.people[numbers]
        there = np.nonzero(people)
        cells = places[there[0]] * people.shape[1] + there[1]
        known.append(
            PeopleWith(
                columns=columns, steps=tuple(np.diff(cells, prepend=0).tolist()), people=tuple(people[there].tolist())
            )
        )
    texts = {column: tuple(of) for column, of in values.items()}
    held_out = None if parts.held_out is None else tuple(map(tuple, parts.held_out.tolist()))
    return PartsDocument(
        classes=Symbols.of(parts.classes),
        class_of=tuple(parts.class_of.tolist()),
        values=texts,
        known=tuple(known),
        held_out=held_out,
    )


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


def draws_document(counts: DrawnCounts, secret: Alphabet, probe: str, donors: str | None = None) -> DrawsDocument:
    """The document of drawn counts, shape (c + 1, a + 1, b), of what their secrets are, and of the probes."""
    return DrawsDocument.like(counts, shape=counts.shape[1:], secret=secret, probe=probe, donors=donors)


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
