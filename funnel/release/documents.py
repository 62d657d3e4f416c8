"""The documents of a release about its channel: the joint law, the drawn pairs, the protocol as its users need it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, Final, Literal, Self, TypeVar

import numpy as np
from pydantic import Field, model_validator

from funnel import measures
from funnel.alphabet import Alphabet
from funnel.drawn import DrawnCounts
from funnel.errors import DataError, FunnelError
from funnel.guarantees import Guarantee, parse_guarantee
from funnel.joint import IntArray, Joint
from funnel.protocol import FORMAT, Protocol
from funnel.release.document import Count, Decimal, Document, Part, Probability, Sha256
from funnel.release.public import PublicLaws, public_level

__all__ = [
    "DrawsDocument",
    "JointDocument",
    "ProtocolDocument",
    "drawn_pairs",
    "draws_document",
    "joint_document",
    "protocol_document",
    "read_draws",
    "read_joint",
]

T = TypeVar("T")

_DIGITS = 4
_DENOMINATOR: Final = "9223372036854775808"


class Symbols(Part):
    """An alphabet: the names of its columns, and of every symbol one text a column."""

    columns: tuple[str, ...] = Field(min_length=1)
    symbols: tuple[tuple[str, ...], ...] = Field(min_length=1)

    @classmethod
    def of(cls, alphabet: Alphabet) -> Self:
        """Of an alphabet."""
        return cls(columns=alphabet.columns, symbols=alphabet.symbols)

    def alphabet(self) -> Alphabet:
        """The alphabet; SpecError if its columns or symbols are not distinct or do not fit."""
        return Alphabet(self.columns, self.symbols)


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
        _built(lambda: self.joint)
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
    """

    described: ClassVar[str] = "the table of drawn pairs"
    schema_: Literal["funnel/draws/2"] = Field(default="funnel/draws/2", alias="schema")
    pairs: tuple[tuple[Count, ...], ...] = Field(min_length=2)
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
        return DrawnCounts((len(self.secret.symbols) + 1, len(self.pairs), len(self.pairs[0])), cells, records)

    @model_validator(mode="after")
    def _is_a_table(self) -> Self:
        if len({len(row) for row in self.pairs}) > 1:
            raise ValueError("has rows of different length")
        if max(map(max, filter(None, self.pairs)), default=0) >= 2**63:
            raise ValueError("counts more than 64 bits hold")
        if len({part is None for part in (self.secret, self.cells, self.records)}) > 1:
            raise ValueError("counts by secret only in part")
        if max((*(self.cells or ()), *(self.records or ())), default=0) >= 2**63:
            raise ValueError("counts more than 64 bits hold")
        counts = _built(lambda: self.counts)
        if counts is not None and not np.array_equal(counts.pairs, np.array(self.pairs, dtype=np.int64)):
            raise ValueError("counts by secret other records than without")
        return self

    @classmethod
    def upgraded(cls, version: int, content: Any) -> Any:
        """Before version 1 it did not name its schema; before version 2 it held nothing but the pairs."""
        return {**content, "secret": None, "cells": None, "records": None, "probe": None}


class Promise(Part):
    """The guarantee that holds: its kind, as it was declared, and the level that the protocol really has."""

    kind: str
    title: str
    declared: str
    unit: Literal["nats"]
    level: float
    secret: tuple[str, ...] = Field(min_length=1)


class Utility(Part):
    """What a record still tells about the published columns, in nats and as a share of what there is to know."""

    mutual_information_nats: float
    entropy_nats: float
    share: Probability
    columns: tuple[str, ...]


class Prior(Part):
    """The law of the published columns in the source, rounded."""

    columns: tuple[str, ...]
    symbols: tuple[tuple[str, ...], ...]
    probabilities: tuple[Probability, ...]


class Posterior(Part):
    """How likely an output is, and what it says about the published columns, rounded; zeros are left out."""

    output: tuple[str, ...]
    probability: Probability
    inputs: dict[str, Probability]


class ProtocolDocument(Document):
    """What a user of a release needs to know of the protocol; public.

    Weights and marginal are integers out of 2^63, as decimal texts: record x of the input alphabet became output y with
    probability weights[y][x] / denominator, and a record outside the alphabet with marginal[y] / denominator.
    """

    described: ClassVar[str] = "the protocol"
    schema_: Literal["funnel/protocol/1"] = Field(default="funnel/protocol/1", alias="schema")
    # What the digest is of begins with it: the form of the channel, which is also read without the rest.
    format: Literal["funnel-protocol/1"]
    digest: Sha256
    mechanism: str
    denominator: Literal["9223372036854775808"]
    inputs: Symbols
    outputs: Symbols
    weights: tuple[tuple[Decimal, ...], ...] = Field(min_length=1)
    marginal: tuple[Decimal, ...] = Field(min_length=1)
    guarantee: Promise
    utility: Utility
    prior: Prior
    posterior: tuple[Posterior, ...]

    @cached_property
    def protocol(self) -> Protocol:
        """The channel, its sums and its digest verified."""
        return Protocol.from_dict(self.content())

    @model_validator(mode="after")
    def _is_a_channel(self) -> Self:
        _built(lambda: self.protocol)
        if _built(lambda: parse_guarantee(self.guarantee.declared)).name != self.guarantee.kind:
            raise ValueError("declares a guarantee of another kind")
        if tuple(entry.output for entry in self.posterior) != self.outputs.symbols:
            raise ValueError("does not have one posterior for every output")
        if len(self.prior.probabilities) != len(self.prior.symbols):
            raise ValueError("does not have one prior probability for every symbol")
        return self

    @classmethod
    def upgraded(cls, version: int, content: Any) -> Any:
        """Before version 1 the guarantee was a text, and its block was called ``bound``."""
        bound = dict(content["bound"])
        if bound["declared"] != content["guarantee"]:
            raise ValueError("its bound is not its guarantee")
        promise = {"kind": bound.pop("guarantee"), **bound}
        # The first versions gave the exact ratio as well, and probabilities that rounding could lift above 1.
        promise.pop("exact_ratio", None)
        posterior = [{**entry, "probability": round(entry["probability"], _DIGITS)} for entry in content["posterior"]]
        rest = {key: value for key, value in content.items() if key != "bound"}
        return {**rest, "guarantee": promise, "posterior": posterior}


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
    pairs: IntArray, counts: DrawnCounts | None = None, secret: Alphabet | None = None, probe: str | None = None
) -> DrawsDocument:
    """The document of drawn pairs, shape (a + 1, b), and, where they were kept, of counts by secret and the probe."""
    return DrawsDocument(
        pairs=tuple(map(tuple, pairs.tolist())),
        secret=None if secret is None else Symbols.of(secret),
        cells=None if counts is None else tuple(counts.cells.tolist()),
        records=None if counts is None else tuple(counts.records.tolist()),
        probe=probe,
    )


def read_draws(text: str | bytes, protocol: Protocol, place: str = "") -> IntArray:
    """Counts of drawn (input, output) pairs, shape (a + 1, b), from a `draws_document`.

    Raises
    ------
    DataError
        If the text is damaged or does not fit the protocol.
    """
    return drawn_pairs(DrawsDocument.from_json(text, place), protocol)


def drawn_pairs(document: DrawsDocument, protocol: Protocol) -> IntArray:
    """The counts of drawn pairs in a document, shape (a + 1, b).

    Raises
    ------
    DataError
        If they do not fit the protocol.
    """
    b, a = protocol.size
    pairs = np.array(document.pairs, dtype=np.int64)
    if pairs.shape != (a + 1, b):
        raise DataError(f"the stored counts of drawn pairs have shape {pairs.shape}, not {(a + 1, b)}")
    return pairs


def protocol_document(joint: Joint, protocol: Protocol, guarantee: Guarantee) -> ProtocolDocument:
    """What a user of the release needs to know of the protocol.

    Beside the weights: the guarantee and the level, rounded up, the law of the published columns, rounded, and for
    every output its probability and its posterior over the values of the published columns, as they follow from it.
    """
    laws = PublicLaws.of(joint, protocol)
    level = public_level(guarantee.level(joint, protocol).value, guarantee, guarantee.holds(joint, protocol))
    posterior, law = np.round(laws.posterior, _DIGITS), np.round(laws.p_output, _DIGITS)
    return ProtocolDocument(
        format=FORMAT,
        digest=protocol.digest,
        mechanism=protocol.mechanism,
        denominator=_DENOMINATOR,
        inputs=Symbols.of(protocol.inputs),
        outputs=Symbols.of(protocol.outputs),
        weights=tuple(tuple(map(str, row)) for row in protocol.weights.tolist()),
        marginal=tuple(map(str, protocol.marginal.tolist())),
        guarantee=Promise(
            kind=guarantee.name,
            title=guarantee.title,
            declared=str(guarantee),
            unit="nats",
            level=level,
            secret=joint.secret.columns,
        ),
        utility=Utility(
            mutual_information_nats=laws.nats(measures.mutual_information(joint, protocol)),
            entropy_nats=laws.nats(joint.entropy),
            share=laws.nats(measures.normalised_mutual_information(joint, protocol)),
            columns=joint.inputs.columns,
        ),
        prior=Prior(
            columns=joint.inputs.columns,
            symbols=joint.inputs.symbols,
            probabilities=tuple(laws.p_input.tolist()),
        ),
        posterior=tuple(
            Posterior(
                output=symbol,
                probability=float(mass),
                inputs={
                    label: float(share)
                    for label, share in zip(joint.inputs.labels, row, strict=True)
                    if np.isfinite(share) and share > 0
                },
            )
            for symbol, mass, row in zip(protocol.outputs.symbols, law, posterior, strict=True)
        ),
    )


def _built(make: Callable[[], T]) -> T:
    """What a document is of; pydantic wants a ValueError where it cannot be made."""
    try:
        return make()
    except FunnelError as error:
        raise ValueError(f"cannot be used: {error}") from error
