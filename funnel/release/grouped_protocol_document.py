"""The protocol of a grouped release as its users need it, as a document: public, so made of public figures alone."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import Field, model_validator

from funnel.groups.protocol import GroupedProtocol
from funnel.guarantees import Guarantee, parse_guarantee
from funnel.release.channel import built
from funnel.release.document import Count, Document, Part, Probability, Sha256
from funnel.release.grouped_public import GroupedPublic
from funnel.release.protection import Protection
from funnel.release.protocol_document import Promise

MECHANISM: Final = "groups"
_UNIT: Final = 17592186044416
Weight = Annotated[int, Field(ge=1, le=_UNIT)]
Names = tuple[str, ...]
Following = tuple[Annotated[int, Field(ge=-1)], ...]


class AheadPart(Part):
    """Classes of the values of a later column, which a stage reads besides its own columns."""

    column: str
    values: Names
    classes: tuple[Count, ...]


class ChannelPart(Part):
    """Outputs of a channel: of each its label, the inputs it may come from, and their weights; sparse."""

    labels: tuple[Names, ...]
    inputs: tuple[tuple[Count, ...], ...]
    weights: tuple[tuple[Weight, ...], ...]
    marginal: tuple[Count, ...]


class StagePart(Part):
    """One group: its columns, the combinations of their values, its channels, and the classes of what was shown."""

    columns: Names
    symbols: tuple[Names, ...]
    ahead: AheadPart | None
    channels: tuple[ChannelPart, ...]
    classes: tuple[tuple[Count, Following], ...]


class ToldOfAll(Part):
    """What a record still tells of all published columns together, in nats and as a share of what there is to know."""

    mutual_information_nats: float
    entropy_nats: float
    share: Probability
    columns: Names


class ToldPart(Part):
    """A published column: its group (from 1), the share of people of whom its plain, true value is published, and the
    share of what there is to know of it that its published text keeps.
    """

    column: str
    group: int = Field(ge=1)
    plain: Probability
    kept: Probability


class GroupedProtocolDocument(Document):
    """What a user of a grouped release needs to know of its protocol; public.

    Weights are integers out of 2^44. A record begins in class 0 of the first stage. At a stage its class names a
    channel; its input is the number of its combination of values among the symbols, times the number of classes of the
    later column if there is one, plus the class of its value of that column. With probability weight / denominator it
    gets an output that lists this input, is published with the label of that, and goes on to the class at the next
    stage that stands for this output; after -1 all further columns are published as "any". An input that no output
    lists draws by the marginal.
    """

    described: ClassVar[str] = "the protocol of groups"
    schema_: Literal["funnel/grouped-protocol/1"] = Field(default="funnel/grouped-protocol/1", alias="schema")
    format: Literal["funnel-grouped-protocol/1"]
    digest: Sha256
    mechanism: Literal["groups"]
    denominator: Literal[17592186044416]
    columns: Names = Field(min_length=1)
    people: Count
    stages: tuple[StagePart, ...] = Field(min_length=1)
    guarantee: Promise
    utility: ToldOfAll
    told: tuple[ToldPart, ...]
    choice: Literal["given", "order", "auto"]
    frequencies: Protection

    @cached_property
    def protocol(self) -> GroupedProtocol:
        """The channels, their sums and their digest verified."""
        content = self.content()
        kept = ("format", "digest", "denominator", "columns", "people", "stages")
        return GroupedProtocol.from_dict({**{key: content[key] for key in kept}, "guarantee": self.guarantee.declared})

    @model_validator(mode="after")
    def _is_a_protocol(self) -> Self:
        built(lambda: self.protocol)
        if built(lambda: parse_guarantee(self.guarantee.declared)).name != self.guarantee.kind:
            raise ValueError("declares a guarantee of another kind")
        if tuple(one.column for one in self.told) != self.columns or self.utility.columns != self.columns:
            raise ValueError("does not tell of every column")
        return self

    def to_bytes(self) -> bytes:
        """The document as the bytes of its file: compact, since a line for every weight would be most of it."""
        text = json.dumps(self.content(), ensure_ascii=False, sort_keys=True, allow_nan=False, separators=(",", ":"))
        return (text + "\n").encode()


def grouped_protocol_document(
    protocol: GroupedProtocol,
    guarantee: Guarantee,
    secret: Names,
    public: GroupedPublic,
    protection: Protection,
) -> GroupedProtocolDocument:
    """What a user of the release needs to know of the protocol, with figures as they are published."""
    content = protocol.to_dict()
    written = {key: content[key] for key in ("format", "digest", "columns", "people", "stages", "denominator")}
    rest = {
        "schema": "funnel/grouped-protocol/1",
        "mechanism": MECHANISM,
        "guarantee": {
            "kind": guarantee.name,
            "title": guarantee.title,
            "declared": str(guarantee),
            "unit": "nats",
            "level": public.level,
            "secret": list(secret),
        },
        "utility": {
            "mutual_information_nats": public.utility,
            "entropy_nats": public.entropy,
            "share": public.share,
            "columns": list(protocol.columns),
        },
        "told": [
            {"column": one.column, "group": one.group, "plain": one.plain, "kept": one.kept} for one in public.columns
        ],
        "choice": public.choice,
        "frequencies": protection.model_dump(mode="json"),
    }
    return GroupedProtocolDocument.from_json(json.dumps({**written, **rest}))
