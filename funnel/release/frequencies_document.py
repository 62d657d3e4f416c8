"""The public frequencies of a version as a document: noisy counts, which may be known exactly."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from funnel.frequencies import Frequencies, Noise, bounds_of
from funnel.joint import Joint
from funnel.release.channel import Symbols, built
from funnel.release.document import Document


class FrequenciesDocument(Document):
    """Counts of records by secret (rows) and by published columns, with noise; public.

    To each count, of the combinations that nobody has too, one whole number k was added that is drawn with probability
    proportional to e^(-|k| / scale); ``noisy`` has the sums, which may be negative. Everything public is made from
    these counts, clipped at 0, and never from the exact ones. With probability 1 - ``beta`` every exact count is within
    the cell limit of the noisy one, and the exact number of records with each secret within the total limit of its sum.
    """

    described: ClassVar[str] = "the public frequencies"
    schema_: Literal["funnel/frequencies/1"] = Field(default="funnel/frequencies/1", alias="schema")
    protection: Literal["noise"]
    epsilon: float = Field(gt=0)
    delta: float = Field(ge=0, lt=1)
    beta: float = Field(gt=0, lt=1)
    scale: float = Field(gt=0)
    spent: float = Field(gt=0)
    secret: Symbols
    inputs: Symbols
    noisy: tuple[tuple[int, ...], ...] = Field(min_length=1)

    @cached_property
    def frequencies(self) -> Frequencies:
        """What everything public is made from, its bounds computed again."""
        noise = Noise(self.epsilon, self.delta, self.beta)
        noisy = np.array(self.noisy, dtype=np.int64)
        joint = Joint(np.maximum(noisy, 0), self.secret.alphabet(), self.inputs.alphabet(), bounds_of(noisy, noise))
        return Frequencies(joint, "noise", noise, noisy, self.spent)

    @property
    def noisy_sha256(self) -> str:
        """SHA-256 (hex) of the noisy counts and their symbols: of what was drawn, whatever was spent besides."""
        said = [self.noisy, self.secret.model_dump(), self.inputs.model_dump()]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()

    @model_validator(mode="after")
    def _are_counts(self) -> Self:
        if {len(row) for row in self.noisy} != {len(self.inputs.symbols)} or len(self.noisy) != len(
            self.secret.symbols
        ):
            raise ValueError("does not have one count for every combination")
        noise = built(lambda: Noise(self.epsilon, self.delta, self.beta))
        if noise.scale != self.scale:
            raise ValueError("names a scale that is not that of its epsilon")
        return self


def frequencies_document(frequencies: Frequencies) -> FrequenciesDocument:
    """The document of frequencies that are protected by noise."""
    noise, noisy = frequencies.noise, frequencies.noisy
    if noise is None or noisy is None:
        raise ValueError("without noise there are no noisy counts to publish")
    return FrequenciesDocument(
        protection="noise",
        epsilon=noise.epsilon,
        delta=noise.delta,
        beta=noise.beta,
        scale=noise.scale,
        spent=frequencies.spent,
        secret=Symbols.of(frequencies.joint.secret),
        inputs=Symbols.of(frequencies.joint.inputs),
        noisy=tuple(map(tuple, noisy.tolist())),
    )
