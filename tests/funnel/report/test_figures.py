"""The charts: places on a logarithmic axis, with ticks a readable distance apart, and arrows for what has no place."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.release.report_parts import Spread
from funnel.report.figures import spread_chart
from funnel.report.figures.spreads import Axis, reach, ticks


def test_every_factor_is_at_its_logarithm() -> None:
    spreads = [
        Spread(label="a", values=(0.5, 1.0, 2.0)),
        Spread(label="b", values=(1.5,)),
        Spread(label="c", values=()),
    ]
    chart = spread_chart(spreads, (math.exp(-1), math.e), True, "values")
    half = 1.12
    for line, spread in zip(chart.lines, spreads, strict=True):
        expected = [round(50 * (1 + math.log(float(value)) / half), 1) for value in spread.values]
        assert list(line.dots) == expected
    assert chart.lines[0].start == chart.lines[0].dots[0]
    assert chart.lines[0].start + chart.lines[0].width == pytest.approx(chart.lines[0].dots[-1], abs=0.11)
    assert [text for _, text in chart.limits] == ["limit ÷\u00a02.72", "limit ×\u00a02.72"]
    assert sum(place for place, _ in chart.limits) == pytest.approx(100)
    assert dict((text, place) for place, text in chart.ticks)["no change"] == 50


def test_what_excludes_a_value_or_is_not_limited_is_an_arrow() -> None:
    both = spread_chart([Spread(label="a", values=(0.0, 2.0))], None, True, "values")
    assert both.lines[0].below
    assert not both.lines[0].above
    assert len(both.lines[0].dots) == 1
    one = spread_chart(
        [Spread(label="y", values=("infinite",)), Spread(label="z", values=(1.5,))], (0, 2), False, "outputs"
    )
    assert [text for _, text in one.limits] == ["limit ×\u00a02"]
    assert (one.lines[1].start, one.lines[1].width) == (0, one.lines[1].dots[0])
    assert one.lines[0].above
    assert one.lines[0].dots == ()
    assert both.limits == ()
    assert "limits of the guarantee" not in both.description
    assert "limits of the guarantee" in one.description


def test_two_limits_at_one_place_are_named_once() -> None:
    chart = spread_chart([Spread(label="a", values=(1.0,))], (1.0, 1.0), True, "values")
    assert len(chart.limits) == 1


@given(st.floats(min_value=0.02, max_value=230.0))
@settings(max_examples=60)
def test_ticks_are_round_factors_a_readable_distance_apart(half_width: float) -> None:
    found = ticks(half_width)
    places = [math.log(factor) for factor, _ in found]
    assert 2 <= len(found) <= 5
    assert places[0] == 0
    assert np.diff(places).min() >= 0.26 * half_width
    assert places[-1] <= half_width
    assert len({label for _, label in found}) == len(found)
    axis = Axis(half_width, True)
    assert all(0 <= place <= 100 for place, _ in axis.ticks)
    assert len(axis.ticks) == 2 * len(found) - 1


def test_the_axis_shows_every_factor_and_the_limit_unless_it_is_far_away() -> None:
    assert reach([math.exp(0.5), math.inf, 0.0], [math.e]) == pytest.approx(1.12)
    assert reach([math.exp(-3.0)], [math.e]) == pytest.approx(3.36)
    assert reach([math.exp(0.1)], [math.exp(100)]) == pytest.approx(1.12)
    assert reach([], []) > 0
