"""Frequencies as a public document: noisy counts, what they cost, and what the true ones may be."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from funnel.errors import SpecError
from funnel.frequencies.averages import NoisyAverages
from funnel.frequencies.limits import limits_of
from funnel.frequencies.moves import Moves, NoisyMoves
from funnel.frequencies.noise import Noise
from funnel.frequencies.public_counts import Frequencies, of_noisy
from funnel.frequencies.unit_tables import NoisyRows
from funnel.history.corrected import PARTS
from funnel.joint import MAX_ROWS, IntArray
from funnel.release.document import Count, Document, OfArray, Part, Probability, Symbols, built

Nats = Annotated[float, Field(ge=0)]
# Noise can take a count below zero; beyond these no table of people can be.
NoisyCount = Annotated[int, Field(gt=-MAX_ROWS, lt=MAX_ROWS)]


NoisyRow = Annotated[tuple[NoisyCount, ...], Field(min_length=1), OfArray]
NoisyTable = Annotated[tuple[Annotated[tuple[NoisyCount, ...], OfArray], ...], Field(min_length=1), OfArray]
Positive = Annotated[float, Field(gt=0)]


class MovesPart(Part):
    """Where people went since the version that is the last one of theirs, with noise.

    ``secrets`` counts them by their secret then (rows, in the order of that version) and now; ``stayed`` and ``left``
    by secret and published input then, or by secret alone, in one column: whose published input now has the same
    labels, and whose has not. Where an input is no longer there, nobody can have stayed: these counts are 0 and have no
    noise.
    """

    version: Annotated[str, Field(min_length=1)]
    secrets: NoisyTable
    stayed: NoisyTable
    left: NoisyTable

    @classmethod
    def of(cls, moves: Moves) -> Self:
        """Of noisy moves."""
        return cls.like(moves, version=moves.since)

    @property
    def moves(self) -> Moves:
        """What it is of."""
        return Moves(self.version, matrix(self.secrets), matrix(self.stayed), matrix(self.left))


class NoisyPart(Part):
    """Noisy tables: what all of them cost together, and the scale of the noise in every number."""

    what: ClassVar[str]
    epsilon: Positive
    scale: Positive

    @property
    def drawn(self) -> object:
        """The numbers that were drawn, as JSON has them."""
        raise NotImplementedError

    @property
    def noisy_sha256(self) -> str:
        """SHA-256 (hex) of what was drawn, whatever was spent besides."""
        return hashlib.sha256(json.dumps(self.drawn, sort_keys=True).encode()).hexdigest()

    @cached_property
    def tables(self) -> Any:
        """What it is of; SpecError if its tables do not fit one another, or its scale is not that of its epsilon."""
        found = self._tables()
        if found.scale != self.scale:
            raise SpecError(f"the scale of the noise in its {self.what} is not that of their epsilon")
        return found

    def _tables(self) -> NoisyMoves | NoisyRows | NoisyAverages:
        raise NotImplementedError

    @model_validator(mode="after")
    def _fits(self) -> Self:
        built(lambda: self.tables)
        return self


class ChangesPart(NoisyPart):
    """How people changed since all earlier versions about them, by the version that is the last one of theirs.

    One person is in one count of ``secrets`` and in one of ``stayed`` and ``left``, over all versions, so that noise of
    this ``scale``, which is 2 / ``epsilon``, makes them ``epsilon``-differentially private (nats).
    """

    what = "changes"
    since: tuple[MovesPart, ...] = Field(min_length=1)

    @classmethod
    def of(cls, changes: NoisyMoves) -> Self:
        """Of noisy moves."""
        return cls.like(changes, since=tuple(map(MovesPart.of, changes.since)))

    @property
    def drawn(self) -> object:
        """As of `NoisyPart`."""
        return [one.model_dump(mode="json") for one in self.since]

    def _tables(self) -> NoisyMoves:
        if len({one.version for one in self.since}) != len(self.since):
            raise SpecError("it tells the changes since one version twice")
        return NoisyMoves(self.epsilon, tuple(one.moves for one in self.since))


class RowsPart(NoisyPart):
    """How the rows of a unit follow one another, which are in a random order, with noise.

    ``stayed`` and ``left`` count units with two rows or more by secret and published input of the first, or by secret
    alone: whose second row has the same published input, and whose has not. ``sizes`` counts units with 1, 2, … rows.
    One unit is in one count of ``sizes`` and in at most one other, so that noise of this ``scale``, which is 2 /
    ``epsilon``, makes them ``epsilon``-differentially private (nats).
    """

    what = "rows"
    stayed: NoisyTable
    left: NoisyTable
    sizes: NoisyRow

    @property
    def drawn(self) -> object:
        """As of `NoisyPart`."""
        return [self.stayed, self.left, self.sizes]

    def _tables(self) -> NoisyRows:
        sizes = np.array(self.sizes, dtype=np.int64)
        return NoisyRows(self.epsilon, matrix(self.stayed), matrix(self.left), sizes)


# Parts of so many records.
NoisyMean = Annotated[int, Field(gt=-MAX_ROWS * PARTS, lt=MAX_ROWS * PARTS)]


class AveragesPart(NoisyPart):
    """Averages of each published value, with noise: means, or departures."""

    what = "averages"
    counts: Annotated[tuple[NoisyMean, ...], Field(min_length=1), OfArray]

    @property
    def drawn(self) -> object:
        """As of `NoisyPart`."""
        return self.counts

    def _tables(self) -> NoisyAverages:
        return NoisyAverages(self.epsilon, np.array(self.counts, dtype=np.int64), self._of_one_person())

    def _of_one_person(self) -> int:
        """What one person adds to all of them together at most, in parts of a record."""
        return PARTS


class MeansPart(AveragesPart):
    """How many records each published value is published for on average, given the histories of the people, with noise.

    By the rows of their histories, before the answer is changed once more so that these means are the published
    counts. ``counts`` are in parts of a record, 2^-20 of one, in the order of ``inputs``. One person adds one record to
    all of them together, so that noise of this ``scale`` (in parts), which is 2^20 / ``epsilon``, makes them
    ``epsilon``-differentially private (nats).
    """


class ImpossiblePart(Part):
    """Published values that were declared not to go together: ``values`` of each of the ``columns``."""

    columns: Annotated[tuple[str, ...], Field(min_length=2)]
    values: Annotated[tuple[Annotated[tuple[str, ...], Field(min_length=1)], ...], Field(min_length=2)]

    @classmethod
    def of(cls, listed: Mapping[str, tuple[str, ...]]) -> Self:
        """Of values by column."""
        return cls(columns=tuple(listed), values=tuple(listed.values()))

    @cached_property
    def listed(self) -> dict[str, tuple[str, ...]]:
        """Values by column; SpecError if there are more of one than of the other."""
        if len({*self.columns}) != len(self.values):
            raise SpecError("a combination that is declared impossible has not one list of values for each column")
        return dict(zip(self.columns, self.values, strict=True))


class DeparturesPart(AveragesPart):
    """By how much published values are more common on average than the protocol leads to expect of the records.

    The protocol is the mean over predicted people, and real ones have other histories. Given these, a published value
    has on average its departure more records than the protocol gives it for the true values. ``counts`` are in parts of
    a record, 2^-20 of one, in the order of the outputs of ``protocol.json``. What one person adds to all of them
    together is shortened to ``length`` parts, so that noise of this ``scale`` (in parts), which is ``length`` /
    ``epsilon``, makes them ``epsilon``-differentially private (nats). Take them off the published counts before these
    are estimated from.
    """

    length: Annotated[int, Field(ge=1, lt=MAX_ROWS)]

    def _of_one_person(self) -> int:
        return self.length


TABLES = ("changes", "rows", "means", "departures")
"""Names of the noisy tables beside the counts."""


class FrequenciesDocument(Document):
    """Counts by secret (rows) and published columns, with noise: the distribution behind the public documents.

    Records are drawn for true values, and their number is exact: these two, and what documents state of them, are not
    made from these counts. All other figures are.

    To every count one whole number was added, drawn from the discrete Laplace distribution of this ``scale``,
    P(k) ~ exp(-|k| / scale). The distribution that protocol and report are made from is that of ``noisy`` with 0 for
    what is below 0. Up to a probability ``beta`` over the noise, every true count is within ``cells_within`` of the
    noisy one, and the true number of records with each secret within ``totals_within`` of the sum of its row.

    But for these two, all public documents of this version together are differentially private, for one record more or
    less, with ``epsilon`` (nats), of which ``epsilon_counts`` went to the counts, to ``changes``, ``rows``, ``means``
    and ``departures`` what these say, and the rest to learning which values there are, and with ``delta``, which is 0
    unless values were learned.
    ``spent`` is the epsilon of all versions about these people, this one included.

    ``changes`` is there where earlier versions are about the same people, ``rows`` where units have several rows: the
    counts are then those of the first row of every unit. ``means`` is there where values are as they are and earlier
    versions are about the same people; ``departures`` where records are estimated from, and there are ``changes`` or
    ``rows``. ``impossible`` is there where published values were declared not to go together: there is a count for
    every combination of values but of these.
    """

    described: ClassVar[str] = "the public frequencies"
    schema_: Literal["funnel/frequencies/1"] = Field(default="funnel/frequencies/1", alias="schema")
    protection: Literal["noise"]
    epsilon: Nats
    epsilon_counts: Annotated[float, Field(gt=0)]
    delta: Probability
    beta: Annotated[float, Field(gt=0, lt=1)]
    spent: Nats
    scale: Annotated[float, Field(gt=0)]
    cells_within: Count
    totals_within: Count
    secret: Symbols
    inputs: Symbols
    noisy: NoisyTable
    changes: ChangesPart | None = None
    rows: RowsPart | None = None
    means: MeansPart | None = None
    impossible: Annotated[tuple[ImpossiblePart, ...], Field(min_length=1)] | None = None
    departures: DeparturesPart | None = None

    @cached_property
    def frequencies(self) -> Frequencies:
        """What it is of, with the bounds worked out again."""
        secret, inputs = self.secret.alphabet(), self.inputs.alphabet()
        if {len(row) for row in self.noisy} != {len(inputs)} or len(self.noisy) != len(secret):
            raise SpecError("its counts do not fit its alphabets")
        noisy = np.array(self.noisy, dtype=np.int64)
        noise = Noise(self.epsilon_counts, self.delta, self.beta)
        if (self.scale, self.cells_within, self.totals_within) != (noise.scale, *limits_of(noisy.shape, noise)):
            raise SpecError("its bounds are not those of its noise")
        tables = {name: part.tables for name in TABLES if (part := getattr(self, name)) is not None}
        if any(one.secrets.shape[1] != len(secret) for one in (tables["changes"].since if self.changes else ())):
            raise SpecError("its changes are not to the secrets that it counts")
        if self.rows is not None and tables["rows"].stayed.shape not in (noisy.shape, (len(noisy), 1)):
            raise SpecError("its rows are not of the values that it counts")
        if self.means is not None and len(self.means.counts) != len(inputs):
            raise SpecError("its means are not of the values that it counts")
        found = of_noisy(noisy, secret, inputs, noise, self.epsilon, self.spent)
        return replace(found, **tables, impossible=tuple(one.listed for one in self.impossible or ()))

    @property
    def noisy_sha256(self) -> str:
        """SHA-256 (hex) of the noisy counts and their symbols: of what was drawn, whatever was spent besides."""
        said = [self.noisy, self.secret.model_dump(), self.inputs.model_dump()]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()

    @model_validator(mode="after")
    def _is_of_noise(self) -> Self:
        built(lambda: self.frequencies)
        return self


def frequencies_document(frequencies: Frequencies) -> FrequenciesDocument:
    """The document of frequencies that are protected by noise.

    Raises
    ------
    SpecError
        If they are not: what is not protected is not told exactly.
    """
    noise, noisy = frequencies.noise, frequencies.noisy
    if noise is None or noisy is None:
        raise SpecError("only frequencies that are protected by noise are published exactly")
    within, of_totals = limits_of(noisy.shape, noise)
    return FrequenciesDocument.like(
        frequencies,
        epsilon_counts=noise.epsilon,
        delta=noise.delta,
        beta=noise.beta,
        scale=noise.scale,
        cells_within=within,
        totals_within=of_totals,
        secret=frequencies.joint.secret,
        inputs=frequencies.joint.inputs,
        changes=None if frequencies.changes is None else ChangesPart.of(frequencies.changes),
        impossible=tuple(map(ImpossiblePart.of, frequencies.impossible)) or None,
    )


def matrix(counts: tuple[tuple[int, ...], ...]) -> IntArray:
    """A table of counts as an array; SpecError if its rows are of several lengths."""
    if len({len(row) for row in counts}) != 1:
        raise SpecError("a table of counts has rows of several lengths")
    return np.array(counts, dtype=np.int64)
