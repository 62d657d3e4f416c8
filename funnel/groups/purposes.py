"""Purposes: what ways to publish columns in groups are compared by: information, variance explained, or estimates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

import numpy as np

from funnel.alphabet import Alphabet
from funnel.errors import SpecError
from funnel.estimation.grouped_errors import grouped_errors, grouped_worth
from funnel.groups.aims import Numbers, standardised
from funnel.groups.effective import Shown
from funnel.joint import FloatArray
from funnel.measures.utilities import NAMES
from funnel.release.effective_channels import channel_rows, told_channels

Name = Literal["information", "variance", "estimation"]


@dataclass(frozen=True)
class Told:
    """What one way to publish tells.

    Attributes
    ----------
    kept : float
        I(X;Y) of whole records as a share of H(X), of the people that it was tried on.
    worth : float
        What it is compared by: a share of H(X), of the variance of numbers (their mean), or of the records.
    """

    kept: float
    worth: float


@dataclass(frozen=True, eq=False)
class Purpose:
    """What a release of groups is for.

    Attributes
    ----------
    name : "information", "variance" or "estimation"
    numbers : mapping of column to mapping of value to float or None
        By variance, what the values of the columns of numbers stand for; else empty.
    """

    name: Name = "information"
    numbers: Numbers = field(default_factory=lambda: MappingProxyType({}))

    def told(self, shown: Shown) -> Told:
        """What a protocol tells whom it is compared for."""
        entropy = shown.joint.entropy
        kept = shown.information / entropy if entropy else 1.0
        if self.name == "variance":
            return Told(kept, mean_explained(explained_by(shown, self.numbers)))
        if self.name == "estimation":
            return Told(kept, worth_for_estimates(shown))
        return Told(kept, kept)


INFORMATION = Purpose()


def purpose_of(utility: str, numbers: Numbers | None, columns: Mapping[str, tuple[str, ...]]) -> Purpose:
    """A purpose by its name.

    Parameters
    ----------
    utility : "information", "variance" or "estimation"
    numbers : mapping or None
        None for all columns whose values are numbers themselves.
    columns : mapping of column to tuple of str
        The values of every column to publish.

    Raises
    ------
    SpecError
        If there is no such utility; by variance, if no column has numbers, or a value of one of them has none.
    """
    if utility not in NAMES:
        raise SpecError(f"unknown utility {utility!r}; choose one of {', '.join(NAMES)}")
    if utility != "variance":
        if numbers is not None:
            raise SpecError(f'numbers are for utility = "variance", not for {utility}; take them out')
        return Purpose("estimation" if utility == "estimation" else "information")
    if numbers is None:
        found = {column: {value: _number(value) for value in values} for column, values in columns.items()}
        numbers = {column: of for column, of in found.items() if None not in of.values()}
    if not numbers:
        raise SpecError(
            "utility by variance needs a column of numbers, and there is none; give numbers, or publish one"
        )
    for column, of_value in numbers.items():
        if column not in columns:
            raise SpecError(f"numbers name the column {column!r}, which is not published")
        if lacking := [value for value in columns[column] if value not in of_value]:
            raise SpecError(
                f"utility by variance needs a number for every value of {column!r}, or None; {len(lacking)} have none, "
                f"such as {lacking[0]!r}"
            )
        if not any(number is not None and np.isfinite(number) for number in of_value.values()):
            raise SpecError(f"utility by variance needs numbers of {column!r}, and no value has one")
    return Purpose("variance", numbers)


def _number(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if np.isfinite(found) else None


def explained_by(shown: Shown, numbers: Numbers) -> dict[str, float]:
    """Var E[N | record] / Var N of every column of numbers: what whole published records explain of it.

    0 where the numbers do not vary.
    """
    records, found = shown.records, {}
    for column, of_value in numbers.items():
        place = records.place(column)
        codes = records.codes[:, place]
        size = len(records.values[place])
        law: FloatArray = np.bincount(codes, weights=shown.joint.p_input, minlength=size).astype(np.float64)
        standard = standardised([of_value[value] for value in records.values[place]], law)
        sums = np.bincount(shown.published, weights=shown.masses * standard[codes[shown.rows]])
        masses = np.bincount(shown.published, weights=shown.masses)
        found[column] = float(np.clip((sums[masses > 0] ** 2 / masses[masses > 0]).sum(), 0.0, 1.0))
    return found


def mean_explained(explained: Mapping[str, float]) -> float:
    """Every number counts alike."""
    return sum(explained.values()) / len(explained)


def worth_for_estimates(shown: Shown) -> float:
    """`funnel.estimation.grouped_errors.grouped_worth`, of what a release would tell of its channels."""
    protocol, n = shown.protocol, shown.joint.n
    return grouped_worth(grouped_errors(told_channels(protocol, channel_rows(shown, protocol.people), n)), n)


def values_of(inputs: Alphabet) -> dict[str, tuple[str, ...]]:
    """The values of every column of an alphabet of records."""
    return {column: tuple(dict.fromkeys(s[j] for s in inputs.symbols)) for j, column in enumerate(inputs.columns)}
