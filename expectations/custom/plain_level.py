"""The protocol meets the bound of the spec, decided a second time in plain fractions."""

from __future__ import annotations

from funnel.pipeline.expectations.custom.claims import ClaimsExpectation


class ExpectPlainLevelToMeetBound(ClaimsExpectation):
    """Expect the bound in the text of the spec to hold under the recounted law, decided in plain fractions."""

    evidence_table = "plain_level"
