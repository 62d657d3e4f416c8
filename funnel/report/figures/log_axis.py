"""The axis of factors: logarithmic, so that twice as likely and half as likely are equally far from no change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from funnel.joint import FloatArray
from funnel.report.figures.canvas import INK, RULE, SMALL, WARN
from funnel.report.numbers import superscript

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NICE = (1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0)


def reach(sizes: FloatArray, limit: float | None) -> float:
    """Half-width of the axis, in nats: shows every finite ``|ln factor|``, and the limit unless it is far away."""
    finite = sizes[np.isfinite(sizes)]
    largest = float(finite.max()) if finite.size else 0.0
    shown = 0.0 if limit is None else min(limit, max(6 * largest, 1.0))
    return max(1.12 * largest, 1.12 * shown, 0.02)


def ticks(half_width: float) -> list[tuple[float, str]]:
    """Places (ln factor, from 0 upwards) and labels of round factors, a readable distance apart."""
    candidates = list(_NICE) + [10.0**power for power in range(4, 101)]
    chosen: list[tuple[float, str]] = []
    last = half_width * 1.2
    for factor in sorted(candidates, reverse=True):
        place = float(np.log(factor))
        if place <= half_width and last - place >= 0.2 * half_width and place >= 0.15 * half_width:
            chosen.append((place, f"× {factor:g}" if factor < 1e6 else f"× 10{superscript(round(np.log10(factor)))}"))
            last = place
    return [(0.0, "no change"), *reversed(chosen)]


def draw_axis(axes: Axes, half_width: float, both_sides: bool) -> None:
    """Ticks, a line at no change, and faint lines at the ticks."""
    upward = ticks(half_width)
    places = [place for place, _ in upward]
    labels = [label for _, label in upward]
    if both_sides:
        places = [-place for place in reversed(places[1:])] + places
        labels = [label.replace("×", "÷") for label in reversed(labels[1:])] + labels
    axes.set_xlim(-half_width if both_sides else 0, half_width)
    axes.set_xticks(places, labels)
    axes.tick_params(length=0)
    axes.grid(axis="x", color=RULE, linewidth=0.5, alpha=0.6)
    axes.set_axisbelow(True)
    if both_sides:
        axes.axvline(0, color=INK, linewidth=0.8)
    axes.spines["left"].set_visible(False)


def draw_limit(axes: Axes, place: float, text: str) -> None:
    """A dashed line at a limit of the guarantee, with its name above."""
    axes.axvline(place, color=WARN, linewidth=1.2, linestyle=(0, (4, 2)))
    axes.annotate(
        text,
        (place, 1),
        xycoords=axes.get_xaxis_transform(),
        xytext=(0, 4),
        textcoords="offset points",
        ha="center",
        fontsize=SMALL,
        color=WARN,
    )
