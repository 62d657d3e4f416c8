"""The block on privacy of a release of groups, a document of its own: promise, groups, channels, how to estimate."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from funnel.guarantees import parse_guarantee
from funnel.release.document import Count, Document, Probability, Sha256
from funnel.release.privacy_block import (
    OF_NOISE,
    BehindFrequencies,
    DisclosureControl,
    Estimation,
    ProtocolFile,
    ReportFile,
)

RECIPE = (
    "Of one column at a time: of all shares p of true values those are the likeliest that this ends at, from equal "
    "ones on: multiply every p(x) by the sum over published values y of q(y) P(y|x) / r(y), again and again, where "
    "q(y) is the share of records with y, P(y|x) is in protocol.csv, and r(y) is the sum of P(y|x) p(x) over true "
    "values x; published values that have no line there are one. P(y|x) is an average over all records of this "
    "release, and holds for no part of them. channels.parquet has the same of every two columns."
)


class GroupedPrivacyBlock(Document):
    """What a release of groups promises about people, which groups there are, and how to estimate; public.

    ``groups`` are in the order in which they are published, and ``madeFor`` is how many people are expected to show the
    same where more is said. ``people`` is who the versions are about, as the publisher declares; null where that is not
    declared.
    """

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    described: ClassVar[str] = "the block on privacy of groups"
    schema_: Literal["funnel/grouped-privacy/1"] = Field(default="funnel/grouped-privacy/1", alias="schema")
    guarantee: str
    meaning: str
    level: float = Field(ge=0)
    unit: Literal["nats"] = "nats"
    secret: tuple[str, ...] = Field(min_length=1)
    published: tuple[str, ...] = Field(min_length=1)
    groups: tuple[tuple[str, ...], ...] = Field(min_length=1)
    made_for: int = Field(ge=1)
    mechanism: Literal["groups"] = "groups"
    reads_secret: Literal[False] = False
    protocol: ProtocolFile
    protocol_digest: Sha256
    channels: ProtocolFile
    report: ReportFile
    estimation: Estimation
    utility_share: Probability
    records: Count
    row_order: Literal["random", "as in the source"]
    disclosure_control: DisclosureControl
    frequencies: BehindFrequencies
    people: Literal["different"] | None
    scope: str

    @classmethod
    def upgraded(cls, version: int, content: Any) -> Any:
        """Before version 1 it named no schema, left out what is not known, and did not say how to estimate."""
        return {
            "people": None,
            **content,
            "meaning": parse_guarantee(content["guarantee"]).meaning,
            "estimation": {"path": "protocol.csv", "recipe": RECIPE},
            "frequencies": {**dict.fromkeys(OF_NOISE), **content["frequencies"]},
        }
