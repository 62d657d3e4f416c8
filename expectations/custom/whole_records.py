"""Whole records are true ones, of the class that was drawn for each."""

from __future__ import annotations

from funnel.pipeline.expectations.custom.claims import ClaimsExpectation


class ExpectRecordsToBeOfTheirClass(ClaimsExpectation):
    """Expect every published record to be a true one of the class that was drawn, each as likely as it has people."""

    evidence_table = "classes"
