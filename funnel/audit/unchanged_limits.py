"""What shares of records unchanged can be, where only rounded shares of the published values are public."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.audit.arithmetic import Interval, ShareLimits, prior_limits
from funnel.recount.stated_unchanged import Rule, ceiling_mismatch, column_complaints, is_error, unique_complaints
from funnel.recount.unchanged import PlainStays
from funnel.release.documents import ProtocolDocument

Floats = npt.NDArray[np.float64]
Json = Mapping[str, Any]
_RARE = 0.001
_ROUNDING = 1e-9


class RoundedShares:
    """The protocol, and limits of the share of every value before it was rounded.

    Parameters
    ----------
    document : ProtocolDocument
        Of an invariant protocol; its prior is of what it reads.
    rows : int
        Records that public shares are of.
    """

    def __init__(self, document: ProtocolDocument, rows: int) -> None:
        self.plain, self.rows = PlainStays(document.content()), rows
        self.columns, self.secret_columns = document.prior.columns, document.guarantee.secret
        limits = prior_limits(document, rows)
        self._shares = ShareLimits.of(limits)
        self.low, self.high = np.array(self._shares.low), np.array(self._shares.high)
        self.symbols = document.prior.symbols

    @property
    def publishes_secret(self) -> bool:
        """Whether published values begin with those of the secret."""
        return self.columns[: len(self.secret_columns)] == self.secret_columns

    @cached_property
    def stays(self) -> Floats:
        """Probability that a value stays, shape (a,)."""
        return np.array([self.plain.stays(x) / self.plain.whole for x in self.symbols])

    def keeps(self, places: slice) -> Floats:
        """Probability that some columns of a value stay, shape (a,)."""
        return np.array([self.plain.keeps(x, places) / self.plain.whole for x in self.symbols])

    def mean(self, values: Floats) -> Interval:
        """What the mean of numbers (a,) over all records may be."""
        return self._shares.mean(enumerate(values.tolist()))

    def mean_of(self, some: Sequence[int], values: Floats) -> Interval:
        """What the mean of numbers (a,) over the records of some values may be.

        Notes
        -----
        The least mean has the largest shares of the smallest numbers and the least shares of all others.
        """
        found = []
        for sign in (1, -1):
            order = np.array(sorted(some, key=lambda x: sign * values[x]), dtype=int)
            means = []
            for most in range(1, len(order) + 1):
                shares = np.concatenate([self.high[order[:most]], self.low[order[most:]]])
                if shares.sum() > 0:
                    means.append(float(shares @ values[order] / shares.sum()))
            found.append(min(means, key=lambda mean: sign * mean, default=0.0))
        return Interval(*found)

    @property
    def error(self) -> Interval:
        """The largest standard error of a counted share."""
        spread: dict[tuple[str, ...], list[tuple[int, float]]] = {y: [] for y in self.symbols}
        for place, x in enumerate(self.symbols):
            for y, weight in self.plain.rows[x].items():
                kept = weight / self.plain.whole
                spread[y].append((place, kept * (1 - kept)))
        limits = [self._shares.mean(row) for row in spread.values()]
        low, high = max(limit.low for limit in limits), max(limit.high for limit in limits)
        return Interval(math.sqrt(max(0.0, low) / self.rows), math.sqrt(high / self.rows))


def limit_complaints(
    stated: Json, shares: RoundedShares, rule: Rule, published: Mapping[tuple[str, ...], int]
) -> Iterator[str]:
    """What is stated that cannot follow; what takes the distribution of an unpublished secret is left to exact counts.

    Parameters
    ----------
    stated : JSON object
        The block *unchanged* of ``report.json``.
    shares : RoundedShares
    rule : Rule
    published : mapping of record to int
        The released records, counted.
    """
    if shares.symbols != shares.plain.symbols:
        yield "the values that there are shares of are not those that the protocol reads"
        return
    yield from _share("share", stated["share"], shares.mean(shares.stays), rule.step)
    error = shares.error
    if not is_error(stated["error"], error.low, error.high):
        yield "error is not that of counted shares"
    yield from column_complaints(stated, shares.columns)
    for j, one in enumerate(stated["columns"][: len(shares.columns)]):
        limit = shares.mean(shares.keeps(slice(j, j + 1)))
        yield from _share(f"share of {one['column']!r}", one["share"], limit, rule.step)
    if shares.publishes_secret:
        yield from _secrets(stated, shares, rule)
    yield from _rare(stated, shares, rule)
    occurring = [x for x, high in zip(shares.symbols, shares.high, strict=True) if high > 0]
    entered = shares.plain.entered(occurring)
    alone = [x not in entered and shares.plain.stays(x) == shares.plain.whole for x in shares.symbols]
    yield from _share("exact_records", stated["exact_records"], shares.mean(np.array(alone, dtype=float)), rule.step)
    yield from unique_complaints(stated, shares.plain, rule.step, published)


def _share(name: str, stated: float, limit: Interval, step: float) -> Iterator[str]:
    least = limit.high > 0 and limit.low < step and abs(stated - step) <= _ROUNDING
    if not (least or limit.meets(stated, step / 2)) or abs(stated / step - round(stated / step)) > 1e-6:
        yield f"{name} is {stated!r}, which cannot follow from the protocol and the public shares"


def _secrets(stated: Json, shares: RoundedShares, rule: Rule) -> Iterator[str]:
    width = len(shares.secret_columns)
    of: dict[str, list[int]] = {}
    for x, symbol in enumerate(shares.symbols):
        of.setdefault(" · ".join(symbol[:width]), []).append(x)
    same = shares.keeps(slice(width))
    for one in stated["secrets"]:
        name = repr(one["label"])
        some = of.get(one["label"])
        if some is None:
            yield f"the secret {name} does not occur"
            continue
        prior = Interval(float(shares.low[some].sum()), min(1.0, float(shares.high[some].sum())))
        yield from _share(f"prior of {name}", one["prior"], prior, rule.step)
        yield from _share(f"share of {name}", one["share"], shares.mean_of(some, shares.stays), rule.step)
        if one["stays"] is None:
            yield f"how often {name} stays is missing"
        else:
            yield from _share(f"stays of {name}", one["stays"], shares.mean_of(some, same), rule.step)
        # The limit follows from the prior before it was rounded.
        near = [one["prior"] + part * rule.step / 10 for part in range(-5, 6)]
        if all(list(ceiling_mismatch(name, one["at_most"], max(0.0, p), rule, True)) for p in near):
            yield f"at_most of {name} is {one['at_most']!r}, which the guarantee does not make it"


def _rare(stated: Json, shares: RoundedShares, rule: Rule) -> Iterator[str]:
    surely, possibly = shares.high < _RARE, (shares.low < _RARE) & (shares.high > 0)
    limit = Interval(float(shares.low[surely].sum()), min(1.0, float(shares.high[possibly].sum())))
    yield from _share("rare_records", stated["rare_records"], limit, rule.step)
    kept = shares.stays[possibly]
    if stated["rare_unchanged"] is None:
        if (surely & (shares.high > 0)).any():
            yield "rare_unchanged is missing"
    elif not kept.size:
        yield "rare_unchanged is stated, and no value is rare"
    else:
        limit = Interval(float(kept.min()), float(kept.max()))
        yield from _share("rare_unchanged", stated["rare_unchanged"], limit, rule.step)
