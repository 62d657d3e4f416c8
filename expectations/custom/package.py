"""The data package describes the release that it is in."""

from __future__ import annotations

from funnel.pipeline.expectations.custom.claims import ClaimsExpectation


class ExpectPackageToDescribeRelease(ClaimsExpectation):
    """Expect digests, sizes, texts and figures of the data package to be those of the release and its spec."""

    evidence_table = "package"
