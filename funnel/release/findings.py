"""Findings of an audit as a document."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from funnel.audit.findings import Findings
from funnel.release.document import Count, Document, Part, Probability


class FoundConsistency(Part):
    """`funnel.audit.Consistency`."""

    p_value: Probability
    worst_input: Count
    tests: Count
    impossible: Count


class FoundConfidence(Part):
    """`funnel.confidence.ConfidenceSet`."""

    alpha: float = Field(gt=0, lt=1)
    radius: float = Field(ge=0)
    cells: Count
    n: Count
    smallest_expected: float
    few: Count
    smallest_observed: Count | None = None


class FindingsDocument(Document):
    """What the audit of a release found, as `funnel.audit.Findings` describes it, in nats; internal.

    None stands for an infinite level, a lift that is not defined, and what was not computed.
    """

    described: ClassVar[str] = "the document of findings"
    schema_: Literal["funnel/findings/1"] = Field(default="funnel/findings/1", alias="schema")
    guarantee: str
    holds: bool
    level: float | None
    level_ratio: str | None = Field(pattern=r"^[0-9]+/[1-9][0-9]*$")
    witness_output: str
    witness_secret: str
    witness_other_secret: str | None
    witness_upward: bool
    witness_given: tuple[tuple[str, str], ...]
    utility: float
    entropy: float
    share: float
    secret_information: float
    guess_accuracy: float
    prior_guess_accuracy: float
    lift: tuple[tuple[float | None, ...], ...]
    rows: Count
    outside: Count
    consistency: FoundConsistency
    confidence: FoundConfidence
    robust_level: float | None
    plain_level: float | None
    robust_lift_level: float | None

    @classmethod
    def upgraded(cls, version: int, content: Any) -> Any:
        """Before version 1 some findings were not made yet."""
        later: dict[str, Any] = {
            "witness_given": [],
            "robust_level": None,
            "plain_level": None,
            "robust_lift_level": None,
        }
        return {**later, **content, "confidence": {"few": 0, **content["confidence"]}}


def findings_document(findings: Findings) -> FindingsDocument:
    """The document of findings."""
    content = findings.to_dict()
    return FindingsDocument(
        **{
            **content,
            "lift": tuple(map(tuple, content["lift"])),
            "consistency": FoundConsistency(**content["consistency"]),
            "confidence": FoundConfidence(**content["confidence"]),
        }
    )
