"""The judge passes a good release, writes nothing, and fails closed where Great Expectations fails open."""

from __future__ import annotations

import json
import math
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from funnel.pipeline.expectations import Evidence, Verdict, judging
from funnel.pipeline.expectations.custom import (
    ExpectCheckToPass,
    ExpectReleasedCountsToEqualDrawn,
    declare,
    gx,
    named,
    whole_table,
)
from funnel.pipeline.expectations.evidence import ROWS as TOTAL
from tests.verdicts import ALL, COLUMNS, COUNTS, OUTPUTS, failures, judge_evidence

Change = Callable[[pa.Table], pa.Table]
Spoil = Callable[[Evidence, Change], Evidence]


def test_a_good_release_passes_every_expectation(adult_verdict: Verdict) -> None:
    assert failures(adult_verdict) == {}
    assert {judgement.name for judgement in adult_verdict.results} == ALL
    assert all(judgement.description.endswith(".") for judgement in adult_verdict.results)
    assert adult_verdict.sentence() == "all 3 expectations hold"


def test_the_verdict_is_plain_json(adult_verdict: Verdict) -> None:
    content = adult_verdict.content()
    assert json.loads(json.dumps(content, allow_nan=False)) == content


def test_a_good_release_of_two_columns_with_inputs_outside_the_alphabet_passes(small: Evidence) -> None:
    assert failures(judge_evidence(small)) == {}


def test_judging_writes_nothing_prints_nothing_and_stays_offline(
    adult: Evidence, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    # As in a process that judges for the first time.
    whole_table.cache_clear()
    assert judge_evidence(adult).passed
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_the_room_is_imported_without_great_expectations() -> None:
    code = "import sys, funnel.pipeline.expectations; sys.exit('great_expectations' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=False).returncode == 0


# Great Expectations fails open; the judge must not.


def test_what_is_declared_cannot_be_changed(adult: Evidence) -> None:
    (outputs,) = (one for one in declare(adult) if one.configuration.type == OUTPUTS)
    with pytest.raises(TypeError, match="immutable"):
        setattr(outputs, "outputs", 10**9)  # noqa: B010


@pytest.mark.parametrize("position", range(3))
def test_an_expectation_dropped_silently_fails_the_verdict(adult: Evidence, position: int) -> None:
    dropped = declare(adult)[position]
    whole = gx.ExpectationSuite.expectation_configurations

    def without(suite: gx.ExpectationSuite) -> list[Any]:
        return [one for one in whole.fget(suite) if one.type != dropped.configuration.type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gx.ExpectationSuite, "expectation_configurations", property(without))
        found = failures(judge_evidence(adult))
    assert found == {dropped.configuration.type: "it was declared but not evaluated, so it is not met"}


def test_an_expectation_evaluated_with_other_arguments_fails_the_verdict(
    adult: Evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = gx.ExpectationSuite.expectation_configurations

    def loosened(suite: gx.ExpectationSuite) -> list[Any]:
        configurations = whole.fget(suite)
        for one in configurations:
            if one.type == OUTPUTS:
                one.kwargs |= {"outputs": 10**9}
        return configurations

    monkeypatch.setattr(gx.ExpectationSuite, "expectation_configurations", property(loosened))
    verdict = judge_evidence(adult)
    assert not verdict.passed
    assert [(judgement.name, judgement.failure) for judgement in verdict.failed] == [
        (OUTPUTS, "it was declared but not evaluated, so it is not met"),
        (OUTPUTS, "it was evaluated but not declared with these arguments"),
    ]


def test_an_expectation_evaluated_twice_fails_the_verdict(adult: Evidence, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = gx.ExpectationSuite.expectation_configurations
    monkeypatch.setattr(
        gx.ExpectationSuite, "expectation_configurations", property(lambda suite: whole.fget(suite) + whole.fget(suite))
    )
    verdict = judge_evidence(adult)
    assert len(verdict.results) == 6
    assert len(verdict.failed) == 3


def test_an_exception_in_a_metric_fails_the_verdict_without_quoting_it(
    adult: Evidence, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    class Failing:
        @property
        def TABLE(self) -> None:
            raise ZeroDivisionError("row 17: 39, Never-married")

    monkeypatch.setattr("funnel.pipeline.expectations.custom.MetricDomainTypes", Failing())
    verdict = judge_evidence(adult)
    assert failures(verdict) == dict.fromkeys(ALL, "it could not be judged because ZeroDivisionError was raised")
    assert "Never-married" not in json.dumps(verdict.content()) + "".join(capfd.readouterr())


def test_an_exception_in_an_expectation_fails_the_verdict(adult: Evidence, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise KeyError("Never-married")

    monkeypatch.setattr(ExpectReleasedCountsToEqualDrawn, "find", fail)
    assert failures(judge_evidence(adult)) == {COUNTS: "it could not be judged because KeyError was raised"}


def test_an_expectation_that_fails_says_so_to_great_expectations_too(adult: Evidence) -> None:
    (outputs,) = (one for one in declare(adult) if one.configuration.type == OUTPUTS)
    n = sum(adult.drawn)
    for strange, read in ((3, n), (0, 0)):
        result = outputs._validate({"evidence.records": [{"output": -1, "records": strange, TOTAL: read}]})
        assert result["success"] is False
        assert result["result"]["details"]["failure"] is not None
    whole = [{"output": -1, "records": 0, TOTAL: 1}]
    assert outputs._validate({"evidence.records": whole})["success"] is True


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"success": False, "result": {"details": {"failure": None}}}, "it did not succeed, without saying why"),
        ({"success": True, "result": {"details": {"failure": "3 instead of 2"}}}, "3 instead of 2"),
        ({"success": True}, "it was evaluated without a finding"),
    ],
)
def test_what_contradicts_itself_or_finds_nothing_fails_the_verdict(
    adult: Evidence, monkeypatch: pytest.MonkeyPatch, found: dict[str, Any], said: str
) -> None:
    monkeypatch.setattr(ExpectReleasedCountsToEqualDrawn, "_validate", lambda *_, **__: found)
    assert failures(judge_evidence(adult)) == {COUNTS: said}


def test_a_result_without_its_configuration_fails_the_verdict(adult: Evidence, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate = judging._evaluate

    def lost(*arguments: Any) -> dict[str, Any]:
        results = evaluate(*arguments)
        # Which of them comes first is for Great Expectations to say.
        (counts,) = (one for one in results["outputs"].results if one.expectation_config.type == COUNTS)
        counts.expectation_config = None
        return results

    monkeypatch.setattr(judging, "_evaluate", lost)
    verdict = judge_evidence(adult)
    assert [(judgement.name, judgement.failure) for judgement in verdict.failed] == [
        (COUNTS, "it was declared but not evaluated, so it is not met"),
        ("an expectation without a type", "it was evaluated but not declared with these arguments"),
    ]


def test_evidence_that_cannot_be_gathered_is_told_without_quoting_it(
    small: Evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = type(small).table

    def broken(evidence: Evidence, name: str) -> pd.DataFrame:
        if name == "columns":
            raise ZeroDivisionError("row 17: 39, Never-married")
        return whole(evidence, name)

    monkeypatch.setattr(type(small), "table", broken)
    found = failures(judge_evidence(small))
    assert set(found) == {COLUMNS}
    assert set(found.values()) == {"its evidence could not be gathered because ZeroDivisionError was raised"}


@pytest.mark.parametrize(
    ("lines", "observed", "failure"),
    [
        ([("a", "passed", None)], "passed", None),
        ([("b", "failed", "is not"), ("a", "passed", math.nan)], "passed", None),
        ([("a", "failed", "is not")], "failed", "is not"),
        ([("b", "passed", None)], None, "it was made 0 times: the release lacks what it needs"),
        ([], None, "it was made 0 times: the release lacks what it needs"),
        ([("a", "passed", None), ("a", "passed", None)], None, "it was made 2 times: the release lacks what it needs"),
    ],
)
def test_a_check_is_made_once_and_passes(lines: list[Any], observed: str | None, failure: str | None) -> None:
    found = ExpectCheckToPass(check="a").find(
        [dict(zip(("check", "state", "failure"), one, strict=True)) for one in lines]
    )
    assert found == (observed, "passed", failure)


def test_a_table_with_a_line_of_no_records_fails_what_is_judged_on_it(
    small: Evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = type(small).table
    zero = {"columns": [300, 0]}
    monkeypatch.setattr(
        type(small),
        "table",
        lambda evidence, name: whole(evidence, name).assign(**({TOTAL: zero[name]} if name in zero else {})),
    )
    assert failures(judge_evidence(small)) == {COLUMNS: "the file holds no records"}


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([], ""),
        (["a", "b", "c"], "'a', 'b', 'c'"),
        (["a", "b", "c", "d"], "'a', 'b', 'c' and 1 more"),
        ([str(i) for i in range(1005)], "'0', '1', '2' and 1,002 more"),
    ],
)
def test_few_of_many_names_are_listed(names: list[str], said: str) -> None:
    assert named(names) == said
