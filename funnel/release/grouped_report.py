"""The reports of a grouped release as documents: every figure of the public page, and of the internal one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from funnel.release.document import Count, Document, Part, Probability, Sha256
from funnel.release.grouped_findings import BY_INFORMATION, ChosenBy, ExplainedColumn, FoundColumn, TriedWay
from funnel.release.public_report import (
    Approval,
    Change,
    Columns,
    Contact,
    EstimatedTable,
    Judged,
    Licence,
    ProtectedFrequencies,
    Source,
    Weighted,
)
from funnel.release.verdict import Judgement

TextKind = Literal["a value", "a set", "all but some", "anything"]


class ReportedGroup(Part):
    """One group: its columns, the combinations of their values, how many channels it has, and the share of what there
    is to know of all its columns together that is kept; ``shared`` is the share of people who draw by weights that
    several combinations have in common, which older reports do not tell.
    """

    columns: tuple[str, ...] = Field(min_length=1)
    combinations: Count
    channels: Count
    kept: Probability
    shared: Probability | None = None


class ReportedRules(Part):
    """What the rules of disclosure control ask of the table of secrets and weights of all who draw from one channel."""

    minimum_cell: Count
    dominance: Probability
    unique_share: Probability


class ReportedColumn(Part):
    """One column: its group (from 1), its values, the different texts that it can be published as, the share of people
    of whom its plain, true value is published, and the share of what there is to know of it that is kept.
    """

    column: str
    group: int = Field(ge=1)
    values: Count
    texts: Count
    plain: Probability
    kept: Probability


class ReportedText(Part):
    """A published text as an example, and the values that it may stand for."""

    column: str
    text: str
    kind: TextKind
    values: tuple[str, ...]


class ReportedBelief(Part):
    """One value of the secret: its share, what the bound allows anybody to believe after a whole record, None where it
    sets no limit one by one, and by how much (standard error) the share of it among ``people`` people differs from that
    in the population they are from.
    """

    label: str
    prior: float
    least: float | None
    most: float | None
    error: float


class GroupedFigures(Part):
    """Figures of the whole release, rounded; ``level_factor`` is e^level."""

    holds: bool
    level: float
    level_factor: float
    utility: float
    entropy: float
    share: Probability
    rows: Count


class GroupedReport(Document):
    """Every figure of the public report of a grouped release; the page is a function of this document alone; public.

    ``made_for`` is how many people a prefix is expected to have for which a channel was made, ``least_people`` how many
    one must be expected to have to use such a channel where that is proven for it, and ``error`` the standard error of
    a share of one half among the former. ``estimated`` are errors of estimates of every column and every pair.
    ``rules`` are those that channels were held against; None if none were. ``chosen_by`` is what ways to publish the
    columns were compared by; by variance ``explained`` has every column of numbers, by estimation ``worth`` is what the
    records are worth for estimates, as a share of them.
    """

    described: ClassVar[str] = "the figures of the report"
    schema_: Literal["funnel/grouped-report/3"] = Field(default="funnel/grouped-report/3", alias="schema")
    name: str
    title: str
    description: str
    version: str
    created: str
    software: str
    contact: Contact
    licence: Licence
    source: Source
    recodings: tuple[str, ...]
    random_source: str
    shuffled: bool
    secret: Columns
    guarantee: str
    digest: Sha256
    choice: Literal["given", "order", "auto"]
    groups: tuple[ReportedGroup, ...]
    columns: tuple[ReportedColumn, ...]
    texts: tuple[ReportedText, ...]
    figures: GroupedFigures
    made_for: Count
    least_people: Count
    error: float
    rules: ReportedRules | None = None
    beliefs: tuple[ReportedBelief, ...]
    earlier_releases: Count
    people: Literal["same", "different"] | None
    change: Change | None
    judged: tuple[Judged, ...]
    frequencies: ProtectedFrequencies
    estimated: tuple[EstimatedTable, ...]
    approval: Approval | None = None
    weighted: Weighted | None = None
    chosen_by: ChosenBy
    explained: tuple[ExplainedColumn, ...]
    worth: Probability | None

    @classmethod
    def upgraded(cls, version: int, content: Any) -> Any:
        """Before version 2 nothing was told of how exact estimates are, of shared weights, nor of survey weights.

        Before version 3 all ways were compared by information.
        """
        if version not in (1, 2):
            return super().upgraded(version, content)
        content = {**content, **BY_INFORMATION}
        if version == 2:
            return content
        groups = [{**group, "shared": None} for group in content["groups"]]
        return {**content, "groups": groups, "rules": None, "weighted": None, "estimated": []}


class ReportedStage(Part):
    """One stage, exactly: prefixes of which something is said, channels with more than one output, the most and the
    fewest people that are expected behind one of these, and what the stage adds (nats) for whoever sees outputs;
    ``shared`` of ``rows`` rows of weights that are drawn by several combinations have in common.
    """

    columns: tuple[str, ...]
    prefixes: Count
    channels: Count
    most: float | None
    fewest: float | None
    told: float
    rows: Count | None = None
    shared: Count | None = None


class ReportedGuess(Part):
    """How often the secret is guessed right by its frequencies, and with a published record; I(S;Y), nats."""

    before: Probability
    after: Probability
    information: float


class GroupedInternalReport(Document):
    """All evidence on a grouped release, exact, and what was judged; internal.

    ``level`` is over all prefixes and outputs, ``decided`` of them, for whoever knows which output it was.
    """

    described: ClassVar[str] = "the internal report"
    schema_: Literal["funnel/grouped-internal/3"] = Field(default="funnel/grouped-internal/3", alias="schema")
    name: str
    title: str
    version: str
    created: str
    guarantee: str
    secret: tuple[str, ...]
    choice: Literal["given", "order", "auto"]
    reason: str
    schedule: str
    tried: tuple[TriedWay, ...]
    holds: bool
    level: float
    decided: Count
    rows: Count
    dropped: Count
    records: Count
    published: Count
    single: Count
    utility: float
    entropy: float
    share: Probability
    people: Count
    stages: tuple[ReportedStage, ...]
    columns: tuple[FoundColumn, ...]
    guess: ReportedGuess
    p_value: Probability
    tests: Count
    verdict: tuple[Judgement, ...]
    software: Mapping[str, str]
    estimated: tuple[EstimatedTable, ...]
    approval: Approval | None = None
    chosen_by: ChosenBy
    explained: tuple[ExplainedColumn, ...]
    worth: Probability | None

    @classmethod
    def upgraded(cls, version: int, content: Any) -> Any:
        """Before version 2 nothing was told of how exact estimates are, nor of rows of weights; as `GroupedReport`."""
        if version not in (1, 2):
            return super().upgraded(version, content)
        content = {**content, **BY_INFORMATION}
        if version == 2:
            return content
        stages = [{**stage, "rows": None, "shared": None} for stage in content["stages"]]
        return {**content, "stages": stages, "estimated": []}
