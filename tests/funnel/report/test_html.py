"""The page: self-contained, well formed, safe with any label, and true to the findings."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from funnel import LDP, LIP, Alphabet, Guarantee, Joint, PerfectPrivacy, fit, plan
from funnel.findings.consistency import Consistency
from funnel.mechanisms import mechanism
from funnel.planning import PlanRow
from funnel.release.comparison import comparison_document
from funnel.release.public_report import Approval, Change, Contact, Judged, Licence, Mechanism, PublicReport, Reference
from funnel.report import number_texts
from funnel.report.content import ReportContent, SourceNote
from funnel.report.public import public_report, render_public
from tests.funnel.report.contents import NOVEL, make_content, make_protocol, public_page, read_page
from tests.public import audited_again

JOINT = Joint.from_counts(
    [[400, 100, 50, 20], [100, 300, 250, 90], [30, 60, 20, 10]],
    Alphabet(("status",), (("single",), ("married",), ("widowed",))),
    Alphabet(("schooling",), (("primary",), ("secondary",), ("bachelor",), ("doctorate",))),
)
SECTIONS = [
    "summary",
    "person",
    "frequencies",
    "limits",
    "rare",
    "utility",
    "protocol",
    "leakage",
    "judged",
    "change",
    "provenance",
]
HOSTILE = ("<script>alert(1)</script>", "$x_1$", "a\n\nb", "w" * 200, "مرحبا", "👩‍👩‍👧", "{{ 7*7 }}", '"><img src=x>')


def _plain(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module")
def lip() -> ReportContent:
    guarantee = LIP(0.5)
    rows = plan(JOINT, guarantee)
    return make_content(
        JOINT, fit("optimal", JOINT, guarantee), guarantee, outside=4, plan=comparison_document(rows).rows
    )


@pytest.fixture(scope="module")
def ldp() -> ReportContent:
    return make_content(JOINT, fit("optimal", JOINT, LDP(0.5)), LDP(0.5), earlier_releases=2)


@pytest.fixture(scope="module")
def lip_page(lip: ReportContent) -> Any:
    return public_page(lip)


@pytest.fixture(scope="module")
def ldp_page(ldp: ReportContent) -> Any:
    return public_page(ldp)


@pytest.mark.parametrize("kind", ["lip", "ldp"])
def test_the_page_is_well_formed_and_needs_nothing_from_elsewhere(kind: str, request: pytest.FixtureRequest) -> None:
    page = request.getfixturevalue(f"{kind}_page")
    assert list(page.sections) == SECTIONS
    assert "script" not in page.tags
    assert page.tags.count("title") == page.tags.count("h1") == page.tags.count("main") == 1
    values = {(tag, name): value for tag, name, value in page.attributes}
    assert values["html", "lang"] == "en"
    policies = [value for _, _, value in page.attributes if value.startswith("default-src")]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]
    for tag, name, value in page.attributes:
        if name in ("src", "srcset", "data", "poster", "action", "href", "xlink:href"):
            inner = value.startswith(("#", "data:")) or value == "annex.html"
            assert inner or (tag == "a" and value.startswith("https://")), (tag, name, value)
        assert not name.startswith("on")


def test_every_link_inside_the_page_leads_somewhere(lip_page: Any) -> None:
    page = lip_page
    for _, name, value in page.attributes:
        if name in ("href", "xlink:href", "aria-labelledby") and not value.startswith(("http", "data:", "annex.html")):
            assert value.removeprefix("#") in page.ids


def test_tables_have_captions_and_headers_and_figures_a_text(lip_page: Any) -> None:
    page = lip_page
    assert page.tags.count("caption") == page.tags.count("table") == 6
    assert page.tags.count("figure") == page.tags.count("figcaption") == 1
    scopes = [value for tag, name, value in page.attributes if tag == "th" and name == "scope"]
    assert len(scopes) == page.tags.count("th")
    assert set(scopes) == {"col", "row"}
    (picture,) = [value for _, name, value in page.attributes if name == "aria-label" and value.startswith("Chart")]
    assert picture == (
        "Chart of 3 values of the secret, from no change outwards, with the limits of the guarantee. "
        "The table below gives the numbers."
    )


def test_the_styles_need_nothing_from_elsewhere(lip: ReportContent) -> None:
    styles = "".join(re.findall(r"<style>(.*?)</style>", render_public(public_report(lip)), flags=re.DOTALL))
    assert len(styles) > 3000
    assert "url(" not in styles
    assert "@import" not in styles
    for needed in ("@media print", "print-color-adjust:exact", "prefers-color-scheme: dark", "size:A4"):
        assert needed in styles


@pytest.mark.parametrize("kind", ["lip", "ldp"])
def test_the_numbers_are_those_of_the_findings(kind: str, request: pytest.FixtureRequest) -> None:
    content: ReportContent = request.getfixturevalue(kind)
    public, page = content.public().findings, request.getfixturevalue(f"{kind}_page")
    findings = public.figures
    numerator, denominator = content.findings.level_ratio.split("/")
    # Beside the published protocol the exact fraction would tell exact counts of people.
    assert numerator not in page.text
    assert denominator not in page.text
    assert "at most 1.65; the exact number is in" in page.sections["leakage"]
    assert repr(content.findings.level) not in page.text
    assert number_texts.level(findings.level) in page.sections["leakage"]
    assert _plain(number_texts.significant(findings.secret_information, 2)) in page.sections["leakage"]
    assert public.witness is None
    for value in (number_texts.percent(findings.share), number_texts.percent(findings.guess_accuracy)):
        assert _plain(value) in page.sections["utility"]
    assert _plain(number_texts.percent(findings.prior_guess_accuracy)) in page.sections["utility"]
    for value in (findings.utility, findings.entropy):
        assert number_texts.plain(value) in page.sections["utility"]
    assert f"{findings.rows:,} records" in page.sections["summary"]
    assert _plain(number_texts.probability(findings.consistency.p_value)) in page.sections["judged"]
    lifts = [number_texts.significant(float(lift), 2) for lift in public.lift.ravel()]
    shown = page.sections["leakage"].split()
    for lift in set(lifts):
        assert shown.count(lift) >= lifts.count(lift)


@pytest.mark.parametrize("kind", ["lip", "ldp"])
def test_every_secret_and_every_output_is_named(kind: str, request: pytest.FixtureRequest) -> None:
    content: ReportContent = request.getfixturevalue(kind)
    page = request.getfixturevalue(f"{kind}_page")
    for label in content.joint.secret.labels:
        assert label in page.sections["person"]
        assert label in page.sections["leakage"]
    for label in content.protocol.outputs.labels:
        assert label in page.sections["protocol"]
        assert label in page.sections["leakage"]
    for label in content.joint.inputs.labels:
        assert label in page.text


def test_what_local_information_privacy_means_for_one_person(lip_page: Any) -> None:
    text = lip_page.sections["person"]
    # 740 of 1,430 are married, to a hundredth 0.52; e^0.5 = 1.6487.
    factor, prior = math.exp(0.5), 0.52
    assert "changes their belief in any of these values by at most a factor 1.65 (e0.5)" in text
    assert f"“married” is the status of {_plain(number_texts.percent(prior))} of the people" in text
    most = number_texts.percent_at_most(1 - (1 - prior - 0.005) / factor)
    least = number_texts.percent_at_least(max((prior - 0.005) / factor, 1 - factor * (1 - prior + 0.005)))
    assert f"believe it with at most {_plain(most)} and must believe it with at least {_plain(least)}." in text
    assert "No earlier release of these people is on record." in lip_page.sections["limits"]
    assert "whatever they believed" not in text


def test_what_local_differential_privacy_means_for_one_person(ldp_page: Any) -> None:
    text = ldp_page.sections["person"]
    assert "who knows how common the published columns are for each value of status, and nothing else" in text
    assert "at most a factor 1.65 (e0.5) after the published record of the person, however likely they held" in text
    even = number_texts.percent_at_most(math.exp(0.5) / (1 + math.exp(0.5)))
    assert f"with at most {_plain(even)} against the other" in text
    limits = ldp_page.sections["limits"]
    assert "2 earlier releases of the same people are on record, each drawn afresh." in limits
    assert "not even the sum of the bounds limits how much" in limits


def test_what_the_bound_does_not_protect_is_said(lip: ReportContent, lip_page: Any) -> None:
    text = lip_page.sections["limits"]
    for words in (
        "What is published beside the records. protocol.json and this report tell how common",
        "take it that they can be reconstructed, as the page docs/limitations.md",
        "Whether a person is in the data.",
        "The same people in several releases.",
        "What an observer knows besides.",
        "Other attributes.",
        "Errors of estimation.",
        "With confidence 95 %, over random samples of these people, it is at most",
    ):
        assert words in text
    assert "doubtful" not in text
    rare = dataclasses.replace(lip.findings.confidence, few=3)
    # The limit is over boxes, which hold the true distribution with their confidence however few the records are.
    said = public_page(audited_again(lip, confidence=rare)).sections["limits"]
    assert "With confidence 95 %, over random samples of these people, it is at most" in said
    assert "doubtful" not in said


def test_what_is_judged_is_listed_and_no_outcome_is_claimed(lip: ReportContent, lip_page: Any) -> None:
    assert lip_page.sections["summary"].startswith("Bound holds Summary")
    assert "must not be published" not in lip_page.text
    judged = tuple(Judged(name=f"expect_{i}", description=f"Demand {i} is met.") for i in range(3))
    page = public_page(dataclasses.replace(lip, judged=judged))
    assert "after all 3 checks of validation had passed" in page.sections["summary"]
    for one in judged:
        assert f"{one.description} {one.name}" in page.sections["judged"]
    nothing = public_page(dataclasses.replace(lip, judged=()))
    assert "Nothing was validated." in nothing.sections["judged"]


# Of a secret that the published column says nothing of: every value can be published as it is.
UNRELATED = Joint.from_counts([[300, 200, 500], [300, 200, 500]])


@pytest.mark.parametrize(
    ("joint", "mechanism", "guarantee", "stamp", "colour", "words"),
    [
        (JOINT, "optimal", LIP(0.5), "Bound holds", "pass", "Every record passed a fixed protocol"),
        (JOINT, "invariant", LIP(0.5), "Bound holds", "pass", "Every record passed a fixed protocol"),
        (UNRELATED, "invariant", LIP(0.5), "Bound holds, no record changed", "warn", "No record was changed"),
        (
            UNRELATED,
            "identity",
            LIP(0.5),
            "Bound holds, next to nothing changed",
            "warn",
            "Next to no record was changed",
        ),
        (JOINT, "optimal", PerfectPrivacy(), "Bound holds, records tell no share", "warn", "Every record passed"),
    ],
)
def test_the_stamp_is_green_only_where_records_are_changed_and_tell_something(
    joint: Joint, mechanism: str, guarantee: Guarantee, stamp: str, colour: str, words: str
) -> None:
    content = make_content(joint, fit(mechanism, joint, guarantee), guarantee)
    text = render_public(public_report(content))
    assert f'class="verdict {colour}"' in text
    assert f'<span class="stamp">{stamp}</span>' in text
    summary = read_page(text).sections["summary"]
    assert words in summary
    assert ("so publish these only if they may be known" in summary) == ("changed" in stamp)


def test_the_page_is_a_function_of_its_document_alone(lip: ReportContent, ldp: ReportContent) -> None:
    for content in (lip, ldp):
        document = public_report(content)
        again = PublicReport.from_json(document.to_bytes())
        assert again == document
        assert render_public(again).encode() == render_public(document).encode()


def test_every_number_of_the_page_is_in_its_document(lip: ReportContent, lip_page: Any) -> None:
    """Of the findings, one that is not rounded is nowhere in the document."""
    written = public_report(lip).to_bytes().decode()
    for exact in (lip.findings.utility, lip.findings.share, lip.findings.level, lip.findings.secret_information):
        assert repr(exact) not in written
    assert f'"rows": {lip.findings.rows}' in written


def test_who_approved_is_said(lip: ReportContent, lip_page: Any) -> None:
    assert "Without sign-off by a person." in lip_page.sections["summary"]
    assert "without sign-off by a person" in lip_page.sections["provenance"]
    approval = Approval(by="A. Officer <b>", at="2025-03-05T10:00:00+00:00")
    page = public_page(dataclasses.replace(lip, approval=approval))
    assert "Approved by A. Officer <b> on 2025-03-05T10:00:00+00:00." in page.sections["summary"]
    assert "without sign-off" not in page.text.lower()


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("the same rows", "nothing was drawn, and nobody who has both learns more"),
        ("the same answers", "Records that did not change keep their answers"),
        ("a fresh draw", "Every record was drawn afresh."),
    ],
)
def test_what_changed_since_the_last_version(lip: ReportContent, lip_page: Any, rows: Any, words: str) -> None:
    assert "This is the first version" in lip_page.sections["change"]
    change = Change(
        version="1.1.0",
        created="2025-01-01T00:00:00+00:00",
        guarantee="lip:1.0",
        columns=("schooling",),
        records=1,
        rows=rows,
        new_data=True,
        withdrawn=("1.0.0",),
    )
    text = public_page(dataclasses.replace(lip, change=change)).sections["change"]
    for said in (
        words,
        "The version before is 1.1.0",
        "1 record before, 1,434 now",
        "lip:1.0 before, lip:0.5 now",
        "1.0.0: their",
    ):
        assert said in text


def test_rare_values_are_told_in_rounded_words(lip: ReportContent, lip_page: Any) -> None:
    text = lip_page.sections["rare"]
    assert "none: each true value of schooling has more than about 22 records" in text
    assert "hardly any of the combinations of status and schooling have fewer than ten records" in text


def test_accuracy_of_frequencies_is_told(lip: ReportContent, lip_page: Any) -> None:
    text = lip_page.sections["utility"]
    found = public_report(lip).accuracy
    for row in found.rows:
        error = "cannot be told" if row.error is None else number_texts.points(row.error)
        assert f"{row.label} {_plain(number_texts.percent(row.share))} {_plain(error)}" in text


def test_a_bound_that_does_not_hold_is_a_failure() -> None:
    content = make_content(JOINT, fit("grr", JOINT, LIP(0.5)), LIP(0.1))
    page = public_page(content)
    assert page.sections["summary"].startswith("Bound broken Summary This release must not be published.")
    level = number_texts.level(content.public().findings.figures.level)
    assert f"The declared bound lip:0.1 does not hold: the level is up to {level} nats." in page.sections["summary"]
    assert "lip:0.1 does not hold." in page.sections["leakage"]
    assert "it promises nothing to anyone" in page.sections["person"]
    assert "by at most a factor" not in page.text
    assert "This is proven" not in page.text
    assert "is proven in exact arithmetic" not in page.text


def test_of_the_mechanisms_only_the_chosen_one_is_told(lip: ReportContent, lip_page: Any) -> None:
    """What the others keep is not computed a second time."""
    text = lip_page.sections["utility"]
    assert len(lip.plan) >= 4
    (row,) = public_report(lip).compared
    chosen, *none = [line for line in lip.public().plan if line.mechanism == lip.protocol.mechanism]
    assert (row.mechanism, row.share, none) == (chosen.mechanism, chosen.share, [])
    assert _plain(number_texts.percent(row.share)) in text
    for line in lip.plan:
        assert (line.mechanism in text) is (line.mechanism == row.mechanism), line.mechanism
    assert text.count("used for this release") == 1
    without = public_page(dataclasses.replace(lip, plan=()))
    assert "The mechanism" not in without.text


def test_the_level_of_a_protocol_that_tells_nothing_is_the_same_in_both_places() -> None:
    """It is 0, where every other level within the bound is told as the bound."""
    for name, bound in (("watchdog", LIP(0.001)), ("grr", LIP(0.5)), ("optimal", LIP(0.5))):
        rows = plan(JOINT, bound, [name])
        content = make_content(JOINT, fit(name, JOINT, bound), bound, plan=comparison_document(rows).rows)
        report = public_report(dataclasses.replace(content, mechanism=Mechanism.like(mechanism(name))))
        assert [row.level for row in report.compared] == [report.figures.level]
        assert report.figures.level == (0 if name == "watchdog" else 0.5)


@pytest.mark.parametrize(
    ("consistency", "words"),
    [
        (Consistency(1.0, 0, 0, 0), "there is nothing random to test"),
        (Consistency(0.4, 0, 9, 0), "They look as the protocol says they should: a correct draw shows a deviation"),
        (Consistency(0.001, 0, 9, 0), "That can be chance"),
        (Consistency(1e-12, 0, 9, 0), "They do not look like draws from the protocol: a correct draw shows"),
        (Consistency(0.0, 0, 9, 1), "1 record has a published value that the protocol never draws for its true value."),
        (Consistency(0.0, 0, 9, 3), "3 records have published values that the protocol never draws"),
    ],
)
def test_how_well_the_draws_fit_is_put_in_words(lip: ReportContent, consistency: Consistency, words: str) -> None:
    changed = audited_again(lip, consistency=consistency)
    assert words in public_page(changed).sections["judged"]


def test_order_of_rows_and_unknown_values_are_told(lip: ReportContent, lip_page: Any) -> None:
    text = lip_page.sections["judged"]
    assert "shuffled: the order tells nothing about the source" in text
    assert "4, whose value the protocol does not know" in text
    kept = public_page(dataclasses.replace(lip, shuffled=False)).sections["judged"]
    assert "as in the source, not shuffled" in kept


def test_provenance_names_source_licence_and_digests(lip: ReportContent) -> None:
    content = dataclasses.replace(
        lip,
        source=SourceNote(
            "people.csv",
            4,
            (
                Reference(title="Census", url="https://example.org/c", version="2024"),
                Reference(title="Own", url="a/b.csv"),
            ),
        ),
        recodings=("status: rare values became “Other”",),
    )
    page = public_page(content)
    text = page.sections["provenance"]
    for words in (
        lip.protocol.digest,
        "1,430 records, fewer than 10 left out",
        "Census, version 2024",
        "Own (a/b.csv)",
    ):
        assert words in text
    for words in ("funnel audit", "CC-BY-4.0", "data@example.org", "status: rare values became “Other”", "2025-03-04"):
        assert words in text
    links = [value for tag, name, value in page.attributes if tag == "a" and name == "href" and value[0] != "#"]
    assert links == ["annex.html", "https://example.org/c", "https://creativecommons.org/licenses/by/4.0/"]


def test_an_address_that_is_not_a_web_address_is_no_link(lip: ReportContent) -> None:
    page = read_page(
        render_public(public_report(dataclasses.replace(lip, licence=Licence(name="Free", url="javascript:alert(1)"))))
    )
    assert "Free (javascript:alert(1))" in page.sections["provenance"]
    assert not [value for _, name, value in page.attributes if name == "href" and "javascript" in value]


def test_hostile_texts_are_shown_as_they_are_and_do_nothing() -> None:
    c = len(HOSTILE)
    joint = Joint.from_counts(np.eye(c, dtype=int) * 30 + 10, HOSTILE, HOSTILE)
    evil = "<b onclick=x>&amp;{{ 7*7 }}$"
    content = make_content(
        joint,
        fit("grr", joint, LIP(0.5)),
        LIP(0.5),
        name=evil,
        title=evil,
        description=evil,
        version=evil,
        created=evil,
        contact=Contact(name=evil, email=evil),
        licence=Licence(name=evil, url='https://example.org/?a=1&b=<">'),
        source=SourceNote(evil, 1, (Reference(title=evil, url=evil, version=evil),)),
        recodings=(evil,),
        random_source=evil,
        software=evil,
        mechanism=Mechanism(name=evil, summary=evil, reads_secret=True),
        plan=comparison_document([PlanRow(evil, False, None, 0.1, 0.5, 0.4, 0.0, evil)]).rows,
        judged=(Judged(name=evil, description=evil),),
        approval=Approval(by=evil, at=evil),
    )
    html = render_public(public_report(content))
    page = read_page(html)
    assert "script" not in page.tags
    assert "b" not in page.tags
    assert "img" not in page.tags
    assert page.text.count(evil) >= 19
    assert "49" not in re.findall(r"\d+", page.sections["provenance"])
    for label in HOSTILE:
        assert _plain(label) in page.sections["leakage"]


@given(st.lists(st.text(max_size=60), min_size=3, max_size=3, unique=True))
@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_label_gives_a_well_formed_page(labels: list[str]) -> None:
    joint = Joint.from_counts([[5, 3, 2], [2, 9, 4], [1, 1, 7]], labels, labels)
    page = public_page(make_content(joint, fit("grr", joint, LIP(0.5)), LIP(0.5)))
    assert list(page.sections) == SECTIONS


def test_characters_that_turn_the_writing_direction_are_taken_out() -> None:
    joint = Joint.from_counts([[5, 3], [2, 9]], ["\u202egnp.exe", "b\x00"], ["x", "y"])
    html = render_public(public_report(make_content(joint, fit("grr", joint, LIP(0.5)), LIP(0.5))))
    assert "\u202e" not in html
    assert "\x00" not in html
    assert "<bdi>\N{REPLACEMENT CHARACTER}gnp.exe</bdi>" in html


def test_the_same_content_gives_the_same_page(lip: ReportContent, ldp: ReportContent) -> None:
    for content in (lip, ldp):
        assert render_public(public_report(content)) == render_public(public_report(content))


def test_a_protocol_that_reads_the_secret_says_so() -> None:
    protocol = fit("conditional-reporting", JOINT, LIP(0.5))
    note = Mechanism.like(mechanism("conditional-reporting"))
    page = public_page(make_content(JOINT, protocol, LIP(0.5), mechanism=note))
    assert "The protocol reads the secret." in page.sections["limits"]
    assert "It reads status and schooling of a record, and so the secret itself" in page.sections["protocol"]


def test_a_guarantee_without_words_of_its_own_is_reported_by_its_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funnel.report.public.parse_guarantee", lambda text: NOVEL)
    page = public_page(make_content(JOINT, fit("grr", JOINT, NOVEL), NOVEL))
    assert "The declared bound is novel:1.0" in page.sections["summary"]
    assert "novel:1.0 holds." in page.sections["leakage"]
    assert "Limit, at most" not in page.text


CASES: dict[str, tuple[Any, Any, Guarantee]] = {
    "infinite level": ([[5, 0], [3, 9]], [[1, 0], [0, 1]], LIP(1.0)),
    "infinite level, differential": ([[5, 0], [3, 9]], [[1, 0], [0, 1]], LDP(1.0)),
    "one secret": ([[5, 3]], [[1, 0], [0, 1]], LIP(1.0)),
    "one secret, differential": ([[5, 3]], [[1, 0], [0, 1]], LDP(1.0)),
    "one input": ([[5], [3]], [[1]], LIP(1.0)),
    "one record": ([[1]], [[1]], LDP(1.0)),
    "one output": ([[5, 2], [3, 9]], [[1, 1]], LIP(1.0)),
    "perfect privacy": ([[5, 2], [3, 9]], [[0.5, 0.5], [0.5, 0.5]], LIP(0.0)),
    "a secret, an input and an output that never occur": (
        [[5, 2, 0], [3, 9, 0], [0, 0, 0]],
        [[0.6, 0.5, 1], [0.4, 0.5, 0], [0, 0, 0]],
        LIP(1.0),
    ),
    "the same with differential privacy": (
        [[5, 2, 0], [3, 9, 0], [0, 0, 0]],
        [[0.6, 0.5, 1], [0.4, 0.5, 0], [0, 0, 0]],
        LDP(1.0),
    ),
    "a bound far above the level": ([[5, 2], [3, 9]], [[0.6, 0.5], [0.4, 0.5]], LDP(100.0)),
}


@pytest.mark.parametrize("case", CASES)
def test_edge_cases_render(case: str) -> None:
    counts, matrix, guarantee = CASES[case]
    joint = Joint.from_counts(counts)
    protocol = make_protocol(joint, matrix, [f"y{i}" for i in range(len(matrix))], guarantee)
    none = PlanRow("optimal", False, None, 0.0, 0.0, 0.0, 0.0, None)
    content = make_content(joint, protocol, guarantee, plan=comparison_document([none]).rows)
    page = public_page(content)
    assert list(page.sections) == SECTIONS
    assert not re.search(r"\b(nan|inf|None|undefined)\b", page.text)
    if case.startswith("infinite"):
        assert "infinite" in page.sections["leakage"]
        assert "rule" in page.sections["person"]
        assert page.sections["summary"].startswith("Bound broken")
    else:
        assert page.sections["summary"].startswith("Bound holds")
    if len(counts) == 1:
        assert "There is nothing left to find out about it" in page.sections["person"]
    if joint.entropy == 0:
        assert "no information that a release could keep" in page.sections["utility"]
    if case == "perfect privacy":
        assert "no published value changes any belief at all" in page.sections["person"]


def test_a_very_large_protocol_gives_a_small_page(monkeypatch: pytest.MonkeyPatch) -> None:
    # The limits over boxes are one number each on the page, and take most of the time.
    monkeypatch.setattr("funnel.findings.of_release._LARGEST", 0)
    size, secrets = 200, 40
    joint = Joint.from_counts(np.random.default_rng(3).integers(1, 50, size=(secrets, size)))
    matrix = np.full((size, size), 0.9 / size) + 0.1 * np.eye(size)
    for guarantee in (LIP(0.5), LDP(0.5)):
        protocol = make_protocol(joint, matrix, [f"y{i}" for i in range(size)], guarantee)
        html = render_public(public_report(make_content(joint, protocol, guarantee)))
        assert len(html.encode()) < 3_000_000
        page = read_page(html)
        assert page.tags.count("tr") < 250
        protocol_text, leakage = page.sections["protocol"], page.sections["leakage"]
        assert (
            "Shown are the 12 most common true and the 12 most common published values, of 200 and 200" in protocol_text
        )
        assert "188 other published values" in protocol_text
        assert "50 most common published values of 200; the other 150 published values are left out" in protocol_text
        assert "the 50 strongest lifts of 8,000; the other 7,950 lifts are left out" in leakage
        assert "protocol.json" in leakage


@pytest.mark.parametrize("told", [True, False])
def test_what_can_be_estimated_comes_before_what_is_kept(lip: ReportContent, told: bool) -> None:
    report = public_report(lip)
    if not told:
        nothing = {"typical": None, "largest": None, "unknown": 4}
        some = report.estimated[0].model_copy(update={"columns": ("size", "sex"), "typical": 0.02})
        report = report.model_copy(
            update={"estimated": (*(t.model_copy(update=nothing) for t in report.estimated), some)}
        )
    page = render_public(report)
    summary = page[page.index('<section id="summary"') : page.index('<section id="person"')]
    line = "shares have a standard error of" if told else "no share can be estimated from the records."
    assert 0 < summary.index(line) < summary.index("Information kept")
    # Green is of releases from which something can be estimated.
    assert ('class="verdict pass"' in summary, 'class="verdict warn"' in summary) == (told, not told)
    assert ("records tell no share</span>" in summary) is not told


@pytest.mark.parametrize("columns", [6, 13])
def test_errors_of_many_columns_are_one_line_and_of_those_that_cannot_be_told_one_each(
    lip: ReportContent, columns: int
) -> None:
    report = public_report(lip)
    one = next(table for table in report.estimated if len(table.columns) == 1)
    tables = [
        one.model_copy(update={"columns": (f"column {j}",), "largest": (j + 1) / 1000, "unknown": 0})
        for j in range(columns)
    ]
    tables.append(one.model_copy(update={"columns": ("open",), "typical": None, "largest": None, "unknown": 4}))
    page = render_public(report.model_copy(update={"estimated": tuple(tables)}))
    lines = page[page.index('<ul class="told">') : page.index("</ul>", page.index('<ul class="told">'))]
    assert lines.count("<li>") == (columns + 1 if columns == 6 else 2)
    assert "no share can be estimated from the records." in lines
    if columns == 13:
        text = " ".join(re.sub("<[^>]+>", "", lines).split())
        assert "Shares of 13 columns have a standard error of ± 0.10 (column 0) to ± 1.3 (column 12)" in text
