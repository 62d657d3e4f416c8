"""The internal report: exact, a function of its document, attacks in order, and safe with any label."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from funnel import LIP, Joint, fit, measures
from funnel.release.comparison import ComparedMechanism
from funnel.release.internal_report import AttackFigures, InternalReport, LearnedFigures
from funnel.release.verdict import Judgement, Verdict
from funnel.report.content import ReportContent
from funnel.report.internal import attacks, internal_report, observed, render_internal
from funnel.source.side_columns import SideColumn, SideKnowledge
from tests.funnel.report.contents import make_content, read_page

JOINT = Joint.from_counts([[400, 100, 1, 20], [100, 300, 250, 0], [30, 60, 20, 9]])
EVIL = '<script>alert(1)</script>"><b>'
PASSED = Judgement(name="expect_rows", description="Rows are there.", passed=True, observed={"rows": 1290, "all": True})
NO_FOREST = LearnedFigures(reason="scikit-learn is not installed")


def beside(joint: Joint) -> SideKnowledge:
    """A column that tells the secret, one that tells nothing, and one that was left out."""
    c, a = joint.counts.shape
    telling = np.zeros((c, a, c), dtype=np.int64)
    telling[np.arange(c), :, np.arange(c)] = joint.counts
    silent = np.stack([joint.counts - joint.counts // 2, joint.counts // 2], axis=2)
    sample = np.column_stack([np.repeat(np.arange(c), 30), np.tile(np.arange(a), 3 * 30)[: 30 * c]])
    columns = (
        SideColumn("tells", telling, c, False, None),
        SideColumn("silent", silent, 2, True, None),
        SideColumn("name", None, 0, False, "it has more than 100 values"),
    )
    return SideKnowledge(columns, sample, ())


def document(content: ReportContent, **changes: Any) -> InternalReport:
    known = beside(content.joint)
    settings: dict[str, Any] = {
        "alone": attacks.alone(content.joint, content.protocol),
        "beside": attacks.with_side_columns(content.joint, content.protocol, known),
        "versions": (AttackFigures(knows="version 1.0.0 as well", reason="its protocol is gone"),),
        "learned": NO_FOREST,
        "software": {"funnel": "0.1.0"},
        "verdict": Verdict.of((PASSED,)),
        "compared": (),
    }
    settings.update(changes)
    found = attacks.Attacks(*(settings.pop(name) for name in ("alone", "beside", "versions", "learned")))
    return internal_report(content, settings.pop("verdict"), settings.pop("compared"), found, **settings)


@pytest.fixture(scope="module")
def content() -> ReportContent:
    return make_content(JOINT, fit("optimal", JOINT, LIP(0.5)), LIP(0.5))


def test_the_page_is_a_function_of_its_document_alone(content: ReportContent) -> None:
    made = document(content)
    again = InternalReport.from_json(made.to_bytes())
    assert render_internal(again) == render_internal(made)
    page = read_page(render_internal(made))
    assert list(page.sections) == [
        "summary",
        "frequencies",
        "attacks",
        "versions",
        "exact",
        "sparse",
        "estimation",
        "verdict",
        "mechanisms",
        "environment",
    ]
    assert page.sections["summary"].startswith("Pass")


def test_figures_are_exact(content: ReportContent) -> None:
    page = read_page(render_internal(document(content)))
    found = content.findings
    assert found.level_ratio is not None
    for exact in (found.level_ratio, repr(found.level), repr(found.utility), repr(found.secret_information)):
        assert exact in page.sections["exact"]
    assert found.witness_output in page.sections["exact"]
    assert "Rows are there. expect_rows all: yes, rows: 1,290" in page.sections["verdict"]


def test_sparse_combinations_are_counted_and_the_rarest_named(content: ReportContent) -> None:
    made = document(content).sparse
    assert (made.combinations, made.empty, made.single, made.below_five, made.below_ten) == (12, 1, 1, 1, 2)
    assert [row.records for row in made.rarest] == sorted(JOINT.counts[JOINT.counts > 0].tolist())
    text = read_page(render_internal(document(content))).sections["sparse"]
    assert "1 does not occur, 1 is of a single record, 1 of fewer than 5 and 2 of fewer than 10" in text


def test_lifts_come_with_the_records_they_are_of(content: ReportContent) -> None:
    exact = measures.lift(JOINT, content.protocol)
    rows = document(content).lifts
    sizes = [abs(np.log(row.lift)) if row.lift else np.inf for row in rows]
    assert sizes == sorted(sizes, reverse=True)
    for row in rows:
        s = JOINT.secret.labels.index(row.secret)
        y = content.protocol.outputs.labels.index(row.output)
        assert row.lift == exact[s, y]
        assert row.secret_records == JOINT.counts[s].sum()
        assert row.lift == pytest.approx(row.both_expected * JOINT.n / (row.secret_records * row.output_expected))


def test_attackers_are_listed_worst_first_and_what_was_left_out_last(content: ReportContent) -> None:
    found = attacks.with_side_columns(content.joint, content.protocol, beside(content.joint))
    assert [one.knows for one in found] == ["silent", "tells", "name"]
    assert (found[1].before, found[1].after) == (pytest.approx(1), pytest.approx(1))
    assert (found[0].values, found[0].classes) == (2, True)
    text = read_page(render_internal(document(content))).sections["attacks"]
    assert text.index("silent (2 classes)") < text.index("tells (3 values)") < text.index("name")
    assert "not computed: it has more than 100 values" in text
    assert "No classifier was trained: scikit-learn is not installed." in text


def test_a_protocol_that_reads_the_secret_is_attacked_alike() -> None:
    protocol = fit("conditional-reporting", JOINT, LIP(0.5))
    alone = attacks.alone(JOINT, protocol)
    assert alone.after == pytest.approx(measures.guess_accuracy(JOINT, protocol, "secret"))
    found = {one.knows: one for one in attacks.with_side_columns(JOINT, protocol, beside(JOINT))}
    assert found["tells"].after == pytest.approx(1)
    # Halves of every cell, as nearly as whole records can be: what the column tells is next to nothing.
    assert found["silent"].after == pytest.approx(alone.after, abs=0.01)
    learned = attacks.learned(beside(JOINT), JOINT, protocol)
    assert learned.trained == 45


def test_a_failed_judgement_is_shown_with_its_reason(content: ReportContent) -> None:
    failed = Judgement(name="expect_b", description="B holds.", passed=False, failure="3 instead of 2")
    page = read_page(render_internal(document(content, verdict=Verdict.of((PASSED, failed)))))
    assert page.sections["summary"].startswith("Fail")
    assert "1 of 2 expectations failed: expect_b." in page.sections["summary"]
    assert "Fail B holds. expect_b 3 instead of 2" in page.sections["verdict"]


def test_hostile_texts_do_nothing() -> None:
    joint = Joint.from_counts(JOINT.counts, [EVIL, "b", "c"], [EVIL, "x", "y", "z"])
    content = make_content(joint, fit("grr", joint, LIP(0.5)), LIP(0.5), title=EVIL, name=EVIL, version=EVIL)
    judged = Judgement(name=EVIL, description=EVIL, passed=True, observed=[EVIL, {EVIL: EVIL}])
    compared = ComparedMechanism(
        mechanism=EVIL, reads_secret=False, usable=True, utility=0.1, share=0.1, level=0.1, certificate=None,
        finished=True, seconds=0.1, reason=EVIL,
    )  # fmt: skip
    page = read_page(
        render_internal(
            document(
                content, verdict=Verdict.of((judged,)), compared=(compared,), software={EVIL: EVIL},
                beside=(AttackFigures(knows=EVIL, reason=EVIL),), learned=LearnedFigures(reason=EVIL),
            )
        )
    )  # fmt: skip
    assert "script" not in page.tags
    assert "b" not in page.tags
    assert page.text.count(EVIL) > 12


def test_observations_are_words_and_digits() -> None:
    assert observed({"a": [1234, None], "b": True}) == "a: 1,234, , b: yes"
    assert observed(0.25) == "0.25"


def test_records_that_are_left_out_or_merged_are_told(content: ReportContent) -> None:
    told = ("250 of 10,000 records (2.5%) are left out: column 's' has values of them that have no category",)
    page = read_page(render_internal(document(content, set_aside=told)))
    assert "set-aside" in page.sections
    assert told[0] in render_internal(document(content, set_aside=told)).replace("&#39;", "'")
    assert "set-aside" not in read_page(render_internal(document(content))).sections
