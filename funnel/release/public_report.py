"""PublicReport: every figure of the public report of a version, from which alone its page is made."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from funnel.release.comparison import CertificatePart
from funnel.release.document import Count, Document, Part, Probability, Sha256
from funnel.release.protection import Protection
from funnel.release.report_parts import (
    Belief,
    Beliefs,
    EstimatedTable,
    Heat,
    Level,
    Lifts,
    Outputs,
    StrongestCase,
    Total,
    Unchanged,
    Weighted,
)


class Contact(Part):
    """Who answers for the release."""

    name: str | None = None
    email: str | None = None


class Licence(Part):
    """The licence of the released data, with the address of its text where there is one."""

    name: str
    url: str | None = None


class Reference(Part):
    """One source to cite: its title, its address (web address or path) and its version."""

    title: str
    url: str | None = None
    version: str | None = None


class Source(Part):
    """The file that the release was made from; how many records were left out is told in words, or not at all.

    ``records`` are those of the table.
    """

    title: str
    records: Count
    dropped: str | None
    references: tuple[Reference, ...]


class Columns(Part):
    """Names of columns, and how many combinations of values they have."""

    columns: tuple[str, ...] = Field(min_length=1)
    values: Count


class Mechanism(Part):
    """How the protocol was made, in one line, and whether it looks at the secret."""

    name: str
    summary: str
    reads_secret: bool


class Channel(Part):
    """What the records were drawn from; the weights themselves are in ``protocol.json``."""

    digest: Sha256
    reads: tuple[str, ...] = Field(min_length=1)
    inputs: Count
    outputs: Count


class Consistency(Part):
    """Whether the draws look like draws from the protocol."""

    p_value: Probability
    tests: Count
    impossible: Count


class Estimation(Part):
    """How far the true distribution may be from the counted one, and what that could do to the bound.

    ``robust_level`` and ``plain_level`` are those of LDP over the confidence set and under the counts,
    ``robust_lift_level`` that of the guarantee itself over the set; None where they were not computed.
    """

    alpha: float = Field(gt=0, lt=1)
    radius: float = Field(ge=0)
    cells: Count
    records: Count
    doubtful: bool
    plain_level: Level
    robust_level: Level | None
    robust_lift_level: Level | None


class HistoryObserver(Part):
    """What one observer who keeps all versions can conclude at most of the secret of one version.

    ``secret_of`` is the earlier version, None for this one; ``bounded`` if this secret is bounded for the observer.
    ``level`` is over the people who were not moved before, ``level_of_all`` over everybody.
    """

    observer: str = Field(min_length=1)
    secret_of: str | None
    bounded: bool
    level: Level
    level_of_all: Level
    outside_at_most: Probability


class History(Part):
    """What everybody who keeps all versions can conclude; no counts of people or histories.

    ``outside_at_most`` is the most of all observers and secrets that are bounded. ``own`` is the share of whole records
    that are expected to be those of the people they stand for; None where outputs of one channel are published.
    ``rare`` is the share of those of people with a rare number of rows, where people have several.
    """

    versions: int = Field(ge=1)
    share_alone: Probability
    outside_at_most: Probability
    observers: tuple[HistoryObserver, ...] = ()
    own: Probability | None = None
    rare: Probability | None = None


class Figures(Part):
    """What the audit found, rounded to be published.

    ``consistency`` is None where people have histories: how the draws were compared would tell how many there are. It
    is None too, as ``outside`` is, where noise protects the frequencies.
    """

    holds: bool
    level: Level
    level_factor: float | None
    rules_out: bool
    worst_of_many_distributions: bool
    utility: float
    entropy: float
    share: float
    secret_information: float
    guess_accuracy: float
    prior_guess_accuracy: float
    rows: Count
    outside: Count | None
    consistency: Consistency | None
    history: History | None
    explained: Probability | None


class Compared(Part):
    """What the comparison of mechanisms says of the chosen one; ``reason`` says why it may not be used, None if it may.

    ``certificate`` tells by how much another protocol could be better, where that is known. ``finished`` is false if a
    time limit ended the search.
    """

    mechanism: str
    utility: float | None
    share: float | None
    level: Level | None
    reason: str | None
    certificate: CertificatePart | None = None
    finished: bool = True


class Frequency(Part):
    """One true value: its share, and the standard error of estimating it from the records; None if they cannot tell."""

    label: str
    share: float
    error: float | None


class Accuracy(Part):
    """How well true shares can be estimated from the records: the most common values, of ``total``.

    ``unknown`` counts the values, of all, whose share the records alone cannot tell.
    """

    rows: tuple[Frequency, ...]
    total: Total
    unknown: Count


class Rarity(Part):
    """Rare values and combinations, told no finer than the published shares tell them, or in words.

    ``inputs`` and ``secrets`` count values whose published share is one step, that is about ``records`` or fewer.
    ``combinations`` says how many combinations of both have fewer than ten records.
    """

    records: Count
    inputs: Count
    secrets: Count
    combinations: Literal["hardly any", "some", "many", "most"]


class ProtectedFrequencies(Protection):
    """What protects the counts that this report is made from, and whether the guarantee covers the noise.

    ``covers_noise``: the guarantee holds for every table of counts that the noise does not rule out, not for the public
    counts alone; None without noise. ``covers_versions``: so does the bound on all versions together, for every set of
    tables of counts and of changes.
    """

    covers_noise: bool | None
    covers_versions: bool | None = None


class Change(Part):
    """What is public of the version before, and what differs from it."""

    version: str
    created: str
    guarantee: str
    columns: tuple[str, ...]
    records: Count
    rows: Literal["the same rows", "the same answers", "a fresh draw"]
    new_data: bool
    withdrawn: tuple[str, ...]


class KeptByVersion(Part):
    """What a version of this name about the same people keeps, and what it alone would have kept: shares of H(X)."""

    version: str
    share: Probability
    share_alone: Probability


class Judged(Part):
    """One expectation that is judged before anything is published."""

    name: str
    description: str


class Approval(Part):
    """Who approved the release, and when (ISO 8601)."""

    by: str
    at: str


class PublicReport(Document):
    """Every figure of the public report, rounded; the page is a function of this document alone; public.

    ``utility`` is what mechanisms are compared and chosen by, and what ``compared`` tells. ``kept`` is of the versions
    of this name about the same people whose public figures are there, this one last. ``weighted`` is None without
    survey weights, ``unchanged`` where outputs stand for sets of values. ``alone`` published records are like no
    other one; None where whole records are published. ``absent`` published records have a combination of values that no
    record has by the public counts; None where whole records are published, whose combinations are not counted in
    public, and where outputs stand for sets of values. ``grouping_kept`` is the share of the information in the
    published columns, as the spec asks for them, that grouping for a threshold left; the share that is kept is of that.
    """

    described: ClassVar[str] = "the figures of the report"
    schema_: Literal["funnel/report/1"] = Field(default="funnel/report/1", alias="schema")
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
    published: Columns
    guarantee: str
    mechanism: Mechanism
    utility: Literal["information", "variance", "estimation"]
    channel: Channel
    figures: Figures
    beliefs: Beliefs
    example: Belief | None
    strongest: StrongestCase | None
    outputs: Outputs
    heat: Heat
    lifts: Lifts
    compared: tuple[Compared, ...]
    estimation: Estimation
    accuracy: Accuracy | None
    estimated: tuple[EstimatedTable, ...]
    rarity: Rarity
    earlier_releases: Count
    people: Literal["same", "different"] | None
    unit: tuple[str, ...] = ()
    kept: tuple[KeptByVersion, ...]
    change: Change | None
    judged: tuple[Judged, ...]
    frequencies: ProtectedFrequencies
    approval: Approval | None = None
    weighted: Weighted | None = None
    unchanged: Unchanged | None = None
    alone: Count | None = None
    absent: Count | None = None
    grouping_kept: Probability | None = None

    @property
    def errors_by_column(self) -> tuple[EstimatedTable, ...]:
        """The errors of single columns: of whole records where they are told, else of what the protocol reads."""
        whole = None if self.unchanged is None else self.unchanged.whole
        tables = self.estimated if whole is None else whole.estimated
        return tuple(table for table in tables if len(table.columns) == 1)

    @property
    def at_once(self) -> int:
        """How many columns of a whole record observers may know at once, whichever they are."""
        return 0 if self.unchanged is None else self.unchanged.at_once
