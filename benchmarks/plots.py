"""Plots of benchmarks, from their own output: cost, bound and utility of the solver, and the waves of the panel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

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
    """Utility and bound over time for the synthetic 15 × 200 laws, ε = 2, 1, 0.5."""
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


if __name__ == "__main__":
    main()
