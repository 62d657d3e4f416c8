"""Halves: people whom channels are made from, and people who prove them, told apart by chance and not by values."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from funnel.joint import IntArray, Joint

SHARE: Final = 0.25
"""The share of people whom channels are made from."""
WORD_BITS: Final = 64
"""Bits of the words by which people rehearse."""


@dataclass(frozen=True, eq=False)
class Halves:
    """The people of a table in two parts.

    Attributes
    ----------
    making : ndarray of int64, shape (c, r)
        Counts of the people whom everything is made from that may be said.
    secret, record : ndarray of int64, shape (m,)
        Of every one of the others: what was made was made without them. By rising record.
    word : ndarray of uint64, shape (m,)
        By which each of them rehearses: uniform, and independent of all else.
    seed : str
    """

    making: IntArray
    secret: IntArray
    record: IntArray
    word: npt.NDArray[np.uint64]
    seed: str

    @property
    def proving(self) -> int:
        """People who prove."""
        return len(self.secret)

    @classmethod
    def of(cls, joint: Joint, seed: str, share: float = SHARE) -> Halves:
        """Part the people.

        The copies i = 0, 1, … of every (secret, record) have the SHA-256 of the JSON list of seed, secret, "", record
        and i. Its first 64 bits put the people in order, and the first ``⌊share · n⌋`` are for making; the next 64 are
        the word. So who is where follows from the seed and the counts and not from the order of the table, and anybody
        who has both can repeat it. For a seed that was drawn without looking at the values each part of the people is
        as likely as any other of its size. O(n log n).
        """
        secrets, records = np.nonzero(joint.counts)
        found: list[tuple[int, int, int, int]] = []
        for s, r in zip(secrets.tolist(), records.tolist(), strict=True):
            said = [seed, *joint.secret.symbols[s], "", *joint.inputs.symbols[r]]
            for copy in range(int(joint.counts[s, r])):
                told = hashlib.sha256(json.dumps([*said, copy]).encode()).digest()
                found.append((int.from_bytes(told[:8], "big"), int.from_bytes(told[8:16], "big"), s, r))
        found.sort()
        number = int(share * len(found))
        making = np.zeros_like(joint.counts)
        for _, _, s, r in found[:number]:
            making[s, r] += 1
        proving = sorted(found[number:], key=lambda person: (person[3], person[2]))
        return cls(
            making,
            np.array([s for _, _, s, _ in proving], dtype=np.int64),
            np.array([r for _, _, _, r in proving], dtype=np.int64),
            np.array([word for _, word, _, _ in proving], dtype=np.uint64),
            seed,
        )
