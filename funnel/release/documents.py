"""Documents of a release about its channel: joint law and drawn pairs, which are internal, and the protocol."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from funnel.errors import DataError
from funnel.joint import IntArray, Joint
from funnel.protocol import Protocol
from funnel.release.channel import Symbols, built
from funnel.release.document import Count, Document
from funnel.release.protocol_document import ProtocolDocument

__all__ = [
    "DrawsDocument",
    "JointDocument",
    "ProtocolDocument",
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
    """Records by the input that they drew with (the last row: outside the alphabet) and by output; internal."""

    described: ClassVar[str] = "the table of drawn pairs"
    schema_: Literal["funnel/draws/1"] = Field(default="funnel/draws/1", alias="schema")
    pairs: tuple[tuple[Count, ...], ...] = Field(min_length=2)

    @model_validator(mode="after")
    def _is_a_table(self) -> Self:
        if len({len(row) for row in self.pairs}) > 1:
            raise ValueError("has rows of different length")
        if max(map(max, filter(None, self.pairs)), default=0) >= 2**63:
            raise ValueError("counts more than 64 bits hold")
        return self

    @classmethod
    def upgraded(cls, version: int, content: Any) -> Any:
        """Before version 1 it only did not name its schema."""
        return content


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


def draws_document(pairs: IntArray) -> DrawsDocument:
    """The document of drawn pairs, shape (a + 1, b)."""
    return DrawsDocument(pairs=tuple(map(tuple, pairs.tolist())))


def read_draws(text: str | bytes, protocol: Protocol, place: str = "") -> IntArray:
    """Counts of drawn (input, output) pairs, shape (a + 1, b), from a `draws_document`.

    Raises
    ------
    DataError
        If the text is damaged or does not fit the protocol.
    """
    b, a = protocol.size
    pairs = np.array(DrawsDocument.from_json(text, place).pairs, dtype=np.int64)
    if pairs.shape != (a + 1, b):
        raise DataError(f"the stored counts of drawn pairs have shape {pairs.shape}, not {(a + 1, b)}")
    return pairs
