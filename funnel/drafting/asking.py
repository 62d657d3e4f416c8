"""Asking: the five questions of ``funnel init`` on a terminal."""

from __future__ import annotations

from collections.abc import Callable

import click

from funnel.drafting.choice import Answers
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
    first = [column.name for column in roles.published if column.name not in secret]
    publish = _columns("2. Which columns are published (names with commas, or all)?", ",".join(first), names, "all")
    tells = (*roles.keys, *roles.people)
    found = tells[0].name if tells else ""
    key = _columns("3. Which column identifies a person (- for none)?", found or "-", names, "-")
    if key == ("-",):
        return Answers(secret, None if publish == ("all",) else publish, people=_later())
    several = _confirmed("4. Are there several rows of a person?", bool(roles.people) and not roles.keys)
    people = _later()
    return Answers(
        secret, None if publish == ("all",) else publish, () if several else key, key if several else (), people
    )


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
            if name not in names:
                raise click.BadParameter(f"there is no column {name!r}{did_you_mean(name, names)}")
        return found

    ask_for: Callable[..., tuple[str, ...]] = click.prompt
    shown = f"{question} (Enter: {default})" if default else question
    return ask_for(shown, default=default, value_proc=parsed, show_default=False, err=True, prompt_suffix=" ")
