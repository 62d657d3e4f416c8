"""The block on privacy of a data package, a document of its own: what is promised, of what, and how to estimate."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from funnel.certificate import Weighting
from funnel.release.document import Count, Document, Part, Probability, Sha256
from funnel.settings.count_protection import ProtectionName

KEY = "funnel:privacy"


class _Named(Part):
    """A part whose keys are written as the Data Package standard writes its own."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class ProtocolFile(_Named):
    """The file of the protocol, and its digest."""

    path: str
    hash: str = Field(pattern=r"^sha256:[0-9a-f]{64}$")


class ReportFile(ProtocolFile):
    """The file with the figures of the report, its digest, and the page that is made of them."""

    page: str


class Estimation(_Named):
    """How the shares of true values are estimated, and the file with the probabilities that it takes."""

    path: str
    recipe: str


class DisclosureControl(_Named):
    """The rules that the frequencies were held against, and whether a release that breaks one is refused."""

    minimum_cell: int = Field(ge=1)
    dominance: float = Field(gt=0, le=1)
    unique_share: Probability
    on_breach: Literal["refuse", "report"]


class Confidence(_Named):
    """Of the confidence set around the distribution: probability that the true one is outside, and radius in χ²."""

    alpha: float = Field(gt=0, lt=1)
    radius: float = Field(ge=0)


class NearBest(_Named):
    """By how much another protocol could be better at most: `funnel.certificate.Certificate`, beside what is kept.

    ``share`` is what the protocol keeps of what there is of the ``utility`` that it was chosen by.
    """

    of: Literal["kept", "unchanged", "classes"]
    gap: Probability
    weights: Weighting | None
    utility: Literal["information", "variance", "estimation"]
    share: Probability


class BehindFrequencies(_Named):
    """What protects the frequencies that all is made from; null where noise does not."""

    protection: ProtectionName
    meaning: str
    path: str | None
    hash: str | None
    epsilon: float | None
    delta: float | None
    beta: float | None
    spent: float | None
    unprotected_versions: Count | None


class PrivacyBlock(Document):
    """What a release promises about people: guarantee, level, protocol, how to estimate, over which versions; public.

    ``people`` is who the versions are about, as the publisher declares, and ``versions`` how many are about the same
    ones, this one included; ``secrets`` is whether the secrets of all of these are bounded, or the current one of each;
    null where that is not declared, or others are in each; ``rows_of`` the columns by which people have several rows.
    ``variance_explained`` is null
    where the spec does not ask for it, ``certificate`` where nothing is proven of better protocols.
    """

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    described: ClassVar[str] = "the block on privacy"
    schema_: Literal["funnel/privacy/1"] = Field(default="funnel/privacy/1", alias="schema")
    guarantee: str
    meaning: str
    level: float = Field(ge=0)
    unit: Literal["nats"] = "nats"
    secret: tuple[str, ...] = Field(min_length=1)
    published: tuple[str, ...] = Field(min_length=1)
    mechanism: str
    reads_secret: bool
    protocol: ProtocolFile
    protocol_digest: Sha256
    report: ReportFile
    estimation: Estimation
    utility_share: Probability
    variance_explained: Probability | None
    certificate: NearBest | None
    records: Count
    row_order: Literal["random", "as in the source"]
    disclosure_control: DisclosureControl
    confidence: Confidence
    frequencies: BehindFrequencies
    people: Literal["same", "different"] | None
    versions: int | None = Field(ge=1)
    secrets: Literal["all", "current"] | None
    rows_of: tuple[str, ...] = ()
    scope: str
