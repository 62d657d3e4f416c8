"""The release was made from the source that is there, by what its spec says."""

from __future__ import annotations

from funnel.pipeline.expectations.custom.claims import ClaimsExpectation


class ExpectSourceToEqualSnapshot(ClaimsExpectation):
    """Expect the snapshot to be of the source as it is now, and the run to be by the text of the spec."""

    evidence_table = "source"
