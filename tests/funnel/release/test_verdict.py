"""A verdict says in one sentence whether a release may be published, and by how much it misses."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from funnel.errors import DataError
from funnel.release.verdict import Judgement, Verdict

GOOD = Judgement(name="expect_a", description="A holds.", passed=True, observed=1, expected=1)
BAD = Judgement(
    name="expect_b",
    description="B holds.",
    passed=False,
    observed=3,
    expected=2,
    failure="3 instead of 2: 1 more",
)


@given(st.lists(st.sampled_from([GOOD, BAD]), min_size=1, max_size=6).map(tuple))
def test_a_verdict_passes_if_all_judgements_do(results: tuple[Judgement, ...]) -> None:
    verdict = Verdict.of(results)
    assert verdict.passed is (BAD not in results)
    assert verdict.passed is not bool(verdict.failed)
    assert verdict.failed == tuple(result for result in results if result is BAD)
    assert Verdict.from_json(verdict.to_bytes()) == verdict
    with pytest.raises(ValidationError, match="does not follow from its judgements"):
        Verdict(passed=not verdict.passed, results=results)


def test_a_verdict_on_nothing_fails_whichever_way_it_is_asked() -> None:
    verdict = Verdict.of(())
    assert not verdict.passed
    assert verdict.failed
    assert verdict.sentence() == (
        "1 of 1 expectations failed: verdict: no expectation was evaluated, so the release is refused"
    )
    for passed in (True, False):
        with pytest.raises(ValidationError):
            Verdict(passed=passed, results=())
        with pytest.raises(DataError, match="results: tuple should have at least 1 item"):
            Verdict.from_json(json.dumps({"schema": "funnel/verdict/1", "passed": passed, "results": []}))


def test_a_judgement_fails_for_a_reason_or_passes_without_one() -> None:
    for passed, failure in ((True, "3 instead of 2"), (False, None)):
        with pytest.raises(ValidationError, match="has a failure and passed, or neither"):
            Judgement(name="expect_a", description="A holds.", passed=passed, failure=failure)


def test_sentences_count_and_name_what_failed() -> None:
    assert Verdict.of((GOOD,)).sentence() == "all 1 expectations hold"
    assert Verdict.of((GOOD, BAD, BAD)).sentence() == (
        "2 of 3 expectations failed: expect_b: 3 instead of 2: 1 more; expect_b: 3 instead of 2: 1 more"
    )


def test_a_verdict_as_json_values() -> None:
    judged = {
        "name": "expect_b",
        "description": "B holds.",
        "passed": False,
        "observed": 3,
        "expected": 2,
        "failure": "3 instead of 2: 1 more",
    }
    assert Verdict.of((BAD,)).content() == {
        "schema": "funnel/verdict/1",
        "passed": False,
        "results": [judged],
        "files": {},
    }
    assert Verdict.from_json(Verdict.of((BAD,)).to_bytes()) == Verdict.of((BAD,))
