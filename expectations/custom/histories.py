"""Everything published about a person, in all versions together, keeps the declared bound."""

from __future__ import annotations

from funnel.pipeline.expectations.custom.claims import ClaimsExpectation


class ExpectHistoriesToMeetBound(ClaimsExpectation):
    """Expect the bound to hold for every history, and the register to say of all people what became of them."""

    evidence_table = "histories"
