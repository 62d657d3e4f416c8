"""Judging: run the declared expectations with Great Expectations and see that none of them was lost on the way."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import pandas as pd

from funnel.pipeline.expectations.checks import declared_checks, reason_of, traits
from funnel.release.verdict import Judgement, Verdict

if TYPE_CHECKING:
    from great_expectations.core import ExpectationSuiteValidationResult, ExpectationValidationResult

    from funnel.pipeline.expectations.custom import ReleaseExpectation
    from funnel.pipeline.expectations.evidence import Evidence

Key = tuple[str, str]


class Validatable(Protocol):
    """What can be judged: expectations, and the tables that they are on."""

    def declared(self) -> list[ReleaseExpectation]:
        """All expectations, each with a description in plain words."""
        ...

    def table(self, name: str) -> pd.DataFrame:
        """The table of this name; whatever this raises fails all expectations on it."""
        ...


def judge(evidence: Validatable) -> Verdict:
    """Judge a release.

    Great Expectations fails open: an expectation it does not know is left out, and the rest succeeds. So what it
    evaluated is compared with what was declared, as multisets of type and arguments: an expectation that is missing,
    one that was not declared, and one that raised an exception each fail the verdict; so does evidence that cannot be
    gathered.

    Parameters
    ----------
    evidence : Finished

    Notes
    -----
    The first call imports Great Expectations, which takes some seconds. Nothing is written, printed or sent.
    """
    try:
        declared = evidence.declared()
    except Exception as error:
        description, failure = "What the release declares can be read.", reason_of(error)
        undeclarable = Judgement(name="evidence", description=description, passed=False, failure=failure)
        return Verdict.of((undeclarable,))
    tables: dict[str, pd.DataFrame] = {}
    without: dict[str, str] = {}
    for name in dict.fromkeys(expectation.evidence_table for expectation in declared):
        try:
            tables[name] = evidence.table(name)
        except Exception as error:
            without[name] = reason_of(error)
    # Written down before anything is evaluated, so that what is changed on the way is noticed.
    keys = [_key(expectation.configuration.type, expectation.configuration.kwargs) for expectation in declared]
    results = _evaluate(declared, tables)
    evaluated: dict[Key, list[ExpectationValidationResult]] = defaultdict(list)
    for result in (one for suite in results.values() for one in suite.results):
        evaluated[_evaluated_key(result)].append(result)
    judgements = []
    for key, expectation in zip(keys, declared, strict=True):
        why = without.get(expectation.evidence_table, "it was declared but not evaluated, so it is not met")
        mine = evaluated[key] if expectation.evidence_table not in without else []
        judgements.append(_judgement(expectation, mine.pop(0)) if mine else _not_met(expectation, why))
    judgements += [_undeclared(key) for key, left in evaluated.items() for _ in left]
    return Verdict.of(tuple(judgements))


def announced(evidence: Evidence, asked: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Names and descriptions of the expectations that a release will be judged by, in their order.

    Parameters
    ----------
    evidence : Evidence
        What the release is made of; its file is not read.
    asked : collection of str
        What is asked of it, see `funnel.pipeline.expectations.checks.traits`.
    """
    from funnel.pipeline.expectations.custom import declare

    declared = declare(evidence, declared_checks(traits(evidence.protocol, asked)))
    return tuple((one.check_name, str(one.description)) for one in declared)


def _evaluate(
    declared: list[ReleaseExpectation], tables: Mapping[str, pd.DataFrame]
) -> dict[str, ExpectationSuiteValidationResult]:
    """Results of one suite for each table of the evidence."""
    # The expectations are there, so the library is, without what it imports in vain.
    from great_expectations.core import ExpectationSuite
    from great_expectations.validator.v1_validator import Validator

    from funnel.pipeline.expectations.custom import whole_table

    results = {}
    for name, table in tables.items():
        mine = [expectation for expectation in declared if expectation.evidence_table == name]
        suite = ExpectationSuite(name=name, expectations=mine)
        # What a batch does to validate a suite; making the batch first would digest every table twice.
        results[name] = Validator(whole_table(), batch_parameters={"dataframe": table}).validate_expectation_suite(
            suite
        )
    return results


def _evaluated_key(result: ExpectationValidationResult) -> Key:
    configuration = result.expectation_config
    if configuration is None:
        return ("an expectation without a type", "")
    return _key(configuration.type, configuration.kwargs)


def _key(kind: str, arguments: dict[str, Any]) -> Key:
    # The batch is added in evaluating; everything else must be as declared.
    own = {name: value for name, value in arguments.items() if name != "batch_id"}
    return kind, json.dumps(own, sort_keys=True)


def _judgement(expectation: ReleaseExpectation, result: ExpectationValidationResult) -> Judgement:
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
        name=expectation.check_name,
        description=str(expectation.description),
        passed=failure is None,
        observed=found.get("observed_value"),
        expected=details.get("expected"),
        failure=failure,
    )


def _not_met(expectation: ReleaseExpectation, why: str) -> Judgement:
    name, description = expectation.check_name, str(expectation.description)
    return Judgement(name=name, description=description, passed=False, failure=why)


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
