"""Asking: the five questions of ``funnel init`` on a terminal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import click

from funnel.drafting.choice import EVERY, Answers
from funnel.drafting.look import Look
from funnel.drafting.roles import Roles
from funnel.wording import did_you_mean, listed, names_in, printable


def ask(look: Look, roles: Roles) -> Answers | None:
    """What a person answers; None if no column is named as sensitive, for a draft to be edited.

    Parameters
    ----------
    look : Look
    roles : Roles
    """
    names = [column.name for column in look.columns]
    click.echo(f"{look.rows:,} records, {len(names)} columns: {listed(map(printable, names), 40)}", err=True)
    candidates = (
        f" (such as {listed((printable(column.name) for column in roles.secrets), 12)})" if roles.secrets else ""
    )
    secret = _columns(f"1. Which column is sensitive{candidates}? Enter for a draft to edit", "", names)
    if not secret:
        return None
    publish = _columns(
        "2. Which columns are published (names with commas, or all)?", ",".join(_first(roles, secret)), names, EVERY
    )
    chosen = Answers(secret, publish)
    # A column that is named so and repeats tells of people more than a number of every record.
    persons = [one for one in roles.people if one.named_as_person()]
    tells = [*persons, *roles.keys, *roles.people]
    key = _columns(_KEY, tells[0].name if tells else "-", names, "-")
    people = None
    if key == ("-",):
        people = _later()
        if people == "different":
            # Rows that look like those of one person are kept under one bound all the same, which a note says.
            return replace(chosen, people=None if persons else people)
        click.echo("People in later versions are known again by a column that identifies them.", err=True)
        key = _columns(_KEY, "-", names, "-")
        if key == ("-",):
            # A spec for one version: without such a column no second one is drawn.
            return chosen
    if _several(key, look):
        click.echo("5. All rows of a person are kept under one bound, in later versions too.", err=True)
        return replace(chosen, unit=key)
    return replace(chosen, key=key, people=people or _later())


_KEY = "3. Which column identifies a person (- for none)?"


def _first(roles: Roles, secret: tuple[str, ...]) -> list[str]:
    """Some columns to publish to begin with: those that take little time, then what outsiders know."""
    found = dict.fromkeys(column.name for column in (*roles.published, *roles.known, *roles.secrets))
    chosen = [name for name in found if name not in secret]
    return chosen[: max(2, sum(column.name not in secret for column in roles.published))]


def _several(key: tuple[str, ...], look: Look) -> bool:
    """Whether there are several rows of a person, asked until the answer fits what the source holds."""
    repeats = len(key) == 1 and any(
        one.name == key[0] and one.complete and one.counts.total() > one.values for one in look.columns
    )
    while not (several := _confirmed("4. Are there several rows of a person?", repeats)) and repeats:
        click.echo(f"Error: some values of {printable(key[0])!r} are in several rows", err=True)
    return several


def _later() -> str:
    return "same" if _confirmed("5. Will the same people be in later versions?", False) else "different"


def _confirmed(question: str, default: bool) -> bool:
    shown = f"{question} (y or n, Enter: {'y' if default else 'n'})"
    return click.confirm(shown, default, show_default=False, prompt_suffix=" ", err=True)


def _columns(question: str, default: str, names: list[str], other: str | None = None) -> tuple[str, ...]:
    """Columns by their names, asked for until all are there."""

    def parsed(text: str) -> tuple[str, ...]:
        if other is not None and text.strip() == other:
            return (other,)
        found = names_in((text,), names)
        for name in found:
            if name not in names and not name == other == EVERY:
                raise click.BadParameter(f"there is no column {name!r}{did_you_mean(name, names)}")
        return found

    ask_for: Callable[..., tuple[str, ...]] = click.prompt
    shown = f"{question} (Enter: {default})" if default else question
    return ask_for(shown, default=default, value_proc=parsed, show_default=False, err=True, prompt_suffix=" ")
