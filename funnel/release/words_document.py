"""The document of random words: statistics that show whether they were good ones, and tell none of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from funnel.release.document import Document
from funnel.word_statistics import WordStatistics


class WordsDocument(Document):
    """Statistics of the words that rows, donors of whole records, and the order of rows were drawn with; internal."""

    described: ClassVar[str] = "the document of random words"
    schema_: Literal["funnel/words/1"] = Field(default="funnel/words/1", alias="schema")
    streams: Mapping[Literal["draw", "donors", "order"], WordStatistics]

    @property
    def statistics(self) -> dict[str, WordStatistics]:
        """The statistics by purpose: ``draw``, ``donors``, ``order``."""
        return {str(purpose): stream for purpose, stream in self.streams.items()}


def words_document(words: Mapping[str, WordStatistics]) -> WordsDocument:
    """The document of statistics by purpose."""
    return WordsDocument.model_validate({"schema": "funnel/words/1", "streams": words})
