"""Suite: the expectations that a release is declared to meet, built in code from its evidence."""

from __future__ import annotations

from collections.abc import Collection

from funnel.pipeline.expectations.checks import declared_checks
from funnel.pipeline.expectations.custom import (
    ExpectCheckToPass,
    ExpectReleasedColumnsToEqualDeclared,
    ExpectReleasedCountsToEqualDrawn,
    ExpectReleasedSymbolsToBeOutputs,
    ReleaseExpectation,
)
from funnel.pipeline.expectations.evidence import Evidence
from funnel.wording import listed


def declare(evidence: Evidence, has: Collection[str] = ()) -> list[ReleaseExpectation]:
    """All expectations on a release, each with a description in plain words: on its table, then one for each check.

    Parameters
    ----------
    evidence : Evidence
    has : collection of str
        The traits of the release, see `funnel.pipeline.expectations.checks.traits`.
    """
    outputs, columns = evidence.protocol.outputs, list(evidence.columns)
    return [
        ExpectReleasedColumnsToEqualDeclared(
            columns=columns,
            description=f"The file has exactly the columns {listed(columns)}, in this order, and no secret one beside.",
        ),
        ExpectReleasedSymbolsToBeOutputs(
            outputs=len(outputs),
            description=f"Every record is one of the {len(outputs):,} outputs of the protocol.",
        ),
        ExpectReleasedCountsToEqualDrawn(
            labels=list(outputs.labels),
            drawn=list(evidence.drawn),
            description="Another reader finds every output in the file exactly as often as it was drawn.",
        ),
        *(ExpectCheckToPass(check=one.name, description=one.says) for one in declared_checks(has)),
    ]
