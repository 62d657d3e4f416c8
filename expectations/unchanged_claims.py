"""What a report states of records that stay unchanged, compared with the protocol and the counts that are public."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from funnel.pipeline.expectations.claims import Claim
from funnel.pipeline.expectations.said import Said
from funnel.recount.balance import is_invariant
from funnel.recount.laws import Laws, share_step
from funnel.recount.stated_unchanged import Rule, unchanged_complaints
from funnel.recount.unchanged import PlainUnchanged

Json = Mapping[str, Any]


def unchanged_claim(
    stated: Json | None, protocol: Json, laws: Laws, said: Said, published: Mapping[tuple[str, ...], int]
) -> Claim:
    """That all of it follows; of a protocol that is not invariant, that nothing is stated.

    Parameters
    ----------
    stated : mapping or None
        The part of ``report.json``.
    protocol : mapping
        Content of ``protocol.json``.
    laws : Laws
        Of the public counts.
    said : Said
    published : mapping of record to int
        The released records, counted again.
    """
    if stated is None or not is_invariant(protocol):
        return Claim("unchanged", None if (stated is None) != is_invariant(protocol) else "is missing or out of place")
    guarantee = said.guarantee
    limits = guarantee.lift_limits
    rule = Rule(share_step(laws.recount.rows), guarantee.budget, None if limits is None else limits[1])
    wrong = list(unchanged_complaints(stated, PlainUnchanged(protocol, laws.recount), rule, published))
    more = f" (and {len(wrong) - 1:,} more)" if len(wrong) > 1 else ""
    return Claim("unchanged", f"{wrong[0]}{more}" if wrong else None)
