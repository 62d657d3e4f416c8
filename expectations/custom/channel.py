"""The channel table: the protocol, the joint law and the drawn counts, read back from their texts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from funnel.alphabet import Alphabet
from funnel.joint import IntArray, Joint
from funnel.protocol import Protocol


@dataclass(frozen=True, eq=False)
class Channel:
    """What records were drawn with, and how.

    Attributes
    ----------
    protocol : Protocol
        Its sums and its digest are verified in reading it.
    joint : Joint
        Counts of (secret, input) in the snapshot.
    drawn : ndarray of int64, shape (a + 1, b)
        Records by input and output; the last row is for inputs outside the alphabet.
    """

    protocol: Protocol
    joint: Joint
    drawn: IntArray

    @classmethod
    def read(cls, table: pd.DataFrame) -> Channel:
        """Read the one line of the channel table.

        Raises
        ------
        DataError
            If the protocol does not match its digest, or there are no counts.
        """
        line = table.iloc[0]
        joint = json.loads(line["joint"])
        return cls(
            Protocol.from_json(line["protocol"]),
            Joint(np.array(joint["counts"]), _alphabet(joint["secret"]), _alphabet(joint["inputs"])),
            np.array(json.loads(line["drawn"]), dtype=np.int64),
        )


def other_protocol(found: str, declared: str) -> str:
    """The failure of a protocol that is not the one with the declared digest."""
    return f"the protocol has digest {found[:12]}… instead of {declared[:12]}…"


def _alphabet(content: dict[str, Any]) -> Alphabet:
    return Alphabet(tuple(content["columns"]), tuple(tuple(symbol) for symbol in content["symbols"]))
