"""What is told to people and portals follows from the data package and the protocol."""

from __future__ import annotations

from funnel.pipeline.expectations.custom.claims import ClaimsExpectation


class ExpectHandoutsToFollowDocuments(ClaimsExpectation):
    """Expect README.md, CITATION.cff, dcat.jsonld and protocol.csv to be what the public documents make of them."""

    evidence_table = "handouts"
