"""How messages word things: the nearest known name, lists of names, names as a spec file spells them."""

from __future__ import annotations

import decimal
import difflib
import json
import re
from collections.abc import Iterable
from fractions import Fraction


def nearest(name: str, known: Iterable[str], cutoff: float = 0.5) -> str | None:
    """The known name most like ``name``, whatever the case and ``_``, ``-`` or spaces; None if none is near."""
    plain = {_plain(candidate): candidate for candidate in reversed(list(known))}
    close = difflib.get_close_matches(_plain(name), plain, n=1, cutoff=cutoff)
    return plain[close[0]] if close else None


def same_name(name: str, other: str) -> bool:
    """Whether two names differ in nothing but case, ``_``, ``-`` and spaces."""
    return _plain(name) == _plain(other)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``"; did you mean …?"``, or nothing when no known name is near."""
    near = nearest(name, known)
    return f"; did you mean {near}?" if near else ""


def listed(names: Iterable[str], limit: int = 60) -> str:
    """Names joined by commas, cut off with the number of the others after ``limit`` of them."""
    every = [name if name.isprintable() else repr(name) for name in names]
    rest = f" and {len(every) - limit:,} more" if len(every) > limit else ""
    return ", ".join(every[:limit]) + rest


def names_in(texts: Iterable[str], known: Iterable[str] = ()) -> tuple[str, ...]:
    """Names, each once, from texts with commas between them; a text that is a known name is that name."""
    every = frozenset(known)
    parts = (part for text in texts for part in ([text] if text.strip() in every else text.split(",")))
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))


def confidence(*missed: float) -> str:
    """``"94 %"``: how surely something holds that each of these probabilities may spoil, in decimals as written."""
    left = 100 * max(Fraction(0), 1 - sum((Fraction(repr(float(one))) for one in missed), Fraction(0)))
    return f"{plain_number(float(left))} %"


def printable(text: str) -> str:
    """A text on one line, with an escape for every character that a terminal would obey rather than show."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def toml_key(name: str) -> str:
    """A name as a TOML key: bare where that is allowed, in quotes otherwise."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_text(name)


def toml_text(value: str) -> str:
    """A text as a basic string of TOML, which escapes as JSON does, but also what is no ASCII control character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def plain_number(value: int | float) -> str:
    """A number as people write it: without a decimal point where it is whole."""
    whole = isinstance(value, int) or (value.is_integer() and abs(value) < 1e15)
    return str(int(value)) if whole else repr(value)


def at_most(limit: float, digits: int = 3) -> str:
    """A limit with so many significant digits, rounded up: what is written is one that holds."""
    context = decimal.Context(prec=digits, rounding=decimal.ROUND_CEILING)
    return f"{float(context.create_decimal(repr(float(limit)))):.{digits}g}"


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "-", name.strip().casefold())
