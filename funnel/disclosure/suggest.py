"""Suggestion: the lines of a spec with which its frequencies meet the rules, keeping most of the information."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from funnel.alphabet import Alphabet
from funnel.disclosure.grouping import Grouping, best_grouping, information
from funnel.disclosure.table import Axis, Table
from funnel.disclosure.value_order import in_order
from funnel.joint import IntArray, Joint
from funnel.readers.cells import NUMBER, ordered
from funnel.settings.disclosure_rules import Rules
from funnel.settings.recode import Recode
from funnel.spec import ReleaseSpec
from funnel.wording import plain_number, toml_key, toml_text


@dataclass(frozen=True, eq=False)
class Suggestion:
    """What to write into a spec, and what it costs.

    Attributes
    ----------
    recode : mapping of column to Recode
        The whole of ``[recode.COLUMN]`` of every column that changes, in place of what the spec has.
    grouping : Grouping
    joint : Joint
        The counts after grouping, with the names that the groups have.
    """

    recode: Mapping[str, Recode]
    grouping: Grouping
    joint: Joint

    @property
    def toml(self) -> str:
        """The lines to paste, each section in place of the one of its name."""
        return "\n".join(_section(column, recode) for column, recode in self.recode.items())

    def to_dict(self) -> dict[str, Any]:
        """As JSON; H(secret) + H(published) in nats."""
        return {
            "recode": {column: recode.model_dump(exclude_unset=True) for column, recode in self.recode.items()},
            "toml": self.toml,
            "kept": self.grouping.kept,
            "before": self.grouping.before,
            "bound": self.grouping.bound,
            "entropy": self.joint.entropy,
            "combinations": len(self.joint.inputs),
        }


def suggest(spec: ReleaseSpec, joint: Joint, rules: Rules, named_from: int = 0) -> Suggestion | None:
    """The grouping that keeps most under the rules, as lines of the spec; None where nothing needs to be grouped.

    Parameters
    ----------
    spec : ReleaseSpec
    joint : Joint
        Public counts after the recoding of the spec.
    rules : Rules
    named_from : int
        Values that fewer records have are not named in the name of their group.

    Raises
    ------
    DataError
        If no grouping meets the rules.
    """
    grouping = best_grouping(table_of(spec, joint), rules)
    if not grouping.changes:
        return None
    recode = {
        column: _recode(spec, _ColumnOf(column, grouping), groups, named_from)
        for column, groups in grouping.groups().items()
    }
    return Suggestion(recode, grouping, _renamed(joint, grouping, recode, spec))


def made_one(spec: ReleaseSpec, joint: Joint, column: str, values: Sequence[str]) -> Suggestion:
    """Some values of one column as one, as lines of the spec; of a column in order they have to be neighbours.

    Parameters
    ----------
    spec : ReleaseSpec
    joint : Joint
        Public counts after the recoding of the spec.
    column : str
        Secret or published.
    values : sequence of str
        Two at least.
    """
    table = table_of(spec, joint)
    finest = tuple(np.arange(len(axis.values), dtype=np.int64) for axis in table.axes)
    number = next(j for j, axis in enumerate(table.axes) if axis.column == column)
    places = [table.axes[number].values.index(value) for value in values]
    apart = finest[number].copy()
    apart[places] = min(places)
    of = np.unique(apart, return_inverse=True)[1].astype(np.int64)
    grouped = (*finest[:number], of, *finest[number + 1 :])
    kept = information(table, grouped)
    grouping = Grouping(table, grouped, kept, information(table, finest), kept)
    recode = {column: _recode(spec, _ColumnOf(column, grouping), grouping.groups()[column], 0)}
    return Suggestion(recode, grouping, _renamed(joint, grouping, recode, spec))


def table_of(spec: ReleaseSpec, joint: Joint) -> Table:
    """The columns of a joint distribution with the order of their values: of numbers and bins only neighbours group."""
    order: dict[str, Sequence[str]] = {}
    in_order: set[str] = set()
    for alphabet in (joint.secret, joint.inputs):
        for j, column in enumerate(alphabet.columns):
            values = dict.fromkeys(symbol[j] for symbol in alphabet.symbols)
            order[column], is_ordered = _in_order(spec, column, values)
            if is_ordered:
                in_order.add(column)
    return Table.of(joint, order, frozenset(in_order))


def _in_order(spec: ReleaseSpec, column: str, values: Iterable[str]) -> tuple[list[str], bool]:
    recode = spec.recode.get(column) or Recode(minimum_count=1)
    last = [one for one in (recode.other, spec.source.missing_label) if one in values]
    others = [value for value in values if value not in last]
    if recode.bins is not None:
        labels = [one for one in dict.fromkeys(recode.group_of.get(one, one) for one in recode.bin_labels)]
        return [*[one for one in labels if one in others], *last], set(others) <= set(labels)
    if column in spec.disclosure.ordered:
        listed = dict.fromkeys(recode.group_of.get(one, one) for one in spec.categories[column])
        return [*[one for one in listed if one in others], *last], set(others) <= set(listed)
    if not _numeric(others) and (known := in_order(others)) is not None:
        return [*known, *last], True
    return [*ordered(others), *last], _numeric(others)


def _numeric(values: Sequence[str]) -> bool:
    return bool(values) and all(re.fullmatch(NUMBER, value) for value in values)


@dataclass(frozen=True, eq=False)
class _ColumnOf:
    """A column of a grouping: its values in order, and of each the number of its group."""

    column: str
    grouping: Grouping

    @cached_property
    def axis(self) -> Axis:
        return next(axis for axis in self.grouping.table.axes if axis.column == self.column)

    @cached_property
    def of(self) -> list[int]:
        return [int(group) for group in self.grouping.of[self._number]]

    @cached_property
    def counts(self) -> list[int]:
        """Records of each value."""
        table = self.grouping.table
        counted = np.bincount(table.places[:, self._number], table.counts, len(self.axis.values))
        return [int(count) for count in counted]

    @property
    def _number(self) -> int:
        return self.grouping.table.axes.index(self.axis)


def _recode(spec: ReleaseSpec, found: _ColumnOf, groups: Sequence[Sequence[str]], named_from: int) -> Recode:
    """The recoding of a column with these groups of the values that it has now."""
    before = spec.recode.get(found.column)
    settings: dict[str, Any] = {} if before is None else before.model_dump(exclude_unset=True)
    edges = _edges(spec, found, before)
    if edges:
        return Recode(**{**settings, "bins": edges})
    earlier = {} if before is None or before.groups is None else dict(before.groups)
    values = found.axis.values
    unnamed = {value for value, count in zip(values, found.counts, strict=True) if count < named_from}
    names = group_names(groups, values, len(values), unnamed)
    for name, members in zip(names, groups, strict=True):
        # What is a group already is taken apart: groups are of values, not of groups.
        apart = [value for member in members for value in earlier.pop(member, (member,))]
        earlier[name] = tuple(dict.fromkeys(apart))
    return Recode(**{**settings, "groups": earlier})


def _edges(spec: ReleaseSpec, found: _ColumnOf, before: Recode | None) -> list[int | float]:
    """Edges of bins that make these groups; none where bins cannot."""
    label, of = spec.source.missing_label, found.of
    if spec.other_label(found.column) in found.axis.values and not spec.has_bins(found.column):
        # All values that have no name, which are no interval.
        return []
    at = [k for k, value in enumerate(found.axis.values) if value != label]
    plain = before is None or (before.groups is None and before.minimum_count is None and before.period is None)
    plain = plain and found.column not in spec.categories
    # Missing values are in no bin.
    numbered = _numeric([found.axis.values[k] for k in at]) or (before is not None and bool(before.edges))
    if not found.axis.ordered or not plain or not numbered or (len(at) < len(of) and of.count(of[-1]) > 1):
        return []
    firsts = [found.axis.values[k] for k in at[1:] if of[k] != of[k - 1]]
    if before is not None and before.edges:
        # The bin k begins at the edge k - 1.
        return [before.edges[before.bin_labels.index(value) - 1] for value in firsts]
    numbers = [_number(found.axis.values[k]) for k in at]
    # Two texts of one number cannot be told apart by bins.
    return [_number(value) for value in firsts] if all(low < high for low, high in pairwise(numbers)) else []


def _number(text: str) -> int | float:
    value = Decimal(text)
    return int(value) if value == value.to_integral_value() else float(value)


def _renamed(joint: Joint, grouping: Grouping, recode: Mapping[str, Recode], spec: ReleaseSpec) -> Joint:
    """The grouped counts, with the names that the recoding gives."""
    names: dict[str, dict[str, str]] = {}
    for axis in grouping.table.axes:
        one, after = _ColumnOf(axis.column, grouping), recode.get(axis.column)
        names[axis.column] = {value: _name(spec, one, value, after) for value in axis.values}
    secret, of_secret = _symbols(joint.secret, names)
    inputs, of_input = _symbols(joint.inputs, names)
    counts = np.zeros((len(secret), len(inputs)), dtype=np.int64)
    np.add.at(counts, (of_secret[:, None], of_input[None, :]), joint.counts)
    return Joint(counts, secret, inputs)


def _name(spec: ReleaseSpec, one: _ColumnOf, value: str, after: Recode | None) -> str:
    """What a value is called with the suggested recoding of its column."""
    before = spec.recode.get(one.column)
    if after is None:
        return value
    if after.bins == (None if before is None else before.bins):
        earlier = {} if before is None or before.groups is None else before.groups
        return after.group_of.get(earlier.get(value, (value,))[0], value)
    return value if value == spec.source.missing_label else after.bin_labels[one.of[one.axis.values.index(value)]]


def _symbols(alphabet: Alphabet, names: Mapping[str, Mapping[str, str]]) -> tuple[Alphabet, IntArray]:
    """The symbols by their new names, and of each old symbol the place of its new one."""
    known: dict[tuple[str, ...], int] = {}
    places = []
    for symbol in alphabet.symbols:
        named = zip(alphabet.columns, symbol, strict=True)
        renamed = tuple(names[column][value] if column in names else value for column, value in named)
        places.append(known.setdefault(renamed, len(known)))
    return Alphabet(alphabet.columns, tuple(known)), np.array(places, dtype=np.int64)


def _section(column: str, recode: Recode) -> str:
    """``[recode.COLUMN]`` as TOML."""
    head, lines = f"recode.{toml_key(column)}", []
    if recode.bins is not None:
        lines.append(f"bins = [{', '.join(map(plain_number, recode.edges))}]")
    lines += [
        f"{name} = {toml_text(value)}"
        for name, value in (("period", recode.period), ("format", recode.format))
        if value is not None
    ]
    if recode.minimum_count is not None:
        lines.append(f"minimum_count = {recode.minimum_count}")
    if "other" in recode.model_fields_set:
        lines.append(f"other = {toml_text(recode.other)}")
    said = [f"[{head}]", *lines] if lines else []
    if recode.groups is not None:
        said.append(f"[{head}.groups]")
        said += [f"{toml_key(name)} = [{', '.join(map(toml_text, values))}]" for name, values in recode.groups.items()]
    return "\n".join(said) + "\n"


# A longer name makes tables and figures hard to read.
_LONGEST = 60
EVERYTHING = "any value"
_OTHERS = "others"


def group_names(
    groups: Sequence[Sequence[str]], taken: Collection[str], values: int, unnamed: Collection[str] = ()
) -> tuple[str, ...]:
    """A name for every group of several values, different from one another and from all that are taken.

    Parameters
    ----------
    groups : sequence of sequences of str
        Disjoint, each with its values in order.
    taken : collection of str
        Names of the values of the column.
    values : int
        How many values the column has: a group of all of them tells nothing, and its name says so.
    unnamed : collection of str
        Values that no name may have in it.

    Examples
    --------
    >>> group_names([["9th", "10th"], ["a" * 40, "b" * 40, "c"]], {"9th"}, 9)[0]
    '9th or 10th'
    """
    names: list[str] = []
    for members in groups:
        told = [value for value in members if value not in unnamed]
        name = " or ".join([*told, *([_OTHERS] if len(told) < len(members) else [])])
        if len(members) == values:
            name = EVERYTHING
        elif len(name) > _LONGEST:
            first = told[0] if told and len(told[0]) <= _LONGEST else f"{(told or members)[0][:_LONGEST]}…"
            name = f"{first} or {len(members) - 1} {_OTHERS}"
        free, number = name, 2
        while free in taken or free in names:
            free, number = f"{name} ({number})", number + 1
        names.append(free)
    return tuple(names)
