"""Figures as SVG: means over distributions, told apart by line and marker as well as by colour."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from funnel_papers.experiment import Curve, Experiment, Panel, Results, distributions_of

# Of colours that are of different lightness too, for print without colour.
_COLOURS = ("#1b1b1b", "#0b5fa5", "#c1440e", "#5d8a1f", "#8a3ea1", "#7a6a00", "#b3003c", "#3b8ea5", "#888888")
_MARKERS = "osv^DPX*<>"
_STYLES = {"bound": ":", "optimum": "-", "ours": "-", "paper": "--"}
_WIDTHS = {"bound": 2.2, "optimum": 1.4, "ours": 1.2, "paper": 1.2}
_ACROSS = 3


def svg(experiment: Experiment, results: Results) -> str:
    """The figure of an experiment; the same text for the same results."""
    drawable = [panel for panel in experiment.panels if panel.case in results.cases]
    # What is called the same looks the same in every panel: one legend may be of all.
    named = dict.fromkeys(curve.title for panel in drawable for curve in panel.curves)
    looks = {title: place for place, title in enumerate(named)}
    across = min(_ACROSS if len(drawable) != 4 else 2, len(drawable)) or 1
    down = math.ceil(len(drawable) / across) or 1
    figure = Figure(figsize=(4.1 * across + (2.4 if across == 1 else 0.4), 3.0 * down + 1.0), layout="constrained")
    for place, panel in enumerate(drawable):
        axes = figure.add_subplot(down, across, place + 1)
        if panel.against:
            _scatter(axes, panel, results)
        else:
            _lines(axes, panel, results.of(panel), looks)
        axes.set_xlabel(panel.x_title)
        axes.set_ylabel(panel.y_title)
        if panel.title:
            axes.set_title(f"{panel.title}{distributions_of(panel, results)}", fontsize="medium")
        axes.grid(alpha=0.3)
    _legends(figure)
    with mpl.rc_context({"svg.hashsalt": "funnel", "svg.fonttype": "path"}):
        written = io.StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None, "Title": f"{experiment.title}"})
    return re.sub(r"[ \t]+$", "", written.getvalue(), flags=re.MULTILINE)


def _lines(axes: Axes, panel: Panel, results: Results, looks: Mapping[str, int]) -> None:
    xs = np.array(results.xs)
    most = max((results.distributions(panel.case, curve.label) for curve in panel.curves), default=0)
    for curve in panel.curves:
        ys = results.mean(panel.case, curve.label) if curve.label in results.cases[panel.case] else np.array([])
        known = ~np.isnan(ys)
        if not known.any():
            continue
        distributions = results.distributions(panel.case, curve.label)
        title = curve.title if distributions == most else f"{curve.title} ({distributions} distributions)"
        style = _style(curve, looks[curve.title])
        if curve.spread:
            errors = np.nan_to_num(results.deviation(panel.case, curve.label))[known]
            axes.errorbar(xs[known], ys[known], yerr=errors, capsize=2, label=title, **style)
        else:
            axes.plot(xs[known], ys[known], label=title, **style)
    if panel.diagonal:
        axes.plot(xs, xs, linestyle="-.", color="#888888", label=panel.diagonal)
    for axis, scale in zip(("x", "y"), panel.scale, strict=True):
        if scale == "log":
            getattr(axes, f"set_{axis}scale")("log")
    if panel.scale[0] == "log":
        axes.set_xticks(xs, [f"{x:,g}" for x in xs])
        axes.minorticks_off()


def _style(curve: Curve, place: int) -> dict[str, Any]:
    """Bounds are dotted, the paper's own dashed, what is ours or the optimum solid."""
    bound = curve.role == "bound"
    return {
        "linestyle": _STYLES[curve.role],
        "linewidth": _WIDTHS[curve.role],
        "color": _COLOURS[place % len(_COLOURS)],
        # Above the optimum that it is close to.
        "zorder": 5 if bound else 2,
        "marker": "" if bound else _MARKERS[place % len(_MARKERS)],
        "markersize": 3.5,
    }


def _scatter(axes: Axes, panel: Panel, results: Results) -> None:
    (curve,) = panel.curves
    pairs = [(x, y) for _, at, x, y in results.pairs(panel.case, panel.against, curve.label) if at == panel.at]
    if pairs:
        axes.plot(*zip(*pairs, strict=True), "o", ms=3, color=_COLOURS[1], label=curve.title)
    axes.axhline(0, color="0.5", linewidth=0.8)
    axes.axvline(0, color="0.5", linewidth=0.8)


def _legends(figure: Figure) -> None:
    """One legend below where all panels have the same curves, else one a panel."""
    found = [axes.get_legend_handles_labels() for axes in figure.axes]
    names: Sequence[list[str]] = [labels for _, labels in found]
    longest = max(found, key=lambda one: len(one[1]), default=([], []))
    if all(set(some) <= set(longest[1]) for some in names) and len(names) > 1:
        columns = 3 if len(longest[1]) > 4 else max(1, len(longest[1]))
        figure.legend(*longest, loc="outside lower center", ncols=columns, fontsize=8)
        return
    if len(names) == 1:
        figure.legend(*longest, loc="outside right upper", fontsize=8)
        return
    for axes in figure.axes:
        axes.legend(fontsize=7)
