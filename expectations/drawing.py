"""Drawing: what the drawing of the rows left to be judged by, and the records in the order that they were drawn in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from funnel.alphabet import Alphabet
from funnel.drawn import DrawnCounts
from funnel.pipeline.expectations.custom.channel import Channel
from funnel.word_statistics import WordStatistics

Words = Mapping[str, WordStatistics]


@dataclass(frozen=True, eq=False)
class Drawing:
    """Evidence of the drawing. What is None was not left, which is a failure.

    Attributes
    ----------
    counts : DrawnCounts or None
        Records by secret, input and output.
    secret : Alphabet or None
        What the secrets of ``counts`` are.
    probe : str or None
        What the sampler answered at the thresholds, see `funnel.findings.probe`.
    words : mapping of str to WordStatistics, or None
        By purpose: ``draw``, ``order``.
    snapshot : Path
        Parquet of the records in the order of the source.
    shuffled : bool
        Whether the spec asks for rows in random order.
    taken_over : bool
        Whether the rows were drawn for an earlier version.
    earlier : tuple of mappings
        The words of earlier versions of the series, for rows that were drawn for this one.
    """

    counts: DrawnCounts | None
    secret: Alphabet | None
    probe: str | None
    words: Words | None
    snapshot: Path
    shuffled: bool
    taken_over: bool = False
    earlier: tuple[Words, ...] = ()


# Without a repr, as `Channel`.
@dataclass(frozen=True, eq=False, repr=False)
class JudgedDrawing:
    """The drawing with the channel that it has to follow, as the expectations get them."""

    drawing: Drawing
    channel: Channel

    def table(self) -> pd.DataFrame:
        """A table of one line that holds it."""
        return pd.DataFrame({"drawing": [self]})

    @classmethod
    def read(cls, table: pd.DataFrame) -> JudgedDrawing:
        """What such a table holds.

        Raises
        ------
        TypeError
            If it holds something else, or not exactly one.
        """
        held = table["drawing"].tolist()
        if len(held) != 1 or not isinstance(held[0], cls):
            raise TypeError("the table holds no drawing")
        return held[0]


def not_left(what: str) -> tuple[str, str | None]:
    """What is observed, and what fails, where the drawing did not leave some evidence."""
    return "nothing", f"the drawing did not leave {what}, so it cannot be judged"
