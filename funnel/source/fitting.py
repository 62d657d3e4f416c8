"""Fitting: whether what a spec says of the values of a column fits those that the source has."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from funnel.errors import DataError
from funnel.source.cells import number_in
from funnel.source.coding import Codings
from funnel.spec import ReleaseSpec
from funnel.wording import listed, same_name, toml_key

# Values that a warning names.
_NAMED = 5
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


def misfits(spec: ReleaseSpec, codings: Codings) -> Iterator[str]:
    """A sentence for every column whose groups do not fit its values; for whoever has the source.

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
