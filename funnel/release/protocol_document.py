"""The protocol as its users need it, as a document: public, so made of public figures alone."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np
from pydantic import Field, ValidationInfo, field_validator, model_validator

from funnel.guarantees import Guarantee, parse_guarantee
from funnel.protocol import SPARSE_FORMAT, Protocol
from funnel.release.document import Decimal, Document, Part, Probability, Sha256, Symbols, built
from funnel.release.protection import Protection
from funnel.release.public.findings import PublicRelease
from funnel.release.public.public_distributions import PublicDistributions
from funnel.release.report_parts import nats_of

_DIGITS = 4
_DENOMINATOR: Final = "9223372036854775808"
# Tables of more weights are written without their zeros, where at least a third of the weights are zero.
_SMALL, _MOSTLY = 1000, 2 / 3


class Promise(Part):
    """The guarantee that holds: its kind, as it was declared, and the level that the protocol really has."""

    kind: str
    title: str
    declared: str
    unit: Literal["nats"]
    level: float
    secret: tuple[str, ...] = Field(min_length=1)


class Explained(Part):
    """How much the records explain of numbers: the share of their variance, for a number of every published value.

    Numbers are in the order of the prior; None for a value that has none, which counts as the mean of the others.
    """

    variance_share: Probability
    numbers: tuple[float | None, ...] = Field(min_length=1)


class Utility(Part):
    """What a record still tells about the published columns, in nats and as a share of what there is to know.

    ``explained`` where the protocol was chosen by the variance that it explains.
    """

    mutual_information_nats: float
    entropy_nats: float
    share: Probability
    columns: tuple[str, ...]
    explained: Explained | None


class Prior(Part):
    """The distribution of the published columns in the source, rounded."""

    columns: tuple[str, ...]
    symbols: tuple[tuple[str, ...], ...]
    probabilities: tuple[Probability, ...]


class Posterior(Part):
    """How likely an output is, and what it says about the published columns, rounded; zeros are left out.

    It is written for a protocol that reads the secret. Of any other one it follows: P(x|y) is the probability of x in
    the prior times the weight of x for y, divided by the sum of these over x.

    ``inputs`` are positions in the symbols of the prior, from 0 on.
    """

    output: tuple[str, ...]
    probability: Probability
    inputs: dict[str, Probability]


class ProtocolDocument(Document):
    """What a user of a release needs to know of the protocol; public.

    Weights and marginal are integers out of 2^63, as decimal texts: record x of the input alphabet became output y with
    probability weights[y][x] / denominator, and a record outside the alphabet with marginal[y] / denominator. Where
    many weights are 0, and always in format 2, weights[y] names the positions x of its inputs, from 0 on, and all
    others have a weight of 0.

    Where versions are about the same people, the weights are those of all histories together on a coarse grid, and no
    probability is further than ``rounded`` from the true one; elsewhere records were drawn by these weights.
    """

    described: ClassVar[str] = "the protocol"
    schema_: Literal["funnel/protocol/1"] = Field(default="funnel/protocol/1", alias="schema")
    # What the digest is of begins with it: the form of the channel, which is also read without the rest.
    format: Literal["funnel-protocol/1", "funnel-protocol/2"]
    digest: Sha256
    mechanism: str
    denominator: Literal["9223372036854775808"]
    inputs: Symbols
    outputs: Symbols
    weights: tuple[tuple[Decimal, ...], ...] | tuple[dict[str, Decimal], ...]
    marginal: tuple[Decimal, ...] = Field(min_length=1)
    rounded: Probability | None
    guarantee: Promise
    utility: Utility
    prior: Prior
    posterior: tuple[Posterior, ...] | None
    frequencies: Protection

    @field_validator("weights", mode="before")
    @classmethod
    def _as_its_format_writes(cls, rows: Any, info: ValidationInfo) -> Any:
        form = info.data.get("format")
        if not isinstance(rows, list | tuple):
            return rows
        kinds = {isinstance(row, dict) for row in rows}
        if len(kinds) > 1 or (form == SPARSE_FORMAT and False in kinds):
            raise ValueError(f"are not written as {form} writes them")
        return tuple(tuple(row) if isinstance(row, list) else row for row in rows)

    @field_validator("weights")
    @classmethod
    def _of_inputs_that_there_are(
        cls, rows: tuple[tuple[Decimal, ...], ...] | tuple[dict[str, Decimal], ...], info: ValidationInfo
    ) -> tuple[tuple[Decimal, ...], ...] | tuple[dict[str, Decimal], ...]:
        inputs = info.data.get("inputs")
        if not rows:
            raise ValueError("are of no output")
        for row in rows:
            if isinstance(row, dict) and inputs is not None:
                _check_row(row, len(inputs.symbols))
        return rows

    @cached_property
    def entries(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Of every output the positions of the inputs that may become it, rising, and their weights."""
        return tuple(
            tuple(sorted((int(x), int(weight)) for x, weight in row.items()))
            if isinstance(row, dict)
            else tuple((x, int(weight)) for x, weight in enumerate(row) if weight != "0")
            for row in self.weights
        )

    @cached_property
    def protocol(self) -> Protocol:
        """The channel, its sums and its digest verified."""
        return Protocol.from_dict(self.content())

    @model_validator(mode="after")
    def _is_a_channel(self) -> Self:
        built(lambda: self.protocol)
        if built(lambda: parse_guarantee(self.guarantee.declared)).name != self.guarantee.kind:
            raise ValueError("declares a guarantee of another kind")
        if (self.posterior is None) is not (self.inputs.columns == self.prior.columns):
            raise ValueError("has posteriors that follow from the prior, or none though it reads the secret")
        posterior = self.posterior or ()
        if self.posterior is not None and tuple(entry.output for entry in posterior) != self.outputs.symbols:
            raise ValueError("does not have one posterior for every output")
        if self.utility.explained is not None and len(self.utility.explained.numbers) != len(self.prior.symbols):
            raise ValueError("does not have one number for every symbol")
        places = {str(place) for place in range(len(self.prior.symbols))}
        if not all(entry.inputs.keys() <= places for entry in posterior):
            raise ValueError("says of an output that it comes from inputs that there are not")
        if len(self.prior.probabilities) != len(self.prior.symbols):
            raise ValueError("does not have one prior probability for every symbol")
        if any(len(symbol) != len(self.prior.columns) for symbol in self.prior.symbols):
            raise ValueError("has a prior of values that do not fit its columns")
        return self


def _check_row(row: dict[str, str], width: int) -> None:
    """That an output of a wide table names inputs that there are, and none of weight zero."""
    for place, weight in row.items():
        if not (place.isascii() and place.isdecimal() and str(int(place)) == place and int(place) < width):
            raise ValueError("are for inputs that there are not")
        if weight == "0":
            raise ValueError("are written where they are zero")


def _format(protocol: Protocol) -> Literal["funnel-protocol/1", "funnel-protocol/2"]:
    return "funnel-protocol/2" if protocol.is_sparse else "funnel-protocol/1"


def _has_few(protocol: Protocol) -> bool:
    """Whether weights are written without their zeros."""
    entries = math.prod(protocol.size)
    return protocol.is_sparse or (entries > _SMALL and len(protocol.sparse.values) <= _MOSTLY * entries)


def protocol_document(
    protocol: Protocol,
    guarantee: Guarantee,
    public: PublicRelease,
    protection: Protection,
    rounded: float | None = None,
) -> ProtocolDocument:
    """What a user of the release needs to know of the protocol.

    Beside the weights: the guarantee and an upper bound of the level, the distribution of the published columns,
    rounded, and where the secret is read, too, the probability of every output and its posterior over the published
    values; and by how much probabilities may be off, where weights are rounded after records were drawn.
    """
    distributions, figures, explained = public.distributions, public.findings.figures, public.findings.explained
    # Checked as it is written, in whichever form that is.
    rows = protocol.written_weights(without_zeros=_has_few(protocol))
    written: Any = tuple(row if isinstance(row, dict) else tuple(row) for row in rows)
    return ProtocolDocument.like(
        protocol,
        format=_format(protocol),
        denominator=_DENOMINATOR,
        weights=written,
        marginal=tuple(map(str, protocol.marginal.tolist())),
        rounded=rounded,
        guarantee=Promise(
            kind=guarantee.name,
            title=guarantee.title,
            declared=str(guarantee),
            unit="nats",
            level=nats_of(figures.level),
            secret=distributions.secret.columns,
        ),
        utility=Utility(
            mutual_information_nats=figures.utility,
            entropy_nats=figures.entropy,
            share=figures.share,
            columns=distributions.inputs.columns,
            explained=None
            if explained is None
            else Explained(variance_share=explained.share, numbers=explained.numbers),
        ),
        prior=Prior.like(distributions.inputs, probabilities=tuple(distributions.p_input.tolist())),
        posterior=None
        if protocol.inputs.columns == distributions.inputs.columns
        else _posterior(protocol, distributions),
        frequencies=protection,
    )


def _posterior(protocol: Protocol, distributions: PublicDistributions) -> tuple[Posterior, ...]:
    distribution = np.round(distributions.p_output, _DIGITS)
    return tuple(
        Posterior(output=symbol, probability=float(mass), inputs=_shares(distributions, y))
        for y, (symbol, mass) in enumerate(zip(protocol.outputs.symbols, distribution, strict=True))
    )


def _shares(distributions: PublicDistributions, y: int) -> dict[str, float]:
    inputs, shares = distributions.sources(y)
    told = zip(inputs.tolist(), np.round(shares, _DIGITS).tolist(), strict=True)
    return {str(x): share for x, share in told if share > 0}
