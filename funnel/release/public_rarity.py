"""How rare the values of a release are, as far as its published shares tell it, and in words beyond that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from funnel.frequencies import Frequencies
from funnel.release.public import RECORDS, PublicDistributions

Words = Literal["hardly any", "some", "many", "most"]


@dataclass(frozen=True)
class PublicRarity:
    """Rare values and combinations.

    Attributes
    ----------
    records : int
        A published share of one step stands for about this many records, or fewer.
    inputs, secrets : int
        Values with such a share.
    combinations : str
        Of the combinations of secret and published values, how many have fewer than ten records, none included: up to a
        twentieth, up to a quarter, up to half, or more.
    """

    records: int
    inputs: int
    secrets: int
    combinations: Words

    @classmethod
    def of(cls, frequencies: Frequencies, laws: PublicDistributions) -> PublicRarity:
        """Of public frequencies and their published laws."""
        inputs, secrets = (int(((p > 0) & (p <= laws.step * (1 + 1e-9))).sum()) for p in (laws.p_input, laws.p_secret))
        share = float((frequencies.joint.counts < RECORDS).mean())
        words: Words = (
            "hardly any" if share <= 1 / 20 else "some" if share <= 1 / 4 else "many" if share <= 1 / 2 else "most"
        )
        return cls(int(np.ceil(1.5 * laws.step * laws.n)), inputs, secrets, words)
