"""What one cell of a source means, read anew: its text, a bin, or missing."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from functools import lru_cache
from zoneinfo import ZoneInfo

from funnel.errors import DataError
from funnel.spec import ReleaseSpec

# A number in decimal digits, as documented: digits with at most one point, perhaps a sign and an exponent.
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_EPOCH = datetime(1970, 1, 1)
# Cells come as texts that lose nothing; distinct ones are remembered, up to so many of a column.
_REMEMBERED = 1 << 17

Meaning = Callable[[str | None], str | None]
Condition = Callable[[str | None], bool]


@dataclass(frozen=True)
class Kind:
    """What kind of values a column holds, and how a cell of it comes.

    Attributes
    ----------
    name : str
        "text", "whole", "decimal", "float", "truth", "date", "time", "micros" or "nanos" since 1970.
    zone : str or None
        Of points in time: the time zone in which they are written.
    """

    name: str
    zone: str | None = None

    def __str__(self) -> str:
        return self.name if self.zone is None else f"{self.name} {self.zone}"

    @property
    def numeric(self) -> bool:
        """Whether values are numbers."""
        return self.name in ("whole", "decimal", "float")


TEXT = Kind("text")


def meaning_of(spec: ReleaseSpec, column: str, kind: Kind) -> Meaning:
    """How the cells of a column are read: what comes to the category, in its group but before
    rare ones are grouped; None is missing.

    A cell is missing if it is null, not a number among numbers, or if its text is listed as missing. Its category is
    its bin where bins are asked for, and its text as Python writes the value elsewhere; or the group of that.

    Raises
    ------
    DataError
        When called, if a cell to put into a bin is no finite number, or a time has no text.
    """
    missing, edges = frozenset(spec.source.missing), edges_of(spec, column)
    period = spec.recode[column].period if column in spec.recode else None
    form = spec.recode[column].format if column in spec.recode else None
    mark = spec.source.decimal
    labels, group = bin_labels(edges), groups_of(spec, column)
    taken = {name for name in group.values() if name not in group}

    def meaning(raw: str | None) -> str | None:
        if raw is None or (text := _text(column, kind, raw)) is None or text in missing:
            return None
        category = labels[bisect_right(edges, _number(column, kind, text, mark))] if edges else text
        if period is not None:
            category = _period(column, category, period, form)
        if category in taken:
            raise DataError(f"column {column!r} has a category named as a group of others is to be")
        return group.get(category, category)

    return lru_cache(_REMEMBERED)(meaning)


def condition_of(spec: ReleaseSpec, column: str, kind: Kind) -> Condition:
    """Whether a cell meets what ``where`` says of its column; a missing one meets nothing but that it is missing.

    Raises
    ------
    DataError
        When called, if a cell that is to be compared is no number or no date.
    """
    said, missing, mark = spec.source.where[column], frozenset(spec.source.missing), spec.source.decimal

    def meets(raw: str | None) -> bool:
        text = None if raw is None else _text(column, kind, raw)
        if text is None or text in missing:
            return said.missing is True
        if said.missing is True or text in (said.none_of or ()):
            return False
        if said.one_of is not None and text not in said.one_of:
            return False
        low = said.at_least is None or not _compared(column, kind, text, said.at_least, mark) < 0
        return low and (said.under is None or _compared(column, kind, text, said.under, mark) < 0)

    return lru_cache(_REMEMBERED)(meets)


def _compared(column: str, kind: Kind, text: str, bound: int | float | date, mark: str) -> int:
    """Below zero where the text is of a number, or a date, below a bound."""
    if not isinstance(bound, date):
        number = _number(column, kind if kind.numeric else TEXT, text, mark)
        return -1 if number < bound else int(number > bound)
    day = "-".join(_date(column, text))
    return -1 if day < bound.isoformat() else int(day > bound.isoformat())


def _period(column: str, text: str, period: str, form: str | None) -> str:
    """The year, quarter or month of a date, or of a point in time."""
    year, month, _ = _date(column, text) if form is None else _date_in(column, text.strip(), form)
    if period == "quarter":
        return f"{year}-Q{-(-int(month) // 3)}"
    return year if period == "year" else f"{year}-{month}"


def _date(column: str, text: str) -> tuple[str, str, str]:
    found = re.fullmatch(r"([0-9]{4})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])([ T].*)?", text, re.DOTALL)
    if found is None:
        raise DataError(f"column {column!r} has values that are no dates, so it has neither periods nor an order")
    return found[1], found[2], found[3]


def _date_in(column: str, text: str, form: str) -> tuple[str, str, str]:
    """Year, month and day of a date in a form such as ``%d.%m.%Y``; what it lacks is the first."""
    first, *parts = re.split("%(.)", form)
    pattern = re.escape(first)
    for k in range(0, len(parts), 2):
        # Where parts touch each other, all their digits are there.
        touches = (k > 0 and not parts[k - 1]) or (k + 2 < len(parts) and not parts[k + 1])
        digits = "{4}" if parts[k] == "Y" else "{2}" if touches else "{1,2}+"
        pattern += f"(?P<{parts[k]}>[0-9]{digits}){re.escape(parts[k + 1])}"
    found = re.match(pattern, text)
    if found is None:
        raise DataError(f"column {column!r} has values that are no dates in the format of the spec")
    if text[found.end() :] and text[found.end()] not in " T":
        raise DataError(f"column {column!r} has dates with more behind them than a time")
    known = {"m": "01", "d": "01", **{name: digits.rjust(2, "0") for name, digits in found.groupdict().items()}}
    try:
        date(int(known["Y"]), int(known["m"]), int(known["d"]))
    except ValueError:
        raise DataError(f"column {column!r} has dates that are in no calendar") from None
    return known["Y"], known["m"], known["d"]


def edges_of(spec: ReleaseSpec, column: str) -> tuple[int | float, ...]:
    """The edges of the bins of a column; none where it is not put into bins."""
    recode = spec.recode.get(column)
    return () if recode is None else tuple(recode.edges)


def groups_of(spec: ReleaseSpec, column: str) -> dict[str, str]:
    """The group of every category of a column that the spec puts into one."""
    recode = spec.recode.get(column)
    found: dict[str, str] = {}
    for name, members in ({} if recode is None or recode.groups is None else recode.groups).items():
        found.update(dict.fromkeys(members, name))
    return found


def bin_labels(edges: tuple[int | float, ...]) -> tuple[str, ...]:
    """Names of the bins between edges: ``under 25``, ``25 to under 65``, ``65 and over``."""
    if not edges:
        return ()
    names = [_plain(edge) for edge in edges]
    inner = [f"{names[k]} to under {names[k + 1]}" for k in range(len(names) - 1)]
    return (f"under {names[0]}", *inner, f"{names[-1]} and over")


def is_decimal(text: str) -> bool:
    """Whether a text is a number in decimal digits."""
    return _NUMBER.fullmatch(text) is not None


def _plain(edge: int | float) -> str:
    """A whole number without a point, up to 10^15; any other as Python writes it."""
    if isinstance(edge, float) and edge == math.floor(edge) and abs(edge) < 10**15:
        return str(math.floor(edge))
    return str(edge)


def _number(column: str, kind: Kind, text: str, mark: str = ".") -> int | float:
    if kind.name == "whole":
        return int(text)
    if kind.name == "text":
        text = text.strip()
        if mark != ".":
            text = text.translate({ord(mark): ".", ord("."): mark})
        if not is_decimal(text):
            raise DataError(f"column {column!r} has values that are not numbers, so they belong to no bin")
    value = float(text)
    if not math.isfinite(value):
        raise DataError(f"column {column!r} has infinite numbers, which belong to no bin")
    return value


def _text(column: str, kind: Kind, raw: str) -> str | None:
    if kind.name == "float":
        value = float(raw)
        return None if math.isnan(value) else repr(value)
    if kind.name == "decimal":
        return str(Decimal(raw))
    if kind.name == "truth":
        return {"true": "True", "false": "False"}[raw]
    if kind.name in ("micros", "nanos"):
        return _point_in_time(column, kind, int(raw))
    if kind.name == "time":
        return str(time.fromisoformat(raw))
    if kind.name == "date" and not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", raw):
        raise DataError(f"column {column!r} has dates outside the years 1 to 9999, which have no text")
    return raw


def _point_in_time(column: str, kind: Kind, count: int) -> str:
    micros, nanos = divmod(count, 1000) if kind.name == "nanos" else (count, 0)
    sentence = f"column {column!r} has a time that has no text, as its year lies outside 1 to 9999"
    try:
        moment = _EPOCH + timedelta(microseconds=micros)
        if kind.zone is not None:
            moment = moment.replace(tzinfo=UTC).astimezone(_zone(kind.zone))
    except (OverflowError, ValueError):
        raise DataError(sentence) from None
    text = str(moment.replace(tzinfo=None))
    if nanos:
        text = f"{text if '.' in text else text + '.000000'}{nanos:03d}"
    return text + str(moment)[len(str(moment.replace(tzinfo=None))) :]


def _zone(name: str) -> timezone | ZoneInfo:
    fixed = re.fullmatch(r"([+-])([0-9]{2}):([0-9]{2})", name)
    if fixed:
        shift = timedelta(hours=int(fixed[2]), minutes=int(fixed[3]))
        return timezone(-shift if fixed[1] == "-" else shift)
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise DataError(f"the time zone {name!r} is unknown here, so its times have no text") from None
