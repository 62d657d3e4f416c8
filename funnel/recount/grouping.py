"""Which categories a column has, decided anew: what is too rare, and values that noisy counts select."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TypeVar

from funnel.errors import DataError
from funnel.recount.cells import bin_labels, edges_of, groups_of, is_decimal
from funnel.spec import ReleaseSpec

T = TypeVar("T")
# The category of values that have no name of their own, where the spec gives it none.
OTHER = "Other"
# Of the epsilon of a version, the most that learning values may cost.
LEARNING = Fraction(1, 4)


def final_labels(spec: ReleaseSpec, column: str, counts: Mapping[str, int], n_missing: int) -> dict[str | None, str]:
    """The released category of every category of a column, and under None that of missing cells.

    Parameters
    ----------
    counts : mapping of str to int
        Records that are kept, by category; each above zero.
    n_missing : int
        Records that are kept although the cell is missing.

    Raises
    ------
    DataError
        If a category of the source has the name of one that is made, or there are more than the spec allows.
    """
    recode = spec.recode.get(column)
    least = 0 if recode is None else recode.minimum_count or 0
    group = groups_of(spec, column)
    other = OTHER if recode is None else recode.other
    listed = {group.get(value, value) for value in spec.categories.get(column, ())}
    # What nobody lists is one category, whatever its size, and so is what is named as that one or as missing values.
    special = {other, spec.source.missing_label} - {*group.values()}
    outside = {name for name in counts if listed and (name not in listed or name in special)}
    order: list[str | None] = [name for name in in_order(spec, column, counts) if name not in outside]
    sizes: dict[str | None, int] = {name: counts[name] for name in order if name is not None}
    if n_missing:
        if spec.source.missing_label in counts and spec.source.missing_label not in group:
            raise DataError(f"column {column!r} has a category named as its missing values are to be")
        # A group with missing values is as large as both together, and stands where its other values do.
        home = group.get(spec.source.missing_label)
        if home in order:
            sizes[home] += n_missing
        else:
            order.append(None)
            sizes[None] = n_missing
    rare = {*outside, *rarest(sizes, order, least, sum(counts[name] for name in outside))}
    labels: dict[str | None, str] = {name: name for name in counts}
    if n_missing:
        labels[None] = group.get(spec.source.missing_label, spec.source.missing_label)
        if labels[None] in rare:
            rare.add(None)
    if rare:
        taken = other in counts or (n_missing and None not in rare and other == labels[None])
        if taken and other not in group and not listed:
            raise DataError(f"column {column!r} has a category named as its rarer values are to be")
        labels.update(dict.fromkeys(rare, group.get(other, other)))
    if len(set(labels.values())) > spec.limits.max_symbols:
        raise DataError(f"column {column!r} has more categories than max_symbols in [limits]")
    return labels


def rarest(sizes: Mapping[T, int], order: Sequence[T], least: int, before: int = 0) -> set[T]:
    """Categories that become one: the smallest, until neither they together nor the next of them are too few.

    ``before``: records that are in it already.
    """
    rare: set[T] = set()
    together = before
    place = {name: k for k, name in enumerate(order)}
    for name in sorted(order if least else (), key=lambda name: (sizes[name], place[name])):
        # Rare by itself, or needed so that the rare ones together are not rare.
        if sizes[name] >= least and not ((rare or before) and together < least):
            break
        rare.add(name)
        together += sizes[name]
    return rare


def labels_of_public(
    spec: ReleaseSpec, column: str, counts: Mapping[str, int], public: Collection[str]
) -> dict[str | None, str]:
    """The same where the categories are public, whatever the records have: others have none of their own.

    A value without one is in the category of other values, and a missing one in that of missing values, or else of
    others; where there is no such category it has none, and its records are left out.
    """
    other, missing = special_values(spec, column)
    rest = other if other in public else None
    found: dict[str | None, str | None] = {name: name if name in public else rest for name in counts}
    if spec.source.on_missing == "category":
        found[None] = missing if missing in public else rest
    return {name: label for name, label in found.items() if label is not None}


def in_order(spec: ReleaseSpec, column: str, counts: Collection[str]) -> list[str]:
    """Categories in their documented order, which decides between rare ones of one size."""
    if declared := bin_labels(edges_of(spec, column)) or spec.categories.get(column):
        group = groups_of(spec, column)
        listed = dict.fromkeys(group.get(value, value) for value in declared)
        return [*(label for label in listed if label in counts), *(label for label in counts if label not in listed)]
    if all(is_decimal(name) for name in counts):
        return sorted(counts, key=lambda name: (Decimal(name), name))
    return sorted(counts, key=lambda name: (_natural(name), name))


def _natural(text: str) -> list[tuple[int, int, str]]:
    """Runs of digits by their value and after other text, so that ``9th`` comes before ``10th``."""
    runs = re.findall(r"\d+|\D+", text)
    return [(1, int(run), "") if run.isdecimal() else (0, 0, run) for run in runs]


def learned_columns(spec: ReleaseSpec) -> tuple[str, ...]:
    """The columns whose categories are a function of the records: what is neither declared nor a bin, and what is rare.

    Of the bins of a secret column it is whether any record has none.
    """
    found = []
    for column in spec.columns:
        recode = spec.recode.get(column)
        rare = recode is not None and recode.minimum_count is not None
        bins = bool(edges_of(spec, column))
        without = bins and column in spec.secret and spec.source.on_missing == "category"
        if column in spec.complete or (without and spec.source.missing_label in groups_of(spec, column)):
            without = False
        if rare or without or not (bins or column in spec.categories):
            found.append(column)
    return tuple(found)


def selected_columns(spec: ReleaseSpec) -> tuple[str, ...]:
    """Those of them of which nobody says which values there may be."""
    return tuple(
        column for column in learned_columns(spec) if column not in spec.categories and not edges_of(spec, column)
    )


def share_of(number: float, columns: int, part: Fraction = Fraction(1)) -> float:
    """The largest double that is at most an equal share of a part of a number."""
    share = Fraction(number) * part / columns
    nearest = float(share)
    return nearest if Fraction(nearest) <= share else math.nextafter(nearest, -math.inf)


def learning_cost(spec: ReleaseSpec) -> Fraction:
    """Epsilon that learning the categories costs: a quarter, in equal shares, each rounded down to a double."""
    columns = learned_columns(spec)
    if not columns:
        return Fraction(0)
    return len(columns) * Fraction(share_of(spec.frequencies.epsilon, len(columns), LEARNING))


def declared_values(spec: ReleaseSpec, column: str) -> frozenset[str] | None:
    """The categories that the spec declares, bins among them; None of a column whose values are selected."""
    group = groups_of(spec, column)
    declared = bin_labels(edges_of(spec, column)) or tuple(spec.categories.get(column, ()))
    return frozenset(group.get(value, value) for value in declared) if declared else None


def special_values(spec: ReleaseSpec, column: str) -> tuple[str, str]:
    """The categories of other and of missing values, in the groups that they are in."""
    group, recode = groups_of(spec, column), spec.recode.get(column)
    other = OTHER if recode is None else recode.other
    return group.get(other, other), group.get(spec.source.missing_label, spec.source.missing_label)
