"""Records with keys have the answers that their keys and the release secret give them."""

from __future__ import annotations

from funnel.pipeline.expectations.custom.claims import ClaimsExpectation


class ExpectKeysToGiveAnswers(ClaimsExpectation):
    """Expect digests and answers to be those derived once more from the keys in the source and the release secret."""

    evidence_table = "keys"
