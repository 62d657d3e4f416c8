"""Value notes: what a person should know of the values of columns, as a draft takes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from funnel.drafting.coarse import Coarse
from funnel.drafting.limits import mostly_others
from funnel.drafting.look import Column
from funnel.settings.recode import OTHER
from funnel.wording import listed


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
