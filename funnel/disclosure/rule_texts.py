"""What is said of the rules of disclosure control: numbers and columns to everybody, values to the steward alone."""

from __future__ import annotations

from typing import Any

from funnel.disclosure.rules import Disclosure
from funnel.settings.count_protection import PROTECTIONS, ProtectionName
from funnel.settings.disclosure_rules import Rules
from funnel.wording import listed, plain_number


def rules_sentence(rules: Rules) -> str:
    """What a table has to meet, without its full stop."""
    said = []
    if rules.minimum_cell > 1:
        said.append(
            f"every combination of secret and published values that occurs has at least {rules.minimum_cell:,} records"
        )
    if rules.by_class and rules.dominance < 1:
        said.append(
            "in every class of records those without a given secret value are at least "
            f"{_percent(1 - rules.dominance)} as frequent as among all records"
        )
    elif rules.dominance < 1:
        said.append(
            f"no published combination has one secret value in more than {_percent(rules.dominance)} of its records "
            "(but for one that all records have as often)"
        )
    if rules.unique_share < 1:
        alone = "no record" if rules.unique_share == 0 else f"at most {_percent(rules.unique_share)} of the records"
        said.append(f"{alone} {'is' if rules.unique_share == 0 else 'are'} alone in a published combination")
    return "; ".join(said) or "no rule is set"


def breaches_sentence(found: Disclosure) -> str:
    """What of a table breaks the rules, in numbers, without its full stop; empty if nothing does."""
    rules, said = found.rules, []
    if small := int(found.small.sum()):
        occurring = int((found.joint.counts > 0).sum())
        said.append(
            f"{small:,} of {occurring:,} combinations of secret and published values have fewer than "
            f"{rules.minimum_cell:,} records"
        )
    dominated = int(found.dominated.any(axis=0).sum())
    if dominated and rules.by_class:
        said.append(
            f"in {dominated:,} of {found.combinations:,} classes of records those without one value of "
            f"{listed(found.joint.secret.columns)} are less than {_percent(1 - rules.dominance)} as frequent as among "
            "all records"
        )
    elif dominated:
        said.append(
            f"in {dominated:,} of {found.combinations:,} published combinations more than {_percent(rules.dominance)} "
            f"of the records share one value of {listed(found.joint.secret.columns)}"
        )
    if found.too_unique:
        said.append(f"{found.n_alone:,} of {found.joint.n:,} records are alone in their published combination")
    return "; ".join(said)


def public_sentence(found: Disclosure, protection: ProtectionName) -> str:
    """What the public report says, with its full stop."""
    held = f"Disclosure control: {rules_sentence(found.rules)}"
    if PROTECTIONS[protection].is_noisy:
        # Of single counts noise leaves everybody in doubt, so what is left are values that nearly all have.
        certain = (
            "that any of this is broken" if found.passes else f"that this does not hold: {breaches_sentence(found)}"
        )
        return f"{held}. The noisy frequencies {'do not put' if found.passes else 'put'} it beyond doubt {certain}."
    if found.passes:
        return f"{held}; all of this holds."
    return f"{held}. This does not hold: {breaches_sentence(found)}."


def refusal(found: Disclosure, place: str) -> str:
    """Why a release is refused, with the file that has the values to group."""
    if found.rules.by_class:
        return (
            f"nothing was published: the frequencies break {listed(found.broken)} of [disclosure]: "
            f"{breaches_sentence(found)}; make the file of classes with a larger min_records in [groups], or from "
            'records that are more like these; on_breach = "report" in [disclosure] only tells of it'
        )
    return (
        f"nothing was published: the frequencies break {listed(found.broken)} of [disclosure]: "
        f"{breaches_sentence(found)}; group values of {listed(found.columns())} (funnel plan --suggest gives the lines "
        f'for the spec, and {place} the values), or publish less; on_breach = "report" in [disclosure] only tells of it'
    )


def disclosure_content(found: Disclosure, protection: ProtectionName, most: int = 100) -> dict[str, Any]:
    """All of it as JSON, with the values to group; **internal**."""
    return {
        "protection": protection,
        "rules": {
            "minimum_cell": found.rules.minimum_cell,
            "dominance": found.rules.dominance,
            "unique_share": found.rules.unique_share,
        },
        "passes": found.passes,
        "broken": found.broken,
        "records": found.joint.n,
        "combinations": found.combinations,
        "small_cells": int(found.small.sum()),
        "dominated": int(found.dominated.any(axis=0).sum()),
        "alone": found.n_alone,
        "below_minimum": found.n_below,
        "values": {column: dict(list(met.items())[:most]) for column, met in found.values().items()},
    }


def rules_content(rules: Rules) -> dict[str, Any]:
    """The rules as a data package states them."""
    return {
        "minimumCell": rules.minimum_cell,
        "dominance": rules.dominance,
        "uniqueShare": rules.unique_share,
    }


def _percent(share: float) -> str:
    return f"{plain_number(round(100 * share, 6))} %"
