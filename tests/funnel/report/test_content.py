"""A report's content: about one release only."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from funnel import LIP, DataError, Joint, fit, plan
from funnel.certificate import Certificate
from funnel.mechanisms import mechanism
from funnel.planning import PlanRow
from funnel.release.comparison import CertificatePart, ComparedMechanism
from funnel.release.public.public_distributions import PublicDistributions
from funnel.release.public_report import Mechanism
from funnel.report.content import ReportContent, public_line
from tests.funnel.report.contents import make_content

JOINT = Joint.from_counts([[40, 10, 5], [10, 30, 25]])


@pytest.fixture
def content() -> ReportContent:
    return make_content(JOINT, fit("grr", JOINT, LIP(1.0)), LIP(1.0))


def test_findings_about_another_bound_are_refused(content: ReportContent) -> None:
    with pytest.raises(DataError, match=r"findings are about lip:1\.0, but the report is about lip:2\.0"):
        dataclasses.replace(content, guarantee=LIP(2.0))


def test_findings_about_another_joint_distribution_are_refused(content: ReportContent) -> None:
    with pytest.raises(DataError, match="audit the release again"):
        dataclasses.replace(content, joint=Joint.from_counts([[1, 2, 3]]))


def test_notes_and_lines_are_taken_from_the_mechanisms_and_the_plan(content: ReportContent) -> None:
    rows = plan(JOINT, LIP(1.0), mechanisms=["grr", "conditional-reporting", "identity"])
    lines = [ComparedMechanism.of(row) for row in rows]
    assert [(line.mechanism, line.utility, line.reason) for line in lines] == [
        (row.mechanism, row.utility, row.reason) for row in rows
    ]
    assert Mechanism.like(mechanism("conditional-reporting")).reads_secret
    assert (content.public().secret, content.public().published) == (("S",), ("X",))


def test_a_published_line_never_says_less_than_is_known_of_better_ones(content: ReportContent) -> None:
    distributions = PublicDistributions.of(content.audited.frequencies, content.protocol)
    row = PlanRow("optimal", False, None, 0.5, 0.0, 1.0, 1.0, None, 0.6)
    for share, gap in itertools.product(
        np.linspace(0.011, 0.93, 7) * distributions.step, (0.0, 0.3 * distributions.step, 0.07)
    ):
        line = dataclasses.replace(row, share=float(share), certificate=Certificate("kept", float(gap)))
        told = public_line(ComparedMechanism.of(line), distributions, LIP(1.0))
        assert told.share + told.certificate.gap >= share + gap - 1e-9
    # What is certified of records unchanged is no share of the records: it is not rounded as these are.
    for gap, public in ((0.00001, 1e-4), (0.00042, 0.0005), (0.2, 0.2)):
        line = dataclasses.replace(row, share=0.5, certificate=Certificate("unchanged", gap, "root"))
        told = public_line(ComparedMechanism.of(line), distributions, LIP(1.0))
        assert told.certificate == CertificatePart(of="unchanged", gap=public, weights="root")


def test_a_line_says_how_much_better_another_protocol_could_be() -> None:
    row = PlanRow("optimal", False, None, 0.5, 0.25, 1.0, 1.0, None, 0.6, False)
    row = dataclasses.replace(row, certificate=Certificate.of_utility(0.5, 0.6, 0.25))
    line = ComparedMechanism.of(row)
    assert line.certificate.gap == pytest.approx(0.05)
    assert line.optimum(0.25) == (
        "its search was ended by the time limit; no protocol that reads the same keeps more than 30.0%, 5.0 points more"
    )
    unknown = dataclasses.replace(row, certificate=None)
    assert ComparedMechanism.of(unknown).optimum(0.25) == "its search was ended by the time limit"
    assert ComparedMechanism.of(dataclasses.replace(unknown, finished=True)).optimum(0.25) is None
    invariant = dataclasses.replace(row, finished=True, certificate=Certificate("unchanged", 0.00042, "uniform"))
    assert ComparedMechanism.of(invariant).optimum(0.25) == (
        "no protocol that keeps values as they are and tables right on average leaves more than 0.05 points more of "
        "the records unchanged, where every value counts alike, however rare"
    )
    by_class = dataclasses.replace(row, finished=True, certificate=Certificate("classes", 0.00042, "share"))
    assert ComparedMechanism.of(by_class).optimum(0.25) == (
        "no protocol that moves whole records by their class alone and keeps tables right on average leaves more than "
        "0.05 points more of the records unchanged, where every record counts alike"
    )
    # A bound that rounding leaves below what is kept is taken for as much.
    assert Certificate.of_utility(0.5, 0.4999, 0.25) == Certificate("kept", 0.0)
    # Of nothing that is kept anything may be possible, and a limit is never rounded down.
    assert Certificate.of_utility(0.0, 0.1, 0.0) == Certificate("kept", 1.0)
    assert Certificate("kept", 0.00011).sentence(0.25).endswith("more than 25.1%, 0.1 points more")
    assert Certificate("unchanged", 0.002, "root").sentence(0.5).startswith("no protocol that keeps values as they are")
    assert "more than 0.20 points more" in Certificate("unchanged", 0.002, "root").sentence(0.5)
    for of, weights in (("unchanged", None), ("kept", "share")):
        with pytest.raises(ValueError, match="has the weights"):
            Certificate(of, 0.002, weights)  # type: ignore[arg-type]
