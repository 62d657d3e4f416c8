"""Naming: which values of a column become categories of their own, which become one, and which have none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from funnel.errors import DataError
from funnel.frequencies.selection import Looks, Share, selected, shares
from funnel.readers.cells import ordered
from funnel.spec import ReleaseSpec
from funnel.wording import toml_key


@dataclass(frozen=True)
class Named:
    """The categories of a column.

    Attributes
    ----------
    labels : tuple of str
        All of them, in order.
    other, missing : str or None
        Which of them stands for values without a name of their own, and which for missing ones; None if none does.
    """

    labels: tuple[str, ...]
    other: str | None
    missing: str | None


def columns_to_learn(spec: ReleaseSpec) -> tuple[str, ...]:
    """The columns whose categories are a function of the data, and so cost a share of epsilon under noise."""
    if not spec.frequencies.kind.is_noisy:
        return ()
    return tuple(column for column in spec.columns if _is_learned(spec, column))


def is_selected(spec: ReleaseSpec, column: str) -> bool:
    """Whether nobody says which values a column may have, so that under noise some are selected, with a delta."""
    return column not in spec.categories and not spec.has_bins(column)


def _is_learned(spec: ReleaseSpec, column: str) -> bool:
    if column in spec.recode and spec.recode[column].minimum_count is not None:
        return True
    if column in spec.complete:
        return False
    if spec.has_bins(column):
        in_group = spec.source.missing_label in spec.recode[column].group_of
        return column in spec.secret and spec.source.on_missing == "category" and not in_group
    return is_selected(spec, column)


def shares_of(spec: ReleaseSpec) -> dict[str, Share]:
    """What learning the categories of each column of `columns_to_learn` may cost."""
    return shares(spec.frequencies.epsilon, spec.frequencies.delta, columns_to_learn(spec))


def occurring_names(spec: ReleaseSpec, column: str, counts: Mapping[str, int], n_missing: int) -> Named:
    """Categories as they occur: where the exact frequencies are public too.

    Parameters
    ----------
    counts : mapping of value, or bin, to int
        Records of each that occurs.
    n_missing : int
        Records whose value is missing.

    Raises
    ------
    DataError
        If a value has the name of the category of other values, and nobody listed it.
    """
    names = _Names(spec, column, ordered(counts))
    known = {value: counts[value] for value in names.values if value in counts}
    outside = sum(count for value, count in counts.items() if value not in known)
    values = tuple(known)
    missing = None
    if spec.source.on_missing == "category" and n_missing:
        missing = names.missing
        known[missing] = known.get(missing, 0) + n_missing
    rare = too_rare(known, names.least, outside)
    other = spec.other_label(column)
    if rare and other in counts and other == names.other and not names.listed:
        raise DataError(
            f"column {column!r} has a category {other!r} of its own, which is also to name its rarer values; set other "
            f"in [recode.{toml_key(column)}] to another text"
        )
    return names.put(values, rare, outside > 0, missing)


def public_names(
    spec: ReleaseSpec, looks: Looks, counts: Mapping[str, int], n_missing: int, share: Share | None
) -> Named:
    """Categories that a record more or less hardly changes: declared ones, bins, and what noisy counts say.

    A published column always has a category for other values, and one for missing values where these are one, whether
    anybody is in it or not. A secret that nobody has would have to be protected like any other, so a secret column has
    these two only where they are listed in ``[categories]``, or where noisy counts tell that there are records in
    them; records that then have no category are left out of the release. A column that the spec declares complete has
    them where they are listed, and nowhere else.

    Parameters
    ----------
    looks : Looks
        At the column.
    counts, n_missing
        As of `occurring_names`.
    share : Share or None
        What may be spent on this column; None for one that is not among `columns_to_learn`.
    """
    column = looks.column
    is_secret = column in spec.secret
    undeclared = is_selected(spec, column)
    names = _Names(spec, column, ())
    other, missing = names.other, names.missing
    may_miss = spec.source.on_missing == "category"
    # Missing values that are in a group of others are as public as that is.
    apart = may_miss and missing not in names.groups
    counts = dict(counts)
    if may_miss and not apart:
        counts[missing] = counts.get(missing, 0) + n_missing
    noisy: dict[str, int] = {}
    # Whether noisy counts tell of records in the two categories that stand for more than a value.
    of_other = of_missing = False
    if share is not None:
        of_values = of_rest = share
        if undeclared and is_secret:
            # Two looks at the same records: at the values, and at what is left of them.
            of_values = of_rest = share.halved()
        public = {value: counts.get(value, 0) for value in names.values}
        unnamed = {value: n for value, n in counts.items() if undeclared and n > 0 and value not in {*public, other}}
        noisy = looks.with_noise("values", public | unnamed, of_values.epsilon)
        if undeclared:
            chosen = selected({value: noisy[value] for value in unnamed}, of_values)
            noisy = {value: noisy[value] for value in public} | chosen
            names = _Names(spec, column, ordered(noisy))
        rest = {missing: n_missing} if apart else {}
        if undeclared and is_secret:
            rest[other] = sum(count for value, count in counts.items() if value not in noisy)
        rest = looks.with_noise("rest", rest, of_rest.epsilon)
        of_other, of_missing = (rest.get(label, 0) >= of_rest.threshold for label in (other, missing))
        noisy |= {missing: rest[missing]} if apart else {}
    if is_secret or column in spec.complete:
        has_other = of_other or other in (*names.listed, *names.groups)
        has_missing = apart and (of_missing or missing in names.listed)
    else:
        has_other, has_missing = not spec.has_bins(column), apart
    known = {value: noisy.get(value, 0) for value in names.values}
    if has_missing:
        known[missing] = noisy.get(missing, 0)
    rare = too_rare(known, names.least, 0)
    named = names.put(names.values, rare, has_other, missing if has_missing or (may_miss and not apart) else None)
    return replace(named, missing=named.other) if may_miss and named.missing is None else named


def named_again(spec: ReleaseSpec, column: str, labels: Sequence[str]) -> Named:
    """The categories of a column whose labels were learned, and paid for, before."""
    names, there = _Names(spec, column, ()), tuple(labels)
    other = names.other if names.other in there else None
    missing = None
    if spec.source.on_missing == "category":
        missing = names.missing if names.missing in there else other
    return Named(there, other, missing)


class _Names:
    """The values of a column that could have a name, in order, and how they are put together.

    Groups are categories as any other; so is what stands for missing or for other values where it is in a group.
    """

    def __init__(self, spec: ReleaseSpec, column: str, met: Iterable[str]) -> None:
        recode = spec.recode.get(column)
        group_of = {} if recode is None else recode.group_of
        self.groups = tuple(dict.fromkeys(group_of.values()))
        self.other, self.missing = (
            group_of.get(label, label) for label in (spec.other_label(column), spec.source.missing_label)
        )
        self.least = 0 if recode is None else recode.minimum_count or 0
        self.listed = tuple(dict.fromkeys(group_of.get(value, value) for value in spec.categories.get(column, ())))
        special = {self.other, self.missing} - {*self.groups} if self.listed else set()
        of_bins = () if recode is None else tuple(group_of.get(label, label) for label in recode.bin_labels)
        values = of_bins or self.listed or tuple(met) or self.groups
        self.values = tuple(value for value in dict.fromkeys(values) if value not in special)

    def put(self, values: Iterable[str], rare: set[str], has_other: bool, missing: str | None) -> Named:
        """All categories in order: values that are not rare; where nobody lists them, others and missing ones last."""
        labels = [value for value in values if value not in rare]
        other = self.other if rare or has_other else None
        if missing in rare:
            missing = other
        for label in dict.fromkeys(label for label in (other, missing) if label is not None and label not in labels):
            at = len(labels)
            if label in self.listed:
                before = self.listed[: self.listed.index(label)]
                at = sum(value in before for value in labels)
            labels.insert(at, label)
        return Named(tuple(labels), other, missing)


def too_rare(counts: Mapping[str, int], least: int, together: int) -> set[str]:
    """Categories to be one: those of fewer records than ``least``; while they are fewer together, the next smallest.

    A group of three people is as rare as a value that three people have. Of categories of one size the one that comes
    first in order joins. Noisy counts may be below zero.

    Parameters
    ----------
    together : int
        Records that are in that one already.
    """
    rare: set[str] = set()
    if not least:
        return rare
    for label in sorted(counts, key=lambda label: counts[label]):
        is_one = bool(rare) or together > 0
        if counts[label] >= least and not (is_one and together < least):
            break
        rare.add(label)
        together += counts[label]
    return rare
