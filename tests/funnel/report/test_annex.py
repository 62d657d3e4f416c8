"""The annex for officers: its figures by brute force, its page, and that nothing of it changes unnoticed."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from funnel import LIP, Alphabet, Attribute, Joint, L1Lift, MutualInformation, Several, fit
from funnel.audit.page import active_parts
from funnel.recount.annex import _reads_as, annex_complaints
from funnel.release.protocol_document import ProtocolDocument, protocol_document
from funnel.release.public.findings import PublicRelease
from funnel.release.public_report import Approval, PublicReport
from funnel.release.report_parts import EstimatedTable, WholeColumn, WholeUnchanged
from funnel.report import annex as making
from funnel.report import number_texts
from funnel.report.annex import render_annex
from funnel.report.content import ReportContent
from funnel.report.public import public_report
from tests.funnel.report.contents import make_content
from tests.funnel.report.test_protection import noisy_content

Json = dict[str, Any]


def table_of(secret: bool) -> Joint:
    """An income beside a job and a town, with the income published or not."""
    columns = ("income", "job", "town") if secret else ("job", "town")
    symbols = tuple((job, town) for job in ("a", "b", "c") for town in ("x", "y"))
    counts = np.array([[40, 35, 20, 15, 3, 2], [10, 15, 30, 35, 2, 3]])
    if not secret:
        return Joint.from_counts(counts, Alphabet(("income",), (("low",), ("high",))), Alphabet(columns, symbols))
    whole = tuple((income, *symbol) for income in ("low", "high") for symbol in symbols)
    table = np.zeros((2, 12), dtype=np.int64)
    table[0, :6], table[1, 6:] = counts
    return Joint.from_counts(table, Alphabet(("income",), (("low",), ("high",))), Alphabet(columns, whole))


@pytest.fixture(scope="module")
def contents() -> dict[str, ReportContent]:
    """A release that is counted as usual with its secret, and one of sets of values."""
    usual, sets = table_of(True), table_of(False)
    return {
        "usual": make_content(usual, fit("invariant", usual, Attribute(1.0)), Attribute(1.0)),
        "sets": make_content(sets, fit("optimal", sets, LIP(0.5)), LIP(0.5)),
        "noise": noisy_content(LIP(1.0)),
    }


def documents_of(content: ReportContent) -> tuple[PublicReport, ProtocolDocument]:
    public = PublicRelease.of(content.audited, content.protocol, content.guarantee)
    return public_report(content), protocol_document(content.protocol, content.guarantee, public, content.protection)


def _complaints(page: str, report: PublicReport, protocol: ProtocolDocument) -> list[str]:
    return list(annex_complaints(page, json.loads(report.to_bytes()), json.loads(protocol.to_bytes()), None))


def published_of(content: ReportContent) -> dict[tuple[str, ...], int]:
    return dict(zip(content.protocol.outputs.symbols, content.audited.drawn.tolist(), strict=True))


@pytest.mark.parametrize("name", ["usual", "sets", "noise"])
def test_the_page_stands_by_itself_and_its_figures_follow(contents: dict[str, ReportContent], name: str) -> None:
    report, protocol = documents_of(contents[name])
    page = render_annex(report, protocol)
    assert page == render_annex(report, protocol)
    assert active_parts(page) == ()
    assert _complaints(page, report, protocol) == []
    assert 'href="report.html"' in page


def test_linking_is_what_the_best_of_all_links_reaches(contents: dict[str, ReportContent]) -> None:
    """By Bayes: of n records the observer takes the one whose value makes it the likeliest to be the person's."""
    report, protocol = documents_of(contents["usual"])
    figures = making.compute_figures(report, protocol)
    p = np.array(protocol.prior.probabilities) / sum(protocol.prior.probabilities)
    channel = contents["usual"].protocol.matrix.astype(float)
    order = [contents["usual"].protocol.inputs.symbols.index(symbol) for symbol in protocol.prior.symbols]
    both = channel[:, order] * p
    output = both.sum(axis=1)
    of = [symbol[1:] for symbol in protocol.prior.symbols]
    linked, secret, before = 0.0, 0.0, 0.0
    for known in set(of):
        some = [x for x, one in enumerate(of) if one == known]
        share = p[some].sum()
        chance = max(both[y, some].sum() / share / output[y] for y in range(len(output)) if output[y] > 0)
        linked += share * min(1.0, chance / report.figures.rows)
        secret += sum(both[y, some].max() for y in range(len(output)))
        before += p[some].max()
    assert figures["linked"] == pytest.approx(linked, rel=1e-9)
    assert figures["linked_truth"] == pytest.approx(6 / report.figures.rows, rel=1e-9)
    assert figures["secret"] == pytest.approx(secret, rel=1e-9)
    assert figures["secret_before"] == pytest.approx(before, rel=1e-9)
    assert figures["gain"] == pytest.approx(secret - before, rel=1e-6)
    assert figures["gain"] > 0
    # Linking with the release never reaches more than with the true table.
    assert figures["linked"] <= figures["linked_truth"] * (1 + 1e-12)


def test_records_like_no_other_are_counted_in_thetable_of(contents: dict[str, ReportContent]) -> None:
    content = contents["sets"]
    drawn = content.audited.drawn.copy()
    drawn[:2] = 1
    report, protocol = documents_of(replace(content, audited=replace(content.audited, drawn=drawn)))
    assert report.alone == int((drawn == 1).sum())
    page = render_annex(report, protocol)
    told = json.loads(report.to_bytes()), json.loads(protocol.to_bytes())
    published = dict(zip(content.protocol.outputs.symbols, drawn.tolist(), strict=True))
    assert list(annex_complaints(page, *told, published)) == []
    published[content.protocol.outputs.symbols[0]] = 2
    (complaint,) = annex_complaints(page, *told, published)
    assert "like no other" in complaint


@pytest.mark.parametrize(
    ("bound", "said", "other"),
    [
        (LIP(0.5), "a maximum over all published values and all values of the secret", "average over"),
        (
            L1Lift(1.3, 0.7),
            "a maximum over all published values of an average over the values of the secret",
            "records",
        ),
        (MutualInformation(0.1), "an average over all records", "maximum"),
    ],
)
def test_the_page_says_whether_a_bound_is_a_maximum_or_an_average(bound: Any, said: str, other: str) -> None:
    joint = table_of(False)
    report, protocol = documents_of(make_content(joint, fit("grr", joint, bound), bound))
    page = render_annex(report, protocol)
    (row,) = re.findall(r"Is the risk a maximum or an average\?.*?<td>([^<]*)<", page, flags=re.DOTALL)
    assert row.startswith(f"{report.guarantee} is {said}; chances of guesses are averages")
    (stated,) = re.findall(r'data-figure="extent"[^>]*>([^<]*)<', page)
    assert stated == f"{report.guarantee} is {said}"
    assert other not in stated
    assert _complaints(page, report, protocol) == []
    forged = page.replace(said, "a maximum over all people")
    assert "its answer 'extent'" in " ".join(_complaints(forged, report, protocol))


def test_of_several_bounds_each_is_told_of() -> None:
    joint, bound = table_of(False), Several([LIP(0.5), MutualInformation(0.1)])
    report, protocol = documents_of(make_content(joint, fit("grr", joint, bound), bound))
    page = render_annex(report, protocol)
    assert "lip:0.5 is a maximum over" in page
    assert "mi:0.1 is an average over all records" in page
    assert _complaints(page, report, protocol) == []


def test_records_that_no_record_is_like_are_counted_by_public_counts() -> None:
    """A combination with a public count of zero stays published where a record has it all the same."""
    counts = np.array([[40, 35, 20, 15, 3, 0], [10, 15, 30, 35, 2, 0]])
    joint = Joint.from_counts(counts, table_of(False).secret, table_of(False).inputs)
    content = make_content(joint, fit("invariant", joint, LIP(0.5)), LIP(0.5))
    drawn = np.array([49, 50, 50, 50, 4, 3])
    content = replace(content, audited=replace(content.audited, drawn=drawn))
    report, protocol = documents_of(content)
    assert report.absent == 3
    page, published = render_annex(report, protocol), published_of(content)
    told, stated = json.loads(report.to_bytes()), json.loads(protocol.to_bytes())
    assert list(annex_complaints(page, told, stated, published)) == []
    for wrong in (0, 2, None):
        (complaint,) = annex_complaints(page, {**told, "absent": wrong}, stated, published)
        assert "no record has" in complaint


def test_of_sets_of_values_no_combination_is_said_to_be_absent(contents: dict[str, ReportContent]) -> None:
    report, protocol = documents_of(contents["sets"])
    assert report.absent is None
    told, stated = json.loads(report.to_bytes()), json.loads(protocol.to_bytes())
    page, published = render_annex(report, protocol), published_of(contents["sets"])
    assert list(annex_complaints(page, {**told, "absent": 0}, stated, published)) != []


def answers(page: str) -> dict[str, tuple[str, str]]:
    """The status of every question of a standard, and the cell that says by what."""
    row = r'<data data-figure="((?:iso|nist|adf)-[^"]+)" value="[^"]+">([^<]*)</data></td>\s*<td>(.*?)</td>'
    return {key: (status, by) for key, status, by in re.findall(row, page, flags=re.DOTALL)}


PUBLIC = {
    "report.html",
    "report.json",
    "protocol.json",
    "datapackage.json",
    "README.md",
    "annex.html",
    "signature.json",
}


@pytest.mark.parametrize("name", ["usual", "sets", "noise"])
def test_what_is_met_is_met_by_a_figure_and_by_a_public_file(contents: dict[str, ReportContent], name: str) -> None:
    report, protocol = documents_of(contents[name])
    found = answers(render_annex(report, protocol))
    assert len(found) == 34
    noisy = report.frequencies.protection == "noise"
    for key, (status, by) in found.items():
        files = re.search(r" \(([^()]*)\)$", by)
        if status != "met":
            assert "data-figure" not in by, key
            continue
        assert files is not None, key
        assert {*files[1].split(", ")} <= PUBLIC | ({"frequencies.json"} if noisy else set()), key
        # The value of ε is in words of the answer, and errors are in the report alone where no column has its own.
        groups = [one for one in report.errors_by_column if one.typical]
        in_words = by.startswith("ε = 1") if key == "nist-epsilon" else key == "nist-utility" and not groups
        assert "data-figure" in by or in_words, key
    # A figure of the answers is checked again as those above are.
    page = render_annex(report, protocol)
    (start,) = (one.start() for one in re.finditer('id="frameworks"', page))
    key = "records"
    forged = page[:start] + re.sub(r'(data-figure="records" value=")[^"]+', r"\g<1>7", page[start:])
    assert forged != page
    assert f"its figure {key!r} is '7'" in " ".join(_complaints(forged, report, protocol))


@pytest.mark.parametrize("name", ["usual", "sets", "noise"])
def test_no_figure_and_no_answer_of_the_page_can_be_another(contents: dict[str, ReportContent], name: str) -> None:
    """Every value, every text and every name that is changed, and every figure that is left out, is noticed."""
    report, protocol = documents_of(contents[name])
    page = render_annex(report, protocol)
    found = list(re.finditer(r'<data data-figure="([^"]+)" value="([^"]+)">([^<]*)</data>', page))
    assert len(found) > 40
    for one in found:
        key, value, text = one.groups()
        if key == "extent":
            changed = [f'<data data-figure="{key}" value="{said}">{said}</data>' for said in ("x", value[:-1])]
        elif value in ("met", "not applicable", "left to the publisher"):
            others = {"met", "not applicable", "left to the publisher"} - {value}
            changed = [f'<data data-figure="{key}" value="{other}">{other}</data>' for other in others]
            changed.append(f'<data data-figure="{key}" value="{value}">{others.pop()}</data>')
        else:
            wrong = f"{float(value) * 1.01 + 0.001:.6g}"
            changed = [
                f'<data data-figure="{key}" value="{wrong}">{text}</data>',
                f'<data data-figure="{key}" value="{value}">{_other_text(text)}</data>',
            ]
        changed.append(f'<data data-figure="x-{key}" value="{value}">{text}</data>')
        for put in changed:
            assert _complaints(page[: one.start()] + put + page[one.end() :], report, protocol), put
    gone = re.sub(r'<data data-figure="records"[^>]*>[^<]*</data>', "3,000", page)
    assert _complaints(gone, report, protocol) == ["it has no figure 'records'"]


def _other_text(text: str) -> str:
    """The text with its first digit that is not a part of a limit raised."""
    if text in ("none", "no", "infinite"):
        return "5 %"
    return re.sub(r"[0-9]", lambda digit: str((int(digit[0]) + 3) % 10), text, count=1)


def test_of_whole_records_linking_gains_by_class_and_every_column_is_told(contents: dict[str, ReportContent]) -> None:
    """The classes of whole records are what a protocol without them has as its values."""
    report, protocol = documents_of(contents["usual"])
    columns = (*report.published.columns, "wage")
    of_columns = tuple(
        WholeColumn(column=name, share=0.9 - k / 8, typical=0.85 - k / 8, least=k / 8, worst=f"<{name}>")
        for k, name in enumerate(columns)
    )
    of_columns = (*of_columns[:-1], of_columns[-1].model_copy(update={"typical": None, "least": None, "worst": None}))
    errors = tuple(
        EstimatedTable(columns=(name,), cells=2, typical=0.01 + k / 100, largest=0.02 + k / 50, unknown=0)
        for k, name in enumerate(columns)
    )
    kept = report.unchanged.model_copy(
        update={"whole": WholeUnchanged(columns=of_columns, estimated=errors, unique=40, unique_unchanged=0.7)}
    )
    wide = report.model_copy(
        update={"unchanged": kept, "published": report.published.model_copy(update={"columns": columns})}
    )
    usual, figures = making.compute_figures(report, protocol), making.compute_figures(wide, protocol)
    assert {key for key in figures if key in ("linked", "linked_truth", "guess")} == set()
    assert 0 < figures["gain"] == usual["gain"]
    page = render_annex(wide, protocol)
    assert _complaints(page, wide, protocol) == []
    assert "linking gains" in page
    told = re.findall(r'data-figure="true_([^"]*)"', page)
    assert told == [*columns]
    # The answers of the standards have the largest error of all once more.
    told = re.findall(r'data-figure="worst_([^"]*)"', page)
    assert told[: len(columns)] == [*columns]
    assert told[len(columns) :] == [
        max(columns, key=lambda column: making.compute_figures(wide, protocol)[f"worst_{column}"])
    ]
    assert re.findall(r'data-figure="least_([^"]*)"', page) == [*columns[:-1]]
    assert f"&lt;{columns[0]}&gt;" in page
    for key in ("true_wage", "worst_wage", f"typical_{columns[1]}", f"least_{columns[1]}", "gain", "secret_before"):
        changed = re.sub(rf'(data-figure="{key}" value=")[^"]*', r"\g<1>0.123456", page)
        assert "0.123456" in changed
        assert _complaints(changed, wide, protocol), key


MUTANTS = [
    ("_linked", lambda make: lambda *args: {key: 2 * value for key, value in make(*args).items()}),
    ("_linked", lambda make: lambda *args: {**make(*args), "gain": 0.0}),
    ("_beliefs", lambda make: lambda report: {**make(report), "belief": make(report)["belief_before"]}),
    ("_unchanged", lambda make: lambda *args: {**make(*args), "unchanged": 0.01}),
    ("_observers", lambda make: lambda kept: {key: value * 0.9 + 0.001 for key, value in make(kept).items()}),
    ("_groups", lambda make: lambda report: {key: 2 * value for key, value in make(report).items()}),
    ("_factor", lambda make: lambda level: math.sqrt(make(level))),
    ("_posteriors", lambda make: lambda protocol, p: list(make(protocol, p))[1:]),
    ("is_by_class", lambda make: lambda report, protocol: True),
]


@pytest.mark.parametrize(("name", "mutant"), MUTANTS)
def test_a_mutant_of_the_maker_is_noticed(
    contents: dict[str, ReportContent],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    mutant: Callable[[Callable[..., Any]], Callable[..., Any]],
) -> None:
    report, protocol = documents_of(contents["usual"])
    monkeypatch.setattr(making, name, mutant(getattr(making, name)))
    assert _complaints(render_annex(report, protocol), report, protocol)


def test_every_form_of_a_number_is_read_again() -> None:
    """What the page rounds reads as the number that it is of, and as no number 3 % beside it."""
    forms = (
        number_texts.percent_at_most,
        number_texts.percent_in_detail,
        number_texts.points,
        number_texts.gain,
        number_texts.significant_at_most,
    )
    numbers = [*np.geomspace(2e-3, 0.97, 400).tolist(), 0.01, 0.1, 0.5, 0.63]
    for form in forms:
        for number in numbers:
            assert _reads_as(form(number), number), (form, number)
            if form is not number_texts.percent_at_most or number > 0.1:
                assert not _reads_as(form(number), number * 1.3), (form, number)
    # Ratios have two digits, however large they are.
    for number in [*np.geomspace(1.0003, 4e5, 400).tolist(), 102.857]:
        assert _reads_as(number_texts.significant(number, 2), number), number
        assert not _reads_as(number_texts.significant(number, 2), number * 1.3), number
    for text, number in (("none", 0.0), ("infinite", math.inf), ("48,842\xa0records", 48_842), ("<\xa00.1\xa0%", 4e-4)):
        assert _reads_as(text, number)
        assert not _reads_as(text, 7.0)


def test_answers_depend_on_the_release(contents: dict[str, ReportContent]) -> None:
    report, protocol = documents_of(contents["usual"])

    def answers(report: PublicReport) -> dict[str, tuple[str, str]]:
        rows = re.findall(
            r'<data data-figure="([a-z0-9.-]+)" value="([a-z ]+)">\2</data></td>\s*<td>(.+)</td>',
            render_annex(report, protocol),
        )
        assert len(rows) == 34 == len({key for key, _, _ in rows})
        return {key: (status, text) for key, status, text in rows}

    found = answers(report)
    assert found["nist-epsilon"][0] == "not applicable"
    approved = report.model_copy(update={"approval": Approval(by="A. Okafor", at="2026-01-01T00:00:00Z")})
    assert answers(approved)["iso-9-before"] == ("met", "approved by A. Okafor (report.html)")
    same = report.model_copy(update={"people": "same"})
    assert {key for key, told in answers(same).items() if told != found[key]} == {"nist-composition", "adf-9"}
    assert "funnel forget SPEC" in render_annex(same, protocol)
