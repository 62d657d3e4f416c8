"""A verdict says in one sentence whether a release may be published, and by how much it misses."""

from __future__ import annotations

from funnel.pipeline.expectations import Judgement, Verdict

GOOD = Judgement("expect_a", "A holds.", True, 1, 1, None)
BAD = Judgement("expect_b", "B holds.", False, 3, 2, "3 instead of 2: 1 more")


def test_a_verdict_passes_if_all_judgements_do() -> None:
    assert Verdict.of((GOOD, GOOD)).passed
    assert Verdict.of((GOOD,)).sentence() == "all 1 expectations hold"
    assert not Verdict.of((GOOD, BAD)).passed


def test_a_verdict_on_nothing_fails() -> None:
    verdict = Verdict.of(())
    assert not verdict.passed
    assert verdict.sentence() == "no expectation was evaluated, so the release is refused"


def test_failures_are_named_with_their_size() -> None:
    verdict = Verdict.of((GOOD, BAD, BAD))
    assert verdict.failed == (BAD, BAD)
    assert verdict.sentence() == (
        "2 of 3 expectations failed: expect_b: 3 instead of 2: 1 more; expect_b: 3 instead of 2: 1 more"
    )


def test_a_verdict_as_json_values() -> None:
    assert Verdict.of((BAD,)).to_dict() == {
        "passed": False,
        "results": [
            {
                "name": "expect_b",
                "description": "B holds.",
                "passed": False,
                "observed": 3,
                "expected": 2,
                "failure": "3 instead of 2: 1 more",
            }
        ],
    }
