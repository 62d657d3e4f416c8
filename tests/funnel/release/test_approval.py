"""Approvals and outcomes: one line of text, whatever was given, or one sentence that says what is wrong."""

from __future__ import annotations

import unicodedata
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from funnel.errors import SpecError
from funnel.release.approval import MAX_NOTE, Approval, Outcome, version_to_approve
from funnel.release.layout import Version

AT = "2026-11-21T10:00:00+00:00"


@given(by=st.text(max_size=220), note=st.none() | st.text(max_size=30))
def test_any_text_is_kept_as_it_was_given_or_refused_in_one_sentence(by: str, note: str | None) -> None:
    def fits(text: str, limit: int) -> bool:
        return 0 < len(text) <= limit and not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in text)

    if fits(by.strip(), 200) and (note is None or fits(note.strip(), MAX_NOTE)):
        said = Approval.given(by, note)
        assert (said.by, said.note) == (by.strip(), None if note is None else note.strip())
        assert datetime.fromisoformat(said.at).utcoffset() == timedelta(0)
        return
    with pytest.raises(SpecError) as caught:
        Approval.given(by, note)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("by", "note", "said"),
    [
        (" ", None, "the name of who approves or rejects must not be empty"),
        ("a\nb", None, "the name of who approves or rejects must be one line without control characters"),
        ("a" * 201, None, "the name of who approves or rejects must have at most 200 characters"),
        ("\udce4", None, "the name of who approves or rejects must be text in UTF-8"),
        ("a", "", "the note or reason must not be empty"),
        ("a", "b" * 1001, "the note or reason must have at most 1,000 characters"),
        ("a", "b\x1b[2J", "the note or reason must be one line without control characters"),
    ],
)
def test_what_is_wrong_is_said(by: str, note: str | None, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        Approval.given(by, note)
    assert str(caught.value) == said


def test_outcomes_are_told() -> None:
    held = Outcome(version="1.1.0", outcome="published", at=AT, by="A. Okafor, DPO", reason="seen")
    assert held.sentence() == f"version 1.1.0 was published on {AT} with the approval of A. Okafor, DPO: seen"
    rejected = Outcome(version="1.1.0", outcome="rejected", at=AT, by="A. Okafor, DPO", reason="too much")
    assert rejected.sentence() == f"version 1.1.0 was rejected on {AT} by A. Okafor, DPO: too much"
    superseded = Outcome(version="1.1.0", outcome="superseded", at=AT)
    assert superseded.sentence() == f"version 1.1.0 was superseded on {AT}"
    turned = Outcome(version="1.1.0", outcome="rejected", at=AT, by="A\u202e", reason="b")
    assert turned.sentence() == f"version 1.1.0 was rejected on {AT} by A\\u202e: b"
    assert Outcome.from_json(rejected.to_bytes()) == rejected
    for lacking in ({"by": None}, {"reason": None}):
        with pytest.raises(ValidationError, match="rejection without a name or a reason"):
            Outcome(**{"version": "1.1.0", "outcome": "rejected", "at": AT, "by": "A", "reason": "B", **lacking})


def test_a_version_that_is_asked_for() -> None:
    assert version_to_approve(None) is None
    assert version_to_approve("1.10.0") == Version(1, 10, 0)
    for text in ("", "1.1", "latest", "01.1.0", "1.1.0\n"):
        with pytest.raises(SpecError, match=r"such as 1\.1\.0"):
            version_to_approve(text)
