"""The frequencies that public files are made from keep the rules of disclosure control."""

from __future__ import annotations

from funnel.pipeline.expectations.custom.claims import ClaimsExpectation


class ExpectFrequenciesToMeetRules(ClaimsExpectation):
    """Expect no cell that is small, dominated or of one record alone, by the rules in the text of the spec."""

    evidence_table = "disclosure"
