"""Named values: which values of a column noisy counts name, from exact counts and the secret that gives the noise."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from funnel.recount.cells import edges_of, groups_of
from funnel.recount.grouping import (
    LEARNING,
    declared_values,
    in_order,
    learned_columns,
    rarest,
    share_of,
    special_values,
)
from funnel.recount.noise import NoiseMaterial, cell_limit, scale_of
from funnel.spec import ReleaseSpec


def named_values(
    spec: ReleaseSpec, column: str, counts: Mapping[str, int], n_missing: int, material: NoiseMaterial
) -> frozenset[str]:
    """The categories that a column has, where these are learned under noise.

    Parameters
    ----------
    counts : mapping of str to int
        Records of every value that occurs.
    n_missing : int
        Records without a value, where these are kept.
    material : NoiseMaterial

    Notes
    -----
    A value that nobody declared has a name if its noisy count reaches what one record alone reaches with a probability
    of delta. Other and missing values of a secret column have one on the same condition, by a second look; of a column
    that is not secret always. Of categories with fewer than ``minimum_count`` noisy records one is made.
    """
    columns = learned_columns(spec)
    share = share_of(spec.frequencies.epsilon, len(columns), LEARNING)
    tail = Fraction(share_of(spec.frequencies.delta, len(columns)))
    groups, is_secret = {*groups_of(spec, column).values()}, column in spec.secret
    other, missing = special_values(spec, column)
    keeps_missing = spec.source.on_missing == "category"
    undeclared = column not in spec.categories and not edges_of(spec, column)
    epsilon = share / 2 if undeclared and is_secret else share
    # A record alone has a count of 1: P(1 + Z >= m) = P(Z > m - 2), half of what is beyond on both sides.
    reached = cell_limit(scale_of(epsilon), 2 * tail) + 2
    sizes = {value: n for value, n in counts.items() if n}
    if keeps_missing and missing in groups:
        sizes[missing] = sizes.get(missing, 0) + n_missing
    set_apart = {other, missing} - groups if column in spec.categories else set()
    always = (declared_values(spec, column) or groups) - set_apart
    met = {value for value in sizes if value not in always and value != other} if undeclared else set()
    first = material.of_values("values", epsilon, column, {value: sizes.get(value, 0) for value in always | met})
    names = {value: n for value, n in first.items() if value in always or n >= reached}
    rest = {missing: n_missing} if keeps_missing and missing not in groups else {}
    if undeclared and is_secret:
        rest[other] = sum(n for value, n in sizes.items() if value not in names)
    second = material.of_values("rest", epsilon, column, rest)
    listed = declared_values(spec, column) or frozenset() if column in spec.categories else frozenset()
    if is_secret or column in spec.complete:
        has_other = second.get(other, reached - 1) >= reached or other in listed | groups
        has_missing = missing in rest and (second[missing] >= reached or missing in listed)
    else:
        has_other, has_missing = not edges_of(spec, column), missing in rest
    if has_missing:
        names[missing] = second[missing]
    recode = spec.recode.get(column)
    order = in_order(spec, column, [name for name in names if not has_missing or name != missing])
    order += [missing] if has_missing else []
    rare = rarest(names, order, 0 if recode is None else recode.minimum_count or 0)
    together = {other} if rare or has_other else set()
    return frozenset({*names} - rare | together)
