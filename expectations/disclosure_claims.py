"""Disclosure claims: the frequencies that are public, held against the rules in the text of the spec, counted anew."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from funnel.pipeline.expectations.claims import Claim, claim
from funnel.pipeline.expectations.spec_text import SpecText

if TYPE_CHECKING:
    from funnel.pipeline.expectations.finished_folder import FinishedFolder

Symbol = tuple[str, ...]


def disclosure_claims(finished: FinishedFolder) -> list[Claim]:
    """The frequencies keep the rules of disclosure control, unless the spec asks only for a report."""
    return rule_claims(finished.public.counts, finished.spec_text)


def rule_claims(counts: Mapping[tuple[Symbol, Symbol], int], said: SpecText) -> list[Claim]:
    """Whether counts by (secret, published combination) keep the rules; where they are only told of, they hold.

    Parameters
    ----------
    counts : mapping
        Public counts of the cells that are not empty.
    said : SpecText
    """
    asked = said.section("disclosure")
    if said.threshold is None and not _refuses(asked, said):
        return []
    # What is grouped for a threshold keeps it, whatever is only reported.
    least = max(int(asked.get("minimum_cell", 10)), said.threshold or 1)
    share = _fraction(asked.get("dominance", _dominance(said)))
    alone = _fraction(asked.get("unique_share", 0.0))
    of_secret: Counter[Symbol] = Counter()
    of_published: Counter[Symbol] = Counter()
    for (s, x), number in counts.items():
        of_secret[s] += number
        of_published[x] += number
    records = of_secret.total()
    small = sum(0 < number < least for number in counts.values())
    most = {s: _most(share, Fraction(number, records), said) for s, number in of_secret.items()}
    dominated = sum(Fraction(number, of_published[x]) > most[s] for (s, x), number in counts.items() if number)
    lone = sum(number == 1 for number in of_published.values())
    return [
        claim("minimum cell", small == 0, f"is below {least:,} records in {small:,} cells"),
        claim("dominance", dominated == 0, f"of one secret value is above the rule in {dominated:,} combinations"),
        claim("uniqueness", lone <= alone * records, f"is above the rule: {lone:,} records are alone"),
    ]


def _most(share: Fraction, of_all: Fraction, said: SpecText) -> Fraction:
    """The largest share of a secret in a combination, given that of all records."""
    if said.class_column is None:
        # A secret that so many records have anyway is no news of one combination.
        return Fraction(1) if of_all > share else share
    # A class may take away this share of the doubt.
    return Fraction(math.floor(10_000 * (of_all + share * (1 - of_all))), 10_000)


def _dominance(said: SpecText) -> float:
    """What holds where the text says nothing: more in classes of records whose secret is published."""
    return 0.995 if said.class_column is not None and said.released[:-1] != said.whole else 0.95


def expected_rules(said: SpecText) -> dict[str, Any]:
    """What the data package has to say of the rules."""
    asked = said.section("disclosure")
    return {
        "minimumCell": int(asked.get("minimum_cell", 10)),
        "dominance": float(asked.get("dominance", _dominance(said))),
        "uniqueShare": float(asked.get("unique_share", 0.0)),
        "onBreach": "refuse" if _refuses(asked, said) else "report",
    }


def _refuses(asked: Mapping[str, Any], said: SpecText) -> bool:
    """Whether a breach refuses the release: as it says, and if it does not, unless there is noise."""
    stated = asked.get("on_breach")
    return not said.has_noise if stated is None else stated == "refuse"


def _fraction(share: float) -> Fraction:
    return Fraction(Decimal(str(share)))
