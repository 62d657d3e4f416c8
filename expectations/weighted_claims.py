"""Weighted frequencies that a report tells, held against what follows from the recounted records and the spec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from funnel.pipeline.expectations.claims import Claim, claim, near, same
from funnel.pipeline.expectations.spec_text import SpecText
from funnel.recount.plain_distributions import share_step
from funnel.recount.variance import plain_intervals, plain_numbers
from funnel.spec import ReleaseSpec

# As documented: so many values of each column.
_MOST = 30

Pairs = Mapping[tuple[str, str], int]
"""Records by value of a column and class of weights."""


def class_weights(settled: ReleaseSpec, said: SpecText) -> dict[str, Fraction]:
    """What every class of the weights that the text names stands for; nothing without weights."""
    weight = said.settings.get("weight")
    if weight is None:
        return {}
    labels = [*plain_intervals(settled, weight)]
    told = zip(labels, plain_numbers(settled, weight, labels), strict=True)
    return {label: number for label, number in told if number is not None}


def weighted_claims(
    told: Mapping[str, Any] | None,
    weight: str | None,
    numbers: Mapping[str, Fraction],
    columns: Mapping[str, Pairs],
) -> Iterator[Claim]:
    """What holds of the weighted frequencies of a report.

    Parameters
    ----------
    told : mapping or None
    weight : str or None
        The column of weights that the text of the spec names.
    numbers : mapping of class to Fraction
        What each class stands for.
    columns : mapping of column to mapping of (value, class) to int
        Counts of every other published column, in their order.
    """
    if weight is None or told is None:
        yield same("weighted frequencies", told is None, weight is None)
        return
    yield same("the column of weights", told["weight"], weight)
    yield same("weighted columns", [one["column"] for one in told["columns"]], [*columns])
    for one in told["columns"]:
        if (pairs := columns.get(one["column"])) is not None:
            yield from _column(one, told["step"], pairs, numbers)


def _column(told: Mapping[str, Any], step: object, pairs: Pairs, numbers: Mapping[str, Fraction]) -> Iterator[Claim]:
    people: dict[str, int] = {}
    weighs: dict[str, Fraction] = {}
    for (value, of_class), count in pairs.items():
        people[value] = people.get(value, 0) + count
        weighs[value] = weighs.get(value, Fraction()) + count * numbers.get(of_class, Fraction())
    n, whole, heaviest = sum(people.values()), sum(weighs.values(), Fraction()), max(numbers.values())
    right = share_step(max(1, int(whole / heaviest)) if heaviest > 0 else n)
    yield same("the step of weighted shares", step, right)
    enough = [value for value, count in people.items() if count > 0]
    yield same(f"values of {told['column']!r}", told["total"], len(enough))
    labels = [row["label"] for row in told["rows"]]
    listed = {*labels} <= {*enough} and len({*labels}) == len(labels) == min(_MOST, len(enough))
    yield claim(f"values of {told['column']!r}", listed, "are not those that are common enough")
    yield claim(f"order of {told['column']!r}", _is_falling(told["rows"]), "is not by their shares")
    for row in told["rows"] if listed else ():
        value = row["label"]
        yield near(f"share of {value!r}", row["share"], people[value] / n, share_step(n))
        exact = float(weighs[value] / whole) if whole else 0.0
        yield near(f"weighted share of {value!r}", row["weighted"], exact, right)


def _is_falling(rows: Sequence[Mapping[str, Any]]) -> bool:
    keys = [(-row["share"], row["label"]) for row in rows]
    return keys == sorted(keys)
