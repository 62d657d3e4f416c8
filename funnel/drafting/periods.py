"""Periods: the years or months of a column of dates, with their records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from funnel.drafting.look import Column
from funnel.readers.days import day_of, forms_of, written_day

# Years or months from the first to the last that are listed, those that nobody has among them.
_LISTED = 240


@dataclass(frozen=True)
class Periods:
    """The periods of a column of dates.

    Attributes
    ----------
    period : str
        "year" or "month".
    form : str or None
        How the dates are written; None as 2026-12-31.
    counts : mapping of str to int
        Records by period, the earliest first; with those between them that no record has, so that a later version may
        have them.
    """

    period: str
    form: str | None
    counts: Mapping[str, int]


def day_forms(column: Column) -> list[str]:
    """The forms in which all values of a column are days, which no number is by chance; none if they are no days."""
    if column.kind not in ("text", "number"):
        return []
    forms: list[str] | None = None
    for text in column.counts:
        found = [form for form in forms_of(text) if "%d" in form]
        if column.kind == "number":
            found = [form for form in found if form == "%Y%m%d" and text.strip()[:2] in ("19", "20")]
        forms = found if forms is None else [form for form in forms if form in found]
        if not forms:
            return []
    return forms or []


def periods_of(column: Column, most: int) -> Periods | None:
    """The periods of dates: months, where these are few or of one year, and else years; None for what is no date."""
    form = None
    if column.kind != "date":
        forms = day_forms(column)
        if len(forms) != 1:
            return None
        form = forms[0]
    days = _days(column, form)
    if not days or (column.kind == "date" and column.values <= most):
        return None
    months, years = {(day.year, day.month) for day in days}, {day.year for day in days}
    period = "month" if len(months) <= max(most, 2) or len(years) == 1 else "year"
    return Periods(period, form, period_counts(column, period, form))


def _days(column: Column, form: str | None) -> Counter[date]:
    days: Counter[date] = Counter()
    for text, count in column.counts.items():
        day = day_of(text) if form is None else written_day(text, form)
        if day is not None:
            days[day] += count
    return days


def period_counts(column: Column, period: str, form: str | None) -> dict[str, int]:
    """Records by year or month, the earliest first, with those between them that no record has."""
    by_month = period == "month"
    places: Counter[int] = Counter()
    for day, count in _days(column, form).items():
        places[12 * day.year + day.month - 1 if by_month else day.year] += count
    span: Sequence[int] = range(min(places), max(places) + 1)
    if len(span) > _LISTED:
        span = sorted(places)
    return {f"{k // 12:04}-{k % 12 + 1:02}" if by_month else f"{k:04}": places[k] for k in span}


def name_of_periods(run: Sequence[str], runs: Sequence[Sequence[str]]) -> str:
    """The name of neighbouring periods: with all before them, or after, where they are the first or the last."""
    if len(run) == 1:
        return run[0]
    if run == runs[0]:
        return f"{run[-1]} or earlier"
    if run == runs[-1]:
        return f"{run[0]} or later"
    return f"{run[0]} or {run[1]}" if len(run) == 2 else f"{run[0]} to {run[-1]}"
