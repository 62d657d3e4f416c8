"""Choice: from a source that was looked at and the answers of a person, a spec that can be released as it stands."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from funnel.drafting.coarse import NAMED, Coarse, coarse, plain
from funnel.drafting.limits import SHARE, VALUES, by_category, columns_within, value_notes
from funnel.drafting.look import Column, Look
from funnel.drafting.people import People, RowsOfPeople, people_of, records_of_class
from funnel.drafting.periods import day_forms
from funnel.drafting.roles import Roles
from funnel.errors import SpecError
from funnel.settings.groups import AtOnce
from funnel.settings.recode import OTHER
from funnel.wording import did_you_mean, listed, printable

# Guarantees: for observers of a record in the population, for those who know some of its columns, and for both.
ROBUST, KNOWING, NOMINAL, PUBLISHED = "rlip:1.0,0.05", "srlip:1.0", "lip:1.0", "attribute:1.0"
# What is solved within about a minute: combinations of published values, by the number of values of the secret, for
# both guarantees together; for the first alone; and with the secret, its own values among them.
_BOTH = {2: 72, 3: 48, 4: 48, 5: 36, 6: 24}
_ALONE, _WITH_SECRET = 96, 80
# Where the same people come again every history has its own channel; several rows of one take several. With more than
# so many combinations rows keep less: 24 in place of 16 took visits from 2.3 to 1.6 nats.
_HISTORIES, _ROWS = 24, 16
# Records of a combination of secret and published values, on average, and of one with the rarest value of the secret:
# with fewer, noise and the population leave so much open that most records have to be changed. In the population (rlip)
# these are more, and so are those of a value of the secret: 7,000 records of Census-Income keep .79 nats and 65 % of
# themselves in 8 combinations, and .48 nats and 28 % in 34.
_RECORDS, _RAREST, _RAREST_ROBUST, _SECRET_RECORDS = 25, 10, 40, 300
# People with a value of the secret where the same ones come again under noise, in the fewest combinations there are:
# of 312 patients with 1,945 visits 12 % of the information stays with a value that 29 have, and 54 % without.
_FEWEST, _SECRET_PEOPLE = 4, 40
# With the secret published: noise of ε = 1 left 16 % of 2,700 records in 80 combinations (34 records each, 10 of the
# rarest), where exact counts leave 47 %, and 44 % in 40.
_RECORDS_PUBLISHED, _RAREST_PUBLISHED = 50, 20
# Values of the secret, and the share of the records that one has at least.
_SECRETS, _SECRET_SHARE = 6, 0.02
# In place of a published column: all that can be.
EVERY = "all"


@dataclass(frozen=True)
class Answers:
    """What a person says of a table.

    Attributes
    ----------
    secret : tuple of str
        Sensitive columns.
    publish : tuple of str
        Columns to publish; "all" adds all that can be, but for the secret.
    key, unit : tuple of str
        Columns that identify a person: one row each, or several.
    people : "same", "different" or None
        Whether the same people will be in later versions.
    known : tuple of str
        Published columns that an observer may know of a person.
    """

    secret: tuple[str, ...]
    publish: tuple[str, ...]
    key: tuple[str, ...] = ()
    unit: tuple[str, ...] = ()
    people: str | None = None
    known: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Choice(People):
    """Settings of a spec, with the reasons for them and what the person should know who asked.

    Attributes
    ----------
    secret, publish : tuple of str
    guarantee : tuple of str
    invariant : bool
        Whether the mechanism is the invariant one; else the most useful.
    noise : bool
        Whether counts are protected by noise; else by a threshold.
    min_records : int or None
        Of a class of records, where these are drawn by classes.
    known : tuple of str, "single" or "pairs"
        Columns that observers of these may know; of "single" any one of those that are published, of "pairs" any two.
    coarse : tuple of Coarse
        Of every column, secret ones first.
    present : tuple of str
        Columns of which records without a value are left out.
    held_out : float
        The share of the records by which classes are not chosen, so that the bound holds in the population.
    """

    secret: tuple[str, ...]
    publish: tuple[str, ...]
    guarantee: tuple[str, ...]
    invariant: bool
    noise: bool
    coarse: tuple[Coarse, ...]
    min_records: int | None = None
    known: tuple[str, ...] | AtOnce = ()
    present: tuple[str, ...] = ()
    held_out: float = 0.0


def choose(look: Look, roles: Roles, answers: Answers, rows: RowsOfPeople | None) -> Choice:
    """Settings that the answers allow, and that are solved in time.

    Parameters
    ----------
    look : Look
    roles : Roles
    answers : Answers
    rows : RowsOfPeople or None
        How rows and people belong together, where a key or a unit was named or found.

    Raises
    ------
    SpecError
        If the answers contradict each other or the source, in one sentence with what to name instead.
    """
    columns = {column.name: column for column in look.columns}
    choice = _choose(look, roles, answers, rows, columns)
    notes = (*_of_records_left_out(choice, look.rows, columns), *value_notes(choice.coarse, columns, choice.publish))
    return replace(choice, notes=(*choice.notes, *notes))


def is_named(column: Column, rows: int) -> bool:
    """Whether at least half of the records have a value that a spec can name, or a number or a day."""
    one = coarse(column, rows, VALUES, SHARE)
    unnamed = sum(count for value, count in column.counts.items() if value not in one.listed)
    return not one.listed or one.period is not None or 2 * unnamed <= column.counts.total()


def _require_named(column: Column, option: str, rows: int) -> None:
    """Refuse a column that would be one category, Other, for most records."""
    if is_named(column, rows):
        return
    mend = (
        "its values look like numbers with marks between thousands or signs such as €: write them without these in "
        "the source"
        if column.holds_amounts()
        else "name another column, or put its values into groups in the source first"
    )
    raise SpecError(
        f"{option} names {column.name!r}, of which most records would be {OTHER!r}, since fewer than {NAMED} records "
        f"have the same value; {mend}"
    )


def _choose(
    look: Look, roles: Roles, answers: Answers, rows: RowsOfPeople | None, columns: dict[str, Column]
) -> Choice:
    secret, publish, notes = _named(look, roles, answers, columns)
    people = people_of(look.rows, secret, answers.unit or answers.key, answers.people, rows)
    if people.wave is not None:
        publish = tuple(name for name in publish if name != people.wave[0])
    inputs = tuple(name for name in publish if name not in secret)
    chosen = [columns[name] for name in inputs]
    persons = look.rows if rows is None else rows.people
    of_secret = partial(_of_secret, secret, columns, look.rows, persons)
    values, several, rarest, open_to = of_secret(NAMED, _RAREST)
    base = Choice(
        secret=secret,
        publish=inputs,
        guarantee=(NOMINAL,),
        invariant=not people.unit or people.has_members,
        noise=not people.has_members,
        coarse=tuple(values),
        present=(
            *(one.column for one in values if one.left_out),
            *(name for name in (*people.key, *people.unit) if columns[name].missing),
        ),
        **vars(replace(people, notes=(*notes, *people.notes))),
    )
    if people.people == "same":
        most, exact = _ROWS if people.unit else _HISTORIES, base
        if base.noise:
            values, several, rarest, open_to = of_secret(-(-_SECRET_PEOPLE * look.rows // persons), _RAREST)
            base = replace(base, coarse=tuple(values))
        of_class = None if rows is None or not people.unit else records_of_class(rows)
        kept = _over_versions(base, chosen, look.rows, min(most, open_to), publish, answers.people, of_class)
        if kept is not None and kept.min_records is None:
            cells = math.prod(one.size for one in kept.coarse if one.column in kept.publish)
            notes = (*kept.notes, *_of_merged_secrets(values, columns), *_of_few_records(values, rarest, cells))
            return replace(kept, notes=notes)
        if kept is not None:
            return replace(kept, coarse=(*exact.coarse, *kept.coarse[len(base.coarse) :]))
        base = exact
        base = replace(base, people=None, why={}, notes=(*notes, _one_version(base, len(chosen), inputs != publish)))
    if inputs != publish:
        open_to = of_secret(NAMED, _RAREST_PUBLISHED, _RECORDS_PUBLISHED)[3]
        return _with_secret(base, chosen, look.rows, min(_WITH_SECRET // several, open_to))
    values, several, rarest, open_to = of_secret(_SECRET_RECORDS, _RAREST_ROBUST)
    most = _BOTH.get(several, _ALONE) if len(inputs) > 1 else _ALONE
    fitted = columns_within(chosen, look.rows, min(most, open_to))
    if fitted is None:
        return _whole(replace(base, notes=(*base.notes, *_of_merged_secrets(base.coarse, columns))), chosen, look.rows)
    cells = math.prod(one.size for one in fitted)
    guarantee, reason = _bound(cells, several, len(inputs))
    return replace(
        base,
        guarantee=guarantee,
        coarse=(*values, *fitted),
        why={**base.why, "guarantee": reason},
        notes=(*base.notes, *_of_merged_secrets(values, columns), *_of_few_records(values, rarest, cells)),
    )


def _of_secret(
    secret: tuple[str, ...],
    columns: dict[str, Column],
    rows: int,
    persons: int,
    fewest: int,
    of_rarest: int,
    records: int = _RECORDS,
) -> tuple[list[Coarse], int, int, int]:
    """Categories of the secret, how many, people with the rarest, and combinations of published values."""
    most = max(2, int(_SECRETS ** (1 / len(secret))))
    values = [coarse(columns[name], rows, most, _SECRET_SHARE, secret=True, fewest=fewest) for name in secret]
    several = math.prod(one.size for one in values)
    rarest = min(_rarest(one, columns[one.column]) * one.size for one in values) * persons // rows
    cells = min(persons // records, rarest // of_rarest) // several
    return values, several, rarest // several, max(_FEWEST, cells)


def _of_merged_secrets(values: Sequence[Coarse], columns: dict[str, Column]) -> Iterator[str]:
    """Which values of the secret are put together, since few records have them."""
    for one in values:
        # Numbers of many values have bins in any case.
        counted = not one.bins or columns[one.column].values <= _SECRETS
        if groups := [name for name in one.groups if counted and (not one.bins or " or " in name)]:
            yield (
                f"{listed(groups)} of {one.column} is protected as one value: a bound for each value that few records "
                "have changes most records"
            )


def _of_records_left_out(choice: Choice, rows: int, columns: dict[str, Column]) -> Iterator[str]:
    """How many records are left out, since they have no value of the secret, or of what says whose they are."""
    for name in choice.present:
        why = "too few to be protected apart" if name in choice.secret else "so nobody knows whose they are"
        yield (
            f"{columns[name].missing:,} of {rows:,} records have no value of {name}, {why}, and are left out, as "
            "[source.where] says"
        )


def _of_few_records(values: Sequence[Coarse], rarest: int, cells: int) -> Iterator[str]:
    """Whether few records with the rarest value of the secret are there for the published values."""
    if rarest < _RAREST * cells:
        yield (
            f"{rarest:,} records with the rarest value of {listed(one.column for one in values)} are few for {cells} "
            "combinations of published values, so most records may have to be changed: publish fewer columns, or take "
            "more records"
        )


def _rarest(one: Coarse, column: Column) -> int:
    """Records of the rarest category of a column; of bins, which are about alike, of each."""
    if not one.listed:
        return sum(column.counts.values()) // one.size
    return min(by_category(one, column).values())


def _over_versions(
    base: Choice,
    chosen: Sequence[Column],
    rows: int,
    most: int,
    asked: Sequence[str],
    people: str | None,
    of_class: int | None,
) -> Choice | None:
    """Where the same people come again: under a bound that can be kept over versions; None if this can be one version.

    Columns that have too many values together are published as whole records, unless this can be one version alone;
    where people have several rows the first ones of them, unless whole records can have classes of so many records.
    """
    may_be_one = people is None and not base.unit and base.wave is None
    fitted = columns_within(chosen, rows, most, 2)
    if may_be_one and (fitted is None or base.publish != asked):
        return None
    if base.publish != asked:
        raise SpecError(
            f"{base.secret[0]!r} is secret and published, which is not there yet for versions about the same people, "
            "nor for several rows of one person; take it out of --publish, or say --people different if every person "
            "has one row and is in one version"
        )
    reason = (
        "For observers of the records, in all versions together: bounds in a population (rlip) keep little of some "
        "thousand people after a few versions, and those for observers who know columns (srlip) less than this one."
    )
    notes = base.notes
    if fitted is None and (not base.unit or of_class is not None):
        later = (
            "tables of single columns may be off by a standard error or two, and there is no later version about the "
            "same people; name fewer columns with --publish for later ones, and for tables that are right on average"
            if base.unit
            else "in later versions tables of single columns may be off by about a standard error; name fewer columns "
            "with --publish for tables that are right on average in all of them"
        )
        return _whole(replace(base, notes=(*notes, later)), chosen, rows, of_class)
    if fitted is None:
        first = next(k for k in range(len(chosen), 0, -1) if columns_within(chosen[:k], rows, most, 2) is not None)
        left = listed(column.name for column in chosen[first:])
        chosen, fitted = chosen[:first], columns_within(chosen[:first], rows, most, 2) or []
        notes = (
            *notes,
            f"{len(base.publish)} columns have too many values together for one bound on all records of a person, so "
            f"these are left out: {left}; name the columns that matter most first",
        )
    publish = tuple(column.name for column in chosen)
    why = {**base.why, "guarantee": reason}
    return replace(base, publish=publish, coarse=(*base.coarse, *fitted), why=why, notes=notes)


def _one_version(base: Choice, columns: int, with_secret: bool) -> str:
    """Why a spec is for one version, where nothing says that people come again: a second one is then refused."""
    what = "a secret that is published" if with_secret else f"{columns} columns have too many values together and"
    what += " cannot be kept under one bound over versions about the same people"
    return (
        f"{what}, by {listed(base.key)}, so this spec is for one version: say --people different if no person is in two"
        f"{'' if with_secret else ', or publish fewer columns'}"
    )


def _with_secret(base: Choice, chosen: Sequence[Column], rows: int, most: int) -> Choice:
    """The secret among the published columns."""
    reason = "The secret is published too, so the bound is for observers who know any of the other columns, or all."
    if not chosen:
        raise SpecError(
            f"--publish names {listed(base.secret)}, which is secret, and no other column: a secret is published with "
            "others, for observers who know these; name one more"
        )
    base = replace(base, publish=(*base.secret, *base.publish), guarantee=(PUBLISHED,))
    fitted = columns_within(chosen, rows, most)
    if fitted is None:
        return _whole(base, chosen, rows)
    return replace(base, coarse=(*base.coarse, *fitted), why={**base.why, "guarantee": reason})


def _whole(base: Choice, chosen: Sequence[Column], rows: int, of_class: int | None = None) -> Choice:
    """Whole records, drawn by class; ``of_class``: records that one needs where people have several rows."""
    why = {
        "guarantee": whole_reason(base, ()),
        "mechanism": "Many columns: a record is published as it is, or as that of somebody like it.",
        "frequencies": "Classes of records are found by exact counts: values of few people are grouped, without noise.",
    }
    if base.unit:
        why["history"] = "Needed for several rows of a person; one bound holds for all rows."
    return replace(
        base,
        invariant=True,
        noise=False,
        coarse=(*base.coarse, *map(plain, chosen)),
        min_records=max(of_class or 0, 50 if rows >= 5_000 else 20),
        why={**base.why, **why},
        notes=(
            *base.notes,
            f"only records that would disclose too much about {listed(base.secret)} are changed: where other columns "
            "disclose little about it, all records are published as they are; publish fewer columns for noisy counts",
        ),
    )


def whole_reason(choice: Choice, known: Sequence[str]) -> str:
    """For which observers the bound of whole records is, of whom some know these columns."""
    some = f", or any of {listed(known)}" if known else ""
    if choice.guarantee == (PUBLISHED,):
        return f"The secret is published too. For observers who know all other columns, or none{some}."
    if choice.people == "same":
        together = "of all rows of a person together" if choice.unit else "of the records, in all versions together"
        return (
            f"For observers {together}, who know none of their columns: "
            f"{len(choice.publish)} columns have too many values together for one channel."
        )
    return (
        f"For observers of a record who know none of its columns{some}: {len(choice.publish)} columns have too many "
        "values together for a bound in the population (rlip), and for observers of all of them."
    )


def at_once_reason(choice: Choice, known: AtOnce, stays: float) -> str:
    """The same where some may know any columns, one or two at once, with what stays."""
    which, others = ("any one or any two", "three") if known == "pairs" else ("any one", "two")
    columns, none = len([one for one in choice.publish if one not in choice.secret]), "lip"
    if choice.guarantee == (PUBLISHED,):
        none = "attribute, which is for observers of all of them too"
    elif choice.held_out:
        none = "rlip, in the population too"
    return (
        f"For observers of a record who know none of its {columns} columns ({none}), and for those who know "
        f"{which}, whichever {'these are' if known == 'pairs' else 'it is'} (srlip): {stays:.0%} of the records stay. "
        f"A smaller number for srlip bounds more and leaves fewer records. Not for observers of {others} columns: name "
        "these as known."
    )


def _bound(cells: int, several: int, columns: int) -> tuple[tuple[str, ...], str]:
    """Which observers the bound can be for, by the size of the joint distribution."""
    size = f"{cells} combinations of published values and {several} values of the secret"
    if columns < 2:
        return (ROBUST,), f"For observers of the published record, in the population too: {size}."
    if cells <= _BOTH.get(several, 0):
        return (ROBUST, KNOWING), (
            "For observers of the record, in the population too (rlip), and for those who know some of its columns "
            f"(srlip): {size} are few enough for both."
        )
    return (ROBUST,), (
        "For observers of the record, in the population too. Not for those who know some of its columns, which "
        f"{KNOWING} is for: {size} take minutes with it."
    )


def _named(
    look: Look, roles: Roles, answers: Answers, columns: dict[str, Column]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The secret and published columns, checked, and what was left out of all of them."""
    every = EVERY in answers.publish and EVERY not in columns
    asked = tuple(name for name in answers.publish if not (every and name == EVERY))
    for option, names in (
        ("--secret", answers.secret),
        ("--publish", asked),
        ("--key", answers.key),
        ("--unit", answers.unit),
        ("--known", answers.known),
    ):
        for name in names:
            if name in columns:
                continue
            if (reason := look.left_out.get(name)) is not None:
                raise SpecError(f"{option} names {name!r}, which cannot be used, since {reason}; name another column")
            # Names that are numbers may be those of a record, which no message quotes.
            others = f"; {look.doubt}" if look.doubt else f"{did_you_mean(name, columns)}; it has {listed(columns)}"
            raise SpecError(f"{option} names {name!r}, which the source does not have{others}")
    for name in answers.known:
        if name in answers.secret or name not in (columns if every else asked):
            raise SpecError(
                f"--known names {name!r}, and observers may know published columns that are not secret; publish it, or "
                "take it out"
            )
    tells = {column.name for column in (*roles.keys, *roles.people)} | {*answers.key, *answers.unit}
    for option, names in (("--secret", answers.secret), ("--publish", asked)):
        for name in names:
            if name in tells:
                alone = columns[name].kind == "number" and columns[name].unique(look.rows)
                amounts = "; if its values are amounts, round them in the source" if alone else ""
                raise SpecError(
                    f"{option} names {name!r}, which tells whose record it is, so it is neither secret nor published; "
                    f"take it out, or name it with --key or --unit{amounts}"
                )
            if columns[name].is_constant(look.rows, _SECRET_SHARE if option == "--secret" else SHARE):
                raise SpecError(f"{option} names {name!r}, which is the same in every record; name another column")
            _require_named(columns[name], option, look.rows)
    free, left_out = _all_others(look, roles, answers.secret, tells) if every else ((), ())
    return answers.secret, tuple(dict.fromkeys((*asked, *free))), left_out


def _all_others(
    look: Look, roles: Roles, secret: tuple[str, ...], tells: set[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """All columns that can be published but the secret and those that tell whose record it is; what is left out."""
    free = [column for column in roles.free if column.name not in tells]
    rare = [one for one in free if not is_named(one, look.rows)]
    many = [one for one in free if one.kind == "text" and one.values > max(200, look.rows / 10)]
    texts = [one.name for one in free if one in rare or (one in many and len(day_forms(one)) != 1)]
    amounts = [one.name for one in free if one.name in texts and one.holds_amounts()]
    publish = tuple(one.name for one in free if one.name not in texts and one.name not in secret)
    unusable = [
        f"{printable(name) or 'a column without a name'} is left out, since {why}"
        for name, why in look.left_out.items()
    ]
    if not publish:
        why = "all are secret, tell people apart, are the same everywhere, or have values that hardly anybody has"
        raise SpecError(f"no column is left to publish: {'; '.join([why, *unusable])}")
    out = [name for name in texts if name not in amounts]
    out += [one.name for one in (*roles.apart, *roles.weights) if one.name not in tells | {*texts}]
    notes = unusable
    if amounts:
        notes.append(
            f"left out of all columns, since they hold amounts written as texts: {listed(amounts)}; write these "
            "without marks between thousands or signs such as € in the source, and they get bins"
        )
    if alike := [column.name for column in roles.alike]:
        notes.append(f"left out of all columns, since every record has the same value: {listed(alike)}")
    if out:
        notes.append(
            f"left out of all columns: {listed(out)} (names, weights, free text, or values that hardly anybody has)"
        )
    return publish, tuple(notes)
