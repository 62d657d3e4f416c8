"""What the reports say of all versions about the same people: rounded in the public one, exact in the internal one."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from funnel import ALIP, LDP, LIP, Joint, fit
from funnel.findings.followed import FoundHistory, FoundObserver
from funnel.history.drift import drift_between
from funnel.history.movement import Movement
from funnel.register.look_up import observe
from funnel.register.register import Register, open_register
from funnel.release.internal_report import HistoryFigures, InternalReport, RegisterVersion
from funnel.release.public.rounding import share_step
from funnel.release.public_report import KeptByVersion, PublicReport
from funnel.release.record import History
from funnel.release.verdict import Verdict
from funnel.report import number_texts
from funnel.report.content import ReportContent
from funnel.report.internal import attacks, internal_report, render_internal
from funnel.report.internal.history import Together, drift_figures, guesses_of_all, history_figures
from funnel.report.public import public_report, render_public
from tests.funnel.report.contents import make_content, public_page, read_page
from tests.funnel.report.test_internal import NO_FOREST, PASSED
from tests.panels import REGISTER, publish, random_step, waves
from tests.public import audited_again
from tests.schemas import validated

JOINT = Joint.from_counts([[4000, 1000, 10, 200], [1000, 3000, 2500, 0], [300, 600, 200, 90]])
BEFORE = (
    KeptByVersion(version="1.0.0", share=1.0, share_alone=1.0),
    KeptByVersion(version="1.1.0", share=0.915, share_alone=0.94),
)
FOUND = FoundHistory(
    register="panel",
    versions=3,
    histories=1304,
    known=9731,
    forgotten=7,
    channels=89,
    level=0.49876543,
    level_ratio="3/2",
    worst=(("panel/1.0.0", "fifth 3"), ("panel/1.1.0", "fifth 4")),
    worst_output="fifth 5",
    worst_secret="out",
    moved=137,
    outside=133,
    reserve=0.9,
    utility=0.7654321,
    alone=0.7876543,
    bound=0.7876543,
    entropy=0.8765432,
    observers=(
        FoundObserver("transitions", None, True, 0.41234567, 120, 110, 0.71234567),
        FoundObserver("mover-stayer", None, True, 0.49876543, 137, 133, None),
    ),
)
WAVES = waves(8, 3, 70)


@pytest.fixture(scope="module")
def alone() -> ReportContent:
    return make_content(JOINT, fit("optimal", JOINT, LIP(0.5)), LIP(0.5))


@pytest.fixture(scope="module")
def same(alone: ReportContent) -> ReportContent:
    return of_the_same_people(alone)[0]


def of_the_same_people(alone: ReportContent) -> tuple[ReportContent, HistoryFigures]:
    """A content as one of a third version, and what its internal report says of all of them."""
    drift = drift_between(JOINT, Joint.from_counts(JOINT.counts[:, [0, 1, 3, 2]]))
    content = audited_again(alone, history=FOUND, drift={**drift.to_dict(), "sentence": drift.sentence})
    shared = {"guarantee": "lip:0.5", "reserve": 0.9, "people": 12900}
    versions = (
        RegisterVersion(
            version="other/1.0.0",
            histories=1,
            level=None,
            moved=None,
            outside=None,
            share=0.9,
            share_alone=None,
            **shared,
        ),
        RegisterVersion(
            version="panel/1.0.0", histories=9, level=0.45, moved=0, outside=0, share=0.88, share_alone=0.9, **shared
        ),
    )
    before = tuple(
        Movement(version=one.version, people=12000, last=100, both=both, secret_changed=both, input_changed=both)
        for one, both in zip(versions, (None, 7000), strict=True)
    )
    figures = HistoryFigures(found=FOUND, new=3169, before=before, versions=versions)
    return replace(content, people="same", kept_before=BEFORE), figures


def public_text(content: ReportContent) -> str:
    document = public_report(content)
    assert validated(json.loads(document.to_bytes())) == "report"
    assert render_public(PublicReport.from_json(document.to_bytes())) == render_public(document)
    return str(read_page(render_public(document)).sections["history"])


def test_the_public_report_says_what_everybody_who_keeps_all_versions_can_conclude(same: ReportContent) -> None:
    text = public_text(same)
    assert "This is version 3 about the same people." in text
    assert "An observer who keeps all 3 versions" in text
    assert "at most a factor 1.65 in all" in text
    # 133 of 12,900, to the next step up.
    step = share_step(JOINT.n)
    assert step < 133 / JOINT.n < 0.011
    assert "at most 1.1 % of the people" in text
    document = public_report(same)
    told = document.kept[-1]
    assert told.share == document.figures.share
    assert told.share_alone == pytest.approx(FOUND.share_alone, abs=step)
    assert [one.version for one in document.kept] == ["1.0.0", "1.1.0", "1.2.0"]
    assert "1.0.0 100 % 100 % 1.1.0 91.5 % 94.0 %" in text
    assert "Whoever asks to be forgotten is erased" in text


def test_no_count_of_people_or_histories_is_public(same: ReportContent) -> None:
    document = public_report(same)
    told = document.to_bytes().decode().replace(document.channel.digest, "")
    page = read_page(render_public(document)).text.replace(document.channel.digest, "")
    for exact in ("1304", "1,304", "9731", "9,731", "0.49876", "0.7654", "0.7876", "3/2", "fifth 3"):
        assert exact not in told
        assert exact not in page
    history = json.loads(told)["figures"]["history"]
    assert set(history) == {"versions", "share_alone", "outside_at_most", "observers", "own", "rare"}
    assert history["own"] is history["rare"] is None
    names = {"observer", "secret_of", "bounded", "level", "level_of_all", "outside_at_most"}
    assert [set(one) for one in history["observers"]] == [names] * 2


def test_the_public_report_has_figures_for_each_observer_bounded_or_not(same: ReportContent) -> None:
    # Within the bound nothing but the bound is told; what is moved is told by steps of a tenth of it, or has no limit.
    first, second = public_report(same).figures.history.observers
    step = share_step(JOINT.n)
    assert (first.observer, first.bounded, first.level, first.level_of_all) == ("transitions", True, 0.5, 0.75)
    assert (second.observer, second.bounded, second.level, second.level_of_all) == (
        "mover-stayer",
        True,
        0.5,
        "infinite",
    )
    assert first.outside_at_most == pytest.approx(math.ceil(110 / JOINT.n / step) * step)
    text = public_text(same)
    assert "how common every change is this version yes 0.5 0.75 at most 0.9 %" in text
    assert "among people who never did this version yes 0.5 infinite at most 1.1 %" in text
    assert "proves nothing for that observer" not in text
    # Who is left out is told of as such, with a level beyond the bound; who is outside then was not moved.
    left_out = FoundObserver("mover-stayer", None, False, 0.81234567, 137, 900, 0.9)
    content = audited_again(same, history=replace(FOUND, observers=(FOUND.observers[0], left_out)))
    text = public_text(content)
    outside = number_texts.percent_at_most(public_report(content).figures.history.observers[1].outside_at_most)
    assert f"among people who never did this version no 0.85 0.9 at most {' '.join(outside.split())}" in text
    assert "at most 0.9 % of the people beyond the bound before" in text
    # Nothing is known of the second one: that is told too.
    alone = audited_again(same, history=replace(FOUND, observers=FOUND.observers[:1]))
    assert "this release proves nothing for that observer" in public_text(alone)


@pytest.mark.parametrize(
    ("guarantee", "words"),
    [
        (LDP(0.5), "changes the odds they give to one value of"),
        (ALIP(0.5, 0.4), "finds the declared bound, alip:0.5,0.4, kept by all of them together"),
    ],
)
def test_other_bounds_are_said_in_their_words(guarantee: Any, words: str) -> None:
    content = make_content(JOINT, fit("grr", JOINT, guarantee), guarantee)
    content = replace(audited_again(content, history=FOUND), people="same")
    assert words in public_text(content)


def test_a_first_version_says_that_others_will_keep_the_same_bound(same: ReportContent) -> None:
    first = replace(FOUND, versions=1, histories=1, known=0, forgotten=0, moved=0, outside=0, worst=())
    content = replace(audited_again(same, history=first), kept_before=())
    text = public_text(content)
    assert "first version about these people" in text
    assert "of the people" not in text
    assert "<figure>" not in render_public(public_report(content)).split('id="history"')[1].split("</section>")[0]


def test_versions_under_other_names_are_said_to_count(same: ReportContent) -> None:
    content = replace(same, kept_before=())
    assert "(those under other names, or no longer there, are counted)" in public_text(content)


def test_that_people_are_others_is_vouched_for_and_so_said(alone: ReportContent) -> None:
    content = replace(alone, people="different")
    assert "The publisher vouches that every version is about other people." in public_text(content)
    page = read_page(render_internal(internal_of(content)))
    assert 'people = "different"' in page.sections["history"]
    silent = public_page(alone)
    assert "history" not in silent.sections
    assert "history" not in read_page(render_internal(internal_of(alone))).sections


def internal_of(content: ReportContent, **changes: Any) -> InternalReport:
    settings: dict[str, Any] = {
        "alone": attacks.alone(content.joint, content.protocol),
        "beside": (),
        "versions": (),
        "learned": NO_FOREST,
        "software": {"funnel": "0.1.0"},
    }
    settings.update(changes)
    found = attacks.Attacks(*(settings.pop(name) for name in ("alone", "beside", "versions", "learned")))
    made = internal_report(content, Verdict.of((PASSED,)), (), found, **settings)
    assert validated(json.loads(made.to_bytes())) == "internal"
    assert render_internal(InternalReport.from_json(made.to_bytes())) == render_internal(made)
    return made


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Together:
    """A third wave of small people, decided by channels at random."""
    folder = tmp_path_factory.mktemp("panel")
    with open_register(folder, REGISTER) as register:
        for i in range(2):
            publish(register, WAVES[i], i, f"1.{i}.0", folder)
    register = Register.of(folder, REGISTER)
    people = observe(register, WAVES[2].snapshot(folder / "now"), WAVES[2].joint(), folder / "work")
    step = random_step(3, "panel/1.2.0", register.past, people.observed)
    noted = History.model_validate(
        {
            "people": "same",
            "register": REGISTER,
            "name": "panel/1.1.0",
            "target": "0" * 64,
            "drawing": "1" * 64,
            "histories": 5,
            "level": 0.25,
            "moved": 3,
            "outside": 2,
            "reserve": 1.0,
        }
    )
    return Together(register, step, {"panel/1.1.0": noted})


def test_the_internal_report_has_all_of_it_exact(same: ReportContent, together: Together) -> None:
    drift = drift_between(together.register.entries[1].joint, WAVES[2].joint(), together.step.observed.changes.get(1))
    findings = replace(same.findings, drift={**drift.to_dict(), "sentence": drift.sentence})
    figures = history_figures(findings, together, (), "panel/1.2.0")
    versions = guesses_of_all(together.step)
    made = internal_of(same, history=figures, drift=drift_figures(findings), versions=versions)
    page = read_page(render_internal(made))
    text = page.sections["history"]
    assert "version 3 of the register panel" in text
    assert "1,304 different histories" in text
    assert "89 different channels" in text
    assert "137 people were moved" in text
    # Both observers, and a level without limit.
    assert "transitions how common every change is this version yes 0.412346 120 of" in text
    assert (
        "mover-stayer besides, how common it is among people who ever changed, and among people who never did "
        "this version yes" in text
    )
    assert "0.498765 137 of" in text
    assert "133 ∞" in text
    assert "0.49876543" in text
    assert "panel/1.0.0: “fifth 3” → panel/1.1.0: “fifth 4” → now: “fifth 5”" in text
    assert "7 whose earlier answers were erased on request" in text
    # What is known of each version of the register, and a dash for what is not.
    first, second, third = figures.versions
    assert (first.level, first.moved, first.share_alone) == (None, None, None)
    assert (second.level, second.moved, second.outside) == (0.25, 3, 2)
    assert (third.version, third.histories, third.share) == ("panel/1.2.0", 1304, FOUND.share)
    assert first.people == together.register.entries[0].joint.n
    stayed = set(WAVES[1].people["id"]) & set(WAVES[2].people["id"])
    assert figures.before[1].both == len(stayed)
    assert f"{len(stayed)} stayed and {len(WAVES[1].people) - len(stayed)} left" in text
    for shift in drift.shifts:
        assert shift.who in text
    assert "everything published before this version" in page.sections["versions"]
    assert [one.knows for one in versions] == [
        "everything published before this version",
        "everything published about the person, this version included",
    ]


def test_rows_that_are_taken_over_tell_of_no_step(same: ReportContent, together: Together) -> None:
    taken = Together(together.register, None, together.noted)
    figures = history_figures(same.findings, taken, (), "panel/1.2.0")
    assert len(figures.versions) == 2
    page = read_page(render_internal(internal_of(same, history=figures)))
    assert "The rows are those of an earlier version" in page.sections["history"]
    assert "whoever links it learns nothing more" in page.sections["versions"]
