"""Frequencies as a public document: noisy counts, what they cost, and what the true ones may be."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from funnel.errors import SpecError
from funnel.frequencies import Frequencies, Noise
from funnel.frequencies.frequencies import of_noisy
from funnel.frequencies.limits import limits_of
from funnel.joint import MAX_ROWS
from funnel.release.channel import Symbols, built
from funnel.release.document import Count, Document, Probability

Nats = Annotated[float, Field(ge=0)]
# Noise can take a count below zero; beyond these no table of people can be.
NoisyCount = Annotated[int, Field(gt=-MAX_ROWS, lt=MAX_ROWS)]


class FrequenciesDocument(Document):
    """Counts of records by secret (rows) and by published columns, with noise: the law behind all public documents.

    To every count one whole number was added, drawn from the discrete Laplace law of this ``scale``,
    P(k) ~ exp(-|k| / scale). The law that protocol and report are made from is that of ``noisy`` with 0 for what is
    below 0. Up to a probability ``beta`` over the noise, every true count is within ``cells_within`` of the noisy one,
    and the true number of records with each secret within ``totals_within`` of the sum of its row.

    All public documents of this version together are differentially private, for one record more or less, with
    ``epsilon`` (nats), of which ``epsilon_counts`` went to the counts and the rest to learning which values there are,
    and with ``delta``, which is 0 unless values were learned. ``spent`` is the epsilon of all versions about these
    people, this one included.
    """

    described: ClassVar[str] = "the public frequencies"
    schema_: Literal["funnel/frequencies/1"] = Field(default="funnel/frequencies/1", alias="schema")
    protection: Literal["noise"]
    epsilon: Nats
    epsilon_counts: Annotated[float, Field(gt=0)]
    delta: Probability
    beta: Annotated[float, Field(gt=0, lt=1)]
    spent: Nats
    scale: Annotated[float, Field(gt=0)]
    cells_within: Count
    totals_within: Count
    secret: Symbols
    inputs: Symbols
    noisy: tuple[tuple[NoisyCount, ...], ...] = Field(min_length=1)

    @cached_property
    def frequencies(self) -> Frequencies:
        """What it is of, with the bounds worked out again."""
        secret, inputs = self.secret.alphabet(), self.inputs.alphabet()
        if {len(row) for row in self.noisy} != {len(inputs)} or len(self.noisy) != len(secret):
            raise SpecError("its counts do not fit its alphabets")
        noisy = np.array(self.noisy, dtype=np.int64)
        noise = Noise(self.epsilon_counts, self.delta, self.beta)
        if (self.scale, self.cells_within, self.totals_within) != (noise.scale, *limits_of(noisy.shape, noise)):
            raise SpecError("its bounds are not those of its noise")
        return of_noisy(noisy, secret, inputs, noise, self.epsilon, self.spent)

    @property
    def noisy_sha256(self) -> str:
        """SHA-256 (hex) of the noisy counts and their symbols: of what was drawn, whatever was spent besides."""
        said = [self.noisy, self.secret.model_dump(), self.inputs.model_dump()]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()

    @model_validator(mode="after")
    def _is_of_noise(self) -> Self:
        built(lambda: self.frequencies)
        return self


def frequencies_document(frequencies: Frequencies) -> FrequenciesDocument:
    """The document of frequencies that are protected by noise.

    Raises
    ------
    SpecError
        If they are not: what is not protected is not told exactly.
    """
    noise, noisy = frequencies.noise, frequencies.noisy
    if noise is None or noisy is None:
        raise SpecError("only frequencies that are protected by noise are published exactly")
    within, of_totals = limits_of(noisy.shape, noise)
    return FrequenciesDocument(
        protection="noise",
        epsilon=frequencies.epsilon,
        epsilon_counts=noise.epsilon,
        delta=noise.delta,
        beta=noise.beta,
        spent=frequencies.spent,
        scale=noise.scale,
        cells_within=within,
        totals_within=of_totals,
        secret=Symbols.of(frequencies.joint.secret),
        inputs=Symbols.of(frequencies.joint.inputs),
        noisy=tuple(map(tuple, noisy.tolist())),
    )
