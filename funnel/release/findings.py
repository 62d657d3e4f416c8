"""Findings of an audit as a document."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field, JsonValue

from funnel.confidence import ConfidenceSet
from funnel.findings.consistency import Consistency
from funnel.findings.followed import FoundHistory
from funnel.findings.of_release import Findings
from funnel.measures.utilities import Explained
from funnel.release.document import Count, Document


class FindingsDocument(Document):
    """What the audit of a release found, as `funnel.findings.Findings` describes it, in nats; internal.

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
    consistency: Consistency
    confidence: ConfidenceSet
    robust_level: float | None
    plain_level: float | None
    robust_lift_level: float | None
    proven_level: float | None
    history: FoundHistory | None
    drift: Mapping[str, JsonValue] | None
    explained: Explained | None
    absent: Count | None = None


def findings_document(findings: Findings) -> FindingsDocument:
    """The document of findings."""
    content = vars(findings)
    infinite = {name: None for name, value in content.items() if isinstance(value, float) and math.isinf(value)}
    lift = tuple(tuple(None if math.isnan(value) else value for value in row) for row in findings.lift.tolist())
    return FindingsDocument(**{**content, **infinite, "lift": lift})
