"""What noise on the frequencies costs, by its epsilon and by the number of records, on Adult.

``python -m benchmarks.frequencies_cost`` measures every case that ``benchmarks/results/frequencies-cost.json`` lacks
and writes ``benchmarks/results/frequencies-cost.md`` and ``docs/frequencies-cost.svg``. Counts are those of Adult,
scaled to so many records; the bounds that noise leaves are those for β = 0.01. The limit of a search is work that is
counted, so every run gives the same figures.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from funnel import Joint, parse_guarantee
from funnel.frequencies.noise_forecast import Cost, forecast_noise
from funnel.sample_size import grouped
from funnel.settings.protection_settings import FrequencySettings

HERE = Path(__file__).parent
RESULTS = HERE / "results"
DOCS = HERE.parent / "docs"
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
SIZES = (1_000, 10_000, 100_000)
BETA = 0.01
# Secret, published, bound, how many of the rarest values of the secret are made one.
CASES = (
    ("income", "education", "ldp:1.0", 0),
    ("marital-status", "education", "lip:1.0", 0),
    ("marital-status", "education", "lip:1.0", 4),
)


def named(secret: str, published: str, text: str, together: int) -> str:
    """A case as people read it."""
    rare = f" ({together} rarest values made one)" if together else ""
    return f"{secret}{rare} | {published}, {text}"


def measured(path: Path, secret: str, published: str, text: str, together: int, seconds: float) -> dict[str, Any]:
    """The outlook of one case."""
    joint = Joint.from_table(path, secret=[secret], inputs=[published])
    if together:
        rarest = np.argsort(joint.counts.sum(axis=1), kind="stable")[:together]
        joint = grouped(joint, rarest)
    started = time.process_time()
    settings = FrequencySettings(protection="noise", epsilon=1.0, beta=BETA)
    found = forecast_noise(joint, parse_guarantee(text), settings, epsilons=EPSILONS, sizes=SIZES, seconds=seconds)
    if found is None:
        raise AssertionError(f"{text} covers no noise")
    return {
        "case": named(secret, published, text, together),
        "records": joint.n,
        "costs": [cost.to_dict() for cost in found.costs],
        "sentence": found.sentence,
        "seconds": round(time.process_time() - started, 1),
    }


def costs_of(row: dict[str, Any]) -> dict[tuple[int, float | None], Cost]:
    """Cells of a case as they were measured."""
    found = {}
    for cell in row["costs"]:
        told = {name: cell[name] for name in ("n", "epsilon", "kept", "most", "level", "ignored", "reason")}
        if cell["ignored_certain"]:
            told["ignored"] = float("inf")
        found[cell["n"], cell["epsilon"]] = Cost(**told)
    return found


def write(rows: list[dict[str, Any]], path: Path) -> None:
    """Tables of what is kept, and of what ignoring the noise would break."""
    lines = [
        "# What noise on the frequencies costs",
        "",
        "Made by `python -m benchmarks.frequencies_cost`. Frequencies of Adult, scaled to so many records in whole "
        "numbers; share of H(X) that the best protocol keeps that reads the published column alone and holds for every "
        "table of counts that noise of this epsilon leaves open with 1 - β = 0.99. Where two shares are told, the best "
        "is between them: the first is of a protocol that was found, and no protocol exceeds the second.",
        "",
        "![Share of the information kept by epsilon of the frequencies](../../docs/frequencies-cost.svg)",
    ]
    for row in rows:
        cells = costs_of(row)
        sizes, epsilons = sorted({n for n, _ in cells}), [None, *EPSILONS]
        head = ["records", *("no noise" if one is None else f"ε = {one:g}" for one in epsilons)]
        lines += ["", f"## {row['case']}", "", "| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
        lines += [f"| {n:,} | " + " | ".join(cells[n, one].share for one in epsilons) + " |" for n in sizes]
        lines += [
            "",
            "Level of the protocol made without noise, for the worst counts that the noise leaves open:",
            "",
            "| " + " | ".join(head[:1] + head[2:]) + " |",
            "|---" * (len(head) - 1) + "|",
        ]
        for n in sizes:
            levels = [cells[n, one].ignored for one in EPSILONS]
            lines.append(f"| {n:,} | " + " | ".join("-" if one is None else f"{one:.3g}" for one in levels) + " |")
        if row["sentence"]:
            lines += ["", f"What `funnel plan` says of ε = 1: {row['sentence']}."]
        lines += ["", f"{row['seconds']:.0f} s of processor time."]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def figure(rows: list[dict[str, Any]]) -> Figure:
    """Share kept against epsilon, a panel for each case, a line for each number of records; bands up to the bound."""
    drawn = Figure(figsize=(10, 3.6), layout="constrained")
    axes = drawn.subplots(1, len(rows), sharey=True)
    for axis, row in zip(axes, rows, strict=True):
        cells = costs_of(row)
        for place, n in enumerate(sorted({n for n, _ in cells})):
            some = [cells[n, one] for one in EPSILONS if cells[n, one].kept is not None]
            x, kept = [cost.epsilon for cost in some], [100 * (cost.kept or 0.0) for cost in some]
            axis.plot(x, kept, "o-", ms=3, color=f"C{place}", label=f"{n:,} records")
            axis.fill_between(x, kept, [100 * (cost.most or 0.0) for cost in some], color=f"C{place}", alpha=0.12)
            if (bare := cells[n, None].kept) is not None:
                axis.axhline(100 * bare, color=f"C{place}", lw=0.7, ls=":")
        axis.set_xscale("log")
        axis.set_xticks(EPSILONS, [f"{one:g}" for one in EPSILONS])
        axis.minorticks_off()
        axis.set_xlabel("ε of the frequencies")
        axis.set_title(row["case"].replace(" (", "\n("), fontsize="small")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("kept of H(X), %")
    axes[0].legend(fontsize="small")
    return drawn


def main() -> None:
    """Measure what is missing, and write the tables and the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=HERE.parent / "data" / "adult.parquet", type=Path)
    parser.add_argument("--seconds", default=2.0, type=float, help="for a cell, as work that is counted")
    arguments = parser.parse_args()
    path = RESULTS / "frequencies-cost.json"
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    for case in CASES:
        if any(row["case"] == named(*case) for row in rows):
            continue
        rows.append(measured(arguments.data, *case, arguments.seconds))
        print(rows[-1]["case"], f"{rows[-1]['seconds']:.0f} s", flush=True)
        rows.sort(key=lambda row: [named(*case) for case in CASES].index(row["case"]))
        path.write_text(json.dumps(rows, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    write(rows, RESULTS / "frequencies-cost.md")
    mpl.rcParams["svg.hashsalt"] = "funnel"
    figure(rows).savefig(DOCS / "frequencies-cost.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
