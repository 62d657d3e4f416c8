"""Spellings: values of a column that differ in capitals, spaces, underscores and how accents are stored alone."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping


def spellings_of(counts: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
    """Values that have several spellings, by the most common one: all of them, itself too, in alphabetical order."""
    alike: dict[str, list[str]] = {}
    for value in counts:
        composed = unicodedata.normalize("NFC", value.replace("_", " "))
        alike.setdefault(" ".join(composed.split()).casefold(), []).append(value)
    return {
        min(values, key=lambda value: (-counts[value], value)): tuple(sorted(values))
        for values in alike.values()
        if len(values) > 1
    }


def as_one(counts: Counter[str], spellings: Mapping[str, tuple[str, ...]]) -> Counter[str]:
    """Records by value, those of all spellings with the most common one."""
    spelt = {value: name for name, values in spellings.items() for value in values}
    together: Counter[str] = Counter()
    for value, count in counts.items():
        together[spelt.get(value, value)] += count
    return together


def written_groups(
    groups: Mapping[str, tuple[str, ...]], spellings: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """Groups with every spelling of their values, and one for each other value that has several."""
    inside = {value for values in groups.values() for value in values}
    return {
        **{name: every_spelling(values, spellings) for name, values in groups.items()},
        **{name: values for name, values in sorted(spellings.items()) if name not in inside},
    }


def every_spelling(values: tuple[str, ...], spellings: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Values, each with all its spellings."""
    return tuple(spelt for value in values for spelt in spellings.get(value, (value,)))
