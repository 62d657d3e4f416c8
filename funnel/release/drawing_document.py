"""What the rows of a version were drawn with, where that is not the published protocol: channels given histories."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from funnel.joint import Joint
from funnel.protocol import FORMAT, Protocol
from funnel.release.document import CountTable, Decimal, Document, Sha256, Symbols, built


class DrawingDocument(Document):
    """The channels of all histories as one protocol, and the records that drew from it; internal.

    Its inputs are those of the published protocol with, before them, the number of the channel that a record's history
    is drawn from. ``counts`` are records by secret (rows) and by what they were drawn by: the inputs, or ``drawn_by``
    where these are others, as with people who are forgotten, whose channel is none of the numbers. ``target`` are the
    weights of the protocol of this version alone, in the order of the published protocol: what was aimed at.
    """

    described: ClassVar[str] = "the drawing of a version"
    schema_: Literal["funnel/drawing/1"] = Field(default="funnel/drawing/1", alias="schema")
    format: Literal["funnel-protocol/1"]
    digest: Sha256
    mechanism: str
    guarantee: str
    denominator: Literal["9223372036854775808"]
    inputs: Symbols
    outputs: Symbols
    weights: tuple[tuple[Decimal, ...], ...] = Field(min_length=1)
    marginal: tuple[Decimal, ...] = Field(min_length=1)
    secret: Symbols
    drawn_by: Symbols | None
    counts: CountTable
    target: tuple[tuple[Decimal, ...], ...] = Field(min_length=1)

    @cached_property
    def protocol(self) -> Protocol:
        """What was drawn from, its sums and its digest verified."""
        return Protocol.from_dict(self.content())

    @cached_property
    def joint(self) -> Joint:
        """Counts of (secret, what the drawing reads)."""
        return Joint.from_counts(self.counts, self.secret.alphabet(), self.drawers.alphabet())

    @property
    def drawers(self) -> Symbols:
        """What records were drawn by."""
        return self.inputs if self.drawn_by is None else self.drawn_by

    @model_validator(mode="after")
    def _of_one_drawing(self) -> Self:
        built(lambda: self.protocol)
        built(lambda: self.joint)
        return self


def drawing_document(protocol: Protocol, joint: Joint, target: Protocol) -> DrawingDocument:
    """The document of a drawing.

    Parameters
    ----------
    protocol : Protocol
        What rows are drawn with.
    joint : Joint
        Counts of (secret, what it reads).
    target : Protocol
        Of this version alone.

    Raises
    ------
    ValueError
        If they are by other columns.
    """
    if joint.inputs.columns != protocol.inputs.columns:
        raise ValueError("the records of a drawing are counted by what it reads")
    return DrawingDocument.like(
        protocol,
        format=FORMAT,
        denominator=str(protocol.denominator),
        weights=tuple(tuple(map(str, row)) for row in protocol.weights.tolist()),
        marginal=tuple(map(str, protocol.marginal.tolist())),
        secret=joint.secret,
        drawn_by=None if joint.inputs == protocol.inputs else joint.inputs,
        counts=joint.counts,
        target=tuple(tuple(map(str, row)) for row in target.weights.tolist()),
    )
