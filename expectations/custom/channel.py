"""The channel: the protocol, the joint law and the drawn counts, as the expectations on draws and leakage get them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from funnel.drawn import DrawnCounts
from funnel.joint import IntArray, Joint
from funnel.protocol import Protocol


# Without a repr: Great Expectations digests every table that it gets, and with it the text of all that is in one.
@dataclass(frozen=True, eq=False, repr=False)
class Channel:
    """What records were drawn with, and how.

    Attributes
    ----------
    protocol : Protocol
    joint : Joint
        Counts of (secret, input) in the snapshot.
    drawn : DrawnCounts, shape (1, a + 1, b)
        Records by input and output; the last row is for inputs outside the alphabet.
    """

    protocol: Protocol
    joint: Joint
    drawn: DrawnCounts

    def table(self) -> pd.DataFrame:
        """A table of one line that holds the channel itself: it is handed on, not written down and read again."""
        return pd.DataFrame({"channel": [self]})

    @classmethod
    def read(cls, table: pd.DataFrame) -> Channel:
        """The channel of such a table.

        Raises
        ------
        TypeError
            If it holds something else, or not exactly one.
        """
        held = table["channel"].tolist()
        if len(held) != 1 or not isinstance(held[0], cls):
            raise TypeError("the table holds no channel")
        return held[0]


def snapshot_inputs(channel: Channel) -> IntArray:
    """Records of the snapshot by input symbol of the protocol, and outside its alphabet; shape (a + 1,)."""
    read = channel.joint.read_by(channel.protocol.inputs.columns)
    a = len(channel.protocol.inputs)
    totals = np.zeros(a + 1, dtype=np.int64)
    for symbol, count in zip(read.inputs.symbols, read.counts.sum(axis=0).tolist(), strict=True):
        place = channel.protocol.inputs.get(symbol)
        totals[place if place >= 0 else a] += count
    return totals


def other_protocol(found: str, declared: str) -> str:
    """The failure of a protocol that is not the one with the declared digest."""
    return f"the protocol has digest {found[:12]}… instead of {declared[:12]}…"
