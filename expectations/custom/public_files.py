"""The public files of a release are those declared, and nothing else is in its folder."""

from __future__ import annotations

from funnel.pipeline.expectations.custom.claims import ClaimsExpectation


class ExpectPublicFilesToEqualDeclared(ClaimsExpectation):
    """Expect exactly the declared public files, as plain files, and nothing of the internal evidence among them."""

    evidence_table = "public_files"
