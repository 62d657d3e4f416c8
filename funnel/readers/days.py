"""Days: the dates that texts are, in ISO 8601 or in the form that a spec says; what is ambiguous is never guessed."""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache

from funnel.wording import toml_key, toml_text


def day_of(text: str) -> date | None:
    """The day of a date or point in time such as ``2026-12-31 23:59``; None if the text is none."""
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T].*)?", text, re.DOTALL):
        return None
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        return None


def written_day(text: str, form: str) -> date | None:
    """The day of a date that is written in a form such as ``%d/%m/%Y``, perhaps with a time after it; None if none is.

    What the form leaves out is the first: of ``%m/%Y`` the first day of the month. Days and months have one digit or
    two, and two where nothing parts them from other digits, as in ``%Y%m%d``.
    """
    found = re.fullmatch(_pattern(form), text.strip(), re.DOTALL)
    if found is None:
        return None
    part = {"m": "1", "d": "1", **found.groupdict()}
    try:
        return date(int(part["Y"]), int(part["m"]), int(part["d"]))
    except ValueError:
        return None


def forms_of(text: str) -> list[str]:
    """All common forms in which a text is a date, the year in four digits; none if it is no such text."""
    found = re.fullmatch(r"([0-9]+)(?:([./ -])[0-9]+(?:\2[0-9]+)?)?([ T].*)?", text.strip(), re.DOTALL)
    if found is None:
        return []
    apart = found[2] or ""
    forms = [apart.join(f"%{part}" for part in order) for order in ("dmY", "mdY", "Ymd", "mY", "Ym")]
    return [form for form in forms if written_day(text, form) is not None]


def no_day(column: str, text: str, form: str | None) -> str:
    """Why a text of a column has no period, and what to write; the text itself is not quoted."""
    if form is not None:
        return (
            f"column {column!r} has values that are not dates as format = {toml_text(form)} of [recode."
            f"{toml_key(column)}] says; correct it, or if they mean missing, list them in missing of [source]"
        )
    if forms := forms_of(text):
        written = " or ".join(f"format = {toml_text(one)}" for one in forms)
        return (
            f"column {column!r} has dates that are not written as 2026-12-31: say how they are, as in {written} under "
            f"[recode.{toml_key(column)}]"
        )
    return (
        f"column {column!r} has values that are no dates such as 2026-12-31, so they have no period; write "
        f'format = "%d/%m/%Y" under [recode.{toml_key(column)}] if they are dates in another form, and if they mean '
        "missing, list them in missing of [source]"
    )


@lru_cache
def _pattern(form: str) -> str:
    tokens = re.findall(r"%[Ymd]|[^%]", form)
    made = []
    for before, token, after in zip(["", *tokens], tokens, [*tokens[1:], ""], strict=False):
        if len(token) == 1:
            made.append(re.escape(token))
            continue
        digits = "4" if token == "%Y" else "2" if len(before) > 1 or len(after) > 1 else "1,2"
        made.append(f"(?P<{token[1]}>[0-9]{{{digits}}})")
    return "".join(made) + "([ T].*)?"
