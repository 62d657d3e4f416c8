"""Plots of benchmarks, from their own output: the solver, the waves of the panel, and releases beside other methods."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from benchmarks.comparison.page import best_search, measured_rows, rows_of, tally_of
from benchmarks.comparison.releases import limit
from benchmarks.panel import MARRIED, OUTWORK

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"


def growth(rows: list[dict[str, float]]) -> Figure:
    """Seconds against a, c and 1/ε, one panel each."""
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    axes = figure.subplots(1, 3, sharey=True)
    chosen = (
        ("a", "inputs a (c = 5, ε = 1)", [r for r in rows if r["c"] == 5 and r["epsilon"] == 1 and r["a"] != 12]),
        ("c", "secrets c (a = 12, ε = 1)", [r for r in rows if r["a"] == 12 and r["epsilon"] == 1]),
        ("epsilon", "ε (c = 5, a = 12)", [r for r in rows if r["a"] == 12 and r["c"] == 5]),
    )
    for axis, (name, label, some) in zip(axes, chosen, strict=True):
        some = sorted(some, key=lambda r: r[name])
        axis.loglog([r[name] for r in some], [r["seconds"] for r in some], "o-")
        axis.set_xlabel(label)
        axis.grid(alpha=0.3, which="both")
    axes[0].set_ylabel("seconds to a gap of 1e-4 nats")
    return figure


def trace(points: list[list[float]]) -> Figure:
    """Utility and bound over time for the synthetic 15 × 200 distributions, ε = 2, 1, 0.5."""
    runs: list[list[list[float]]] = []
    for point in points:
        if not runs or point[1] < runs[-1][-1][1]:
            runs.append([])
        runs[-1].append(point)
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    for axis, run, epsilon in zip(figure.subplots(1, 3), runs, (2, 1, 0.5), strict=True):
        seconds = [p[1] for p in run]
        axis.plot(seconds, [p[3] for p in run], drawstyle="steps-post", label="bound")
        axis.plot(seconds, [p[2] for p in run], drawstyle="steps-post", label="utility")
        axis.set_title(f"15 × 200, ε = {epsilon:g}")
        axis.set_xlabel("seconds")
        axis.set_xscale("log")
        axis.grid(alpha=0.3)
        axis.legend()
    return figure


def many(rows: list[dict[str, Any]]) -> Figure:
    """What is kept and what can be kept at most of joint tables of 100 to 400 combinations, by the gap."""
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    axis = figure.subplots()
    rows = sorted(rows, key=lambda row: float(row["most"] - row["kept"]))
    places = range(1, len(rows) + 1)
    axis.vlines(places, [100 * row["kept"] for row in rows], [100 * row["most"] for row in rows], linewidth=3)
    axis.plot(places, [100 * row["kept"] for row in rows], "k_")
    axis.set_xlabel("joint tables, by what is open between kept and at most")
    axis.set_ylabel("information, % of H(X)")
    axis.grid(alpha=0.3)
    return figure


def panel(figures: dict[str, list[dict[str, Any]]]) -> Figure:
    """People outside the bound in every wave: fresh draws, one keyed word, and histories without and with a reserve."""
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for axis, case in zip(axes, (OUTWORK, MARRIED), strict=True):
        lines = {
            "fresh draws": "fresh",
            "one keyed word": "keyed",
            "histories": "reserve 1",
            "reserve 0.9": "reserve 0.9",
        }
        for (label, name), marker in zip(lines.items(), "osx+", strict=True):
            rows = [row.get("second", row) for row in figures[f"{case.name}, {name}"]]
            shares = [100 * row["outside"] / row["people"] for row in rows]
            axis.plot(range(1984, 1989), shares, f"{marker}-", label=label)
        axis.set_title(f"{case.name}, ε = {case.guarantee.epsilon:g}", fontsize="medium")
        axis.set_xticks(range(1984, 1989))
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("people outside the bound, %")
    axes[0].legend()
    return figure


_KINDS = {"funnel": "C0", "PRAM": "C1", "synthetic": "C2", "k-anonymity": "C3", "truth": "black"}
_LABELS = {
    "PRAM, all columns": "as offices tune it",
    "randomised response, ε = 1, corrected": "corrected",
    "CART": "CART",
    "MST, ε = 1": "MST 1",
    "MST, ε = 10": "MST 10",
    "AIM, ε = 1": "AIM 1",
    "AIM, ε = 10": "AIM 10",
}


def comparison(tables: Mapping[str, list[dict[str, Any]]]) -> Figure:
    """Gain of attacks against the error of tables of three columns, with the limits that are proven for funnel."""
    figure = Figure(figsize=(14, 4.8), layout="constrained")
    panels = figure.subplots(1, len(tables), sharey=True, squeeze=False)[0]
    for axis, rows in zip(panels, tables.values(), strict=True):
        axis.set_xscale("function", functions=(np.sqrt, np.square))
        measured = measured_rows(rows)
        right = 1.1 * max(row["errors"]["3-way"] for row in measured)
        for epsilon in (0.5, 1.0, 2.0):
            axis.axhline(limit(epsilon), color=_KINDS["funnel"], linewidth=0.9, linestyle="--")
            text = f"funnel's proven limit, ε = {epsilon:g}"
            axis.text(right, limit(epsilon) + 0.01, text, color=_KINDS["funnel"], ha="right", fontsize="x-small")
        for kind, colour in _KINDS.items():
            some = [row for row in measured if row["kind"] == kind]
            for row in some:
                error, found = row["errors"]["3-way"], tally_of(row, best_search(row))
                low, high = found.interval
                axis.plot([error, error], [low, high], color=colour, linewidth=1)
                axis.plot(error, found.gain, "o", color=colour, markersize=5)
                if "own record" in row["attacks"]:
                    told = tally_of(row, "own record").gain
                    axis.plot(error, told, "o", color=colour, markersize=5, markerfacecolor="none")
                if label := _LABELS.get(row["method"]):
                    axis.annotate(
                        label,
                        (error, found.gain),
                        # Methods of one family lie close together.
                        {"MST 1": (5, 14), "MST 10": (5, -12), "AIM 1": (-30, 4)}.get(label, (4, 4)),
                        textcoords="offset points",
                        fontsize="x-small",
                        color=colour,
                    )
            axis.plot([], [], "o", color=colour, markersize=5, label=kind)
            lines = [row for row in some if row["method"].startswith(("funnel, attribute", "PRAM, secret"))]
            lines = [row for row in lines if "known" not in row["method"] and "noise" not in row["method"]]
            gains = [tally_of(row, best_search(row)).gain for row in lines]
            axis.plot([row["errors"]["3-way"] for row in lines], gains, color=colour, linewidth=0.8)
        axis.set_title(f"{rows[0]['table']}\n{rows[0]['columns'][0]} is secret", fontsize="medium")
        axis.set_xlim(0, right)
        axis.set_ylim(-0.05, 1.05)
        axis.set_xlabel("error of tables of three columns (total variation)")
        axis.grid(alpha=0.3)
    panels[0].set_ylabel("gain of the attacker over the base rate")
    panels[-1].plot([], [], "o", color="grey", markersize=5, markerfacecolor="none", label="told which record")
    figure.legend(*panels[-1].get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize="small")
    return figure


def main() -> None:
    """Draw all plots into docs/."""
    mpl.rcParams["svg.hashsalt"] = "funnel"
    results = json.loads((HERE / "results" / "solver.json").read_text())
    growth(results["growth"]).savefig(DOCS / "solver-growth.svg", metadata={"Date": None})
    trace(results["trace"]).savefig(DOCS / "solver-trace.svg", metadata={"Date": None})
    tables = json.loads((HERE / "results" / "many-inputs.json").read_text())
    many(tables).savefig(DOCS / "solver-many.svg", metadata={"Date": None})
    waves = json.loads((HERE / "results" / "panel.json").read_text())
    panel(waves).savefig(DOCS / "panel.svg", metadata={"Date": None})
    draw_comparison()


def draw_comparison() -> None:
    """Draw the picture of the comparison alone."""
    mpl.rcParams["svg.hashsalt"] = "funnel"
    figure = comparison(rows_of(HERE / "results"))
    figure.savefig(DOCS / "pictures" / "comparison.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
