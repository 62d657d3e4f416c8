"""Fitting: whether what a spec says of the values of a column fits those that the source has."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from funnel.errors import DataError
from funnel.progress import LOSS
from funnel.protocol import INVARIANT
from funnel.readers.cells import number_in
from funnel.source.coding import Codings
from funnel.spec import ReleaseSpec
from funnel.wording import did_you_mean, listed, nearest, same_name, toml_key, toml_text

# Values that a warning names.
_NAMED = 5
_KEEP_MISSING = 'write on_missing = "category" in [source] to keep them'
# From how alike on two texts are taken for one that is misspelt; "80 or older" and "80 or over" are.
_ALIKE = 0.75
_MEND = "write values as the source does, or list in [categories] %s all that may occur"


def require_numbers(spec: ReleaseSpec, column: str, counts: Collection[str], met: Collection[str]) -> None:
    """Refuse what a spec says of the numbers of a column in which nothing is a number.

    Some texts among numbers, such as "90+", are no reason: they are told apart wherever numbers are needed.

    Parameters
    ----------
    counts : collection of str
        The categories that occur; groups in place of their values.
    met : collection of str
        The values of groups that occur.

    Raises
    ------
    DataError
        That names the column.
    """
    if column not in spec.numbers or spec.has_bins(column) or not counts:
        return
    if not any(number_in(value, spec.source.decimal) is not None for value in (*counts, *met)):
        raise DataError(
            f"[numbers.{toml_key(column)}] says what the numbers of column {column!r} are, and none of its values is "
            "one; take the section out, or if its numbers have a decimal comma, set decimal in [source]"
        )


def unmet_values(spec: ReleaseSpec, column: str, counts: Collection[str], met: Collection[str]) -> tuple[str, ...]:
    """The values that a spec puts into groups, and that no record has; not those that [categories] says may occur.

    Names of bins and of the categories of missing and of other values are no values.

    Raises
    ------
    DataError
        If that is all of them: then the groups are of other values than the column has.
    """
    recode = spec.recode.get(column)
    if recode is None or not recode.group_of or recode.bins is not None or not counts:
        return ()
    apart = {spec.source.missing_label, spec.other_label(column), *spec.categories.get(column, ())}
    values = [value for value in recode.group_of if value not in apart]
    unmet = tuple(value for value in values if value not in met)
    if values and len(unmet) == len(values):
        named, has = ("the value", "no such value") if len(values) == 1 else (f"{len(values):,} values", "none of them")
        named = f"{named} {values[0]!r}" if len(values) == 1 else named
        raise DataError(
            f"{section_of(spec, column)} names {named}, and column {column!r} has {has}"
            f"{_written(spec, unmet, counts)}; {_MEND % toml_key(column)}"
        )
    return unmet


def require_spelt(spec: ReleaseSpec, column: str, counts: Collection[str], met: Collection[str]) -> None:
    """Refuse a declared value that no record has, next to one that is nearly it and that nobody declared.

    Raises
    ------
    DataError
        That names the column and both values.
    """
    declared = spec.categories.get(column, ())
    known = {*declared, *_made_names(spec, column)}
    undeclared = [value for value in counts if value not in known]
    if not undeclared:
        return
    for value in declared:
        if value in counts or value in met or value in _made_names(spec, column):
            continue
        near = nearest(value, undeclared, _ALIKE)
        if near is not None and not _are_numbers(value, near):
            raise DataError(
                f"[categories] {toml_key(column)} lists {value!r}, which no record has, and not {near!r}, which some "
                f"have; did you mean {near!r}? If both may occur, list both"
            )


def require_complete(spec: ReleaseSpec, column: str, counts: Collection[str], n_missing: int) -> None:
    """Refuse a column with records that have none of the values that the spec declares to be all.

    Raises
    ------
    DataError
        That names the column, and no record.
    """
    if column not in spec.complete:
        return
    missing, recode = spec.source.missing_label, spec.recode.get(column)
    group_of = {} if recode is None else recode.group_of
    listed_values = {group_of.get(value, value) for value in spec.categories.get(column, ())}
    mend = f"take {column!r} out of complete, or mend the source"
    if n_missing and missing not in (*listed_values, *group_of):
        raise DataError(
            f"complete names {column!r}, and values of it are missing; list {missing!r} in [categories], {mend}"
        )
    if spec.has_bins(column) or spec.other_label(column) in (*spec.categories.get(column, ()), *group_of):
        return
    if any(value not in listed_values for value in counts):
        raise DataError(
            f"complete names {column!r}, and records have other values of it than [categories] lists; list them, {mend}"
        )


def _made_names(spec: ReleaseSpec, column: str) -> set[str]:
    """Names that are none of values: of groups, of missing values and of all others."""
    groups = () if column not in spec.recode else spec.recode[column].groups or ()
    return {spec.source.missing_label, spec.other_label(column), *groups}


def _are_numbers(value: str, other: str) -> bool:
    """Whether both are numbers that differ: 2019 is no misspelling of 2018."""
    numbers = (number_in(value), number_in(other))
    return None not in numbers and numbers[0] != numbers[1]


def misfits(spec: ReleaseSpec, codings: Codings) -> Iterator[str]:
    """A sentence for every column whose groups do not fit its values, and for all records that are left out or merged.

    They are for whoever has the source.

    Of a hierarchy it is told how many values are not in it: offices list all values that there are, of which a source
    has some. Of groups that somebody wrote, which values do not occur.
    """
    for coding in codings.columns:
        where, column = section_of(spec, coding.column), coding.column
        if coding.column in spec.hierarchies:
            if coding.ungrouped:
                of = f"in column {column!r} and not in its hierarchy, and"
                yield (
                    f"1 value is {of} stays as it is; add it to the table of levels"
                    if coding.ungrouped == 1
                    else f"{coding.ungrouped:,} values are {of} stay as they are; add them to the table of levels"
                )
        elif coding.unmet:
            things = "a value" if len(coding.unmet) == 1 else f"{len(coding.unmet):,} values"
            yield (
                f"{where} names {things} that no record has in column {column!r}: "
                f"{listed(map(repr, coding.unmet), _NAMED)}{_written(spec, coding.unmet, coding.labels)}; "
                f"{_MEND % toml_key(column)}"
            )

    for column in dict.fromkeys(column for one in spec.impossible for column in one):
        values = {value for one in spec.impossible for value in one.get(column, ())}
        if unmet := sorted(values - {*codings[column].labels}):
            yield (
                f"[[impossible]] lists {listed(map(repr, unmet), _NAMED)}, which no record has in column "
                f"{column!r}{did_you_mean(unmet[0], codings[column].labels)}"
            )
    for one in set_aside(spec, codings):
        yield f"{LOSS}{one.sentence}"
    if codings.grouping_kept < 1:
        yield (
            f"{LOSS}grouping so that no combination has fewer than {spec.frequencies.threshold:,} records left "
            f"{codings.grouping_kept:.1%} of the information in the published columns, and what is kept is told of that"
        )
    if open_columns := _open_columns(spec, codings):
        complete = ", ".join(map(toml_text, (*spec.complete, *open_columns)))
        named = " and ".join(map(repr, open_columns))
        yield (
            f"under noise {named} {'has' if len(open_columns) == 1 else 'have'} a category "
            "for missing or other values, whether or not a record has one, and versions about the same people can lose "
            "most of what they could leave unchanged by it; list all their values in [categories] and write complete = "
            f"[{complete}] before the first section"
        )
    for column in spec.disclosure.blank:
        if column in codings and len(codings[column].labels) == 1:
            label = codings[column].labels[0]
            yield f"{LOSS}column {column!r} is published as {label!r} in every record: it tells nothing"


def _open_columns(spec: ReleaseSpec, codings: Codings) -> tuple[str, ...]:
    """Columns of the same people, kept as they are under noise, with a category for values that nobody declared."""
    if spec.register is None or not spec.frequencies.kind.is_noisy or spec.mechanism.name != INVARIANT:
        return ()
    return tuple(
        column
        for column in spec.inputs
        if {spec.source.missing_label, spec.other_label(column)}
        & {*codings[column].labels} - {*spec.categories.get(column, ())}
    )


@dataclass(frozen=True)
class SetAside:
    """Records that are left out of a release, or merged into the category of other values, for one column.

    Attributes
    ----------
    column : str
    records, of : int
        How many records, and how many there are.
    into : str or None
        The category that they are merged into; None where they are left out.
    reason : str
        Why, as the rest of a sentence.
    remedy : str
        What to write in the spec instead.
    asked : bool
        Whether a setting of the spec says so.
    """

    column: str
    records: int
    of: int
    into: str | None
    reason: str
    remedy: str
    asked: bool

    @property
    def share(self) -> float:
        """Of all records."""
        return self.records / self.of

    @property
    def sentence(self) -> str:
        """What becomes of them, why, and what to write instead."""
        what = "are left out" if self.into is None else f"become {self.into!r}"
        return (
            f"{self.records:,} of {self.of:,} records ({self.share:.1%}) {what}: column {self.column!r} "
            f"{self.reason}; {self.remedy}"
        )


def set_aside(spec: ReleaseSpec, codings: Codings) -> Iterator[SetAside]:
    """The records that a release would leave out or merge, by column and reason; a record can be among several."""
    total = codings.n_rows + codings.n_dropped
    drops = spec.source.on_missing == "drop"
    for coding in codings.columns:
        column, key = coding.column, toml_key(coding.column)
        one = partial(SetAside, column, of=total)
        if drops and coding.n_missing:
            yield one(coding.n_missing, into=None, reason="has no value", remedy=_KEEP_MISSING, asked=True)
        if coding.n_left_out:
            yield one(
                coding.n_left_out,
                into=None,
                reason="has values of them that have no category",
                remedy=f"list all values that may occur in [categories] {key}",
                asked=False,
            )
        if not coding.n_grouped or column in codings.recode:
            continue
        recode = spec.recode.get(column)
        declared = column in spec.categories
        rare = recode is not None and recode.minimum_count is not None
        reason = (
            "has values of them that are too rare"
            if rare
            else "has values of them that [categories] does not list"
            if declared
            else "has values of them that are too rare to be named under the noise"
        )
        named = spec.other_label(column) in spec.categories.get(column, ()) or (
            recode is not None and ("other" in recode.model_fields_set or spec.other_label(column) in recode.group_of)
        )
        remedy = "lower minimum_count to keep them apart" if rare else f"list them in [categories] {key} to keep them"
        yield one(coding.n_grouped, into=coding.other_label, reason=reason, remedy=remedy, asked=rare or named)


def require_few_set_aside(spec: ReleaseSpec, codings: Codings) -> None:
    """Refuse to leave out or merge more records than the spec accepts, where no setting says so.

    Raises
    ------
    DataError
        That names the column and the setting.
    """
    for one in set_aside(spec, codings):
        if not one.asked and one.share > spec.limits.set_aside:
            other = spec.other_label(one.column)
            listing = "" if one.into is None else f", list {other!r} there to accept it"
            raise DataError(f"{one.sentence}{listing}, or write set_aside = {_rounded_up(one.share)} in [limits]")


def _rounded_up(share: float) -> float:
    return min(1.0, math.ceil(share * 100) / 100)


def section_of(spec: ReleaseSpec, column: str) -> str:
    """Where a spec says the groups of a column."""
    hierarchy = column in spec.hierarchies
    return f"[recode.{toml_key(column)}] {'hierarchy' if hierarchy else 'groups'}"


def _written(spec: ReleaseSpec, unmet: Iterable[str], known: Iterable[str]) -> str:
    """How the source writes the first of these values, where that is nearly the same; or that it means missing."""
    others = list(known)
    for value, _ in zip(unmet, range(_NAMED), strict=False):
        if value in spec.source.missing:
            return f" ({value!r} means missing, which groups name as {spec.source.missing_label!r})"
        number = number_in(value)
        for other in others:
            alike = same_name(value, other) or (number is not None and number == number_in(other))
            if alike and value != other:
                return f" (the source has {other!r}, not {value!r})"
    return ""
