"""A report's content: about one release only, and passed only if something was checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from funnel import LIP, DataError, Joint, fit, plan
from funnel.report import MechanismNote, PlanLine, ReportContent, VerdictLine

JOINT = Joint.from_counts([[40, 10, 5], [10, 30, 25]])


@pytest.fixture
def content(make_content: Callable[..., ReportContent]) -> ReportContent:
    return make_content(JOINT, fit("grr", JOINT, LIP(1.0)), LIP(1.0))


def test_a_release_passes_only_if_the_bound_holds_and_every_check_of_at_least_one_passed(
    content: ReportContent,
) -> None:
    bad = VerdictLine("row_count", "", False, "0 rows")
    broken = dataclasses.replace(content.findings, holds=False)
    assert content.passed
    assert not dataclasses.replace(content, verdict=()).passed
    assert not dataclasses.replace(content, verdict=(*content.verdict, bad)).passed
    assert dataclasses.replace(content, verdict=(*content.verdict, bad)).failed == (bad,)
    assert not dataclasses.replace(content, findings=broken).passed


def test_findings_about_another_bound_are_refused(content: ReportContent) -> None:
    with pytest.raises(DataError, match=r"findings are about lip:1\.0, but the report is about lip:2\.0"):
        dataclasses.replace(content, guarantee=LIP(2.0))


def test_findings_about_another_joint_law_are_refused(content: ReportContent) -> None:
    with pytest.raises(DataError, match="audit the release again"):
        dataclasses.replace(content, joint=Joint.from_counts([[1, 2, 3]]))


def test_notes_and_lines_are_taken_from_the_mechanisms_and_the_plan(content: ReportContent) -> None:
    rows = plan(JOINT, LIP(1.0), mechanisms=["grr", "conditional-reporting", "identity"])
    lines = [PlanLine.of(row) for row in rows]
    assert [(line.mechanism, line.utility, line.reason) for line in lines] == [
        (row.mechanism, row.utility, row.reason) for row in rows
    ]
    assert MechanismNote.of("conditional-reporting").reads_secret
    assert (content.public().secret, content.public().published) == (("S",), ("X",))
