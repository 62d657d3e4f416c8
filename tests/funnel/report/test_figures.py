"""The figures: deterministic, harmless inside a page, and unharmed by any label."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel import LIP, Joint, Protocol, fit
from funnel.report import PlanLine, figures
from funnel.report.figures.canvas import short
from funnel.report.figures.heat_map import pooled
from funnel.report.figures.log_axis import reach, ticks

HOSTILE = (
    "$x^2$",
    r"\frac{a}{b}$",
    "a_b_c",
    "<script>alert(1)</script>",
    "line\nbreak",
    "x" * 200,
    "مرحبا بالعالم",
    "👩‍👩‍👧 family 🎉",
    "--> ]]> &amp;",
    "\u202eevil\x00",
)


def _square(size: int) -> Protocol:
    joint = Joint.from_counts(np.eye(size, dtype=int) + 1)
    return fit("grr", joint, LIP(0.1))


def _texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


@given(st.text(max_size=400), st.integers(8, 60))
def test_short_labels_are_one_visible_line(label: str, length: int) -> None:
    text = short(label, length)
    assert 0 < len(text) <= length
    assert text == " ".join(text.split())


def test_a_long_label_keeps_both_ends() -> None:
    assert short("Managers of " + "very " * 20 + "large farms", 26) == "Managers of very…ge farms"


@pytest.mark.parametrize("kind", ["heat", "lift", "ratio", "utility"])
def test_hostile_labels_are_escaped_text_and_the_same_every_time(kind: str) -> None:
    c = len(HOSTILE)
    joint = Joint.from_counts(np.eye(c, dtype=int) * 5 + 1, secret=HOSTILE, inputs=HOSTILE)
    protocol = fit("grr", joint, LIP(0.5))
    lift = np.exp(np.linspace(-0.5, 0.5, c * c)).reshape(c, c)

    def draw() -> str:
        if kind == "heat":
            return str(figures.heat_map(protocol))
        if kind == "lift":
            return str(figures.lift_chart(lift, joint.secret.labels, (0.5, 2.0)))
        if kind == "ratio":
            return str(figures.ratio_chart(np.linspace(1, 2, c), HOSTILE, 2.0))
        return str(figures.utility_chart([PlanLine(label, 0.1, 0.5, 0.5, 0.1, None) for label in HOSTILE], HOSTILE[0]))

    svg = draw()
    assert draw() == svg
    texts = _texts(svg)
    for label in HOSTILE:
        # What is shown is a cut of the label itself, never a formula made from it.
        assert any(text == short(label, length) for text in texts for length in (22, 30, 34)), label
    assert "<script" not in svg
    assert "<!--" not in svg
    assert "\x00" not in svg


@pytest.mark.parametrize("size", [1, 2, 16, 42, 43])
def test_heat_maps_name_their_cells_up_to_42_of_them(size: int) -> None:
    protocol = _square(size)
    texts = _texts(figures.heat_map(protocol))
    assert figures.is_labelled(protocol) == (size <= 42)
    for label in protocol.inputs.labels:
        assert (label in texts) == (size <= 42)
    numbers = [text for text in texts if re.fullmatch(r"[<>]?\d+", text)]
    assert len(numbers) == (size * size if size <= 18 else 0)


def test_numbers_in_cells_do_not_claim_certainty(make_protocol: Callable[..., Protocol]) -> None:
    joint = Joint.from_counts([[1, 1, 1], [1, 1, 1]])
    protocol = make_protocol(joint, [[1, 0.999, 0.4], [0, 0.001, 0.6]], ["u", "v"], LIP(1.0))
    cells = [text for text in _texts(figures.heat_map(protocol)) if re.fullmatch(r"[<>]?\d+", text)]
    assert sorted(cells) == ["100", "40", "60", "<1", ">99"]


def test_figures_follow_the_page_and_share_no_identifier() -> None:
    protocol = _square(20)
    lift = np.full((3, 20), 1.1)
    drawn = [
        figures.heat_map(protocol),
        figures.lift_chart(lift, ("a", "b", "c"), (0.5, 2.0)),
        figures.ratio_chart(lift[0], protocol.outputs.labels, 2.0),
        figures.utility_chart([PlanLine("grr", 0.1, 0.5, 0.5, 0.1, None)], "grr"),
    ]
    ids = re.findall(r'\sid="([^"]+)"', "".join(map(str, drawn)))
    assert len(ids) == len(set(ids)) > 20
    for svg in map(str, drawn):
        own = set(re.findall(r'\sid="([^"]+)"', svg))
        assert set(re.findall(r'url\(#([^)]+)\)|xlink:href="#([^"]+)"', svg)) != set()
        for one, other in re.findall(r'url\(#([^)]+)\)|xlink:href="#([^"]+)"', svg):
            assert (one or other) in own
        assert "var(--ink)" in svg
        assert "#0102" not in svg
        assert "<style" not in svg
        assert "<metadata" not in svg
        assert re.search(r'role="img" aria-label="[^"]{20,}"', svg)


def test_lifts_that_exclude_or_never_occur_are_drawn_without_warnings() -> None:
    lift = np.array([[0.0, 2.0, np.nan], [1.5, 0.5, np.nan], [np.nan, np.nan, np.nan]])
    assert "limit × 2.72" in _texts(figures.lift_chart(lift, ("a", "b", "c"), (np.exp(-1), np.e)))
    assert "u" in _texts(figures.ratio_chart(np.array([np.inf, 2.0, np.nan]), ("u", "v", "w"), 2.0))
    assert "a" in _texts(figures.lift_chart(np.full((1, 1), np.nan), ("a",), None))


def test_only_the_fifty_strongest_lines_are_drawn() -> None:
    lift = np.ones((60, 2))
    lift[:, 0] = np.exp(np.arange(60) / 100)
    texts = _texts(figures.lift_chart(lift, tuple(f"s{i}" for i in range(60)), None))
    assert {text for text in texts if text.startswith("s")} == {f"s{i}" for i in range(10, 60)}


def test_more_dots_and_cells_than_can_be_told_apart_stay_small() -> None:
    generator = np.random.default_rng(5)
    lift = np.exp(generator.uniform(-1, 1, size=(50, 4000)))
    svg = figures.lift_chart(lift, tuple(f"s{i}" for i in range(50)), (0.3, 3.0))
    assert 5_000 < svg.count("<use") < 12_000
    matrix = np.zeros((900, 500))
    matrix[777, 3] = 0.25
    assert pooled(matrix).shape == (400, 400)
    # What is rare does not vanish among the impossible cells around it.
    assert sorted(pooled(matrix).ravel())[-2:] == [0, 0.25]
    np.testing.assert_array_equal(pooled(matrix[700:1000, :400]), matrix[700:1000, :400])


def test_mechanisms_without_a_utility_have_no_bar() -> None:
    refused = PlanLine("identity", None, None, np.inf, 0.0, "its level is infinite")
    assert figures.utility_chart([refused], "grr") is None
    unused = PlanLine("conditional-reporting", 0.1, 0.25, 1.0, 0.1, "reads the secret")
    texts = _texts(str(figures.utility_chart([refused, unused], "grr")))
    assert "identity" not in texts
    assert any("may not be used" in text for text in texts)


@given(st.floats(min_value=0.02, max_value=230.0))
@settings(max_examples=60)
def test_ticks_are_round_factors_a_readable_distance_apart(half_width: float) -> None:
    found = ticks(half_width)
    places = [place for place, _ in found]
    assert 2 <= len(found) <= 6
    assert places[0] == 0
    assert np.diff(places).min() >= 0.14 * half_width
    assert places[-1] <= half_width
    assert len({label for _, label in found}) == len(found)


def test_the_axis_shows_every_lift_and_the_limit_unless_it_is_far_away() -> None:
    assert reach(np.array([0.5, np.inf]), 1.0) == pytest.approx(1.12)
    assert reach(np.array([3.0]), 1.0) == pytest.approx(3.36)
    assert reach(np.array([0.1]), 100.0) == pytest.approx(1.12)
    assert reach(np.array([np.nan]), None) > 0
