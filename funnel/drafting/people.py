"""People: how many rows the people of a source have, what changes between them, and how a spec says who they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from funnel.drafting.look import MOST_ROWS, Column, Look, spec_about
from funnel.errors import SpecError
from funnel.history.unit_rows import MOST_MEMBERS
from funnel.history.unit_rows import MOST_ROWS as MOST_OF_ONE
from funnel.progress import Progress
from funnel.readers.formats import open_source
from funnel.wording import listed

# A column of rounds, years or visits has so many values at most, and one in so many people has its last value.
_WAVES, _IN_LAST = 60, 10
# Of whole records of several rows: the share of rows that are to be of a common number, and donors of each class with
# that number of rows, of whom there are three then but in one case of seventy; and classes that there are room for.
_COMMON, _DONORS, _CLASSES = 0.9, 8, 6


@dataclass(frozen=True)
class RowsOfPeople:
    """How rows and people belong together.

    Attributes
    ----------
    columns : tuple of str
        That identify a person.
    people : int
    is_unique : bool
        Whether every person has one row.
    varying : int
        People whose rows have several values of the secret.
    wave : pair of str, or None
        A column that with these identifies a row, such as a year, and its last value.
    most : int
        Rows of the person who has most.
    sizes : mapping of int to int
        How many people have so many rows, where some have several.
    """

    columns: tuple[str, ...]
    people: int
    is_unique: bool
    varying: int
    wave: tuple[str, str] | None
    most: int = 1
    sizes: Mapping[int, int] = field(default_factory=dict)


def rows_of_people(
    look: Look,
    folder: Path,
    columns: Sequence[str],
    secret: Sequence[str],
    progress: Progress,
    published: Sequence[str] = (),
) -> RowsOfPeople:
    """Read the source once more, at most its first million rows, and count the rows of its people.

    Parameters
    ----------
    look : Look
    folder : Path
        Where relative paths start.
    columns, secret : sequence of str
        That identify a person; that are sensitive.
    progress : callable
    published : sequence of str, optional
        That are to be published, and so do not tell which rows are published at a time.

    Raises
    ------
    DataError
        If it cannot be read.
    """
    waves = [
        column.name
        for column in look.columns
        if 1 < column.values <= _WAVES
        and column.kind in ("number", "date")
        and column.name not in (*columns, *secret, *published)
    ]
    table = _of_known_people(table_of(look.settings, folder, (*columns, *secret, *waves), progress), look, columns)
    counted = table.group_by(list(columns)).aggregate([([], "count_all")])
    people = counted.num_rows
    if people == table.num_rows:
        return RowsOfPeople(tuple(columns), people, True, 0, None)
    pairs = table.select([*columns, *secret]).group_by([*columns, *secret]).aggregate([]).num_rows
    varying = 0
    if pairs > people:
        values = table.select([*columns, *secret]).group_by([*columns, *secret]).aggregate([])
        varying = int(
            pc.sum(pc.greater(values.group_by(list(columns)).aggregate([([], "count_all")])["count_all"], 1)).as_py()
        )
    found, in_last = None, people / _IN_LAST
    for name in waves:
        if table.group_by([*columns, name]).aggregate([]).num_rows < table.num_rows:
            continue
        # Of a year and the experience in years it is the year in which most people are at the end.
        last = pc.max(table[name])
        if (rows := pc.sum(pc.equal(table[name], last)).as_py()) > in_last or (found is None and rows >= in_last):
            found, in_last = (name, str(last.as_py())), rows
    sizes = {one["values"]: one["counts"] for one in counted["count_all"].value_counts().to_pylist()}
    return RowsOfPeople(tuple(columns), people, False, varying, found, max(sizes), sizes)


def records_of_class(rows: RowsOfPeople) -> int | None:
    """How many records a class needs for most rows to be whole records of people with a common number of rows.

    Donors have as many rows, and three of them a row of every class in every place: so many people with the rarest
    number of rows that is to be common have some `_DONORS` there. None where people have too many rows, or classes
    would be too few.
    """
    if not rows.sizes or rows.most > MOST_MEMBERS:
        return None
    records, covered = sum(most * people for most, people in rows.sizes.items()), 0
    for most, people in sorted(rows.sizes.items(), key=lambda one: one[1], reverse=True):
        covered += most * people
        if covered >= _COMMON * records:
            found = -(-_DONORS * records // people)
            return None if found * _CLASSES > records else found
    return None


def _of_known_people(table: pa.Table, look: Look, columns: Sequence[str]) -> pa.Table:
    """The rows that have a value in all columns which identify a person."""
    for column in look.columns:
        if column.name in columns:
            table = table.filter(has_value(table, column))
    return table


def has_value(table: pa.Table, column: Column) -> pa.ChunkedArray:
    """Whether each row has a value of a column, and no text that means that it is missing."""
    markers, cells = pa.array(sorted(column.markers), pa.string()), table[column.name]
    return pc.and_(pc.is_valid(cells), pc.invert(pc.is_in(cells.cast(pa.string()), value_set=markers)))


def table_of(settings: Mapping[str, Any], folder: Path, columns: Sequence[str], progress: Progress) -> pa.Table:
    """Some columns of a source, of its first million rows at most."""
    names = tuple(dict.fromkeys(columns))
    spec = spec_about(settings, folder).model_copy(update={"secret": (), "publish": names})
    source = open_source(spec)
    batches, rows = [], 0
    for batch in source.batches(names):
        batches.append(batch.slice(0, MOST_ROWS - rows))
        rows += batches[-1].num_rows
        progress("looking whose records they are", rows, source.n_rows)
        if rows >= MOST_ROWS:
            break
    table = pa.Table.from_batches(batches)
    plain = [one.cast(one.type.value_type) if pa.types.is_dictionary(one.type) else one for one in table.columns]
    return pa.table(dict(zip(names, plain, strict=True)))


_ALONE = {"history": "No person is in two versions, so each version has its bound alone: you vouch for that."}
_OF_ROWS = {"history": "Needed for several rows of a person; one bound holds for all rows, and all versions."}


@dataclass(frozen=True)
class People:
    """Who the records are of.

    Attributes
    ----------
    key, unit : tuple of str
    people : str or None
        Of [history].
    wave : pair of str, or None
        The column, and its value, that the published rows have.
    why : mapping of str to str
        A sentence for each setting that needs one, such as unit, history and frequencies.
    notes : tuple of str
    has_members : bool
        Whether several rows of one person have secrets of their own.
    """

    key: tuple[str, ...] = ()
    unit: tuple[str, ...] = ()
    people: str | None = None
    wave: tuple[str, str] | None = None
    why: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    has_members: bool = False


def people_of(
    n_rows: int, secret: Sequence[str], named: Sequence[str], people: str | None, rows: RowsOfPeople | None
) -> People:
    """Record key, unit and history, as the answers and the rows allow them.

    Parameters
    ----------
    n_rows : int
        Records of the source.
    secret, named : sequence of str
        Sensitive columns; those that were named as identifying a person.
    people : "same", "different" or None
        Whether the same people will be in later versions.
    rows : RowsOfPeople or None
        Of the columns that were named, or found.

    Raises
    ------
    SpecError
        If no spec can be as was answered, in one sentence with what to answer instead.
    """
    if rows is None:
        if people == "same":
            raise SpecError(
                "the same people in later versions are known again by a column that identifies them; name it with --key"
            )
        return People(people=people, why=_ALONE if people else {})
    who = listed(rows.columns)
    if rows.is_unique:
        if people == "different" or not named:
            return People(rows.columns if named else (), (), people, why=_ALONE if people else {})
        why = {"history": f"{who} tells who a person is: one bound holds for all versions about the same people."}
        note = (
            f"{who} identifies people, so one bound is kept over all versions; if no person is in two, --people "
            "different allows bounds for more observers, and more columns"
        )
        return People(rows.columns, (), "same", why=why, notes=() if people else (note,))
    several = f"{rows.people:,} values of {who} in {n_rows:,} records"
    if not rows.varying:
        if people == "different":
            raise SpecError(
                f"{several}: rows of one person are kept under one bound, as those of the same people are; take "
                "--people different out, or write a table with one row for each person"
            )
        if not named and rows.most > MOST_OF_ONE:
            return People(people=people, notes=(f"{several}, too many of one person: this bound is about one row",))
        _require_few(several, rows.most, MOST_OF_ONE)
        why = {"unit": f"{several}: rows of one person are drawn under one bound.", **_OF_ROWS}
        notes = () if named else (f"{several}: rows of one person are kept under one bound (unit)",)
        return People((), rows.columns, "same", why=why, notes=notes)
    changes = f"{listed(secret)} changes between the rows of {rows.varying:,} of {rows.people:,} people by {who}"
    if rows.wave is not None and (named or people == "same"):
        column = rows.wave[0]
        why = {
            "history": f"{who} tells who a person is: one bound holds for all versions about the same people.",
            "wave": f"{changes}, so one {column} is published at a time: change the value for the next version.",
        }
        return People(rows.columns, (), "same", rows.wave, why, (why["wave"].rstrip("."),))
    if named:
        _require_few(several, rows.most, MOST_MEMBERS)
        why = {
            "unit": f"{changes}: the secret of each row is bounded for who knows all rows.",
            **_OF_ROWS,
            "frequencies": "Exact counts are published: noise leaves open how secrets follow one another in a person's "
            'rows. protection = "threshold" puts combinations of few records together.',
        }
        note = f"{changes}: the secret of each row is bounded, from exact counts, since noise does not go with that"
        return People((), rows.columns, "same", why=why, notes=(note,), has_members=True)
    instead = "bound what is told of each row" if rows.wave is None else f"publish one {rows.wave[0]} at a time"
    warning = (
        f"{changes}, so this bound is about one row: all rows of a person together tell more; name it with --unit to "
        f"{instead}"
    )
    return People(people=people, why={"rows": warning}, notes=(warning,))


def _require_few(several: str, rows: int, most: int) -> None:
    if rows > most:
        raise SpecError(
            f"{several}, up to {rows} of one person, and at most {most} are bounded together: aggregate rows of a "
            "person in the source, or leave some of them out"
        )
