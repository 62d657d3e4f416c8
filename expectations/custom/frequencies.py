"""Public counts are the recounted ones with the noise that the spec asks for."""

from __future__ import annotations

from funnel.pipeline.expectations.custom.claims import ClaimsExpectation


class ExpectFrequenciesToBeProtected(ClaimsExpectation):
    """Expect the public counts to be the recounted ones with noise as the spec asks, over values that tell nothing."""

    evidence_table = "frequencies"
