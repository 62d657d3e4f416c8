"""Selection: whether values that a release names were chosen as it is said, by noisy counts; judged a second time."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from fractions import Fraction

from funnel.recount.cells import bin_labels, edges_of, groups_of
from funnel.recount.grouping import OTHER
from funnel.recount.noise import scale_of
from funnel.spec import ReleaseSpec

# Of the epsilon of a version, the most that learning values may cost.
_LEARNING = Fraction(1, 4)


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
    return len(columns) * Fraction(share_of(spec.frequencies.epsilon, len(columns), _LEARNING))


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


def surprise(spec: ReleaseSpec, column: str, values: Mapping[str, int], named: Collection[str]) -> float:
    """How likely it is, at most, that these values are named and the others not: a proven p-value.

    Parameters
    ----------
    values : mapping of str to int
        Records of every value that occurs.
    named : collection of str

    Notes
    -----
    A value of k records is named where ``k + Z`` reaches a threshold T that one record reaches with a probability of
    delta. For every value alone let q be the chance of what became of it. The product over all values of
    ``1 - w + w / (2 q)``, with w one over their number, has an expectation of at most 1: so it exceeds 1/p with a
    probability of at most p (Markov). Values in groups, and columns with a ``minimum_count``, are named or left out for
    other reasons too, so that of these only what is named is judged.
    """
    columns = learned_columns(spec)
    epsilon = share_of(spec.frequencies.epsilon, len(columns), _LEARNING)
    if column in spec.secret:
        epsilon /= 2
    scale = scale_of(epsilon)
    delta = share_of(spec.frequencies.delta, len(columns))
    alpha = math.exp(-1 / scale)
    # P(Z >= k) is alpha^k / (1 + alpha) from 1 on.
    threshold = 1 + math.ceil(-scale * math.log(delta * (1 + alpha)))
    recode = spec.recode.get(column)
    always = recode is None or recode.minimum_count is None
    grouped = {*groups_of(spec, column).values()}
    told = 0.0
    judged = {value: count for value, count in values.items() if value not in grouped}
    weight = 1 / max(1, len(judged))
    for value, count in judged.items():
        chance = _reaches(threshold - count, alpha)
        if value in named:
            told += math.log(1 - weight + weight / 2 / max(chance, 1e-300))
        elif always:
            told += math.log(1 - weight + weight / 2 / max(1 - chance, 1e-300))
        else:
            told += math.log(1 - weight)
    return math.exp(-max(0.0, told))


def _reaches(distance: int, alpha: float) -> float:
    """P(Z >= distance)."""
    if distance > 0:
        return alpha**distance / (1 + alpha)
    return 1 - alpha ** (1 - distance) / (1 + alpha)
