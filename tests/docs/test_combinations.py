"""The page of what goes with what is that of the rules, and no refusal waits for a source."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import funnel
from benchmarks.combination_costs import OnAdult, accepted, share_of
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
    assert "](history-theorems.md#followed-donors)" in stored


def test_a_rule_that_is_gone_leaves_nothing_refused_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    some = Combination("one channel", "units", "noise", "rattribute:1.0,0.05", "estimation")
    assert len(some.refusals) == 1
    kept = tuple(rule for rule in agreement.RULES if rule.broken.__name__ != "_over_versions")
    monkeypatch.setattr(agreement, "RULES", kept)
    assert some.refusals == ()


def test_a_theorem_of_nothing_that_is_refused_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(combinations_page, "THEOREMS", {"words that nothing says": "nowhere.md"})
    monkeypatch.setattr(combinations_page, "COMBINATIONS", COMBINATIONS[:1])
    monkeypatch.setattr(combinations_page, "table", lambda *_: "")
    monkeypatch.setattr(combinations_page, "costs", lambda _: [])
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
    both = Combination("whole records", "units", "noise", "attribute:1.0", "unchanged").refusals
    assert [refusal.partition(" ")[0] for refusal in both] == ["mechanism", "guarantee", "guarantee", "[groups]"]


def test_every_combination_is_there_once() -> None:
    assert len(set(COMBINATIONS)) == len(COMBINATIONS) == 2 * 4 * 3 * 12 * 3


def shares() -> dict[str, float]:
    found: dict[str, float] = json.loads(combinations_page.COSTS.read_text(encoding="utf-8"))
    return found


def test_costs_are_those_of_the_file_and_of_nothing_that_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = shares()
    assert set(found) <= {str(one) for one in accepted()}
    assert {one.people for one in accepted() if str(one) in found} >= {"one version", "same people"}
    assert all(0 <= share <= 1 for share in found.values())
    page = combinations_page.page()
    other = tmp_path / "costs.json"
    monkeypatch.setattr(combinations_page, "COSTS", other)
    some = "one channel, same people, none, lip:1.0, information"
    other.write_text(json.dumps({**found, some: 0.0123}), encoding="utf-8")
    assert "| 1.2 % |" not in page
    assert "| 1.2 % |" in combinations_page.page()
    refused = Combination("one channel", "units", "noise", "lip:1.0", "unchanged")
    other.write_text(json.dumps({**found, str(refused): 0.5}), encoding="utf-8")
    with pytest.raises(ValueError, match="is not released"):
        combinations_page.page()


def test_some_of_the_costs_are_computed_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(OnAdult, "path", ROOT / "data" / "adult.parquet", raising=False)
    monkeypatch.chdir(tmp_path)
    for kind, utility in (("lip:1.0", "unchanged"), ("srlip:1.0", "information")):
        one = OnAdult("one channel", "one version", "none", kind, utility)
        assert share_of(one) == pytest.approx(shares()[str(one)], abs=1e-3)
    # And by the library alone.
    table = pq.read_table(OnAdult.path, columns=["income", "marital-status", "sex"])
    joint = funnel.Joint.from_table(table, ["income"], ["marital-status", "sex"])
    best = funnel.optimal(joint, funnel.LIP(1.0)).utility / joint.entropy
    assert best == pytest.approx(shares()["one channel, one version, none, lip:1.0, information"], abs=5e-3)
