"""Drawn from: what the rows of a version are drawn with and from, and the one channel that public files tell of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from funnel.findings.followed import FoundHistory
from funnel.joint import Joint
from funnel.protocol import Protocol
from funnel.release.drawing_document import DrawingDocument
from funnel.release.findings import FindingsDocument
from funnel.release.layout import ReleaseFolder
from funnel.release.protocol_document import ProtocolDocument
from funnel.release.record import History
from funnel.release.snapshot import Snapshot


@dataclass(frozen=True, eq=False)
class DrawnFrom:
    """The drawing of a version.

    Attributes
    ----------
    channel : Protocol
        What public files tell of: the protocol itself, or the effective channel of all histories on a coarse grid.
    drawing : Protocol
        What rows are drawn with.
    counts : Joint or None
        Records by secret and by what ``drawing`` reads, where that is not the published columns alone.
    snapshot : Snapshot
        Whose records are drawn.
    target : Protocol or None
        The protocol of the version alone, where ``channel`` is another one; None also where rows are taken over.
    history : FoundHistory or None
        What all versions together tell.
    record : History or None
        The same as the record of the version has it.
    rounded : float or None
        By how much probabilities of ``channel`` may be off; None where it is what rows are drawn with, or nobody said.
    """

    channel: Protocol
    drawing: Protocol
    counts: Joint | None
    snapshot: Snapshot
    target: Protocol | None = None
    history: FoundHistory | None = None
    record: History | None = None
    rounded: float | None = None

    @property
    def is_followed(self) -> bool:
        """Whether rows are drawn given everything published about the same people, for an entry of their own."""
        return self.record is not None and self.record.people == "same" and self.record.entry is None

    @classmethod
    def alone(cls, protocol: Protocol, snapshot: Snapshot, record: History | None) -> Self:
        """Of a version whose people have no history that is known."""
        return cls(protocol, protocol, None, snapshot, record=record)

    @classmethod
    def taken_over(cls, folder: ReleaseFolder, snapshot: Snapshot, record: History) -> Self:
        """Of rows that were drawn, given histories, for an earlier version.

        Raises
        ------
        DataError
            If a document of that version is gone or damaged.
        """
        document = DrawingDocument.read(folder.drawing)
        found = FindingsDocument.read(folder.findings).history
        told = ProtocolDocument.read(folder.protocol)
        drawing, counts = document.protocol, document.joint
        return cls(told.protocol, drawing, counts, snapshot, history=found, record=record, rounded=told.rounded)
