"""Numbers: what number every category of a column stands for, as the spec says it, and the utility that follows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from funnel.errors import SpecError
from funnel.joint import Joint
from funnel.measures.utilities import INFORMATION, Estimation, Utility, Variance
from funnel.readers.cells import number_in
from funnel.spec import ReleaseSpec
from funnel.wording import toml_key

Interval = tuple[int | float, int | float]


def intervals_of(spec: ReleaseSpec, column: str) -> dict[str, Interval]:
    """The interval of every bin of a column, by its name, the ends included that are in it.

    From an edge on and under the next one; where numbers are whole or have so many decimals, up to the last one under
    it. The range of the column closes the first and the last bin, and is itself included. Empty without bins or
    without a range.
    """
    numbers, recode = spec.numbers.get(column), spec.recode.get(column)
    if numbers is None or numbers.range is None or recode is None or not recode.bin_labels:
        return {}
    ends = (numbers.range[0], *recode.edges, numbers.range[1])
    if numbers.step is None:
        return dict(zip(recode.bin_labels, pairwise(ends), strict=True))
    steps = steps_of(spec, column).values()
    return {
        label: (_plain(low * numbers.step), _plain(high * numbers.step))
        for label, (low, high) in zip(recode.bin_labels, steps, strict=True)
    }


def steps_of(spec: ReleaseSpec, column: str) -> dict[str, tuple[int, int]]:
    """The interval of every bin of a column with a range and a step, as the first and the last multiple of the step.

    An interval without any has its last one before its first.
    """
    numbers, recode = spec.numbers[column], spec.recode[column]
    if numbers.range is None or numbers.step is None:
        raise ValueError("without a range and a step there are no numbers to count")
    # As the decimals that were written.
    edges = [Fraction(str(edge)) / numbers.step for edge in recode.edges]
    firsts = [Fraction(str(numbers.range[0])) / numbers.step, *edges]
    lasts = [*(math.ceil(edge) - 1 for edge in edges), math.floor(Fraction(str(numbers.range[1])) / numbers.step)]
    return {
        label: (math.ceil(first), last) for label, first, last in zip(recode.bin_labels, firsts, lasts, strict=True)
    }


def _plain(number: Fraction) -> int | float:
    return int(number) if number.denominator == 1 else float(number)


def means_of(spec: ReleaseSpec, column: str) -> dict[str, float]:
    """The mean of every bin that the spec gives means for, by its name."""
    numbers, recode = spec.numbers.get(column), spec.recode.get(column)
    if numbers is None or numbers.means is None or recode is None:
        return {}
    return dict(zip(recode.bin_labels, numbers.means, strict=True))


def described_numbers(spec: ReleaseSpec, column: str) -> dict[str, Any] | None:
    """What users of a release are told of the numbers of a column, as JSON values; None where the spec says nothing.

    Unit and range as the spec has them, whether numbers are whole, and the interval that every category stands for.
    """
    said = spec.numbers.get(column)
    if said is None:
        return None
    intervals = {label: list(interval) for label, interval in intervals_of(spec, column).items()}
    means = means_of(spec, column)
    return {
        **({} if said.unit is None else {"unit": said.unit}),
        **({} if said.range is None else {"range": list(said.range)}),
        "whole": said.whole,
        **({} if said.decimals is None else {"decimals": said.decimals}),
        **({"intervals": intervals} if intervals else {}),
        **({"means": means} if means else {}),
        **({"surveyWeight": True} if spec.weight == column else {}),
    }


def numbers_of(spec: ReleaseSpec, column: str, labels: Sequence[str]) -> tuple[float | None, ...]:
    """The number that each category of a column stands for: itself, or the mean of its bin; None if it has none.

    The mean as the spec has it, or the middle; of a group of values the mean of theirs.

    The categories of missing and of other values have none.

    Raises
    ------
    SpecError
        If another category is no number.
    """
    intervals, means = intervals_of(spec, column), means_of(spec, column)
    recode = spec.recode.get(column)
    groups = {} if recode is None or recode.groups is None else recode.groups
    without = (spec.source.missing_label, spec.other_label(column))
    found: list[float | None] = []
    for label in labels:
        if label in means:
            found.append(means[label])
        elif label in intervals:
            found.append(_mean(intervals[label]))
        elif (number := number_in(label, spec.source.decimal)) is not None:
            found.append(number)
        elif label in without:
            found.append(None)
        elif label in groups:
            found.append(_mean(numbers_of(spec, column, groups[label])))
        else:
            raise SpecError(
                f'utility = "variance" needs a number for every value of {column!r}, and {label!r} is none; put its '
                f"numbers into bins, with range = [least, largest] under [numbers.{toml_key(column)}], or list what "
                "means missing in missing of [source]"
            )
    return tuple(found)


def _mean(numbers: Sequence[float | None]) -> float | None:
    """The mean of ends of an interval, or of values that are published as one, as the decimals they are written as.

    Each counts alike: how common they are is nobody's business.
    """
    known = [Fraction(repr(float(number))) for number in numbers if number is not None]
    return float(sum(known, Fraction()) / len(known)) if known else None


def utility_for(spec: ReleaseSpec, joint: Joint) -> Utility:
    """What a spec chooses a protocol by, for the published values of a joint distribution.

    Parameters
    ----------
    spec : ReleaseSpec
        With the recoding that the values were made by (`funnel.source.coding.Codings.settled`).
    joint : Joint

    Raises
    ------
    SpecError
        If it is variance, and a value is no number.
    """
    if spec.utility == "information":
        return INFORMATION
    if spec.utility == "estimation":
        return Estimation()
    (column,) = spec.publish
    labels = [symbol[0] for symbol in joint.inputs.symbols]
    return Variance(dict(zip(labels, numbers_of(spec, column, labels), strict=True)))
