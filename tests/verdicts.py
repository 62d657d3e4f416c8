"""Names of the expectations on a released table, and what failed of a verdict."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from funnel.pipeline.expectations import Evidence, judge
from funnel.pipeline.expectations.custom import ReleaseExpectation, declare
from funnel.release.verdict import Verdict

COLUMNS = "expect_released_columns_to_equal_declared"
OUTPUTS = "expect_released_symbols_to_be_outputs"
COUNTS = "expect_released_counts_to_equal_drawn"
ALL = {COLUMNS, OUTPUTS, COUNTS}


@dataclass(frozen=True, eq=False)
class _Alone:
    """Evidence that is judged without the rest of its folder."""

    evidence: Evidence

    def declared(self) -> list[ReleaseExpectation]:
        return declare(self.evidence)

    def table(self, name: str) -> pd.DataFrame:
        return self.evidence.table(name)


def judge_evidence(evidence: Evidence) -> Verdict:
    """The verdict of the expectations on the evidence alone."""
    return judge(_Alone(evidence))


def failures(verdict: Verdict) -> dict[str, str]:
    """Failure sentences by expectation; the verdict must agree with them."""
    assert verdict.passed is not bool(verdict.failed)
    assert all(judgement.name in verdict.sentence() for judgement in verdict.failed)
    return {judgement.name: str(judgement.failure) for judgement in verdict.failed}
