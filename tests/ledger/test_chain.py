"""The chain: any change of any entry is noticed, and at the first entry that does not fit."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.errors import DataError
from funnel.pipeline.ledger.chain import BEGINNING, Row, canonical, first_misfit, misfit
from funnel.pipeline.ledger.entry import Entry, Event, Judged, Kind
from tests.ledger.events import event

texts = st.text(max_size=12)
events = st.builds(
    Event,
    kind=st.sampled_from(get_args(Kind)),
    series=texts.filter(bool),
    register=st.none() | texts,
    version=st.none() | st.sampled_from(["1.0.0", "2.1.0"]),
    level=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    verdict=st.builds(Judged, passed=st.booleans(), sentence=texts),
    started_by=texts.filter(bool),
)


def chain(found: list[Event]) -> list[Row]:
    rows: list[Row] = []
    for serial, one in enumerate(found, start=1):
        entry = Entry(serial=serial, at="2026-05-01T12:00:00+00:00", event=one)
        rows.append(Row.of(entry, rows[-1].digest if rows else BEGINNING))
    return rows


@given(st.lists(events, max_size=6))
def test_a_chain_fits_and_says_what_was_entered(found: list[Event]) -> None:
    rows = chain(found)
    assert first_misfit(rows) is None
    assert [row.entry.event for row in rows] == found
    assert all(row.content.isascii() and "\n" not in row.content for row in rows)
    # By somebody who knows the format only.
    for row, before in zip(rows, [BEGINNING, *(row.digest for row in rows)], strict=False):
        said = json.dumps(json.loads(row.content), sort_keys=True, separators=(",", ":"))
        assert hashlib.sha256(f"{before}\n{said}".encode()).hexdigest() == row.digest


@given(st.lists(events, min_size=1, max_size=6), st.data())
def test_any_change_is_noticed_where_it_was_made(found: list[Event], data: st.DataObject) -> None:
    rows = chain(found)
    number = data.draw(st.integers(0, len(rows) - 1))
    row = rows[number]
    field = data.draw(st.sampled_from(["serial", "previous", "digest", "content", "kind", "series", "version"]))
    value: Any = {
        "serial": row.serial + 1,
        "previous": "f" * 64,
        "digest": "e" * 64,
        "content": row.content.replace("2026-05-01", "2026-05-02"),
        "kind": "forgotten" if row.kind != "forgotten" else "published",
        "series": row.series + "x",
        "version": "9.9.9",
    }[field]
    rows[number] = replace(row, **{field: value})
    where, _ = first_misfit(rows) or (None, "")
    assert where is rows[number]


@given(st.lists(events, min_size=2, max_size=6), st.data())
def test_what_is_missing_or_out_of_order_is_noticed(found: list[Event], data: st.DataObject) -> None:
    rows = chain(found)
    number = data.draw(st.integers(0, len(rows) - 2))
    cut = rows[:number] + rows[number + 1 :]
    assert first_misfit(cut) == (rows[number + 1], misfit(rows[number + 1], rows[number - 1] if number else None))
    swapped = [*rows[:number], rows[number + 1], rows[number], *rows[number + 2 :]]
    assert (first_misfit(swapped) or (None,))[0] is rows[number + 1]


def test_a_forged_chain_is_another_chain() -> None:
    """Whoever changes an entry and makes all after it anew has another head: which is what is kept elsewhere."""
    honest = chain([event("publishing"), event("published"), event("withdrawn")])
    forged = chain([event("publishing", moved=0), event("published"), event("withdrawn")])
    assert first_misfit(forged) is None
    assert forged[-1].digest != honest[-1].digest


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"event": 3, "serial": 1}', "[" * 100_000])
def test_content_that_is_no_entry(content: str) -> None:
    (row,) = chain([event()])
    digest = hashlib.sha256(f"{BEGINNING}\n{content}".encode()).hexdigest()
    spoilt = replace(row, content=content, digest=digest)
    assert misfit(spoilt, None) == "its content is no entry"
    with pytest.raises(DataError):
        _ = spoilt.entry


def test_equal_content_is_one_text() -> None:
    assert canonical({"b": 1, "a": "é"}) == canonical({"a": "é", "b": 1}) == '{"a":"\\u00e9","b":1}'
    with pytest.raises(ValueError):
        canonical(float("inf"))
