"""InternalReport: every figure of the internal report of a version, exact; for the publisher alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from funnel.release.comparison import ComparedMechanism
from funnel.release.document import Count, Document, Part, Probability
from funnel.release.findings import FoundConfidence, FoundConsistency
from funnel.release.public_report import Approval, Level
from funnel.release.verdict import Judgement


class ExactWitness(Part):
    """Where the level is attained, and the exact worst ratio; as `funnel.audit.Findings` has them."""

    output: str
    secret: str
    other_secret: str | None
    upward: bool
    given: tuple[tuple[str, str], ...]
    ratio: str | None = Field(pattern=r"^[0-9]+/[1-9][0-9]*$")


class ExactFigures(Part):
    """Findings to the last digit, in nats."""

    holds: bool
    level: Level
    witness: ExactWitness
    utility: float
    entropy: float
    share: float
    secret_information: float
    guess_accuracy: Probability
    prior_guess_accuracy: Probability
    rows: Count
    outside: Count
    consistency: FoundConsistency
    confidence: FoundConfidence
    plain_level: Level
    robust_level: Level | None
    robust_lift_level: Level | None


class ExactLift(Part):
    """One of the strongest lifts, with the records of this secret, those expected of this output, and of both."""

    secret: str
    output: str
    lift: float
    secret_records: Count
    output_expected: float
    both_expected: float


class RareCombination(Part):
    """A combination of secret and published values that few records have."""

    secret: str
    input: str
    records: Count


class Sparse(Part):
    """How many combinations of secret and published values have few records, and the rarest of those that occur."""

    combinations: Count
    empty: Count
    single: Count
    below_five: Count
    below_ten: Count
    single_inputs: Count
    rarest: tuple[RareCombination, ...]


class AttackFigures(Part):
    """One attacker: how often the best guess of the secret is right without the record and with it.

    None, with a ``reason``, where it was not computed.
    """

    knows: str
    values: Count | None = None
    classes: bool = False
    before: Probability | None = None
    after: Probability | None = None
    information: float | None = None
    reason: str | None = None


class LearnedFigures(Part):
    """How often a classifier guesses right, as `funnel.audit.learned.Learned`; all None where there is none."""

    trained: Count | None = None
    tried: Count | None = None
    prior: Probability | None = None
    without: Probability | None = None
    with_release: Probability | None = None
    columns: Count | None = None
    reason: str | None = None


class InternalReport(Document):
    """All evidence on a release, exact, with what attackers could do and what was judged; internal."""

    described: ClassVar[str] = "the internal report"
    schema_: Literal["funnel/internal/1"] = Field(default="funnel/internal/1", alias="schema")
    name: str
    title: str
    version: str
    created: str
    guarantee: str
    mechanism: str
    secret: tuple[str, ...]
    published: tuple[str, ...]
    figures: ExactFigures
    lifts: tuple[ExactLift, ...]
    lifts_total: Count
    sparse: Sparse
    alone: AttackFigures
    beside: tuple[AttackFigures, ...]
    versions: tuple[AttackFigures, ...]
    learned: LearnedFigures
    verdict: tuple[Judgement, ...]
    compared: tuple[ComparedMechanism, ...]
    software: Mapping[str, str]
    approval: Approval | None = None
