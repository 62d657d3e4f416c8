"""The page of what goes with what is that of the rules, and no refusal waits for a source."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from funnel.settings import agreement
from tests.combinations import COMBINATIONS, Combination

ROOT = Path(__file__).parents[2]
_SPEC = importlib.util.spec_from_file_location("combinations_page", ROOT / "scripts" / "combinations.py")
assert _SPEC is not None
assert _SPEC.loader is not None
combinations_page = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(combinations_page)


def test_the_page_is_that_of_the_rules() -> None:
    stored = combinations_page.PAGE.read_text(encoding="utf-8")
    assert combinations_page.page() == stored, "run python scripts/combinations.py"
    assert "](history-theorems.md#whole-records)" in stored


def test_a_rule_that_is_gone_leaves_nothing_refused_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    some = Combination("one channel", "same people", "noise", "attribute:1.0", "estimation")
    assert len(some.refusals) == 1
    kept = tuple(rule for rule in agreement.RULES if rule.broken.__name__ != "_over_versions")
    monkeypatch.setattr(agreement, "RULES", kept)
    assert some.refusals == ()


def test_a_theorem_of_nothing_that_is_refused_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(combinations_page, "THEOREMS", {"words that nothing says": "nowhere.md"})
    monkeypatch.setattr(combinations_page, "COMBINATIONS", COMBINATIONS[:1])
    monkeypatch.setattr(combinations_page, "table", lambda *_: "")
    with pytest.raises(ValueError, match="words that nothing says"):
        combinations_page.page()


def test_a_refusal_is_one_sentence_that_says_what_to_write() -> None:
    refused = [one for one in COMBINATIONS if one.people in ("same people", "units")]
    for refusal in {refusal for one in refused for refusal in one.refusals}:
        assert re.search(r"; (write|take) ", refusal), refusal
        assert "\n" not in refusal
    # Read and refused where there is no file at all.
    assert not Path("nowhere").exists()


def test_several_contradictions_are_told_apart() -> None:
    both = Combination("whole records", "units", "none", "attribute:1.0", "unchanged").refusals
    assert [refusal.partition(" ")[0] for refusal in both] == ["mechanism", "guarantee", "[groups]"]


def test_every_combination_is_there_once() -> None:
    assert len(set(COMBINATIONS)) == len(COMBINATIONS) == 2 * 4 * 3 * 12 * 3
