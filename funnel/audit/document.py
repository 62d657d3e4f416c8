"""What an audit found, as a document for machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from funnel.audit.check import Result, overall
from funnel.release.document import Document, Part

_States = Literal["passed", "failed", "could not be checked"]


class AuditedCheck(Part):
    """`funnel.audit.check.Result`."""

    name: str
    state: _States
    detail: str


class AuditDocument(Document):
    """What ``funnel audit --json`` prints: the state of the whole release and of every check.

    Attributes
    ----------
    release : str
        The folder or the URL that was audited.
    state : str
        Failed if any check failed, else not known if any could not be made, else passed.
    checks : tuple of AuditedCheck
    """

    described: ClassVar[str] = "the document of an audit"
    schema_: Literal["funnel/audit/1"] = Field(default="funnel/audit/1", alias="schema")
    release: str
    state: _States
    checks: tuple[AuditedCheck, ...] = Field(min_length=1)


def audit_document(release: str, checks: Sequence[Result]) -> AuditDocument:
    """The document of an audit."""
    return AuditDocument(
        release=release,
        state=overall(checks).value,
        checks=tuple(AuditedCheck(name=c.name, state=c.state.value, detail=c.detail) for c in checks),
    )
