"""What a report says of records that stay as they are, held against the protocol and the counts that are public."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from funnel.alphabet import SEPARATOR
from funnel.pipeline.expectations.claims import NOISE, Claim, claim, near, same
from funnel.pipeline.expectations.laws import Laws, share_step
from funnel.pipeline.expectations.said import Said
from funnel.recount.balance import is_invariant
from funnel.recount.unchanged import PlainUnchanged

Json = Mapping[str, Any]
_SHOWN = 30


def unchanged_claims(
    told: Json | None, protocol: Json, laws: Laws, said: Said, published: Mapping[tuple[str, ...], int]
) -> Iterator[Claim]:
    """That it is told of an invariant protocol, and what is told.

    Parameters
    ----------
    told : mapping or None
        The part of ``report.json``.
    protocol : mapping
        Content of ``protocol.json``.
    laws : Laws
        Of the public counts.
    said : Said
    published : mapping of record to int
        The released records, counted again.
    """
    yield same("told", told is not None, is_invariant(protocol))
    if told is None or not is_invariant(protocol):
        return
    exact, step = PlainUnchanged(protocol, laws.recount), share_step(laws.recount.rows)
    yield near("share", told["share"], exact.share, step)
    yield claim("error", _up(told["error"], exact.error), "is not that of counted shares")
    columns = laws.recount.published_columns
    yield same("columns", [one["column"] for one in told["columns"]], list(columns))
    for place, one in enumerate(told["columns"]):
        yield near(f"share of {one['column']!r}", one["share"], exact.in_column(place), step)
    yield from _secrets(told, exact, said, step)
    records, kept = exact.rare
    yield near("rare records", told["rare_records"], records, step)
    yield from _share("rare unchanged", told["rare_unchanged"], kept, step)
    yield near("exact records", told["exact_records"], exact.exact, step)
    alone, true = exact.alone(published)
    yield same("unique", told["unique"], alone)
    yield from _share("unique unchanged", told["unique_unchanged"], true, step)
    yield from _observers(told["observers"], exact, said, step)


def _share(name: str, stated: object, exact: float | None, step: float) -> Iterator[Claim]:
    if exact is None or stated is None:
        yield same(name, stated, exact)
    else:
        yield near(name, stated, exact, step)


def _secrets(told: Json, exact: PlainUnchanged, said: Said, step: float) -> Iterator[Claim]:
    known = {SEPARATOR.join(s): s for s in exact.counted.secret}
    yield same("values", told["secrets_total"], len(known))
    yield same("values told", len(told["secrets"]), min(_SHOWN, len(known)))
    limits = said.guarantee.lift_limits
    for one in told["secrets"]:
        name = repr(one["label"])
        if one["label"] not in known:
            yield Claim(name, "does not occur")
            continue
        s = known[one["label"]]
        kept, stays = exact.of_secret(s)
        prior = sum(n for (secret, _), n in exact.counted.counts.items() if secret == s) / exact.counted.rows
        yield near(f"share of {name}", one["prior"], prior, step)
        yield near(f"unchanged {name}", one["share"], kept, step)
        yield from _share(f"{name} stays", one["stays"], stays if exact.publishes_secret else None, step)
        if not exact.publishes_secret or limits is None:
            yield same(f"limit of {name}", one["at_most"], None)
        else:
            limit = min(1.0, limits[1] * prior)
            fine = one["at_most"] is not None and limit - NOISE <= one["at_most"] <= limit + step + NOISE
            yield claim(f"limit of {name}", fine, f"is {one['at_most']!r}, which the bound does not make it")


def _observers(told: list[Json], exact: PlainUnchanged, said: Said, step: float) -> Iterator[Claim]:
    budget = said.guarantee.budget
    found = list(exact.observers(budget))
    yield same("observers", [one["known"] for one in told], [size for size, _, _ in found])
    for one, (size, level, outside) in zip(told, found, strict=False):
        name = f"observers of {size}"
        yield same(name, one["columns"], len(exact.others))
        stated = math.inf if one["level"] == "infinite" else one["level"]
        # Within the budget nothing finer is told; beyond it two digits on a grid of a tenth of the budget.
        coarse = max(budget, level * 1.11 + budget / 5)
        fine = level * (1 - NOISE) - NOISE <= stated and (stated <= coarse or math.isinf(level))
        yield claim(f"level of {name}", fine, f"is {one['level']!r}, which is not what they can conclude")
        close = outside - NOISE <= one["outside"] <= outside + step + NOISE
        yield claim(f"people outside for {name}", close, f"is {one['outside']!r}, which does not follow")


def _up(stated: float, exact: float) -> bool:
    return exact * (1 - NOISE) <= stated <= exact * 1.11
