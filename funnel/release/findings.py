"""Findings of an audit as a document."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import ClassVar, Literal

from pydantic import Field, JsonValue

from funnel.findings.followed import ExpectedHistory, ExpectedObserver, FoundHistory, FoundObserver
from funnel.findings.of_release import Findings
from funnel.release.document import Count, Document, Part, Probability, dump

# Levels of whoever knows more than is published, and the share of the answers that was computed with each.
_LEVELS_OF_READERS = (("truth", "beyond"), ("tables", "tables_beyond"))


class FoundConsistency(Part):
    """`funnel.findings.Consistency`."""

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


class ExpectedObserverPart(Part):
    """`funnel.findings.followed.ExpectedObserver`."""

    observer: str = Field(min_length=1)
    secret_of: str | None
    bounded: bool
    level: float | None = Field(ge=0)
    of_all: float | None = Field(ge=0)
    outside: Probability


class ExpectedHistoryPart(Part):
    """`funnel.findings.followed.ExpectedHistory`.

    Where ``truth`` is None and ``beyond`` is not, that level is infinite; so it is of ``tables`` and ``tables_beyond``.
    """

    histories: int = Field(ge=1)
    level: float = Field(ge=0)
    moved: Probability
    outside: Probability
    others: Probability
    unpredicted: Count
    silent: Count
    truth: float | None = None
    beyond: Probability | None = None
    tables: float | None = None
    tables_beyond: Probability | None = None
    tables_moved: Count | None = None
    tables_people: Count | None = None
    open_people: Probability | None = None
    observers: tuple[ExpectedObserverPart, ...] = ()


class FoundObserverPart(Part):
    """`funnel.findings.followed.FoundObserver`."""

    observer: str = Field(min_length=1)
    secret_of: str | None
    bounded: bool
    level: float | None = Field(ge=0)
    moved: Count
    outside: Count
    moved_level: float | None = Field(default=None, ge=0)


class FoundHistoryPart(Part):
    """`funnel.findings.FoundHistory`."""

    register_: str = Field(alias="register")
    versions: int = Field(ge=1)
    histories: int = Field(ge=1)
    known: Count
    forgotten: Count
    channels: int = Field(ge=1)
    level: float = Field(ge=0)
    level_ratio: str | None = Field(pattern=r"^[0-9]+/[1-9][0-9]*$")
    worst: tuple[tuple[str, str], ...]
    worst_output: str
    worst_secret: str
    moved: Count
    outside: Count
    reserve: float = Field(gt=0, le=1)
    utility: float
    alone: float
    bound: float
    entropy: float
    units: int | None = Field(default=None, ge=1)
    moved_level: float | None = Field(default=None, ge=0)
    expected: ExpectedHistoryPart | None = None
    observers: tuple[FoundObserverPart, ...] = ()


class ExplainedPart(Part):
    """The share that is explained of the variance of numbers, and the number of every published value."""

    share: Probability
    numbers: tuple[float | None, ...]


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
    consistency: FoundConsistency
    confidence: FoundConfidence
    robust_level: float | None
    plain_level: float | None
    robust_lift_level: float | None
    proven_level: float | None
    history: FoundHistoryPart | None
    drift: Mapping[str, JsonValue] | None
    explained: ExplainedPart | None

    @property
    def found_history(self) -> FoundHistory | None:
        """The part about all versions together."""
        if self.history is None:
            return None
        content = self.history.model_dump(by_alias=True)
        expected = content.pop("expected")
        for level, share in _LEVELS_OF_READERS:
            if expected is not None and expected[level] is None and expected[share] is not None:
                expected[level] = math.inf
        if expected is not None:
            expected["observers"] = tuple(ExpectedObserver(**one) for one in expected["observers"])
        content["observers"] = tuple(FoundObserver(**one) for one in content["observers"])
        return FoundHistory(**content, expected=None if expected is None else ExpectedHistory(**expected))


def history_part(found: FoundHistory) -> FoundHistoryPart:
    """The part about all versions together, as documents hold it."""
    content = asdict(found)
    for level, _ in _LEVELS_OF_READERS:
        if found.expected is not None and content["expected"][level] == math.inf:
            content["expected"][level] = None
    return FoundHistoryPart.model_validate_json(dump(content))


def findings_document(findings: Findings) -> FindingsDocument:
    """The document of findings."""
    content = findings.to_dict()
    return FindingsDocument(
        **{
            **content,
            "lift": tuple(map(tuple, content["lift"])),
            "consistency": FoundConsistency(**content["consistency"]),
            "confidence": FoundConfidence(**content["confidence"]),
            "history": None if findings.history is None else history_part(findings.history),
            "explained": None if findings.explained is None else ExplainedPart(**vars(findings.explained)),
        }
    )
