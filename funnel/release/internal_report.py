"""InternalReport: every figure of the internal report of a version, exact; for the publisher alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from funnel.confidence import ConfidenceSet
from funnel.findings.consistency import Consistency
from funnel.findings.followed import FoundHistory
from funnel.findings.population import InPopulation
from funnel.history.drift import Shift
from funnel.history.movement import Movement
from funnel.release.comparison import ComparedMechanism
from funnel.release.document import Count, Document, Part, Probability
from funnel.release.public_report import Approval, ProtectedFrequencies
from funnel.release.report_parts import EstimatedTable, Level, Unchanged
from funnel.release.verdict import Judgement
from funnel.settings.count_protection import ProtectionName


class ExactWitness(Part):
    """Where the level is attained, and the exact worst ratio; as `funnel.findings.Findings` has them."""

    output: str
    secret: str
    other_secret: str | None
    upward: bool
    given: tuple[tuple[str, str], ...]
    ratio: str | None = Field(pattern=r"^[0-9]+/[1-9][0-9]*$")


class ExactFigures(Part):
    """Findings to the last digit, in nats, for an observer who knows the exact counts.

    ``holds`` is whether the guarantee does for every table of counts that the public frequencies leave open, and
    ``proven_level`` the level over these; None where the exact counts are the public ones. ``absent`` published records
    have a combination of values that no record of the source has; None where outputs stand for sets of values.
    """

    holds: bool
    level: Level
    proven_level: Level | None
    witness: ExactWitness
    utility: float
    entropy: float
    share: float
    secret_information: float
    guess_accuracy: Probability
    prior_guess_accuracy: Probability
    rows: Count
    outside: Count
    consistency: Consistency
    confidence: ConfidenceSet
    plain_level: Level
    robust_level: Level | None
    robust_lift_level: Level | None
    explained: Probability | None
    absent: Count | None = None


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
    """How often a classifier guesses right, as `funnel.findings.learned.Learned`; all None where there is none."""

    trained: Count | None = None
    tried: Count | None = None
    prior: Probability | None = None
    without: Probability | None = None
    with_release: Probability | None = None
    columns: Count | None = None
    reason: str | None = None


class DriftFigures(Part):
    """How frequencies differ from those of the version before, as `funnel.history.drift.Drift`."""

    same_people: bool
    drifted: bool
    p_value: Probability
    new: Mapping[str, tuple[str, ...]]
    vanished: Mapping[str, tuple[str, ...]]
    columns: Mapping[str, str]
    shifts: tuple[Shift, ...]
    sentence: str


class RegisterVersion(Part):
    """A version of the register, of whatever series; None for what is not known here any more.

    Shares are of H(X) of that version; ``histories`` are those that people had before it.
    """

    version: str
    guarantee: str
    reserve: float
    people: Count
    histories: Count
    level: float | None
    moved: Count | None
    outside: Count | None
    share: float
    share_alone: float | None


class HistoryFigures(Part):
    """What everybody who keeps all versions can conclude, exact.

    ``new`` and ``before`` are None where rows are taken over: they are told of the version that they were drawn for.
    """

    found: FoundHistory
    new: Count | None
    before: tuple[Movement, ...] | None
    versions: tuple[RegisterVersion, ...]


class DisclosureRules(Part):
    """The rules of disclosure control that frequencies are held against, as `funnel.disclosure.Rules`."""

    minimum_cell: Count
    dominance: Probability
    unique_share: Probability


class DisclosureFigures(Part):
    """What of the public frequencies breaks these rules; ``values`` are the breaking cells by column and value."""

    protection: ProtectionName
    rules: DisclosureRules
    passes: bool
    broken: tuple[str, ...]
    records: Count
    combinations: Count
    small_cells: Count
    dominated: Count
    alone: Count
    below_minimum: Count
    values: Mapping[str, Mapping[str, Count]]


class InternalReport(Document):
    """All evidence on a release, exact, with what attackers could do and what was judged; internal.

    ``within`` is whether the exact counts are within the bounds that the noise leaves open; None without noise.
    ``set_aside`` has a sentence for all records that are left out or merged, by column and reason.
    """

    described: ClassVar[str] = "the internal report"
    schema_: Literal["funnel/internal/1"] = Field(default="funnel/internal/1", alias="schema")
    name: str
    title: str
    version: str
    created: str
    guarantee: str
    mechanism: str
    utility: Literal["information", "variance", "estimation"]
    secret: tuple[str, ...]
    published: tuple[str, ...]
    figures: ExactFigures
    lifts: tuple[ExactLift, ...]
    lifts_total: Count
    sparse: Sparse
    population: InPopulation | None
    alone: AttackFigures
    beside: tuple[AttackFigures, ...]
    versions: tuple[AttackFigures, ...]
    people: Literal["same", "different"] | None
    history: HistoryFigures | None
    drift: DriftFigures | None
    learned: LearnedFigures
    verdict: tuple[Judgement, ...]
    compared: tuple[ComparedMechanism, ...]
    frequencies: ProtectedFrequencies
    within: bool | None
    software: Mapping[str, str]
    approval: Approval | None = None
    estimated: tuple[EstimatedTable, ...]
    disclosure: DisclosureFigures | None = None
    unchanged: Unchanged | None = None
    set_aside: tuple[str, ...] = ()
