"""Told weights: shares by survey weights that a report states, held to public shares or counts and published means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from funnel.audit.arithmetic import Interval, ShareLimits, prior_limits
from funnel.audit.package import fields_of
from funnel.recount.channel import Symbols
from funnel.recount.plain_distributions import STEPS, share_step

if TYPE_CHECKING:
    from funnel.audit.context import AuditContext
    from funnel.release.report_parts import Weighted, WeightedColumn

# As documented: at most so many values of a column are told, the most common ones.
_LISTED = 30
# Sums of floats alone can make that much of a share, and of a multiple of a step.
_NOTHING, _CLOSE = 1e-11, 1e-6


def weighted_of(told: Weighted | None, package: dict[str, Any]) -> tuple[object, object]:
    """What a report says that its columns are weighted by, and what the data package says."""
    if told is None:
        return None, None
    fields = _fields(package)
    weights = [name for name, numbers in fields.items() if numbers.get("surveyWeight") is True]
    others = [name for name in fields if name not in weights]
    return ([told.weight], [one.column for one in told.columns]), (weights, others)


def weighted_complaints(told: Weighted, known: AuditContext) -> Iterator[str]:
    """What is stated of weighted shares that cannot follow.

    A share of the weights is ``A / (A + B)``, where A is what the records with a value weigh, and B all others. Each of
    these is a sum of shares by numbers that the data package tells, and so has limits.
    """
    records = _Records.of(known)
    if not {told.weight, *(one.column for one in told.columns)} <= {*records.columns}:
        yield "weighted is of columns that the protocol has no values of"
        return
    means = _fields(known.package).get(told.weight, {}).get("means", {})
    heaviest = max(means.values(), default=0)
    place = records.columns.index(told.weight)
    weighs = [means.get(symbol[place], 0) / heaviest if heaviest else 0.0 for symbol in records.symbols]
    whole = records.shares.mean(enumerate(weighs))
    rows = known.public_rows
    # Of as many records of the heaviest class as would weigh as much; a hair apart where counts are exact.
    heavy = [max(1, int(rows * end * (1 + hair))) for end, hair in ((whole.high, 1e-9), (whole.low, -1e-9))]
    finest, coarsest = (share_step(n) for n in (heavy if heaviest else (rows, rows)))
    if told.step not in STEPS or not finest <= told.step <= coarsest:
        yield "weighted.step does not follow from the shares of the classes and what they stand for"
        return
    for one in told.columns:
        yield from _column_complaints(one, records, weighs, (share_step(rows), told.step))


@dataclass(frozen=True, eq=False)
class _Records:
    """The published columns, their combinations of values, and limits of the share of each."""

    columns: tuple[str, ...]
    symbols: Symbols
    limits: list[Interval]

    @classmethod
    def of(cls, known: AuditContext) -> _Records:
        prior = known.document.prior
        if known.public is None:
            return cls(prior.columns, prior.symbols, prior_limits(known.document, known.public_rows))
        counted = known.public.as_counts()
        if prior.columns == counted.secret_columns + counted.published_columns:
            counted = counted.with_secret()
        people: dict[tuple[str, ...], int] = dict.fromkeys(counted.inputs, 0)
        for (_, symbol), count in counted.counts.items():
            people[symbol] += count
        shares = (count / counted.rows for count in people.values())
        return cls(counted.published_columns, tuple(people), [Interval(share, share) for share in shares])

    @property
    def shares(self) -> ShareLimits:
        return ShareLimits.of(self.limits)


def _column_complaints(
    told: WeightedColumn, records: _Records, weighs: list[float], steps: tuple[float, float]
) -> Iterator[str]:
    place, step = records.columns.index(told.column), steps[0]
    values = [symbol[place] for symbol in records.symbols]
    there = {value for value, limit in zip(values, records.limits, strict=True) if limit.high > 0}
    labels = [row.label for row in told.rows]
    if told.total != len(there) or len(labels) != min(_LISTED, len(there)):
        yield f"weighted.columns of {told.column!r} has another number of values"
    if len({*labels}) < len(labels) or not {*labels} <= there:
        yield f"weighted.columns of {told.column!r} has other values, or one twice"
        return
    if sorted(told.rows, key=lambda row: (-row.share, row.label)) != list(told.rows):
        yield f"weighted.columns of {told.column!r} are not in the order of their shares"
    for row in told.rows:
        inside = [float(value == row.label) for value in values]
        share = records.shares.mean(enumerate(inside))
        own, others = (
            records.shares.mean(enumerate(one * weight for one, weight in zip(some, weighs, strict=True)))
            for some in (inside, [1 - one for one in inside])
        )
        ends = ((own.low, others.high), (own.high, others.low))
        weighted = Interval(*(one / (one + rest) if one + rest else 0.0 for one, rest in ends))
        if not _may_be(row.share, share, step):
            yield f"weighted.columns share of {row.label!r} cannot follow from the public shares or counts"
        if not _may_be(row.weighted, weighted, steps[1]):
            yield f"weighted.columns weighted share of {row.label!r} cannot follow from them and the means"


def _may_be(stated: float, limit: Interval, step: float) -> bool:
    """Whether a share is a multiple of a step next to what it may be; what is not nothing may be told as one step."""
    least = limit.high > _NOTHING and limit.low < step and abs(stated - step) <= _NOTHING
    return (least or limit.meets(stated, step / 2)) and abs(stated / step - round(stated / step)) <= _CLOSE


def _fields(package: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What the data package says of the numbers of every column of the records, by its name."""
    fields = [one for one in fields_of(package, "data/records.parquet") if isinstance(one, dict)]
    said = ((str(one.get("name")), one.get("funnel:numbers", {})) for one in fields)
    return {name: numbers if isinstance(numbers, dict) else {} for name, numbers in said}
