"""The document of random words: read back as it was, and refused where it says more than there can be."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from funnel.errors import DataError
from funnel.release.documents import WordsDocument
from funnel.sampling.word_record import WordRecord
from tests.schemas import validated


def document() -> WordsDocument:
    record = WordRecord(1, 4, "c" * 32)
    record.add(np.random.default_rng(1).integers(0, 2**64, 500, dtype=np.uint64))
    return WordsDocument.model_validate(
        {"schema": "funnel/words/1", "streams": {"draw": record.statistics(), "order": record.statistics()}}
    )


def test_it_is_read_back_as_it_was() -> None:
    made = document()
    assert WordsDocument.from_json(made.to_bytes()).statistics == made.statistics
    assert validated(made.content()) == "words"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"words": 3}, "has looked at more words than there were"),
        ({"looked_at": 10}, "has looked at more words than there were"),
        ({"kept": 501}, "has kept more words than it has marked"),
        ({"repeated": 400}, "has kept more words than it has marked"),
        ({"ones": [1] * 63}, "ones: tuple should have at least 64 items"),
        ({"fixed": 64}, "fixed: input should be less than 64"),
        ({"scope": "secret"}, "scope: string should match pattern"),
        ({"runs": ["x"]}, "runs.0: string should match pattern"),
    ],
)
def test_damaged_statistics_are_refused(changes: dict[str, Any], said: str) -> None:
    content = document().content()
    content["streams"]["draw"].update(changes)
    with pytest.raises(DataError) as caught:
        WordsDocument.from_json(json.dumps(content))
    assert said in str(caught.value)


def test_purposes_that_are_none_are_refused() -> None:
    content = document().content()
    content["streams"]["guess"] = content["streams"].pop("order")
    with pytest.raises(DataError, match="the document of random words is damaged"):
        WordsDocument.from_json(json.dumps(content))
