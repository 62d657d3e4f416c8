"""What is explained of numbers by the optimum for that and by the optimum of information, and what bins are worth.

``python -m benchmarks.numbers`` reads Adult from ``data/adult.parquet`` and writes ``benchmarks/results/numbers.json``
and ``numbers.md``. Seconds are of processor time of all threads.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import funnel
from funnel import Guarantee, Joint
from funnel.binning import Cells, Tried, assessed, chosen_edges

HERE = Path(__file__).parent
RESULTS = HERE / "results"
ADULT = HERE.parent / "data" / "adult.parquet"
COLUMNS = (("age", "income"), ("hours-per-week", "sex"), ("education-num", "income"), ("age", "marital-status"))
BOUNDS = ("lip:0.25", "ldp:0.25", "lip:1.0")
GAP, LIMIT = 1e-4, 60.0
BINNED = (("age", "income"), ("hours-per-week", "sex"), ("age", "marital-status"))


def optima(joint: Joint, guarantee: Guarantee) -> dict[str, Any]:
    """Variance explained by the optimum of information, by that of variance, and by GRR."""
    variance = funnel.measures.Variance.of(joint.inputs)
    informed = funnel.optimal(joint, guarantee, GAP * joint.entropy, LIMIT)
    started = time.process_time()
    best = funnel.optimal(joint, guarantee, GAP, LIMIT, utility=variance)
    seconds = time.process_time() - started
    return {
        "informed": round(variance.told(joint, informed.protocol), 4),
        "grr": round(variance.told(joint, funnel.fit("grr", joint, guarantee)), 4),
        "explained": round(best.utility, 4),
        "bound": round(best.bound, 4),
        "information": round(funnel.measures.normalised_mutual_information(joint, best.protocol), 4),
        "most information": round(informed.utility / joint.entropy, 4),
        "seconds": round(seconds, 2),
    }


def bins(joint: Joint, guarantee: Guarantee, by_variance: bool) -> dict[str, Any]:
    """What the optimum tells with bins that were found, and with as many of equal counts and of equal width."""
    numbers = tuple(int(label) for label in joint.inputs)
    cells = Cells.of(numbers, joint.counts)
    started = time.process_time()
    edges = chosen_edges(cells, guarantee, by_variance)
    seconds = time.process_time() - started
    k = len(edges) + 1
    finest = assessed(cells, tuple(range(1, len(cells))), guarantee, by_variance)
    return {
        "edges": list(edges),
        "found": _share(
            assessed(cells, tuple(cells.firsts.index(edge) for edge in edges), guarantee, by_variance), finest
        ),
        "equal counts": _share(assessed(cells, _equal_counts(cells, k), guarantee, by_variance), finest),
        "equal width": _share(assessed(cells, _equal_width(cells, k, numbers[-1]), guarantee, by_variance), finest),
        "cells": len(cells),
        "seconds": round(seconds, 2),
    }


def _share(one: Tried, finest: Tried) -> list[float]:
    """What is told, and of what the finest cells tell."""
    return [round(one.told, 4), round(one.told / finest.told, 4)]


def _equal_counts(cells: Cells, k: int) -> tuple[int, ...]:
    below = np.cumsum(cells.counts.sum(axis=0)) / cells.counts.sum()
    return tuple(sorted({int(np.searchsorted(below, j / k)) + 1 for j in range(1, k)} - {len(cells)}))


def _equal_width(cells: Cells, k: int, last: float) -> tuple[int, ...]:
    at = np.linspace(cells.firsts[0], last, k + 1)[1:-1]
    return tuple(sorted({int(np.searchsorted(cells.firsts, edge)) for edge in at} - {0, len(cells)}))


def measured() -> dict[str, Any]:
    """All figures, by column, secret and bound."""
    found: dict[str, Any] = {"optima": {}, "bins": {}}
    for column, secret in COLUMNS:
        joint = Joint.from_table(ADULT, secret=[secret], inputs=[column])
        for bound in BOUNDS:
            guarantee = funnel.parse_guarantee(bound)
            found["optima"][f"{column} | {secret}, {bound}"] = optima(joint, guarantee)
            if (column, secret) in BINNED and bound != "ldp:0.25":
                for by_variance in (False, True):
                    what = "variance" if by_variance else "information"
                    found["bins"][f"{column} | {secret}, {bound}, {what}"] = bins(joint, guarantee, by_variance)
    return found


def page(found: dict[str, Any]) -> str:
    """As Markdown."""
    return "\n".join([*_of_optima(found["optima"]), "", *_of_bins(found["bins"])]) + "\n"


def _of_optima(found: dict[str, Any]) -> Iterator[str]:
    yield "# Numbers: variance explained"
    yield ""
    yield "By `python -m benchmarks.numbers`, on Adult (48,842 records), every number a value of its own. Shares of the"
    yield "variance of the published column that the output explains, Var E[X|Y] / Var X, and shares of H(X) kept."
    yield ""
    heads = ("optimum of information explains", "GRR", "optimum of variance", "at most", "its information")
    yield f"| published, secret, bound | {' | '.join(heads)} | most information | s |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|"
    for case, row in found.items():
        shares = ("informed", "grr", "explained", "bound", "information", "most information")
        yield f"| {case} | " + " | ".join(f"{row[name]:.1%}" for name in shares) + f" | {row['seconds']:.2f} |"


def _of_bins(found: dict[str, Any]) -> Iterator[str]:
    yield "## Bins that were found"
    yield ""
    yield 'With `bins = "auto"`, in brackets of what the optimum tells over all quantile cells; beside as many bins of'
    yield "equal counts and of equal width. Information in nats, variance as a share of that of the numbers themselves."
    yield ""
    yield "| published, secret, bound, what counts | edges | found | equal counts | equal width | cells | s |"
    yield "|---|---|---:|---:|---:|---:|---:|"
    for case, row in found.items():
        told = [f"{row[name][0]:.3f} ({row[name][1]:.0%})" for name in ("found", "equal counts", "equal width")]
        edges = ", ".join(map(str, row["edges"]))
        yield f"| {case} | {edges} | " + " | ".join(told) + f" | {row['cells']} | {row['seconds']:.1f} |"


def main() -> None:
    """Measure and write both files."""
    found = measured()
    (RESULTS / "numbers.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    (RESULTS / "numbers.md").write_text(page(found))


if __name__ == "__main__":
    main()
