"""``funnel init``: from a source to a file with a spec, or the draft of one, which overwrites nothing unasked."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

import pyarrow.compute as pc

from funnel.databases import names_database
from funnel.drafting.choice import Answers, Choice, choose, is_named
from funnel.drafting.draft import draft_spec, file_name, written_spec
from funnel.drafting.look import Column, Look, look_at
from funnel.drafting.observers import Classes, classes_of, unfit_columns, with_all_known, with_known_columns
from funnel.drafting.people import RowsOfPeople, has_value, rows_of_people, table_of
from funnel.drafting.roles import Roles, roles_of
from funnel.errors import DataError, OutputError, SpecError
from funnel.progress import Progress
from funnel.readers.formats import format_of, names
from funnel.spec import ReleaseSpec
from funnel.storage import local_path
from funnel.wording import listed, printable, toml_key

# Names of a column that says how many people a row is about.
_COUNT = re.compile(
    r"(n|nr|no|count|counts|freq|frequency|frequencies|obs|observations|cases|persons|people|population|total|"
    r"anzahl|häufigkeit|haeufigkeit|fälle|personen|(number|no|nr|num)[ _-]of[ _-](people|persons|cases|records))"
    r"|.*[ _-](count|counts|freq|frequency)"
)
# Combinations of all values that there may be for each row: people who differ in many columns are no frequency table.
_SPARSE = 20


def count_column(look: Look, folder: Path, spared: Collection[str], progress: Progress) -> str | None:
    """The column that says how many people each row is about; None where rows are of people.

    That is one of whole numbers with a name of that kind, whose sum is more than the rows, where no two rows have the
    same values in all other columns although these have few combinations.

    Parameters
    ----------
    look : Look
    folder : Path
        Where relative paths start.
    spared : collection of str
        Columns that a person named as values of one record.
    progress : callable
    """
    if look.more:
        return None
    for column in look.columns:
        if column.name not in spared and _counts_people(column, look.rows):
            others = [one for one in look.columns if one is not column and not one.unique(look.rows)]
            if not others or math.prod(one.values + (one.missing > 0) for one in others) > _SPARSE * look.rows:
                continue
            names = [one.name for one in others]
            table = table_of(look.settings, folder, names, progress)
            if table.group_by(names).aggregate([]).num_rows == table.num_rows:
                return column.name
    return None


def _counts_people(column: Column, rows: int) -> bool:
    if column.kind != "number" or column.missing or not _COUNT.fullmatch(column.name.strip().lower()):
        return False
    if not all(re.fullmatch(r"[0-9]+(\.0+)?", value) for value in column.counts):
        return False
    return sum(float(value) * count for value, count in column.counts.items()) > rows


def frequency_table_message(column: str) -> str:
    """What such a table is, and what to do about it."""
    return (
        f"{column!r} seems to say how many people each row is about, since no other two rows are alike: a release is "
        f"of records, so write a table in which a row is there that many times, without {column!r} (in pandas: "
        f"table.loc[table.index.repeat(table[{column!r}])].drop(columns={column!r}))"
    )


# Of more columns half are published where whole records have no classes, but so many: they rarely need classes.
_COLUMNS = 3


@dataclass(frozen=True)
class GivenSource:
    """A source as a person names it.

    Parameters
    ----------
    path : str
        As ``path`` in ``[source]``; a relative path starts at the working folder.
    table, query : str, optional
        Of a database.
    kind : str, optional
        The format, where the name of the source does not tell.
    """

    path: str
    table: str | None = None
    query: str | None = None
    kind: str | None = None

    @property
    def title(self) -> str:
        """What a spec of it is named after."""
        return (self.table or "query").split(".")[-1] if names_database(self.path) else file_name(self.path)

    def settings(self, spec: Path) -> dict[str, str]:
        """The section ``[source]`` of a spec in a file.

        Raises
        ------
        SpecError
            If its format is not known.
        """
        path, ending = self.path, PurePath(self.path).suffix
        if self.kind is None and not names_database(path) and ending and path[-1] != "/" and format_of(path) is None:
            raise SpecError(
                f"cannot tell by {ending!r} what {PurePath(path).name} is written in; say it, as in --format csv "
                f"(known are {listed(names())})"
            )
        given = {"path": _path(path, spec), "table": self.table, "query": self.query, "format": self.kind}
        return {name: value for name, value in given.items() if value is not None}


def draft_file(
    source: GivenSource,
    output: Path | None,
    force: bool,
    progress: Progress,
    answers: Answers | None = None,
    ask: Callable[[Look, Roles], Answers | None] | None = None,
) -> dict[str, Any]:
    """Look at a source and write a spec for it: one that is released as it stands, or a draft where nobody answers.

    Parameters
    ----------
    source : GivenSource
    output : Path or None
        By default ``NAME.toml`` in the working folder.
    force : bool
        Whether to write over a file.
    progress : callable
    answers : Answers or None
        What the person said of the table.
    ask : callable or None
        Asks the person, where there are no answers yet.

    Returns
    -------
    dict
        ``status``, "written" or "drafted"; ``spec``, the file; ``rows`` and ``columns`` that were looked at; ``notes``,
        sentences for the person.

    Raises
    ------
    SpecError
        If the source cannot be named as it was, its format is not known, or there is such a file already.
    DataError
        If it cannot be read, or has nothing to release.
    OutputError
        If the file cannot be written.
    """
    title = source.title
    file = Path(f"{title}.toml") if output is None else output
    if not force and os.path.lexists(file):
        raise SpecError(f"there is a file {file} already; name another with --output, or write over it with --force")
    look = look_at(source.settings(file), file.parent, progress)
    roles = roles_of(look)
    if answers is None and ask is not None:
        answers = ask(look, roles)
    spared = () if answers is None else (*answers.secret, *answers.publish)
    counts = count_column(look, file.parent, spared, progress)
    notes: tuple[str, ...] = () if counts is None else (frequency_table_message(counts),)
    if answers is not None:
        if counts is not None:
            raise SpecError(f"{frequency_table_message(counts)}, or publish it if it is a value of one person")
        choice = _chosen(look, roles, answers, file.parent, progress)

        def spec_of(one: Choice) -> ReleaseSpec:
            return ReleaseSpec.parse(written_spec(look, roles, one, title), file)

        choice, classes = _with_classes(choice, look, roles, answers, spec_of, file.parent, progress)
        if choice.min_records is not None and choice.people != "same":
            choice = with_known_columns(choice, answers.known, look, roles, spec_of, classes, progress)
        elif answers.known:
            choice = with_all_known(choice)
        text = written_spec(look, roles, choice, title)
        notes = (*choice.notes, *missing_together(look, choice, file.parent, progress))
    else:
        text = draft_spec(look, roles, _proposed(look, roles, title), title)
    try:
        with file.open("w" if force else "x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise SpecError(f"there is a file {file} already; name another with --output") from None
    except OSError as error:
        raise OutputError(f"{file} cannot be written: {error.strerror}") from None
    said = {"spec": str(file), "rows": look.rows, "columns": len(look.columns), "notes": list(notes)}
    return {"status": "drafted" if answers is None else "written", **said}


def missing_together(look: Look, choice: Choice, folder: Path, progress: Progress) -> Iterator[str]:
    """Which published columns have no value where the secret has none, by more than a bound of 1 lets a release tell.

    Parameters
    ----------
    look : Look
    choice : Choice
    folder : Path
        Where relative paths start.
    progress : callable
    """
    columns = {column.name: column for column in look.columns}
    others = [columns[name] for name in choice.publish if name not in choice.secret and columns[name].missing]
    for secret in (columns[name] for name in choice.secret if name not in choice.present and columns[name].missing):
        table = table_of(look.settings, folder, [secret.name, *(one.name for one in others)], progress)
        none = table.filter(pc.invert(has_value(table, secret)))
        if none.num_rows == 0:
            continue
        known, known_of_none = ([pc.mean(has_value(rows, one)).as_py() for one in others] for rows in (table, none))
        pairs = zip(others, known, known_of_none, strict=True)
        if alike := [one.name for one, all_rows, of_none in pairs if 1 - of_none > math.e * (1 - all_rows)]:
            yield (
                f"{secret.missing:,} of {look.rows:,} records have no value of {secret.name}, and in these "
                f"{listed(alike)} {'has' if len(alike) == 1 else 'have'} none more often than in others, so a bound on "
                f"who has none changes many records: to leave these out, write {toml_key(secret.name)} = "
                f'{{ missing = false }} in [source.where] and take "(missing)" out of {secret.name} in [categories]'
            )


def _chosen(look: Look, roles: Roles, answers: Answers, folder: Path, progress: Progress) -> Choice:
    """The choice for a person's answers, with what the rows of a person tell."""
    known = {column.name for column in look.columns}
    named = answers.unit or answers.key
    who = named or tuple(column.name for column in roles.people[:1] if column.named_as_person())
    rows: RowsOfPeople | None = None
    if who and {*who, *answers.secret} <= known and not {*who} & {*answers.secret}:
        rows = rows_of_people(look, folder, who, answers.secret, progress, answers.publish)
    choice = choose(look, roles, answers, rows)
    unnamed = [column.name for column in roles.people if column.name not in who]
    if who or not unnamed:
        return choice
    note = (
        f"{unnamed[0]} may say whose record it is, of people who have several: if so, name it with --unit, or the "
        "bound is about one row"
    )
    return replace(choice, notes=(*choice.notes, note))


def _with_classes(
    choice: Choice,
    look: Look,
    roles: Roles,
    answers: Answers,
    spec_of: Callable[[Choice], ReleaseSpec],
    folder: Path,
    progress: Progress,
) -> tuple[Choice, Classes | None]:
    """The choice, of fewer columns where whole records have no classes: without those that are unfit for them first."""
    if choice.min_records is None:
        return choice, None
    if (classes := classes_of(spec_of(choice), progress)) is not None:
        return choice, classes
    notes: tuple[str, ...] = ()
    alike, deciding = unfit_columns(spec_of(choice))
    left = tuple(name for name in choice.publish if name not in (*alike, *deciding))
    if len(left) < len(choice.publish) and {*left} - {*choice.secret}:
        if alike:
            few = f"too few records with some value of {listed(choice.secret)} have other values than most"
            notes += (f"left out, since {few}: {listed(alike)}",)
        if deciding:
            notes += (f"left out, since each tells most of {listed(choice.secret)} by itself: {listed(deciding)}",)
        known = tuple(name for name in answers.known if name in left)
        choice = _chosen(look, roles, replace(answers, publish=left, known=known), folder, progress)
        classes = None if choice.min_records is None else classes_of(spec_of(choice), progress)
    asked = choice
    while choice.min_records is not None and classes is None:
        choice = _of_fewer_columns(choice, asked, look, roles, answers, folder, progress)
        classes = None if choice.min_records is None else classes_of(spec_of(choice), progress)
    return replace(choice, notes=(*choice.notes, *notes)), classes


def _of_fewer_columns(
    choice: Choice, asked: Choice, look: Look, roles: Roles, answers: Answers, folder: Path, progress: Progress
) -> Choice:
    """The same for half of the columns, those that were named first; of so few, at last, that no classes are needed."""
    others = [name for name in choice.publish if name not in choice.secret]
    if len(others) < 2:
        raise SpecError(
            f"{others[0]} makes no two classes of records: it tells nothing of {listed(choice.secret)}, or nearly "
            "decides it, or there are too few records; publish another column, or put its values into groups"
        )
    left = others[: max(len(others) // 2, min(_COLUMNS, len(others) - 1))]
    first = tuple(name for name in choice.publish if name in choice.secret or name in left)
    known = tuple(name for name in answers.known if name in first)
    fewer = _chosen(look, roles, replace(answers, publish=first, known=known), folder, progress)
    several = len([name for name in asked.publish if name not in asked.secret])
    note = (
        f"{several} columns make no two classes of whole records, as {look.rows:,} records are too few for that, or "
        f"they tell nothing of {listed(choice.secret)} or nearly decide it, so only {listed(left)} are published: name "
        "those that matter most first, or fewer"
    )
    return replace(fewer, notes=(*fewer.notes, note))


def _proposed(look: Look, roles: Roles, title: str) -> Choice:
    """What would be chosen for the likeliest secret, as a beginning; the people are left to the person."""
    secrets = [column.name for column in roles.secrets if is_named(column, look.rows)]
    published = tuple(
        column.name for column in roles.published if is_named(column, look.rows) and column.name not in secrets[:1]
    )
    if not secrets or not published:
        found = listed(column.name for column in roles.free if is_named(column, look.rows)) or "none"
        out = "".join(
            f"; {name or 'one without a name'} is left out, since {why}" for name, why in look.left_out.items()
        )
        raise DataError(
            f"{title} needs a column that can be secret and one to publish, each with values that several records "
            f"share; it has {found}{printable(out)}"
        )
    secret = secrets[0]
    choice = choose(look, roles, Answers((secret,), published), None)
    return replace(choice, coarse=tuple(one for one in choice.coarse if one.column != secret), present=())


def _path(source: str, file: Path) -> str:
    """The address of a source as it is from the folder of the spec."""
    if names_database(source) and source.startswith("sqlite:///") and not source.startswith("sqlite:////"):
        return f"sqlite:///{os.path.relpath(source.removeprefix('sqlite:///'), file.parent)}"
    if names_database(source) or local_path(source) is None or "://" in source or Path(source).is_absolute():
        return source
    return os.path.relpath(source, file.parent) + ("/" if source.endswith("/") else "")
