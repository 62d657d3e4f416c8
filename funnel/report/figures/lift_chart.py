"""The lift of every (secret, output) on one line per secret, between the limits that the guarantee sets."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from funnel.joint import FloatArray, IntArray
from funnel.report.changes import log_lift
from funnel.report.figures.canvas import ACCENT, INK, WARN, canvas, short, style, to_svg
from funnel.report.figures.log_axis import draw_axis, draw_limit, reach

MAX_LINES = 50
_MAX_DOTS = 2000
_ROW = 0.3


def lift_chart(lift: FloatArray, secrets: tuple[str, ...], limits: tuple[float, float] | None) -> Markup:
    """Dots for all lifts P(s|y)/P(s) as an SVG element.

    Parameters
    ----------
    lift : ndarray, shape (c, b)
        nan where s or y never occurs; zero where y excludes s.
    secrets : tuple of str
        The c labels; the 50 with the largest changes are drawn.
    limits : tuple of two floats, or None
        Least and largest lift allowed.
    """
    logs = log_lift(lift)
    sizes = np.abs(logs)
    shown = strongest(np.nan_to_num(sizes, nan=-1.0).max(axis=1, initial=-1.0))
    # A side without a limit has none to draw.
    sides = () if limits is None else tuple((sign, value) for sign, value in zip("÷×", limits, strict=True))
    drawn_limits = [(sign, abs(float(np.log(value)))) for sign, value in sides if 0 < value < np.inf]
    half_width = reach(sizes[shown], max((limit for _, limit in drawn_limits), default=None))
    with style():
        figure, axes = canvas(max(1.4, 0.75 + _ROW * len(shown)))
        draw_axis(axes, half_width, both_sides=True)
        rows, _ = np.nonzero(~np.isnan(logs[shown]))
        values = logs[shown][~np.isnan(logs[shown])]
        rows, values = _apart(rows, values, half_width)
        excluded = np.isneginf(values)
        axes.plot(values[~excluded], rows[~excluded], "o", color=ACCENT, markersize=5.5, alpha=0.55, markeredgewidth=0)
        # An output that excludes a value has no place on a logarithmic axis: an arrow at its end.
        axes.plot(np.full(excluded.sum(), -half_width), rows[excluded], "<", color=WARN, markersize=7, clip_on=False)
        # Two limits at one place, of a bound that allows no change at all, are named once.
        for sign, limit in {limit if sign == "×" else -limit: (sign, limit) for sign, limit in drawn_limits}.values():
            if limit < half_width:
                draw_limit(axes, -limit if sign == "÷" else limit, f"limit {sign} {np.exp(limit):.3g}")
        axes.set_yticks(range(len(shown)), [short(secrets[s], 30) for s in shown], color=INK)
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.set_xlabel("change of the probability of a value after seeing one published record")
        drawn = int((~np.isnan(logs[shown])).sum())
        return to_svg(
            figure,
            "lift",
            f"Chart of {drawn:,} lifts, one line for each of {len(shown):,} values of the secret, one dot for each "
            f"published value{', with the limits of the guarantee' if drawn_limits else ''}. The table below gives the "
            f"numbers.",
        )


def _apart(rows: IntArray, values: FloatArray, half_width: float) -> tuple[IntArray, FloatArray]:
    """Of very many dots, those that lie within a third of their own width of each other only once."""
    if len(values) <= _MAX_DOTS:
        return rows, values
    step = half_width / 100
    places = np.column_stack([rows, np.round(values / step)])
    _, kept = np.unique(places, axis=0, return_index=True)
    return rows[kept], values[kept]


def strongest(strength: FloatArray) -> list[int]:
    """Positions to draw: all, in order, or the strongest, strongest first."""
    if len(strength) <= MAX_LINES:
        return list(range(len(strength)))
    return [int(i) for i in np.argsort(-strength, kind="stable")[:MAX_LINES]]
