"""Judging: run the declared expectations with Great Expectations and see that none of them was lost on the way."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from funnel.pipeline.expectations.evidence import Evidence
from funnel.release.verdict import Judgement, Verdict

if TYPE_CHECKING:
    from funnel.pipeline.expectations.custom.base import ReleaseExpectation
    from funnel.pipeline.expectations.engine import ExpectationValidationResult

Key = tuple[str, str]


def judge(evidence: Evidence) -> Verdict:
    """Judge a release that is about to be published.

    Great Expectations fails open: an expectation it does not know is left out, and the rest succeeds. So what it
    evaluated is compared with what was declared, as multisets of type and arguments: an expectation that is missing,
    one that was not declared, and one that raised an exception each fail the verdict.

    Parameters
    ----------
    evidence : Evidence
        The file, and what it was drawn with and declared to be.

    Raises
    ------
    ReleaseRefused
        If the file cannot be read as parquet.

    Notes
    -----
    The first call imports Great Expectations, which takes some seconds. Nothing is written, printed or sent.
    """
    from funnel.pipeline.expectations.suite import declare

    declared = declare(evidence)
    keys = [_key(*_configured(expectation)) for expectation in declared]
    evaluated: dict[Key, list[ExpectationValidationResult]] = defaultdict(list)
    for result in _evaluate(declared, evidence):
        evaluated[_evaluated_key(result)].append(result)
    judgements = [
        _judged(expectation, evaluated[key].pop(0)) if evaluated[key] else _missing(expectation)
        for expectation, key in zip(declared, keys, strict=True)
    ]
    judgements += [_undeclared(key) for key, results in evaluated.items() for _ in results]
    return Verdict.of(tuple(judgements))


def announced(evidence: Evidence) -> tuple[tuple[str, str], ...]:
    """Names and descriptions of the expectations that a release will be judged by; nothing of it is read."""
    from funnel.pipeline.expectations.suite import declare

    return tuple((_configured(one)[0], str(one.description)) for one in declare(evidence))


def _evaluate(declared: list[ReleaseExpectation], evidence: Evidence) -> list[ExpectationValidationResult]:
    """Results of one suite for each table of the evidence."""
    from funnel.pipeline.expectations.engine import ExpectationSuite, context

    source = context().data_sources.add_pandas("evidence")
    results: list[ExpectationValidationResult] = []
    for name, table in evidence.tables.items():
        mine = [expectation for expectation in declared if expectation.evidence_table == name]
        batch = source.add_dataframe_asset(name).add_batch_definition_whole_dataframe("whole")
        suite = ExpectationSuite(name=name, expectations=mine)
        results += batch.get_batch({"dataframe": table}).validate(suite).results
    return results


def _configured(expectation: ReleaseExpectation) -> tuple[str, dict[str, Any]]:
    return expectation.configuration.type, expectation.configuration.kwargs


def _evaluated_key(result: ExpectationValidationResult) -> Key:
    configuration = result.expectation_config
    if configuration is None:
        return ("an expectation without a type", "")
    return _key(configuration.type, configuration.kwargs)


def _key(kind: str, arguments: dict[str, Any]) -> Key:
    # The batch is added in evaluating; everything else must be as declared.
    own = {name: value for name, value in arguments.items() if name != "batch_id"}
    return kind, json.dumps(own, sort_keys=True)


def _judged(expectation: ReleaseExpectation, result: ExpectationValidationResult) -> Judgement:
    kind, _ = _configured(expectation)
    raised = _raised(result.exception_info)
    found = result.result or {}
    details = found.get("details", {})
    failure = details.get("failure")
    if raised is not None:
        failure = f"it could not be judged because {raised} was raised"
    elif "failure" not in details:
        failure = "it was evaluated without a finding"
    elif result.success is not (failure is None):
        failure = failure or "it did not succeed, without saying why"
    return Judgement(
        name=kind,
        description=str(expectation.description),
        passed=failure is None,
        observed=found.get("observed_value"),
        expected=details.get("expected"),
        failure=failure,
    )


def _missing(expectation: ReleaseExpectation) -> Judgement:
    kind, _ = _configured(expectation)
    failure = "it was declared but not evaluated, so it is not met"
    return Judgement(name=kind, description=str(expectation.description), passed=False, failure=failure)


def _undeclared(key: Key) -> Judgement:
    failure = "it was evaluated but not declared with these arguments"
    return Judgement(name=key[0], description="", passed=False, failure=failure)


def _raised(info: dict[str, Any]) -> str | None:
    """Type of the exception behind a result, or None; its message may quote data and is left out."""
    # One entry for the expectation itself, or one for each of its metrics.
    entries = [info] if "raised_exception" in info else list(info.values())
    for entry in entries:
        if entry.get("raised_exception"):
            types = re.findall(r"^([A-Za-z_][\w.]*)(?::|$)", entry.get("exception_traceback") or "", re.MULTILINE)
            return types[0] if types else "an exception"
    return None
