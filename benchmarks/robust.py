"""Robust mechanisms: true against nominal levels on Adult, and the RLDP paper's experiments with calibrated versions.

Run ``python -m benchmarks.robust adult`` (a table of nominal and true robust levels and utilities), ``python -m
benchmarks.robust figure2 --laws 200`` (|S| = |U| = 3, n = 1000, Jeffreys laws, ε from 0.2 to 8) or ``figure3``
(|S| = |U| = 5, n from 100 to 100,000). Results are merged into ``benchmarks/results/robust.json``, written as tables
beside it, and the figures drawn into docs/.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import funnel
from funnel import LDP, RLDP, Joint, measures
from funnel.errors import FunnelError
from funnel.measures.information import information_of
from funnel.mechanisms import calibrate, mechanism
from funnel.mechanisms.grr import grr_matrix
from funnel.mechanisms.polyopt import polyopt_channel

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "robust.json"
DOCS = HERE.parent / "docs"
EPSILONS = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
SIZES = (100, 1000, 10_000, 100_000)
# Seconds for one optimisation over F; what it has by then holds, and its bound is recorded.
LIMIT = 20.0


def adult(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Nominal budget, true robust level and utility of mechanisms made for LDP and for RLDP."""
    rows = []
    for secret, inputs in (("marital-status", "education"), ("sex", "occupation")):
        joint = Joint.from_table(arguments.data, secret=[secret], inputs=[inputs])
        for epsilon in (0.5, 1.0, 2.0):
            guarantee = RLDP(epsilon)
            for made_for in (LDP(epsilon), guarantee):
                for name in ("optimal", "grr", "conditional-reporting"):
                    started = time.perf_counter()
                    try:
                        protocol = funnel.fit(name, joint, made_for, time_limit=60.0)
                    except FunnelError as error:
                        print(f"{secret} | {inputs} {name} {made_for}: {error}", flush=True)
                        continue
                    row = {
                        "case": f"{secret} given {inputs}",
                        "epsilon": epsilon,
                        "mechanism": name,
                        "made for": made_for.name,
                        "robust level": guarantee.level(joint, protocol).value,
                        "utility": measures.mutual_information(joint, protocol),
                        "share": measures.normalised_mutual_information(joint, protocol),
                        "seconds": time.perf_counter() - started,
                    }
                    print(row, flush=True)
                    rows.append(row)
    return rows


def jeffreys(seed: int, size: int, n: int) -> Joint:
    """Counts of n records from a Dirichlet(½) law; secrets that did not turn up are drawn again."""
    random = np.random.default_rng(seed)
    while True:
        counts = random.multinomial(n, random.dirichlet(np.full(size**2, 0.5))).reshape(size, size)
        if counts.sum(axis=1).all():
            return Joint.from_counts(counts)


def shares(joint: Joint, epsilon: float, optimise: bool) -> dict[str, float]:
    """I((S,U);Y) / H(S,U) of every mechanism, as published and calibrated to the true worst case."""
    guarantee = RLDP(epsilon)
    read = joint.with_secret()
    entropy = read.entropy

    def kept(matrix: np.ndarray) -> float:
        return information_of((matrix * read.p_input).T) / entropy

    found = {"grr": kept(grr_matrix(len(read.inputs), epsilon))}
    alpha, _ = calibrate(lambda value: grr_matrix(len(read.inputs), value), read, guarantee)
    found["grr, calibrated"] = kept(grr_matrix(len(read.inputs), alpha))
    for name in ("independent-reporting", "robust-conditional-reporting"):
        published, _ = mechanism(name).as_published(joint, guarantee)  # type: ignore[attr-defined]
        found[name] = kept(published)
        calibrated = funnel.fit(name, joint, guarantee)
        found[f"{name}, calibrated"] = measures.normalised_mutual_information(joint, calibrated, "secret and inputs")
    if optimise:
        near = guarantee.neighbourhood(read)
        found["polyopt"] = kept(polyopt_channel(joint, near, epsilon, LIMIT))
        calibrated = funnel.fit("polyopt", joint, guarantee, LIMIT)
        found["polyopt, calibrated"] = measures.normalised_mutual_information(joint, calibrated, "secret and inputs")
        best = funnel.optimal(joint, guarantee, 1e-3, LIMIT, reads_secret=True, counts="secret and inputs")
        found["robust-optimal"] = best.utility / entropy
        found["bound"] = best.bound / entropy
    return found


def averages(keys: list[tuple[Any, ...]], rows: list[dict[str, float]], name: str) -> list[dict[str, Any]]:
    """Mean shares of each mechanism for each key."""
    sums: dict[tuple[Any, str], list[float]] = defaultdict(list)
    for (key, _), row in zip(keys, rows, strict=True):
        for label, value in row.items():
            sums[key, label].append(value)
    return [
        {name: key, "mechanism": label, "share": float(np.mean(values)), "laws": len(values)}
        for (key, label), values in sums.items()
    ]


def figure2(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """|S| = |U| = 3, n = 1000."""
    keys = [(epsilon, seed) for epsilon in EPSILONS for seed in range(arguments.laws)]
    rows = []
    for epsilon, seed in keys:
        rows.append(shares(jeffreys(seed, 3, 1000), epsilon, seed < arguments.optimised))
        print(epsilon, seed, {label: round(value, 4) for label, value in rows[-1].items()}, flush=True)
    return averages(keys, rows, "epsilon")


def figure3(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """|S| = |U| = 5, ε = 1, n from 100 to 100,000."""
    keys = [(n, seed) for n in SIZES for seed in range(arguments.laws)]
    rows = []
    for n, seed in keys:
        rows.append(shares(jeffreys(seed, 5, n), 1.0, seed < arguments.optimised))
        print(n, seed, {label: round(value, 4) for label, value in rows[-1].items()}, flush=True)
    return averages(keys, rows, "n")


def drawn(rows: list[dict[str, Any]], name: str) -> Figure:
    """Mean share of each mechanism against ε or n: dashed as published, solid calibrated, the optimum on top."""
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axis = figure.subplots()
    labels = list(dict.fromkeys(row["mechanism"] for row in rows))
    colours = {label.split(",")[0]: f"C{k}" for k, label in enumerate(dict.fromkeys(x.split(",")[0] for x in labels))}
    for label in labels:
        points = sorted((row[name], row["share"]) for row in rows if row["mechanism"] == label)
        style = "-" if "calibrated" in label or label == "robust-optimal" else ":" if label == "bound" else "--"
        axis.plot(*zip(*points, strict=True), style, marker="o", ms=3, color=colours[label.split(",")[0]], label=label)
    axis.set_xscale("log")
    axis.set_xlabel("ε" if name == "epsilon" else name)
    axis.set_ylabel("I((S,U);Y) / H(S,U)")
    axis.grid(alpha=0.3)
    axis.legend(fontsize=7)
    return figure


def written(results: dict[str, list[dict[str, Any]]]) -> str:
    """The results as Markdown tables."""
    parts = []
    if "adult" in results:
        parts.append(
            "| case | ε | mechanism | made for | true robust level | I(X;Y) | of H(X) |\n|---|---|---|---|---|---|---|"
        )
        parts += [
            f"| {r['case']} | {r['epsilon']:g} | {r['mechanism']} | {r['made for']} | "
            f"{'infinite' if math.isinf(r['robust level']) else format(r['robust level'], '.3f')} | "
            f"{r['utility']:.4f} | {r['share']:.1%} |"
            for r in results["adult"]
        ]
    for group, name in (("figure2", "epsilon"), ("figure3", "n")):
        if group not in results:
            continue
        rows = results[group]
        values = sorted({row[name] for row in rows})
        labels = list(dict.fromkeys(row["mechanism"] for row in rows))
        cells = {(row["mechanism"], row[name]): f"{row['share']:.4f} ({row['laws']})" for row in rows}
        parts.append(f"\n| {group}: share kept (laws) at {name} = | " + " | ".join(f"{v:g}" for v in values) + " |")
        parts.append("|---" * (len(values) + 1) + "|")
        parts += [f"| {label} | " + " | ".join(cells.get((label, v), "") for v in values) + " |" for label in labels]
    return "\n".join(parts) + "\n"


GROUPS = {"adult": adult, "figure2": figure2, "figure3": figure3}


def main() -> None:
    """Measure the named groups and merge them into the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="*", help=f"of {', '.join(GROUPS)}; all by default")
    parser.add_argument("--data", default=HERE.parent / "data" / "adult.parquet", type=Path)
    parser.add_argument("--laws", default=200, type=int)
    parser.add_argument("--optimised", default=20, type=int, help="laws for which PolyOpt and the optimum are computed")
    arguments = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    mpl.rcParams["svg.hashsalt"] = "funnel"
    for group in arguments.groups or GROUPS:
        results[group] = GROUPS[group](arguments)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        RESULTS.with_suffix(".md").write_text(written(results))
        if group != "adult":
            name = "epsilon" if group == "figure2" else "n"
            drawn(results[group], name).savefig(DOCS / f"robust-{group}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
