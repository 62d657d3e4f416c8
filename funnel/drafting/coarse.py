"""Coarse: how the values of one column become few categories, each of enough records, and the lines that say so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from funnel.disclosure.value_order import in_order
from funnel.drafting.look import MISSING, Column
from funnel.drafting.periods import Periods, name_of_periods, periods_of
from funnel.drafting.roles import is_wide
from funnel.drafting.spellings import every_spelling, written_groups
from funnel.settings.recode import OTHER, Recode
from funnel.source.learning import round_edges
from funnel.wording import printable

# Values that fewer records have are not named in a spec.
NAMED = 10
# How the name of a category ends that most has one value of and the others have not.
OTHERS = " or others"
# A category of several values is named after them where they are at most so many, and the name at most so long.
_NAMED, _LONGEST = 3, 40
# Of more values than this those are kept in whole records that so many records have, if most records keep theirs.
_MANY, _COMMON = 200, 50
# Of texts: how many may be listed one by one.
_LISTED = 1000


@dataclass(frozen=True)
class Coarse:
    """The categories of a column, as settings of a spec say them.

    Attributes
    ----------
    column : str
    size : int
        How many categories it has.
    listed : tuple of str
        Its values, or periods of dates, as [categories] lists them; none where it has bins, or where values are to be
        learned.
    groups : mapping of str to tuple of str
        New categories with their values.
    bins : tuple of numbers
    period, form : str or None
        Of dates.
    minimum_count : int or None
    complete : bool
        Whether every record has one of the listed values or periods, or a number in a bin.
    left_out : int
        Records without a value that are too few to be a category.
    spellings : mapping of str to tuple of str
        Of values that are written in several ways.
    """

    column: str
    size: int
    listed: tuple[str, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    bins: tuple[float, ...] = ()
    period: str | None = None
    form: str | None = None
    minimum_count: int | None = None
    complete: bool = False
    left_out: int = 0
    spellings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def recodes(self) -> bool:
        """Whether [recode] has a section for it."""
        return bool(self.written_groups or self.bins or self.period or self.minimum_count)

    @property
    def written_listed(self) -> tuple[str, ...]:
        """The listed values, each in all its spellings."""
        return every_spelling(self.listed, self.spellings)

    @property
    def written_groups(self) -> dict[str, tuple[str, ...]]:
        """The groups with all spellings of their values, and those of spellings alone."""
        return written_groups(self.groups, self.spellings)


class _Missing:
    """Records without a value: a category apart if they are enough, else left out, or with those of another one."""

    def __init__(self, records: int, least: int, leaves_out: bool) -> None:
        self.apart = records >= least
        self.left_out = records if leaves_out else 0
        there = records > 0 and not self.left_out
        self.few, self.listed = there and not self.apart, (MISSING,) if there else ()


def coarse(column: Column, rows: int, most: int, share: float, secret: bool = False, fewest: int = NAMED) -> Coarse:
    """At most ``most`` categories (two at least), each of at least a share of the records.

    All there may be is listed, so that nothing is learned from the records and no category is there for nothing; values
    that fewer than ten records have are "Other". Neighbours are joined where values have an order, and else the rarest.

    Parameters
    ----------
    column : Column
    rows : int
    most : int
    share : float
        Of all records.
    secret : bool
        Whether it is sensitive: records without a value are then left out, where they have less than the share.
    fewest : int
        Records of a category.
    """
    most, of_share = max(most, 2), max(NAMED, round(share * rows))
    least = max(fewest, of_share)
    missing = _Missing(column.missing, least, secret and column.missing < of_share)
    if (periods := periods_of(column, most)) is not None:
        return _dated(column, periods, most, least, missing)
    if is_wide(column) and column.kind == "number":
        return _binned(column, most, least, missing)
    spelt = column.spellings
    named = {value: count for value, count in column.counts.items() if count >= NAMED}
    if len(named) < 2:
        # Of a table of few records the two most common ones, so that there is something to tell.
        named = dict(column.counts.most_common(2))
    if len(named) < len(column.counts) or not column.complete:
        # What the source calls Other is in one category with what is not named.
        named = {value: count for value, count in named.items() if OTHER not in (value, *spelt.get(value, ()))}
    if len(named) > _LISTED:
        return Coarse(column.name, most, minimum_count=least, left_out=missing.left_out, spellings=spelt)
    whole = column.kind == "number" and all(re.fullmatch(r"[0-9]+(\.0+)?", value) for value in column.counts)
    if whole and column.values > 1 and not column.labels:
        return _counted(column, most, least, missing)
    unnamed = sum(column.counts.values()) - sum(named.values()) + (0 if column.complete else least)
    room = most - missing.apart
    order = [value for value in column.labels if value in named]
    # Codes that have no label come after those that have one.
    order += _in_order({*named} - {*order}) if order else []
    order = order or _order_of(named, column.kind == "number")
    ordered = bool(order)
    order = order or sorted(named)
    groups = _neighbours(order, named, room, least) if ordered else _others(order, named, unnamed, room, least)
    inside = {value for values in groups.values() for value in values}
    categories = [value for value in order if value not in inside] + [*groups]
    others = [OTHER] if unnamed else []
    if others and not ordered:
        groups = {name: (*values, OTHER) for name, values in groups.items()}
    elif others and unnamed < least:
        sizes = {name: sum(named[value] for value in groups.get(name, (name,))) for name in categories}
        rarest = min(categories, key=sizes.__getitem__)
        groups[f"{rarest}{OTHERS}"] = (*groups.pop(rarest, (rarest,)), OTHER)
        categories, others = [f"{rarest}{OTHERS}" if name == rarest else name for name in categories], []
    if missing.few:
        _add_missing(groups, categories[-1])
    alone = others if ordered or not groups else []
    size = len(categories) + missing.apart + len(alone)
    return Coarse(
        column.name,
        max(size, 2),
        (*order, *([OTHER] if unnamed else []), *missing.listed),
        # A value may have line breaks, which no name of a category has.
        {printable(name): values for name, values in groups.items()},
        complete=True,
        left_out=missing.left_out,
        spellings={value: spelt[value] for value in order if value in spelt},
    )


def _neighbours(order: Sequence[str], counts: Mapping[str, int], most: int, least: int) -> dict[str, tuple[str, ...]]:
    """Neighbours that are joined, by the name of both."""
    runs = _runs({value: counts[value] for value in order}, most, least)
    return {_name(run, runs): tuple(run) for run in runs if len(run) > 1}


def _others(
    order: Sequence[str], counts: Mapping[str, int], unnamed: int, most: int, least: int
) -> dict[str, tuple[str, ...]]:
    """The rarest values as one category, where there are too many values or too few records of some.

    It is named after them where they are few and nothing else is in it, and after the one that most of it has.
    """
    falling = sorted(order, key=lambda value: (-counts[value], value))
    kept = _kept([counts[value] for value in falling], unnamed, most, least)
    if len(order) - kept + bool(unnamed) < 2:
        return {}
    joined = tuple(sorted(falling[kept:]))
    first, rest = falling[kept], sum(counts[value] for value in falling[kept + 1 :]) + unnamed
    name = " or ".join(joined) if not unnamed and len(joined) <= _NAMED else first + OTHERS
    is_named = name not in order and len(name) <= _LONGEST and (counts[first] > rest or name == " or ".join(joined))
    return {name if is_named else OTHER: joined}


def _add_missing(groups: dict[str, tuple[str, ...]], category: str) -> None:
    """Put missing values, which are too rare to be a category, into one that says so by its name."""
    values = groups.pop(category, (category,))
    groups[category if category == OTHER else f"{category} or missing"] = (*values, MISSING)


def _counted(column: Column, most: int, least: int, missing: _Missing) -> Coarse:
    """Few whole numbers, such as counts: each by itself, and those that few have with their neighbours."""
    counts = {value: column.counts[value] for value in sorted(column.counts, key=float)}
    runs = _runs(counts, most - missing.apart, least)
    if all(len(run) == 1 for run in runs) and min(counts.values()) >= NAMED and not missing.few:
        size, listed = max(len(runs) + missing.apart, 2), (*counts, *missing.listed)
        return Coarse(column.name, size, listed, complete=True, left_out=missing.left_out)
    # Bins take in numbers that nobody here has, and name none that few have.
    edges = tuple(float(run[0]) for run in runs[1:])
    labels = Recode(bins=edges).bin_labels
    groups: dict[str, tuple[str, ...]] = {_name(run, runs): (label,) for run, label in zip(runs, labels, strict=True)}
    if missing.few:
        _add_missing(groups, next(reversed(groups)))
    return _of_bins(column, edges, groups, missing)


def _of_bins(column: Column, edges: Sequence[float], groups: dict[str, tuple[str, ...]], missing: _Missing) -> Coarse:
    return Coarse(
        column.name,
        len(edges) + 1 + missing.apart,
        groups=groups,
        bins=tuple(edges),
        complete=not missing.apart,
        left_out=missing.left_out,
    )


def plain(column: Column) -> Coarse:
    """What a column of whole records needs: bins or periods of many values, and values that few have as one."""
    if (periods := periods_of(column, 12)) is not None:
        size = len(periods.counts) + bool(column.missing)
        return Coarse(column.name, size, period=periods.period, form=periods.form)
    if is_wide(column) and column.kind == "number":
        return replace(_binned(column, 6, NAMED, _Missing(column.missing, NAMED, False)), complete=False)
    common = sum(count for count in column.counts.values() if count >= _COMMON)
    many = column.values > _MANY and 2 * common >= column.counts.total()
    return Coarse(column.name, column.values, minimum_count=_COMMON if many else None, spellings=column.spellings)


def _binned(column: Column, most: int, least: int, missing: _Missing) -> Coarse:
    """Round edges near equal parts; where most records have one and the same lowest number, that one apart."""
    mark = "," if column.decimal else "."
    counts: dict[str, int] = {}
    for value, count in column.counts.items():
        text = value.strip().replace(mark, ".").lstrip("+")
        if text not in ("nan", "inf", "-inf"):
            counts[text] = counts.get(text, 0) + count
    edges = _edges(counts, max(2, most - missing.apart))
    if not edges:
        return Coarse(column.name, most, minimum_count=least, left_out=missing.left_out)
    edges = _apart(counts, edges, least)
    lowest = Recode(bins=tuple(edges)).bin_labels[0]
    return _of_bins(column, edges, {f"{lowest} or missing": (lowest, MISSING)} if missing.few else {}, missing)


def _edges(counts: Mapping[str, int], parts: int) -> list[float]:
    most = max(counts, key=lambda value: counts[value], default="")
    rest = {value: count for value, count in counts.items() if value != most}
    if 2 * counts.get(most, 0) <= sum(counts.values()) or not rest or float(most) > min(map(float, rest)):
        return round_edges(counts, min(parts, 5))
    above = float(most) + 1
    further = [edge for edge in round_edges(rest, min(parts - 1, 5)) if edge > above] if parts > 2 else []
    return [above, *further] if min(map(float, rest)) >= above else further or round_edges(counts, 2)


def _apart(counts: Mapping[str, int], edges: Sequence[float], least: int) -> list[float]:
    """The edges between which there are enough records; one at least."""
    ends = [float("-inf"), *edges, float("inf")]
    sizes = {
        str(k): sum(count for value, count in counts.items() if low <= float(value) < high)
        for k, (low, high) in enumerate(pairwise(ends))
    }
    return [edges[int(run[0]) - 1] for run in _runs(sizes, len(sizes), least)[1:]]


def _dated(column: Column, periods: Periods, most: int, least: int, missing: _Missing) -> Coarse:
    """Years or months, listed, and neighbours joined that few records have."""
    if not column.complete:
        return Coarse(column.name, len(periods.counts) + missing.apart, period=periods.period, form=periods.form)
    runs = _runs(periods.counts, most - missing.apart, least)
    groups = {name_of_periods(run, runs): tuple(run) for run in runs if len(run) > 1}
    if missing.few:
        _add_missing(groups, name_of_periods(runs[-1], runs))
    return Coarse(
        column.name,
        max(len(runs) + missing.apart, 2),
        (*periods.counts, *missing.listed),
        groups,
        period=periods.period,
        form=periods.form,
        complete=True,
        left_out=missing.left_out,
    )


def _kept(counts: Sequence[int], unnamed: int, most: int, least: int) -> int:
    """How many of values by falling counts stay by themselves, so that what is left is one category with enough."""
    if not unnamed and len(counts) <= most and counts[-1] >= least:
        return len(counts)
    kept = sum(count >= least for count in counts[: most - 1])
    while kept > 1 and sum(counts[kept:]) + unnamed < least:
        kept -= 1
    return max(kept, 1)


def _runs(counts: Mapping[str, int], most: int, least: int) -> list[list[str]]:
    """Neighbours joined, the smallest first, until there are not too many and each has enough; two at least."""
    runs, sizes = [[value] for value in counts], list(counts.values())
    while len(runs) > 2 and (len(runs) > most or min(sizes) < least):
        k = min(range(len(runs)), key=sizes.__getitem__)
        with_next = k == 0 or (k + 1 < len(runs) and sizes[k + 1] <= sizes[k - 1])
        first = k if with_next else k - 1
        runs[first : first + 2] = [runs[first] + runs[first + 1]]
        sizes[first : first + 2] = [sizes[first] + sizes[first + 1]]
    return runs


def _name(run: Sequence[str], runs: Sequence[Sequence[str]]) -> str:
    if len(run) == 1:
        return run[0]
    if apart := [value for value in run if not _has_number(value)] if any(map(_has_number, run)) else []:
        # "unknown" is no end of a range.
        return " or ".join([*apart, _name(run[len(apart) :], runs)])
    if _are_numbers(run):
        if run == runs[-1]:
            return f"{run[0]} or more"
        return f"{run[-1]} or less" if run == runs[0] else f"{run[0]} to {run[-1]}"
    return f"{run[0]} or {run[1]}" if len(run) == 2 else f"{run[0]} to {run[-1]}"


def _are_numbers(values: Sequence[str] | Mapping[str, int]) -> bool:
    return all(re.fullmatch(r"[+-]?[0-9]+([.,][0-9]+)?", value.strip()) for value in values)


def _order_of(values: Mapping[str, int], are_numbers: bool) -> list[str]:
    """The order that values tell, those without a number, such as "unknown", first; none if they have no order."""
    if are_numbers:
        return _in_order(values)
    apart = sorted(value for value in values if not _has_number(value))
    placed = in_order([value for value in values if value not in apart])
    if placed is not None and len(placed) > 2 * len(apart):
        return [*apart, *placed]
    return in_order([*values]) or (_in_order(values) if _are_numbers(values) or _begin_with_numbers(values) else [])


def _has_number(value: str) -> bool:
    return any(map(str.isdigit, value))


def _begin_with_numbers(values: Mapping[str, int]) -> bool:
    """Whether values have an order that all of them tell, as 30-39 and 80+ do."""
    return (
        len(values) > 2 and sum(re.match(r"\W?[0-9]", value.strip()) is not None for value in values) >= len(values) - 1
    )


def _in_order(values: Iterable[str]) -> list[str]:
    def first(value: str) -> tuple[float, str]:
        found = re.search(r"-?[0-9]+([.,][0-9]+)?" if _are_numbers([value]) else r"[0-9]+", value)
        number = float(found[0].replace(",", ".")) if found else float("-inf")
        return (number, value)

    return sorted(values, key=first)
