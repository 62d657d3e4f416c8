"""Plots of the solver's benchmark, from its own output: growth of cost, and bound and utility over time."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

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


def main() -> None:
    """Draw both plots into docs/."""
    mpl.rcParams["svg.hashsalt"] = "funnel"
    results = json.loads((HERE / "results" / "solver.json").read_text())
    growth(results["growth"]).savefig(DOCS / "solver-growth.svg", metadata={"Date": None})
    trace(results["trace"]).savefig(DOCS / "solver-trace.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
