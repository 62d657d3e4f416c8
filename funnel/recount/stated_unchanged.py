"""What a report states of records that stay unchanged, compared with the protocol and the counts that it follows from.

Release validation and audits both ask this; nothing here is shared with what makes the figures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from funnel.recount.plain_distributions import NOISE, mismatch
from funnel.recount.unchanged import PlainStays, PlainUnchanged

Json = Mapping[str, Any]
Symbol = tuple[str, ...]

# As documented: at most so many values of the secret are listed, the most common ones.
_LISTED = 30
_SEPARATOR = " · "


@dataclass(frozen=True)
class Rule:
    """By what figures are rounded and bounded.

    Attributes
    ----------
    step : float
        Public shares are multiples of it.
    budget : float
        Of the declared guarantee, nats.
    ceiling : float or None
        The largest lift of a secret that the guarantee allows; None where it sets no limit to single lifts.
    """

    step: float
    budget: float
    ceiling: float | None


def unchanged_complaints(
    stated: Json, exact: PlainUnchanged, rule: Rule, published: Mapping[Symbol, int]
) -> Iterator[str]:
    """What the block *unchanged* of a report states that does not follow.

    Parameters
    ----------
    stated : JSON object
        That part of ``report.json``.
    exact : PlainUnchanged
        The figures, from the protocol and the counts that everything public follows from.
    rule : Rule
    published : mapping of record to int
        The released records, counted.
    """
    yield from share_mismatch("share", stated["share"], exact.share, rule.step)
    if not is_error(stated["error"], exact.error, exact.error):
        yield "error is not that of counted shares"
    yield from column_complaints(stated, exact.counted.published_columns)
    for place, one in enumerate(stated["columns"][: len(exact.counted.published_columns)]):
        yield from share_mismatch(f"share of {one['column']!r}", one["share"], exact.in_column(place), rule.step)
    yield from _secrets(stated, exact, rule)
    records, kept = exact.rare
    yield from share_mismatch("rare_records", stated["rare_records"], records, rule.step)
    yield from share_mismatch("rare_unchanged", stated["rare_unchanged"], kept, rule.step)
    yield from share_mismatch("exact_records", stated["exact_records"], exact.exact, rule.step)
    yield from unique_complaints(stated, exact, rule.step, published)
    yield from _observers(stated["observers"], exact, rule)


def share_mismatch(name: str, stated: object, exact: float | None, step: float) -> Iterator[str]:
    """That a share is not the exact one as a multiple of a step; what is not nothing may be stated as one step.

    Parameters
    ----------
    name : str
    stated : object
    exact : float or None
        None where there is no such share.
    step : float
    """
    if exact is None or stated is None:
        if stated is not exact:
            yield f"{name} is {stated!r} instead of {exact!r}"
        return
    if (why := mismatch(stated, exact, step)) is not None:
        yield f"{name} {why}"


def is_error(stated: float, low: float, high: float) -> bool:
    """Whether an error between two was rounded up to two digits."""
    return low * (1 - NOISE) <= stated <= high * 1.11


def column_complaints(stated: Json, columns: Sequence[str]) -> Iterator[str]:
    """That the columns stated are not the published ones, in their order."""
    listed = [one["column"] for one in stated["columns"]]
    if listed != list(columns):
        yield f"columns are {listed!r} instead of {list(columns)!r}"


def unique_complaints(stated: Json, exact: PlainStays, step: float, published: Mapping[Symbol, int]) -> Iterator[str]:
    """What is wrong about released records that are like no other one; these are seen in the table alone."""
    alone, true = exact.alone(published)
    if stated["unique"] != alone:
        yield f"unique is {stated['unique']!r} instead of {alone!r}"
    yield from share_mismatch("unique_unchanged", stated["unique_unchanged"], true, step)


def ceiling_mismatch(name: str, stated: object, prior: float, rule: Rule, published: bool) -> Iterator[str]:
    """That the limit of how often a value of the secret may stay is not that of the guarantee.

    Parameters
    ----------
    name : str
    stated : object
    prior : float
        The share of the value.
    rule : Rule
    published : bool
        Whether the secret is a published column; nothing is stated otherwise.
    """
    if not published or rule.ceiling is None:
        if stated is not None:
            yield f"at_most of {name} is {stated!r}, and there is no such limit"
        return
    limit = min(1.0, rule.ceiling * prior)
    if not isinstance(stated, float) or not limit - NOISE <= stated <= limit + rule.step + NOISE:
        yield f"at_most of {name} is {stated!r}, which the guarantee does not make it"


def _secrets(stated: Json, exact: PlainUnchanged, rule: Rule) -> Iterator[str]:
    known = {_SEPARATOR.join(s): s for s in exact.counted.secret}
    if stated["secrets_total"] != len(known) or len(stated["secrets"]) != min(_LISTED, len(known)):
        yield f"{len(stated['secrets'])} of {stated['secrets_total']} values of the secret are listed"
    for one in stated["secrets"]:
        name = repr(one["label"])
        if one["label"] not in known:
            yield f"the secret {name} does not occur"
            continue
        s = known[one["label"]]
        kept, stays = exact.of_secret(s)
        prior = sum(n for (secret, _), n in exact.counted.counts.items() if secret == s) / exact.counted.rows
        yield from share_mismatch(f"prior of {name}", one["prior"], prior, rule.step)
        yield from share_mismatch(f"share of {name}", one["share"], kept, rule.step)
        yield from share_mismatch(
            f"stays of {name}", one["stays"], stays if exact.publishes_secret else None, rule.step
        )
        yield from ceiling_mismatch(name, one["at_most"], prior, rule, exact.publishes_secret)


def _observers(stated: Sequence[Json], exact: PlainUnchanged, rule: Rule) -> Iterator[str]:
    found = list(exact.observers(rule.budget))
    sizes = [one["known"] for one in stated]
    if sizes != [size for size, _, _ in found]:
        yield f"observers know {sizes!r} columns instead of {[size for size, _, _ in found]!r}"
    for one, (size, level, outside) in zip(stated, found, strict=False):
        name = f"observers of {size}"
        if one["columns"] != len(exact.others):
            yield f"{name} have {one['columns']!r} columns to know instead of {len(exact.others)}"
        yield from observer_complaints(name, one, level, outside, rule)


def observer_complaints(name: str, stated: Json, level: float, outside: float, rule: Rule) -> Iterator[str]:
    """That a level and a share of people beyond the budget are not those that some observers come to."""
    reached = math.inf if stated["level"] == "infinite" else stated["level"]
    # Within the budget nothing finer is stated; beyond it two digits on a grid of a tenth of the budget.
    coarse = max(rule.budget, level * 1.11 + rule.budget / 5)
    if not (level * (1 - NOISE) - NOISE <= reached and (reached <= coarse or math.isinf(level))):
        yield f"level of {name} is {stated['level']!r}, which is not what they can conclude"
    if not outside - NOISE <= stated["outside"] <= outside + rule.step + NOISE:
        yield f"outside of {name} is {stated['outside']!r}, which does not follow"
