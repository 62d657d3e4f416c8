"""The reports of a release of groups: figures that follow, pages that need nothing else, and what they say."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from funnel.audit.check import State
from funnel.audit.page import check_rendered
from funnel.release.grouped_report import GroupedInternalReport, GroupedReport
from funnel.release.layout import ReleaseFolder
from funnel.report.grouped import render_grouped, render_grouped_internal
from tests.groups import grouped_release


@pytest.fixture(scope="module")
def numbers() -> GroupedReport:
    return GroupedReport.read(grouped_release().numbers)


@pytest.fixture(scope="module")
def internal() -> GroupedInternalReport:
    return GroupedInternalReport.read(grouped_release().internal_numbers)


def test_pages_are_made_of_their_documents_alone(numbers: GroupedReport, internal: GroupedInternalReport) -> None:
    folder = grouped_release()
    assert folder.report.read_text(encoding="utf-8") == render_grouped(numbers)
    assert folder.internal_report.read_text(encoding="utf-8") == render_grouped_internal(internal)


def test_the_page_says_what_the_bound_means_for_one_person_and_for_the_population(numbers: GroupedReport) -> None:
    page = " ".join(render_grouped(numbers).split())
    assert "all 4 columns together" in page
    assert "What the bound is worth in the population" in page
    assert f"standard error of {100 * numbers.error:.2g} points" in page
    for one in numbers.columns:
        assert f">{one.column}<" in page


def test_limits_hold_what_records_reach_and_errors_are_those_of_so_many_people(
    numbers: GroupedReport, internal: GroupedInternalReport
) -> None:
    assert numbers.error == pytest.approx(0.5 / math.sqrt(numbers.made_for), rel=0.05)
    assert sum(one.prior for one in numbers.beliefs) == pytest.approx(1, abs=0.01)
    for one in numbers.beliefs:
        assert one.least is not None
        assert one.most is not None
        assert one.least < one.prior < one.most
        assert one.error == pytest.approx(math.sqrt(one.prior * (1 - one.prior) / numbers.made_for), rel=0.05)
    # What is guessed with a record is a mean of the largest beliefs.
    assert internal.guess.before <= internal.guess.after <= max(one.most or 0 for one in numbers.beliefs)
    assert 0 < internal.guess.information < numbers.figures.entropy


def test_every_stage_names_the_people_behind_its_channels(internal: GroupedInternalReport) -> None:
    rows, people = internal.rows, internal.people
    assert internal.stages[0].most == internal.stages[0].fewest == rows
    for stage in internal.stages:
        if stage.channels:
            assert stage.most is not None
            assert stage.fewest is not None
            assert people / 10 <= stage.fewest <= stage.most <= rows
            assert stage.most >= people
    assert sum(stage.told for stage in internal.stages) >= internal.utility - 1e-9


def test_the_public_document_has_nothing_exact(numbers: GroupedReport) -> None:
    step = 0.005
    shares = [one.plain for one in numbers.columns] + [one.kept for one in (*numbers.columns, *numbers.groups)]
    assert all(share / step == pytest.approx(round(share / step), abs=1e-6) for share in shares)
    found = json.loads(grouped_release().findings.read_bytes())
    text = grouped_release().numbers.read_text(encoding="utf-8")
    for key in ("utility", "entropy", "share"):
        assert str(found[key]) not in text


def test_pages_are_well_formed_and_load_nothing(
    numbers: GroupedReport, internal: GroupedInternalReport, read_page: Callable[[str], Any]
) -> None:
    for page in (render_grouped(numbers), render_grouped_internal(internal)):
        read = read_page(page)
        for tag, name, value in read.attributes:
            if name in ("href", "aria-labelledby") and not value.startswith(("http", "data:")):
                assert value.removeprefix("#") in read.ids
            assert name not in ("src", "srcset", "action"), tag
            assert not name.startswith("on"), tag
        assert read.tags.count("caption") == read.tags.count("table")
        assert "default-src 'none'" in page
        assert "<script" not in page


def test_of_a_column_with_one_value_nothing_is_said_in_the_singular(numbers: GroupedReport, tmp_path: Path) -> None:
    told = next(text for text in numbers.texts if text.kind == "anything")
    one = numbers.model_copy(update={"texts": (told.model_copy(update={"values": told.values[:1]}),)})
    page = render_grouped(one)
    assert "nothing is said; there is one value only." in page
    assert f"it is any of {len(told.values)}\u00a0values." in render_grouped(numbers)
    # Releases that have the earlier words are out, and no others are taken.
    earlier = page.replace("there is one value only", "it is any of 1\u00a0value")
    shutil.copytree(grouped_release().root, folder := tmp_path / "release")
    release = ReleaseFolder(folder)
    for written, state in (
        (page, State.PASSED),
        (earlier, State.PASSED),
        (page.replace("one value only", "no value"), State.FAILED),
    ):
        release.report.chmod(0o644)
        release.report.write_text(written, encoding="utf-8")
        assert check_rendered(release, lambda _: page).state is state
