"""The document of random words: statistics that show whether they were good ones, and tell none of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import Field, model_validator

from funnel.release.document import Count, Document, Part
from funnel.word_statistics import WORD_BITS, WordStatistics

_DIGEST: Final = r"^[0-9a-f]{32}$"


class StreamPart(Part):
    """`funnel.word_statistics.WordStatistics`."""

    words: Count
    fixed: Annotated[int, Field(ge=0, lt=WORD_BITS)]
    looked_at: Count
    ones: tuple[Count, ...] = Field(min_length=WORD_BITS, max_length=WORD_BITS)
    rarity: Annotated[int, Field(ge=0, lt=WORD_BITS)]
    marked: Count
    kept: Count
    repeated: Count
    runs: tuple[Annotated[str, Field(pattern=_DIGEST)], ...]
    scope: str | None = Field(pattern=_DIGEST)

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if not self.words >= max(self.looked_at, self.marked) or max(self.ones) > self.looked_at:
            raise ValueError("has looked at more words than there were")
        if not self.marked >= self.kept >= max(self.repeated, len(self.runs)):
            raise ValueError("has kept more words than it has marked")
        return self

    def statistics(self) -> WordStatistics:
        """As a plain value."""
        return WordStatistics(**self.model_dump())


class WordsDocument(Document):
    """Statistics of the words that rows, donors of whole records, and the order of rows were drawn with; internal."""

    described: ClassVar[str] = "the document of random words"
    schema_: Literal["funnel/words/1"] = Field(default="funnel/words/1", alias="schema")
    streams: Mapping[Literal["draw", "donors", "order"], StreamPart]

    @property
    def statistics(self) -> dict[str, WordStatistics]:
        """The statistics by purpose: ``draw``, ``donors``, ``order``."""
        return {purpose: stream.statistics() for purpose, stream in self.streams.items()}


def words_document(words: Mapping[str, WordStatistics]) -> WordsDocument:
    """The document of statistics by purpose."""
    return WordsDocument.model_validate(
        {"schema": "funnel/words/1", "streams": {purpose: asdict(stream) for purpose, stream in words.items()}}
    )
