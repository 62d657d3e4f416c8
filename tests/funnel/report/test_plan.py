"""The page of a plan: one file that needs nothing else, whose figures are those of the sweep."""

from __future__ import annotations

import itertools
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from funnel.cli import main
from funnel.report.figures.curves import tradeoff_chart, unchanged_chart
from funnel.report.number_texts import percent
from funnel.tradeoff.sweep import Point, Sweep
from funnel.tradeoff.unchanged_by_budget import UnchangedCurve, UnchangedPoint
from tests.projects import SPEC, adult_rows, make_project


def swept(*, kept: tuple[float | None, ...], most: tuple[float | None, ...]) -> Sweep:
    budgets = tuple(0.5 * 2**i for i in range(len(kept)))
    points = tuple(
        Point("optimal", f"lip:{budget}", budget, share, budget, certified, None if share is not None else "no")
        for budget, share, certified in zip(budgets, kept, most, strict=True)
    )
    return Sweep("lip:1.0", budgets, points)


def test_the_shaded_area_is_certified_between_two_budgets_too() -> None:
    chart = tradeoff_chart(swept(kept=(0.2, 0.4, 0.8), most=(0.3, 0.5, 0.9)), 1.0)
    places = [tuple(map(float, pair.split(","))) for pair in chart.frontier.split()]
    # Every stretch is level, at the height of the budget at its right end, or upright.
    for (x, y), (u, v) in itertools.pairwise(places):
        assert x == u or y == v
    levels = [y for (_, y), (_, v) in itertools.pairwise(places) if y == v]
    ends = [chart.curves[0].dots[i].y for i in (1, 2)]
    assert levels[0] < ends[0]
    assert levels[1] < ends[1]
    assert len(levels) == 2


def test_a_mechanism_is_drawn_only_where_it_can_be_used() -> None:
    chart = tradeoff_chart(swept(kept=(None, 0.4, 0.8), most=(None, None, 0.9)), 1.0)
    assert len(chart.curves[0].dots) == 2
    assert chart.shaded == ""
    assert chart.curves[0].dots[1].said == f"optimal, lip:2.0: {percent(0.8)} kept"


def test_plan_writes_a_page_that_needs_nothing_else(tmp_path: Path) -> None:
    named = SPEC.replace('guarantee = "lip:1.0"', 'guarantee = "lip:0.5"')
    spec = make_project(tmp_path, re.sub(r'title = ".*"', 'title = "<b>Bold</b> people"', named), adult_rows(0, 300))
    told = CliRunner().invoke(main, ["plan", str(spec)], catch_exceptions=False)
    assert told.exit_code == 0, told.output
    path = next(tmp_path.rglob("plan.html"))
    assert told.stdout.endswith(f"{path}\n")
    page = path.read_text()
    assert "<b>Bold" not in page
    assert "&lt;b&gt;Bold" in page
    assert not re.search(r"<script|src=|href=\"http|url\(", page)
    assert 'guarantee = "lip:0.5"' in page
    assert "certified" in page
    assert "leave out" in page or "make one of" in page
    before = page
    assert CliRunner().invoke(main, ["plan", str(spec)], catch_exceptions=False).exit_code == 0
    assert path.read_text() == before


def test_where_a_page_goes_is_said_once(tmp_path: Path) -> None:
    spec = make_project(tmp_path)
    told = CliRunner().invoke(main, ["plan", str(spec), "--page", str(tmp_path / "p.html"), "--no-page"])
    assert told.exit_code == 3
    assert "give one of them" in told.output
    assert not (tmp_path / "p.html").exists()


@pytest.mark.parametrize("options", [["--json"], ["--no-page"]])
def test_no_page_for_machines_or_where_nobody_wants_it(tmp_path: Path, options: list[str]) -> None:
    spec = make_project(tmp_path, table=adult_rows(0, 300))
    assert CliRunner().invoke(main, ["plan", str(spec), *options], catch_exceptions=False).exit_code == 0
    assert not list(tmp_path.rglob("plan.html"))


def test_the_chart_of_what_stays_has_whole_records_and_columns_and_shades_what_is_certified_of_records() -> None:
    def curve(weights: str) -> UnchangedCurve:
        points = [
            UnchangedPoint(f"lip:{e}", e, share, [share + 0.1, share + 0.2], [share], share, share + 0.05, 0.3, e, None)
            for e, share in ((0.5, 0.4), (1.0, 0.6))
        ]
        return UnchangedCurve("lip:1.0", weights, ("x", "z"), ("s",), False, tuple(points))  # type: ignore[arg-type]

    chart = unchanged_chart(curve("root"), 1.0)
    assert [line.name for line in chart.curves] == ["whole records", "x", "z"]
    assert chart.chosen == chart.curves[0].dots[1].x
    assert chart.curves[2].dots[0].said == f"z, lip:0.5: {percent(0.6)} unchanged"
    # What is certified of a weighted share is no bound on the share of the records.
    assert chart.shaded == ""
    assert unchanged_chart(curve("share"), 1.0).shaded


@pytest.mark.parametrize("published", [False, True])
def test_the_page_of_an_invariant_release_begins_with_what_stays(
    tmp_path: Path, published: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Processes, which take longer to start than to look at these, have their test above.
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0})
    spec = SPEC.replace("[source]", 'mechanism = "invariant"\n\n[source]').replace('["marital-status"]', '["income"]')
    if published:
        spec = spec.replace('["relationship"]', '["income", "sex", "race"]').replace("lip:1.0", "attribute:1.0")
    path = make_project(tmp_path, spec, adult_rows(0, 300))
    told = CliRunner().invoke(main, ["plan", str(path)], catch_exceptions=False)
    assert told.exit_code == 0, told.output
    row = next(line for line in told.output.splitlines() if line.startswith("invariant"))
    share = row.split()[3]
    page = next(tmp_path.rglob("plan.html")).read_text()
    assert re.search(rf"<strong>{share[:-1]}\s%</strong> of the records are wholly", page)
    assert page.index("What stays unchanged") < page.index("What this means for one person")
    assert ("Beside other mechanisms" in page) is not published
    assert ("No other mechanism is compared" in page) is published
    assert ("no other mechanism is compared" in told.output) is published
    assert not re.search(r"<script|src=|href=\"http|url\(", page)
    if published:
        assert "leave out <em>income</em>" not in page
