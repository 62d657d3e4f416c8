"""The public report tells the figures of its release."""

from __future__ import annotations

from funnel.pipeline.expectations.custom.claims import ClaimsExpectation


class ExpectReportToFollowRecount(ClaimsExpectation):
    """Expect the figures of the public report to be those that follow from the recount."""

    evidence_table = "report"
