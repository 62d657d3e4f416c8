"""Limits: how many categories each published column gets, so that combinations are few, and notes on their values."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from funnel.drafting.coarse import OTHERS, Coarse, coarse
from funnel.drafting.look import Column
from funnel.drafting.periods import period_counts
from funnel.settings.recode import OTHER
from funnel.wording import listed

# Categories of a column, and the share of the records that a value has at least.
VALUES, SHARE = 6, 0.01
# More categories, where they have no order and more than such a share of the records would be Other: 70 combinations of
# Adult in place of 60, with one more education, leave 76 % of the records unchanged in place of 79 %.
_NAMES = ((12, 0.25), (24, 0.5))

# Categories of a column of dates, such as all months of a year.
_PERIODS = 12


@dataclass(frozen=True)
class _Option:
    """A column with so many categories, and what they are worth."""

    made: Coarse
    is_other: bool
    worth: float


def columns_within(columns: Sequence[Column], rows: int, most: int, fewest: int | None = None) -> list[Coarse] | None:
    """The columns with at most so many combinations together, three categories of each at least; else None.

    Of one to three columns there may be two of each, and a few combinations more. As few columns as can be are Other
    for most records. Among such limits those are taken that leave most information in the columns less the share of
    their records that are Other: the most common values keep their names, in the column where that is worth most.

    Parameters
    ----------
    columns : sequence of Column
    rows : int
    most : int
        Combinations.
    fewest : int, optional
        Categories of a column that has as many values.
    """
    few = len(columns) <= 3
    fewest = (2 if few else 3) if fewest is None else fewest
    if not few and 2 ** len(columns) > most:
        # Each has two categories at least: of hundreds of columns none need be made.
        return None
    options = [_options(column, rows, fewest) for column in columns]
    # The best for every number of combinations: what columns are worth adds up.
    best: dict[int, tuple[tuple[int, float], tuple[Coarse, ...]]] = {1: ((0, 0.0), ())}
    rest = math.prod(of_column[0].made.size for of_column in options)
    for of_column in options:
        rest //= of_column[0].made.size
        further: dict[int, tuple[tuple[int, float], tuple[Coarse, ...]]] = {}
        for size, ((others, worth), chosen) in best.items():
            for one in of_column:
                cells = size * one.made.size
                score = (others - one.is_other, worth + one.worth)
                if cells * rest <= most and (cells not in further or score > further[cells][0]):
                    further[cells] = (score, (*chosen, one.made))
        best = further
    if not best:
        return [of_column[0].made for of_column in options] if few else None
    return list(max(best.values(), key=lambda found: found[0])[1])


def _options(column: Column, rows: int, fewest: int) -> list[_Option]:
    """A column with every number of categories that it may have, ascending."""
    made = {VALUES: coarse(column, rows, VALUES, SHARE)}
    most = VALUES if made[VALUES].period is None else _PERIODS
    if any(name == OTHER or name.endswith(OTHERS) for name in made[VALUES].groups):
        for more, share in _NAMES:
            most = more if _share_of_others(coarse(column, rows, most, SHARE), column) > share else most
    for level in range(min(fewest, made[VALUES].size), most + 1):
        made[level] = coarse(column, rows, level, SHARE)
    by_size = {one.size: one for _, one in sorted(made.items())}
    return [
        _Option(one, mostly_others(one, column), _value_of(one, column))
        for size, one in sorted(by_size.items())
        if size >= min(fewest, made[VALUES].size)
    ]


def mostly_others(one: Coarse, column: Column) -> bool:
    """Whether most records have a value that has no name of its own."""
    return _share_of_others(one, column) > 0.5


def _share_of_others(one: Coarse, column: Column) -> float:
    found = by_category(one, column)
    return found[OTHER] / max(1, found.total())


def by_category(one: Coarse, column: Column) -> Counter[str]:
    """Records by category of a column."""
    counts: Counter[str] = Counter()
    category = {value: name for name, values in one.groups.items() for value in values}
    if one.period is not None:
        for value, count in period_counts(column, one.period, one.form).items():
            counts[category.get(value, value)] += count
        return counts
    for value, count in column.counts.items():
        if one.bins:
            counts[_bin(value, one.bins, "," if column.decimal else ".")] += count
            continue
        is_named = value in one.listed if one.listed else count >= (one.minimum_count or 0)
        name = value if is_named else OTHER
        counts[category.get(name, name)] += count
    return counts


def _bin(value: str, edges: Sequence[float], mark: str) -> str:
    return str(bisect_right(edges, float(value.strip().replace(mark, "."))))


def _value_of(one: Coarse, column: Column) -> float:
    """The entropy of the categories, nats, less the share of the records that are Other."""
    found = by_category(one, column)
    if not found:
        return math.log(one.size)
    shares = [count / found.total() for count in found.values()]
    return -math.fsum(share * math.log(share) for share in shares if share > 0) - _share_of_others(one, column)


def value_notes(made: Sequence[Coarse], columns: Mapping[str, Column], publish: Sequence[str]) -> Iterator[str]:
    """Columns that are Other for most records, values of several spellings, and amounts that are texts."""
    grouped = [one.column for one in made if one.column in publish and mostly_others(one, columns[one.column])]
    if grouped:
        yield (
            f"most records of {listed(grouped)} are in one category of grouped values: publish fewer columns, or put "
            "their values into groups that mean more"
        )
    for one in made:
        if one.spellings:
            yield f"{one.column} has values of several spellings: {_spelt(one.spellings)}, as its groups say"
    amounts = [one.column for one in made if one.listed and columns[one.column].holds_amounts()]
    if amounts:
        yield (
            f"{listed(amounts)} {'holds' if len(amounts) == 1 else 'hold'} amounts written as texts, so rare ones are "
            f"{OTHER!r}: write them without marks between thousands or signs such as € in the source, and they get bins"
        )


def _spelt(spellings: Mapping[str, tuple[str, ...]]) -> str:
    """What is taken for what, of the first value, and how many there are besides."""
    (name, values), *more = spellings.items()
    others = listed((repr(value) for value in values if value != name), 4)
    more_of = f", and {len(more):,} other {'value' if len(more) == 1 else 'values'} alike" if more else ""
    return f"{others} {'is' if len(values) == 2 else 'are'} taken for {name!r}{more_of}"
