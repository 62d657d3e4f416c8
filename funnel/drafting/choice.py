"""Choice: from a source that was looked at and the answers of a person, a spec that can be released as it stands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from funnel.drafting.coarse import Coarse, coarse, plain
from funnel.drafting.look import Column, Look
from funnel.drafting.people import RowsOfPeople, people_of
from funnel.drafting.roles import Roles
from funnel.errors import SpecError
from funnel.wording import did_you_mean, listed

# Guarantees: for observers of a record in the population, for those who know some of its columns, and for both.
ROBUST, KNOWING, NOMINAL, PUBLISHED = "rlip:1.0,0.05", "srlip:1.0", "lip:1.0", "attribute:1.0"
# What is solved within about a minute (benchmarks/results/unprepared.md): combinations of published values, by the
# number of values of the secret, for both guarantees together and for the first alone; with the secret published.
_BOTH = {2: 48, 3: 24, 4: 24, 5: 12}
_ALONE, _WITH_SECRET = 48, 24
# Where the same people come again every history has its own channel; several rows of one take several.
_HISTORIES, _ROWS = 24, 16
# Records of a combination of secret and published values, on average: with fewer noise hides what there is.
_RECORDS = 25
# Values of a column at first; of the secret. Shares of the records that a value has at least.
_VALUES, _SECRETS = 6, 6
_SHARE, _SECRET_SHARE = 0.01, 0.02


@dataclass(frozen=True)
class Answers:
    """What a person says of a table.

    Attributes
    ----------
    secret : tuple of str
        Sensitive columns.
    publish : tuple of str or None
        Columns to publish; None for all that can be.
    key, unit : tuple of str
        Columns that identify a person: one row each, or several.
    people : "same", "different" or None
        Whether the same people will be in later versions.
    """

    secret: tuple[str, ...]
    publish: tuple[str, ...] | None
    key: tuple[str, ...] = ()
    unit: tuple[str, ...] = ()
    people: str | None = None


@dataclass(frozen=True)
class Choice:
    """Settings of a spec, with the reasons for them.

    Attributes
    ----------
    secret, publish, key, unit : tuple of str
    people : str or None
        Of [history].
    guarantee : tuple of str
    invariant : bool
        Whether the mechanism is the invariant one; else the most useful.
    noise : bool
        Whether counts are protected by noise; else by a threshold.
    min_records : int or None
        Of a class of records, where these are drawn by classes.
    coarse : tuple of Coarse
        Of every column, secret ones first.
    present : tuple of str
        Columns of which records without a value are left out.
    why : mapping of str to str
        A sentence for guarantee, mechanism, frequencies, history and unit.
    notes : tuple of str
        What the person should know who asked.
    """

    secret: tuple[str, ...]
    publish: tuple[str, ...]
    guarantee: tuple[str, ...]
    invariant: bool
    noise: bool
    coarse: tuple[Coarse, ...]
    key: tuple[str, ...] = ()
    unit: tuple[str, ...] = ()
    people: str | None = None
    wave: tuple[str, str] | None = None
    min_records: int | None = None
    present: tuple[str, ...] = ()
    why: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


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
    secret, publish, notes = _named(look, roles, answers, columns)
    people = people_of(look.rows, secret, answers.unit or answers.key, answers.people, rows)
    inputs = tuple(name for name in publish if name not in secret)
    chosen = [columns[name] for name in inputs]
    most = max(2, int(_SECRETS ** (1 / len(secret))))
    values = [coarse(columns[name], look.rows, most, _SECRET_SHARE, secret=True) for name in secret]
    several = math.prod(one.size for one in values)
    open_to = max(4, (look.rows if rows is None else rows.people) // (_RECORDS * several))
    base = Choice(
        secret=secret,
        publish=inputs,
        guarantee=(NOMINAL,),
        invariant=not people.unit,
        noise=True,
        coarse=tuple(values),
        key=people.key,
        unit=people.unit,
        people=people.people,
        wave=people.wave,
        present=tuple(one.column for one in values if one.left_out),
        why=people.why,
        notes=(*notes, *people.notes),
    )
    if people.people == "same":
        most = _ROWS if people.unit else _HISTORIES
        return _over_versions(base, chosen, look.rows, min(most, open_to), publish)
    if inputs != publish:
        return _with_secret(base, chosen, look.rows, min(_WITH_SECRET // several, open_to))
    fitted = _fitted(chosen, look.rows, min(_ALONE, open_to))
    if fitted is None:
        reason = (
            f"For observers of a record, who know none of its columns: {len(inputs)} columns have too many values "
            "together for the bounds in a population and for observers who know some."
        )
        return _whole(base, chosen, look.rows, reason)
    cells = math.prod(one.size for one in fitted)
    guarantee, reason = _bound(cells, several, len(inputs))
    return replace(base, guarantee=guarantee, coarse=(*base.coarse, *fitted), why={**base.why, "guarantee": reason})


def _over_versions(base: Choice, chosen: Sequence[Column], rows: int, most: int, asked: Sequence[str]) -> Choice:
    """Where the same people come again: under a bound that can be kept over versions."""
    if base.publish != asked:
        raise SpecError(
            f"{base.secret[0]!r} is secret and published, which is not there yet for versions about the same people; "
            "take it out of --publish, or say --people different if no person is in two versions"
        )
    fitted = _fitted(chosen, rows, most, 2)
    if fitted is None:
        raise SpecError(
            f"{len(chosen)} columns have too many values together for versions about the same people; name fewer with "
            f"--publish, such as {','.join(column.name for column in chosen[:3])}, or say --people different if no "
            "person is in two versions"
        )
    reason = (
        "For observers of the records, in all versions together: bounds in a population (rlip) and for observers who "
        "know columns (srlip) are not there for versions about the same people."
    )
    return replace(base, coarse=(*base.coarse, *fitted), why={**base.why, "guarantee": reason})


def _with_secret(base: Choice, chosen: Sequence[Column], rows: int, most: int) -> Choice:
    """The secret among the published columns."""
    reason = "The secret is published too, so the bound is for observers who know any of the other columns, or all."
    base = replace(base, publish=(*base.secret, *base.publish), guarantee=(PUBLISHED,))
    fitted = _fitted(chosen, rows, most)
    if fitted is None:
        return _whole(base, chosen, rows, reason)
    return replace(base, coarse=(*base.coarse, *fitted), why={**base.why, "guarantee": reason})


def _whole(base: Choice, chosen: Sequence[Column], rows: int, reason: str) -> Choice:
    """Whole records, drawn by class."""
    why = {
        "guarantee": reason,
        "mechanism": "Many columns: a record is published as it is, or as that of somebody like it.",
        "frequencies": "Classes of records are found by exact counts: values of few people are grouped, without noise.",
    }
    return replace(
        base,
        noise=False,
        coarse=(*base.coarse, *map(plain, chosen)),
        min_records=50 if rows >= 5_000 else 20,
        why={**base.why, **why},
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


def _fitted(columns: Sequence[Column], rows: int, most: int, fewest: int | None = None) -> list[Coarse] | None:
    """The columns with at most so many combinations together, three categories of each at least; else None.

    Of one to three columns there may be two of each, and a few combinations more.
    """
    few = len(columns) <= 3
    fewest = (2 if few else 3) if fewest is None else fewest
    levels = [_VALUES] * len(columns)
    made = [coarse(column, rows, _VALUES, _SHARE) for column in columns]
    while math.prod(one.size for one in made) > most:
        open_to = [k for k, level in enumerate(levels) if min(level, made[k].size) > fewest]
        if not open_to:
            return made if few else None
        k = max(open_to, key=lambda place: made[place].size)
        levels[k] = min(levels[k], made[k].size) - 1
        made[k] = coarse(columns[k], rows, levels[k], _SHARE)
    return made


def _named(
    look: Look, roles: Roles, answers: Answers, columns: dict[str, Column]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The secret and published columns, checked, and what was left out of all of them."""
    for option, names in (
        ("--secret", answers.secret),
        ("--publish", answers.publish or ()),
        ("--key", answers.key),
        ("--unit", answers.unit),
    ):
        for name in names:
            if name in columns:
                continue
            reason = look.left_out.get(name)
            if reason is not None:
                raise SpecError(f"{option} names {name!r}, which cannot be used, since {reason}; name another column")
            raise SpecError(
                f"{option} names {name!r}, which the source does not have{did_you_mean(name, columns)}; it has "
                f"{listed(columns)}"
            )
    tells = {column.name for column in (*roles.keys, *roles.people)} | {*answers.key, *answers.unit}
    for option, names in (("--secret", answers.secret), ("--publish", answers.publish or ())):
        for name in names:
            if name in tells:
                raise SpecError(
                    f"{option} names {name!r}, which tells whose record it is, so it is neither secret nor published; "
                    "take it out, or name it with --key or --unit"
                )
            if columns[name].values < 2:
                raise SpecError(f"{option} names {name!r}, which is the same in every record; name another column")
    if answers.publish is not None:
        return answers.secret, tuple(dict.fromkeys(answers.publish)), ()
    free = [column for column in roles.free if column.name not in tells]
    texts = [one.name for one in free if one.kind == "text" and one.values > max(200, look.rows / 10)]
    publish = tuple(one.name for one in free if one.name not in texts and one.name not in answers.secret)
    if not publish:
        raise SpecError("no column is left to publish: all are secret, tell people apart, or are the same everywhere")
    out = [*texts, *(one.name for one in (*roles.apart, *roles.weights) if one.name not in tells | {*texts})]
    notes = (f"left out of all columns: {listed(out)} (names, weights, or free text)",) if out else ()
    return answers.secret, publish, notes
