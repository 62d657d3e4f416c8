"""The experiments of the papers as they are declared: measured on small sizes, kept, drawn, and judged."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.errors import DataError, SolverError, SpecError
from funnel.release.cache import Cache
from funnel_papers import points as kept_points
from funnel_papers.distributions import Distribution
from funnel_papers.drawing import svg
from funnel_papers.experiment import BEST, Curve, Experiment, Panel, Point, Results, Size, holds, not_above, number
from funnel_papers.measuring import trade_off
from funnel_papers.page import Block, Figure, html_page, markdown, numbers_of, page_of
from funnel_papers.points import measured
from funnel_papers.registry import PAPERS, experiments_of, paper
from funnel_papers.robust_measuring import RobustDistribution
from funnel_papers.rows import rowed
from tests.projects import ROOT

ADULT = ROOT / "data" / "adult.parquet"


def small(
    name: str, figure: str, xs: Sequence[float], wanted: Callable[[Point], bool] = lambda point: True
) -> Experiment:
    """A figure with one distribution of each kind, and few places on its axis."""
    (whole,) = experiments_of(paper(name), [figure])
    places = {place: xs.index(x) for place, x in enumerate(whole.xs(Size())) if x in xs}

    def few(size: Size) -> list[Point]:
        found = [point for point in whole.points(Size(distributions=1)) if wanted(point)]
        return [
            point if point.at is None else replace(point, at=places[point.at])
            for point in found
            if point.at is None or point.at in places
        ]

    return replace(whole, xs=lambda size: xs, points=few)


SMALL = {
    "pf 3": small("pf", "3", (0.5, 2.0)),
    "pf 4": small("pf", "4", (2.0,)),
    "pf theorem-4": small("pf", "theorem-4", (0.05, 0.15)),
    "pf 5": small("pf", "5", (0.5, 2.0), lambda point: point.case == "marital-status given sex"),
    "pf 6": small("pf", "6", (0.5, 2.0), lambda point: point.case in ("a = 5, c = 2", "a = 2, c = 5")),
    "pf 7": small("pf", "7", (1.0, 1.5, 2.0)),
    "pf 8": small("pf", "8", (1.0, 2.0)),
    "alip 1": small("alip", "1", PAPERS["alip"].experiments[0].xs(Size())),
    "alip 3": small("alip", "3", (1.0, 2.0)),
    "alip 5": small("alip", "5", (1.0, 2.0)),
    "alip 7": small("alip", "7", (1.0, 2.0)),
    "alip 8": small("alip", "8", (1.0, 2.0)),
    "alip 11": small("alip", "11", (1.0, 2.0)),
    "alip 13": small("alip", "13", (1.0, 2.0)),
    "rldp 2": small("rldp", "2", (2.0, 4.0), lambda point: point.at == 3 or point.settings["part"] == "published"),
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return Cache(tmp_path_factory.mktemp("points"))


def result_of(name: str, cache: Cache) -> Results:
    return measured(SMALL[name], Size(), ADULT, cache)


@pytest.mark.parametrize("name", SMALL)
def test_nothing_is_above_what_bounds_it(name: str, cache: Cache) -> None:
    """By distribution; every declared curve is there, or the figure would be empty and all orders hold."""
    results = result_of(name, cache)
    compared = SMALL[name].check(results)
    bounded = [order for order in SMALL[name].orders if order[1].startswith("bound") or order[1].endswith("bound")]
    assert bool(bounded) == (name not in ("pf 7", "pf 8", "alip 1"))
    assert compared >= len(bounded)
    for panel in SMALL[name].panels:
        if panel.case in results.cases:
            for curve in panel.curves:
                values = results.of(panel).mean(panel.case, curve.label)
                assert not np.isnan(values).all(), curve.label
                if curve.title.startswith("no "):
                    assert (values[~np.isnan(values)] <= 1 + 1e-6).all()


@pytest.mark.parametrize("name", ["pf 5", "alip 3", "rldp 2"])
def test_a_result_above_its_bound_is_refused(name: str, cache: Cache) -> None:
    experiment, results = SMALL[name], result_of(name, cache)
    for low, high in experiment.orders:
        found = [(case, *pair) for case in results.cases for pair in results.pairs(case, low, high)]
        if not found:
            continue
        case, subject, x, _, above = found[0]
        line = results.cases[case][low][subject]
        place = results.xs.index(x)
        kept, line[place] = line[place], above + 1e-4
        with pytest.raises(SolverError, match=re.escape(low)):
            experiment.check(results)
        line[place] = kept
    label = experiment.rising[0]
    case = next(case for case in results.cases if label in results.cases[case])
    (line,) = results.cases[case][label].values()
    line.reverse()
    with pytest.raises(SolverError, match=r"falls where it must not|above"):
        experiment.check(results)


PUBLISHED = ["alip 3", "alip 5", "alip 7"]


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_numbers_of_adult_agree(name: str, cache: Cache) -> None:
    results = result_of(name, cache)
    printed = [claim for claim in SMALL[name].claims if "share kept at" in claim.says]
    assert printed
    assert all(claim.judge(results).agrees is True for claim in printed)


def test_what_the_papers_have_wrong_is_found(cache: Cache) -> None:
    (claim,) = SMALL["pf theorem-4"].claims
    judged = claim.judge(result_of("pf theorem-4", cache))
    assert judged.agrees is False
    assert judged.ours.startswith("exceeded in 2 of 2 cases")
    between = SMALL["pf 5"].claims[0].judge(result_of("pf 5", cache))
    assert between.agrees is False
    assert not between.ours.startswith("0 times")


def test_distributions_and_measures_are_those_of_the_benchmark_on_200_distributions() -> None:
    rows = json.loads((ROOT / "benchmarks" / "results" / "robust-figure2.json").read_text(encoding="utf-8"))
    for row in (rows[1], rows[607]):
        distribution = RobustDistribution(
            Distribution("sampled", (3, 3), row["distribution"], 1000).joint(ADULT), row["epsilon"], 10.0
        )
        found = distribution.published()
        for label, name in (("GRR", "grr"), ("IR", "independent-reporting"), ("CR", "robust-conditional-reporting")):
            assert found[label] == pytest.approx(row[name], abs=1e-6)


class Interrupted:
    """Workers that are stopped after some tasks, and say how many they did."""

    def __init__(self, most: int) -> None:
        self.most, self.done = most, 0

    def run(self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, Any]]:
        for i, arguments in enumerate(tasks):
            if self.done == self.most:
                raise KeyboardInterrupt
            self.done += 1
            yield i, function(*arguments)


def test_an_interrupted_run_goes_on_where_it_was(tmp_path: Path) -> None:
    experiment = small("alip", "7", (1.0,))
    whole = measured(experiment, Size(), ADULT, Cache(tmp_path / "whole"))
    number_of = len(experiment.points(Size()))
    assert number_of > 4
    first, second, third = Interrupted(2), Interrupted(10**6), Interrupted(0)
    cache = Cache(tmp_path / "kept")
    with pytest.raises(KeyboardInterrupt):
        measured(experiment, Size(), ADULT, cache, first)
    again = measured(experiment, Size(), ADULT, cache, second)
    assert (first.done, second.done) == (2, number_of - 2)
    assert again.cases == whole.cases
    # Nothing is left to do, and the seconds are those of when it was measured.
    assert measured(experiment, Size(), ADULT, cache, third).seconds == again.seconds


def test_points_are_kept_under_all_they_depend_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    point = Point(
        "case", "distribution 0", trade_off, Distribution("uniform", (2, 3), 0), {"mechanism": "grr", "share": 0.5}
    )
    other_data = tmp_path / "other.parquet"
    other_data.write_bytes(ADULT.read_bytes()[:-1])
    adult = replace(point, distribution=Distribution("adult", columns=("sex", "race")))
    keys = [
        kept_points._key(one, xs, data)
        for one, xs, data in (
            (point, (1.0,), ADULT),
            (point, (2.0,), ADULT),
            (replace(point, measure=rowed), (1.0,), ADULT),
            (replace(point, distribution=Distribution("uniform", (2, 3), 1)), (1.0,), ADULT),
            (replace(point, distribution=Distribution("jeffreys", (2, 3), 0)), (1.0,), ADULT),
            (replace(point, settings={"mechanism": "grr", "share": 0.4}), (1.0,), ADULT),
            (adult, (1.0,), ADULT),
            (adult, (1.0,), other_data),
        )
    ]
    assert len(set(keys)) == len(keys)
    # What a result is called, and Adult where it is not looked at, change nothing.
    same = kept_points._key(replace(point, case="other", subject="distribution 9"), (1.0,), tmp_path / "gone")
    assert same == keys[0]
    monkeypatch.setattr(kept_points, "code", lambda: "other code")
    assert kept_points._key(point, (1.0,), ADULT) != keys[0]


def test_a_distribution_is_the_same_every_time() -> None:
    for kind, records in (("uniform", 0), ("jeffreys", 0), ("sampled", 500)):
        one, same, other = (Distribution(kind, (3, 2, 2), seed, records).joint(ADULT) for seed in (4, 4, 5))  # type: ignore[arg-type]
        assert (one.counts == same.counts).all()
        assert (one.counts != other.counts).any()
        assert one.counts.shape == (3, 4)
        assert one.inputs.columns == ("x1", "x2")
        assert one.counts.sum(axis=1).all()
        assert kind != "sampled" or one.n == records
    adult = Distribution("adult", columns=("relationship", "occupation"), without=("relationship", "Other-relative"))
    assert adult.joint(ADULT).counts.shape == (5, 15)
    with pytest.raises(DataError, match="--adult"):
        adult.joint(Path("gone.parquet"))


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=30), st.floats(-1, 1))
def test_a_printed_number_agrees_as_far_as_digits_and_chance_allow(values: list[float], printed: float) -> None:
    found = np.array(values)
    judged = number(printed, lambda results: found, 0.005)(Results((1.0,)))
    error = found.std(ddof=1) / math.sqrt(len(found))
    assert judged.agrees == (abs(found.mean() - printed) <= 0.005 + 3 * error)


def test_claims_about_nothing_are_not_judged() -> None:
    nothing = Results((1.0,))
    assert number(0.5, lambda results: results.at("distributions", "kept", 1.0), 0.01)(nothing).agrees is None
    assert not_above("a", "b")(nothing).agrees is None
    assert holds(lambda results: [True, False], "always")(nothing).agrees is False


@pytest.mark.parametrize("name", ["pf 5", "pf 7", "alip 7"])
def test_figures_name_axes_units_and_curves(name: str, cache: Cache) -> None:
    experiment, results = SMALL[name], result_of(name, cache)
    drawn = svg(experiment, results)
    assert drawn == svg(experiment, results)
    # Text is drawn as paths, each with what it says beside it.
    said = " ".join(re.findall(r"<!-- (.*?) -->", drawn))
    for panel in experiment.panels:
        if panel.case in results.cases:
            assert panel.x_title in said
            assert panel.y_title in said
            if not panel.against:
                assert all(curve.title in said for curve in panel.curves)
    assert "nats" in said


def figures_of(name: str, cache: Cache) -> list[Figure]:
    return [
        Figure(experiment, result_of(key, cache), f"{name}-{experiment.name}.svg")
        for key, experiment in SMALL.items()
        if key.split()[0] == name
    ]


class Read(HTMLParser):
    """What a page fetches, and the names in it."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.names: list[str] = []
        self.used: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name == "id":
                self.names.append(value or "")
            elif name in ("src", "href", "xlink:href"):
                (self.used if (value or "").startswith("#") else self.fetched).append(value or "")


@pytest.mark.parametrize("name", PAPERS)
def test_pages_are_whole(name: str, cache: Cache) -> None:
    figures = figures_of(name, cache)
    blocks = page_of(paper(name), figures, Size(distributions=1))
    text = markdown(blocks)
    assert f"funnel reproduce {name} --distributions 1\n" in text
    for figure in figures:
        assert f"]({figure.file})" in text
    for block in blocks:
        assert len({len(row) for row in block.rows}) <= 1
        assert all(cell.strip() or place for row in block.rows for place, cell in enumerate(row))
    for one in paper(name).errata:
        line = " | ".join(said.replace("|", "\\|") for said in (one.where, one.says, one.holds))
        assert f"| {line} |" in text

    page = html_page(blocks, {figure.file: svg(figure.experiment, figure.results) for figure in figures})
    read = Read()
    read.feed(page)
    assert not read.fetched
    assert len(set(read.names)) == len(read.names)
    assert {used[1:] for used in read.used} <= set(read.names)

    numbers = numbers_of(paper(name), figures, Size(distributions=1), "code")
    assert json.loads(json.dumps(numbers, allow_nan=False)) == numbers
    assert list(numbers["figures"]) == [figure.experiment.name for figure in figures]


def test_a_bar_in_a_cell_divides_nothing() -> None:
    text = markdown([Block("table", rows=(("a", "b"), ("|ln Ψ|", "1")))])
    assert "| \\|ln Ψ\\| | 1 |" in text


def test_what_is_not_there_is_refused_with_what_there_is() -> None:
    with pytest.raises(SpecError, match="pf, alip, rldp"):
        paper("ldp")
    with pytest.raises(SpecError, match=r"'17'.*3, 4, theorem-4"):
        experiments_of(paper("pf"), ["3", "17"])
    names = [one.name for one in experiments_of(paper("pf"), ["figure-4", "Fig. 3"])]
    assert names == ["3", "4"]


def test_curves_of_a_shared_panel_are_over_the_same_distributions() -> None:
    """A mechanism that keeps more on every distribution must not look worse because others were measured."""
    results = Results((1.0,))
    results.cases["distributions"] = {
        "better": {"distribution 0": [0.2], "distribution 1": [None]},
        "worse": {"distribution 0": [0.1], "distribution 1": [0.9], "distribution 2": [0.8]},
    }
    curves = (Curve("better", "better"), Curve("worse", "worse"), Curve("missing", "missing"))
    panel = Panel("distributions", "", curves, shared=True)
    shared = results.of(panel)
    assert (shared.mean("distributions", "better")[0], shared.mean("distributions", "worse")[0]) == (0.2, 0.1)
    assert results.of(replace(panel, shared=False)).mean("distributions", "worse")[0] == pytest.approx(0.6)
    # The best of several is the best on every distribution, of what is known of it.
    best = results.of(replace(panel, shared=False, best=("better", "worse", "missing")))
    assert best.cases["distributions"][BEST] == {
        "distribution 0": [0.2],
        "distribution 1": [0.9],
        "distribution 2": [0.8],
    }


DOCS = ROOT / "docs" / "papers"


@pytest.mark.parametrize("name", PAPERS)
def test_pages_of_the_documentation_are_whole_and_what_the_command_finds(name: str, cache: Cache) -> None:
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    numbers = json.loads((DOCS / f"{name}-numbers.json").read_text(encoding="utf-8"))
    assert list(numbers["figures"]) == [one.name for one in paper(name).experiments]
    for figure in numbers["figures"]:
        assert f"({name}-{figure}.svg)" in text
    for target in re.findall(r"\]\(([^)#]+)\)", text + (DOCS / "index.md").read_text(encoding="utf-8")):
        assert (DOCS / target).exists(), target
    agreed = [claim["agrees"] for figure in numbers["figures"].values() for claim in figure["claims"]]
    counted = [agreed.count(value) for value in (True, False, None)]
    assert f"| {' | '.join(map(str, counted))} |" in (DOCS / "index.md").read_text(encoding="utf-8")
    # What was measured when the pages were made is what is measured now; seconds are of their time.
    for key in ("pf theorem-4", "pf 5", "alip 3", "alip 7"):
        paper_name, figure = key.split()
        if paper_name != name:
            continue
        results, known = result_of(key, cache), numbers["figures"][figure]
        for case, labels in results.cases.items():
            for label in labels:
                for x, mean in zip(results.xs, results.mean(case, label), strict=True):
                    stated = known["cases"][case][label]["mean"][known["x"].index(x)]
                    if not label.startswith("seconds"):
                        assert stated == pytest.approx(mean, abs=2e-4), (key, case, label, x)
