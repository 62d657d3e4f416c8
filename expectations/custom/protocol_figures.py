"""What protocol.json states follows from the source."""

from __future__ import annotations

from funnel.pipeline.expectations.custom.claims import ClaimsExpectation


class ExpectProtocolFiguresToFollowRecount(ClaimsExpectation):
    """Expect bound, level, utility, prior, posteriors and marginal to be those that follow from the recount."""

    evidence_table = "protocol_figures"
