"""What both reports say of the protection of the frequencies: with noise, with grouping, and with nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from funnel import LIP, Joint, fit, parse_guarantee
from funnel.findings import Audited, DrawnRelease, audit_release
from funnel.frequencies.public_counts import Frequencies, protect
from funnel.report.content import ReportContent
from funnel.report.internal import render_internal
from funnel.report.public import public_report, render_public
from funnel.settings.protection_settings import FrequencySettings
from tests.funnel.report.contents import expected_pairs, make_content, public_page, read_page
from tests.funnel.report.test_internal import document as internal_of
from tests.public import protection_of

COUNTED = Joint.from_counts([[300, 100, 250], [100, 500, 400]], secret=["ill", "well"])
SETTINGS = FrequencySettings(protection="noise", epsilon=1.0, beta=0.01)


def noisy_content(bound: Any, spent_before: float = 0.0, unprotected: int = 0) -> ReportContent:
    frequencies = protect(COUNTED, SETTINGS, spent_before=spent_before)
    protocol = fit("grr", frequencies.joint, bound)
    pairs = expected_pairs(COUNTED, protocol)
    audited = Audited.of(frequencies, DrawnRelease(protocol, bound, pairs))
    content = make_content(
        COUNTED,
        protocol,
        bound,
        findings=audit_release(COUNTED, DrawnRelease(protocol, bound, pairs), audited=audited),
        audited=audited,
        protection=protection_of(frequencies, unprotected),
    )
    return replace(content, source=replace(content.source, rows_dropped=None))


def test_noise_is_explained_with_what_it_costs_and_for_whom_the_bound_holds() -> None:
    content = noisy_content(LIP(1.0), spent_before=1.5, unprotected=2)
    numbers = public_report(content)
    page = read_page(render_public(numbers))
    said = page.sections["frequencies"]
    for words in (
        "made from noisy counts and never from the exact ones",
        "frequencies.json",
        "ε = 1: one record more or less",
        "at most 2.72 times",
        "one record with another value, at most 7.39 times",
        "ε = 2.5; 2 versions before this one were published without noise",
        "For an observer who knows the public counts, and for an observer who knows the exact ones",
        "at most 0.01 (β)",
        "two versions show whether they were made from one and the same source",
    ):
        assert words in said, words
    assert "as counts with noise" in page.sections["limits"]
    # What is counted exactly of people is not told.
    assert (numbers.figures.outside, numbers.figures.consistency, numbers.source.dropped) == (None, None, None)
    assert "unknown value" not in page.sections["judged"]
    assert "left out" not in page.sections["provenance"]
    assert numbers.source.records == content.audited.rows


@pytest.mark.parametrize("unit", [(), ("id",)])
def test_noisy_counts_are_named_where_estimates_take_them(unit: tuple[str, ...]) -> None:
    """Of people with several rows they are of first rows alone, which estimates about all rows leave out."""
    report = public_report(noisy_content(LIP(1.0))).model_copy(update={"unit": unit})
    assert ("takes the noisy counts with them" in render_public(report)) is not bool(unit)


def test_what_the_spec_declares_is_told_as_it_is() -> None:
    # All other figures have four digits; this one is held against the other documents.
    content = noisy_content(LIP(1.0), spent_before=4.9375)
    assert public_report(content).frequencies.spent == 5.9375


def test_a_guarantee_that_is_not_decided_over_noise_says_so() -> None:
    said = public_page(noisy_content(parse_guarantee("mi:0.05"))).sections["frequencies"]
    assert "For an observer who knows the public counts." in said
    assert "is not proven over the noise" in said
    assert "for an observer who knows the exact ones" not in said


def test_the_internal_report_has_both_levels_and_whether_the_counts_are_within() -> None:
    content = noisy_content(LIP(1.0))
    bounds = content.audited.frequencies.joint.bounds
    said = read_page(render_internal(internal_of(content))).sections["frequencies"]
    assert ("are among those" in said) == bounds.hold(COUNTED.counts)
    assert f"{content.audited.distribution.level!r} nats for every table of counts" in said
    assert f"{content.findings.level!r} for an observer who knows the exact counts" in said
    outside = replace(content, joint=Joint.from_counts(COUNTED.counts + 1000, COUNTED.secret, COUNTED.inputs))
    said = read_page(render_internal(internal_of(outside))).sections["frequencies"]
    assert "are not among those" in said


@pytest.mark.parametrize(
    ("text", "summary", "limits"),
    [
        (
            "rlip:1.0,0.05",
            "with confidence 94 % (1 − α − β)",
            "(with confidence 94 %: 1 − α − β, for the sample and the",
        ),
        (
            "rldp:1.0,0.2",
            "with confidence 79 % (1 − α − β)",
            "(with confidence 79 %: 1 − α − β, for the sample and the",
        ),
        # It does not cover the noise, and does not claim to.
        ("rldp:1.0,0.05,chi2", None, "(with confidence 95 %), not about"),
        ("lip:1.0", None, "With confidence 94 %, over random samples of these people, it is at most"),
    ],
)
def test_what_the_noise_may_do_is_taken_off_the_confidence(text: str, summary: str | None, limits: str) -> None:
    page = public_page(noisy_content(parse_guarantee(text)))
    assert limits in page.sections["limits"].replace("\u00a0", " ")
    assert (summary in page.sections["summary"]) if summary else ("β" not in page.sections["summary"])


@pytest.mark.parametrize(
    ("protection", "loud"),
    [("none", "Nothing but rounding."), ("threshold", "Grouping of rare combinations, and rounding.")],
)
def test_what_is_not_protected_is_said_first(protection: Any, loud: str) -> None:
    content = make_content(COUNTED, fit("grr", COUNTED, LIP(1.0)), LIP(1.0))
    frequencies = Frequencies(COUNTED, protection)
    content = replace(
        content,
        audited=replace(content.audited, frequencies=frequencies),
        protection=protection_of(frequencies),
    )
    for html in (render_public(public_report(content)), render_internal(internal_of(content))):
        said = read_page(html).sections["frequencies"]
        assert said.split("frequencies", 1)[1].strip().startswith(loud)
        assert "exact counts" in said
