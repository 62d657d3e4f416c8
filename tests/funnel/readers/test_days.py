"""Dates in the forms that people write: read as the spec says, and never guessed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.errors import DataError, SpecError
from funnel.progress import quiet
from funnel.readers.days import forms_of, written_day
from funnel.recount.cells import TEXT, meaning_of
from funnel.recount.source import recount
from funnel.source.counting import count_joint
from funnel.spec import ReleaseSpec
from tests.projects import spec_of

Refusal = Callable[..., str]
FORMS = ["%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d", "%Y%m%d", "%d%m%Y", "%d-%m-%Y", "%Y-%m-%d", "%m/%Y", "%Y"]


@lru_cache
def quarters(form: str) -> ReleaseSpec:
    period = "year" if form == "%Y" else "quarter"
    return spec_of("t.csv", ".", recode={"x": {"period": period, "format": form}})


def meant(form: str, text: str) -> str | None:
    """What the second reader makes of a text."""
    return meaning_of(quarters(form), "x", TEXT)(text)


@given(st.dates(date(1000, 1, 1)), st.sampled_from(FORMS), st.sampled_from(["", " 10:15", "T10:15:00"]))
def test_what_is_written_is_read(day: date, form: str, time: str) -> None:
    text = day.strftime(form) + time
    found = written_day(text, form)
    assert found is not None
    assert found.strftime(form) + time == text
    assert form in ("%Y", "%m/%Y") or found == day
    expected = f"{day.year}" if form == "%Y" else f"{day.year}-Q{(day.month + 2) // 3}"
    assert meant(form, text) == expected


@given(st.from_regex(r"[0-9]{1,4}[/. -]?[0-9]{0,4}[/. -]?[0-9]{0,4}( x)?", fullmatch=True), st.sampled_from(FORMS))
def test_both_readers_take_the_same_for_dates(text: str, form: str) -> None:
    found = written_day(text, form)
    try:
        again = meant(form, text)
    except DataError:
        assert found is None
    else:
        assert found is not None
        assert again is not None
        assert again.startswith(f"{found.year:04}")


@given(st.from_regex(r"[0-9]{1,2}[/.-][0-9]{1,2}[/.-][0-9]{4}", fullmatch=True), st.sampled_from(FORMS))
def test_no_other_date_than_the_library_reads(text: str, form: str) -> None:
    found = written_day(text, form)
    if found is not None and "%d" in form and not form.startswith(("%Y%", "%d%")):
        assert found == datetime.strptime(text, form).date()


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("31/12/2020", ["%d/%m/%Y"]),
        ("12/31/2020", ["%m/%d/%Y"]),
        ("01/02/2020", ["%d/%m/%Y", "%m/%d/%Y"]),
        ("1.2.2020 10:15", ["%d.%m.%Y", "%m.%d.%Y"]),
        ("20201231", ["%Y%m%d"]),
        ("2020/12/31", ["%Y/%m/%d"]),
        ("12/2020", ["%m/%Y"]),
        ("31/12/20", []),
        ("12-DEC-2020", []),
        ("Zebediah", []),
    ],
)
def test_the_forms_that_a_text_may_have(text: str, forms: list[str]) -> None:
    assert forms_of(text) == forms


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        ("31/12/2020", 'as in format = "%d/%m/%Y" under [recode.x]'),
        ("01/02/2020", 'as in format = "%d/%m/%Y" or format = "%m/%d/%Y" under [recode.x]'),
        ("20201231", 'as in format = "%Y%m%d" under [recode.x]'),
        ("Zebediah", "are no dates such as 2026-12-31"),
    ],
)
def test_dates_in_another_form_say_what_to_write(workshop: Any, refusal: Refusal, value: str, advice: str) -> None:
    spec = workshop.csv({"s": ["a", "b"], "x": [value, value]}, recode={"x": {"period": "year"}})
    assert advice in refusal(lambda: count_joint(spec, quiet), value)


def test_whole_numbers_are_dates_too(workshop: Any) -> None:
    recode = {"x": {"period": "month", "format": "%Y%m%d"}}
    spec = workshop.parquet({"s": ["a", "b", "a"], "x": [20201231, 20210101, None]}, recode=recode)
    joint = count_joint(spec, quiet)
    assert joint.inputs.labels == ("2020-12", "2021-01", "(missing)")
    assert recount(spec).table(joint.secret.symbols, joint.inputs.symbols) == joint.counts.tolist()


def test_a_date_that_is_not_in_the_form_is_refused(workshop: Any, refusal: Refusal) -> None:
    recode = {"x": {"period": "year", "format": "%d/%m/%Y"}}
    for value in ("12/31/2020", "2020-12-31", "31/12/20", "31/12/2020x"):
        spec = workshop.csv({"s": ["a", "b"], "x": ["31/12/2020", value]}, recode=recode)
        assert 'format = "%d/%m/%Y" of [recode.x]' in refusal(lambda spec=spec: count_joint(spec, quiet), value)
        refusal(lambda spec=spec: recount(spec), value)


@pytest.mark.parametrize(
    ("form", "period", "why"),
    [
        ("%d/%m/%y", "year", "leave its century open"),
        ("%d/%m", "month", "must have %Y"),
        ("%d/%b/%Y", "month", "must have %Y"),
        ("%Y/%Y", "year", "once each"),
        ("%Y/%d", "quarter", "add %m to format"),
        ("%Y1%m", "month", "digits between"),
        ("%Y%", "year", "must have %Y"),
        ("%d/%m/%Y", None, "no period"),
    ],
)
def test_forms_that_say_too_little_are_refused(form: str, period: str | None, why: str) -> None:
    recode = {"format": form, **({"minimum_count": 2} if period is None else {"period": period})}
    with pytest.raises(SpecError, match=why):
        spec_of("t.csv", Path(), recode={"x": recode})
