"""The optimiser against vertex enumeration on the papers' cases and beyond: times, certified gaps, table and plots.

Run ``python -m benchmarks.solver`` (all groups, about ten minutes) or name groups, as in
``python -m benchmarks.solver adult``.
Results are merged into ``benchmarks/results/solver.json`` and written as a table beside it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

import funnel
from benchmarks.cones import srlip_cone
from funnel.solver.search import optimal_over_cone
from funnel.solver.vertices import polytope_vertices

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "solver.json"


@dataclass(frozen=True)
class Row:
    """One measured case; utilities in nats, times in seconds.

    Those of the groups "pairs" and "wide" are processor time of all threads, the others are of a clock on an idle
    machine.
    """

    group: str
    case: str
    c: int
    a: int
    epsilon: float
    requested: float
    status: str
    utility: float
    bound: float
    gap: float
    share: float
    seconds: float
    cddlib: str
    target: str
    met: bool


@dataclass(frozen=True)
class Setting:
    """Where the data is and how long things may take."""

    table: pd.DataFrame
    trace: list[tuple[str, float, float, float]]


def adult(setting: Setting, secret: str, inputs: str) -> funnel.Joint:
    """Joint distribution of columns of Adult; several input columns are joined by commas."""
    return funnel.Joint.from_table(setting.table, secret=[secret], inputs=inputs.split(","))


def measured(
    group: str,
    case: str,
    joint: funnel.Joint,
    guarantee: funnel.Guarantee,
    gap: float,
    target: str,
    limit: float,
    setting: Setting,
    method: str = "auto",
    factor: float | None = None,
) -> Row:
    """Solve one case, with cddlib beside it in the same run where a factor is asked for."""
    solution = funnel.optimal(joint, guarantee, gap=gap, time_limit=60.0, method=method)
    beside = ""
    allowed = limit
    if factor is not None:
        started, rows = time.perf_counter(), guarantee.cone(joint) / joint.p_input
        polytope_vertices(rows / np.abs(rows).max(axis=1, keepdims=True))
        taken = time.perf_counter() - started
        beside = f"{taken:.1f} s ({taken / solution.seconds:.0f} x)"
        allowed = taken / factor
    c, a = joint.counts.shape
    met = solution.status == "optimal" and solution.seconds <= allowed
    row = Row(
        group, case, c, a, guarantee.budget, gap, solution.status, solution.utility, solution.bound, solution.gap,
        solution.gap / joint.entropy, solution.seconds, beside, target, met,
    )  # fmt: skip
    print(
        f"{case} {guarantee}: {solution.seconds:.3f} s, gap {solution.gap:.2e}, {solution.method} {beside}", flush=True
    )
    return row


def over_cone(
    group: str, case: str, p: np.ndarray, rows: np.ndarray, epsilon: float, gap: float, target: str, limit: float,
    setting: Setting, share: float | None = None, trace: bool = False,
) -> Row:  # fmt: skip
    """Solve one case given as bare rows; with ``share``, the target is a gap of that share of H(X) in 60 s."""
    distribution = p.sum(axis=0)
    entropy = float(-(distribution * np.log(distribution)).sum())
    clock = time.process_time if trace else time.perf_counter
    started = clock()

    def tick(value: float, bound: float) -> None:
        if trace:
            setting.trace.append((case, clock() - started, entropy + value, entropy + bound))

    requested = gap if share is None else share * entropy
    found = optimal_over_cone(rows, distribution, requested, 60.0, None, tick)
    seconds = clock() - started
    left = found.split.bound - found.split.value
    c, a = p.shape
    row = Row(
        group, case, c, a, epsilon, requested, "optimal" if found.finished else "time limit",
        entropy + found.split.value, entropy + found.split.bound, left, left / entropy, seconds, "", target,
        left <= requested and seconds <= limit,
    )  # fmt: skip
    print(f"{case} ε={epsilon}: {seconds:.2f} s, gap {left:.2e} = {left / entropy:.2%} of H(X), "
          f"{found.boxes} boxes, {found.columns} columns", flush=True)  # fmt: skip
    return row


def group_adult(setting: Setting) -> list[Row]:
    """occupation | education at every ε."""
    joint = adult(setting, "occupation", "education")
    rows = []
    for epsilon, factor, target, limit in (
        (2.0, 10.0, "1/10 of cddlib", 0.0),
        (1.0, 100.0, "1/100 of cddlib", 0.0),
        (0.5, 1000.0, "1/1000 of cddlib", 0.0),
        (0.25, None, "1 s", 1.0),
        (0.1, None, "3 s", 3.0),
    ):
        case = "occupation given education"
        rows.append(
            measured("adult", case, joint, funnel.LIP(epsilon), 1e-6, target, limit, setting, "columns", factor)
        )
    return rows


def group_papers(setting: Setting) -> list[Row]:
    """All (S, X) pairs and ε of PF's and ALIP's Adult experiments, LIP and LDP; the target is for all together."""
    rows = []
    for secret in ("marital-status", "occupation"):
        for inputs in ("education", "relationship", "race,sex"):
            for epsilon in (0.5, 1.0, 1.5, 2.0):
                rows.append(
                    measured(
                        "papers",
                        f"{secret} given {inputs}",
                        adult(setting, secret, inputs),
                        funnel.LIP(epsilon),
                        1e-6,
                        "20 s together",
                        20.0,
                        setting,
                    )
                )
    kept = setting.table[setting.table["relationship"] != "Other-relative"]
    alip = funnel.Joint.from_table(kept, secret=["relationship"], inputs=["occupation"])
    for epsilon in (0.5, 1.0, 1.5, 2.0):
        # λ = 1/2 of ALIP: both bounds are half the budget.
        rows.append(
            measured(
                "papers",
                "relationship given occupation (ALIP)",
                alip,
                funnel.LIP(epsilon / 2),
                1e-6,
                "20 s together",
                20.0,
                setting,
            )
        )
    return rows


def group_large(setting: Setting) -> list[Row]:
    """Larger alphabets of Adult."""
    rows = []
    for secret, inputs, limit in (
        ("marital-status", "native-country", 2.0),
        ("occupation", "education,sex", 10.0),
        ("income", "education,relationship,sex", 1.0),
    ):
        joint = adult(setting, secret, inputs)
        for epsilon in (1.0, 0.5):
            rows.append(
                measured(
                    "large",
                    f"{secret} given {inputs}",
                    joint,
                    funnel.LIP(epsilon),
                    1e-4,
                    f"{limit:g} s",
                    limit,
                    setting,
                )
            )
    return rows


def group_ldp(setting: Setting) -> list[Row]:
    """PF's synthetic case of 133 s."""
    counts = np.random.default_rng(5).integers(1, 10_000, size=(2, 5))
    joint = funnel.Joint.from_counts(counts)
    return [measured("ldp", "synthetic 2 x 5", joint, funnel.LDP(0.5), 1e-6, "10 ms", 0.010, setting)]


def group_pairs(setting: Setting) -> list[Row]:
    """20 secrets and 20 inputs under LDP, of 100,000 records: cells that are alike, and cells that are not."""
    rows = []
    for parameter, epsilon in ((1.0, 1.0), (1.0, 0.5), (0.3, 1.0), (0.3, 0.5)):
        random = np.random.default_rng(0)
        counts = random.multinomial(100_000, random.dirichlet(np.full(400, parameter))).reshape(20, 20)
        joint = funnel.Joint.from_counts(counts)
        case = f"random distributions, Dirichlet({parameter:g})"
        gap = 0.01 * joint.entropy
        started = time.process_time()
        row = measured("pairs", case, joint, funnel.LDP(epsilon), gap, "1 % of H(X) in 30 s", 30.0, setting, "columns")
        seconds = time.process_time() - started
        rows.append(replace(row, seconds=seconds, met=row.status == "optimal" and seconds <= 30.0))
    return rows


def group_srlip(setting: Setting) -> list[Row]:
    """PF's SRLIP experiment."""
    p = np.random.default_rng(3).random((2, 36))
    p /= p.sum()
    return [
        over_cone("srlip", "SRLIP 2 x (3, 3, 4)", p, srlip_cone(p, (3, 3, 4), epsilon), epsilon, 1e-3, "10 s", 10.0,
                  setting)
        for epsilon in (0.5, 1.0, 2.0)
    ]  # fmt: skip


def group_wide(setting: Setting) -> list[Row]:
    """A synthetic distribution of the size where the ALIP paper has only SRR."""
    counts = np.random.default_rng(0).integers(1, 1000, size=(15, 200))
    joint = funnel.Joint.from_counts(counts)
    rows = []
    for epsilon in (2.0, 1.0, 0.5):
        response = funnel.fit("subset-random-response", joint, funnel.LIP(epsilon), time_limit=60.0)
        case = f"synthetic 15 x 200 (SRR: {funnel.measures.mutual_information(joint, response):.4f})"
        rows.append(over_cone("wide", case, joint.p, funnel.LIP(epsilon).cone(joint), epsilon, 0.0,
                              "1 % of H(X) in 60 s, above SRR", 61.0, setting, 0.01, trace=True))  # fmt: skip
    return rows


def group_records(setting: Setting) -> list[Row]:
    """Tables as wide as records: distinct p(S|x) are few, and the protocol is made without a table."""
    # As texts, so that numbers are categories.
    texts = setting.table.astype(str)
    eight = ["workclass", "education", "marital-status", "occupation", "relationship", "race", "sex", "native-country"]
    cases = [
        ("income", eight, 1.0, 1e-3, 10.0, "gap 1e-3 of H(X) in 10 s"),
        ("income", eight, 0.1, 1e-3, 10.0, "gap 1e-3 of H(X) in 10 s"),
        ("income", [*eight, "age"], 1.0, 1e-3, 10.0, "gap 1e-3 of H(X) in 10 s"),
        ("income", [*eight, "age", "hours-per-week"], 1.0, 1e-3, 10.0, "gap 1e-3 of H(X) in 10 s"),
        ("marital-status", [*eight[:2], *eight[3:]], 1.0, 0.02, 60.0, "gap 2 % of H(X) in 60 s"),
    ]
    rows = []
    for secret, inputs, epsilon, share, limit, target in cases:
        joint = funnel.Joint.from_table(texts, secret=[secret], inputs=inputs)
        case = f"{secret} given {len(inputs)} columns"
        gap = share * joint.entropy
        rows.append(measured("records", case, joint, funnel.LIP(epsilon), gap, target, limit, setting))
    random = np.random.default_rng(1)
    joint = funnel.Joint.from_counts(random.integers(0, 400, size=(2, 30_000)))
    gap = 1e-3 * joint.entropy
    rows.append(
        measured("records", "synthetic", joint, funnel.LIP(0.5), gap, "gap 1e-3 of H(X) in 10 s", 10.0, setting)
    )
    return rows


def group_growth(setting: Setting) -> list[Row]:
    """Random distributions of growing a, c and 1/ε, for the plot of cost."""
    rows = []
    random = np.random.default_rng(7)
    cases = [(a, 5, 1.0) for a in (5, 10, 20, 30)] + [(12, c, 1.0) for c in (3, 6, 10, 14)]
    cases += [(12, 5, epsilon) for epsilon in (2.0, 1.0, 0.5, 0.25, 0.1)]
    for a, c, epsilon in cases:
        joint = funnel.Joint.from_counts(random.integers(1, 1000, size=(c, a)))
        rows.append(
            measured("growth", f"random {c} x {a}", joint, funnel.LIP(epsilon), 1e-4, "", 60.0, setting, "columns")
        )
    return rows


GROUPS: dict[str, Callable[[Setting], list[Row]]] = {
    "papers": group_papers,
    "large": group_large,
    "ldp": group_ldp,
    "pairs": group_pairs,
    "srlip": group_srlip,
    "wide": group_wide,
    "records": group_records,
    "growth": group_growth,
    "adult": group_adult,
}


def written(results: dict[str, list[dict[str, object]]]) -> str:
    """The results as a Markdown table."""
    lines = [
        "| case | ε | size c × a | requested gap | gap reached | of H(X) | utility | bound | time | cddlib, same run | "
        "target | met |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for group, rows in results.items():
        if group == "trace":
            continue
        for r in rows:
            lines.append(
                f"| {r['case']} | {r['epsilon']:g} | {r['c']} × {r['a']} | {r['requested']:.1e} | {r['gap']:.1e} "
                f"| {r['share']:.2%} | {r['utility']:.6f} | {r['bound']:.6f} | {r['seconds']:.3f} s | {r['cddlib']} "
                f"| {r['target']} | {('yes' if r['met'] else 'no') if r['target'] else ''} |"
            )
        total = sum(float(str(r["seconds"])) for r in rows)
        if group == "papers":
            met = "yes" if total < 20 and all(r["status"] == "optimal" for r in rows) else "no"
            lines.append(f"| **all of the papers' pairs together** | | | | | | | | {total:.1f} s | | 20 s | {met} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure the named groups and merge them into the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="*", help=f"of {', '.join(GROUPS)}; all by default")
    parser.add_argument("--data", default=HERE.parent / "data" / "adult.parquet", type=Path)
    arguments = parser.parse_args()
    setting = Setting(pd.read_parquet(arguments.data), [])
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    # The first call of a process loads what is imported late: not timed.
    small, larger = np.eye(3, dtype=int) + 1, np.eye(15, dtype=int) + 1
    for counts in (small, larger):
        funnel.optimal(funnel.Joint.from_counts(counts), funnel.LIP(0.1), gap=0.1, method="columns")
    for group in arguments.groups or GROUPS:
        results[group] = [asdict(row) for row in GROUPS[group](setting)]
        if group == "wide":
            results["trace"] = [list(point) for point in setting.trace]
        RESULTS.write_text(json.dumps(results, indent=1, default=float) + "\n")
        RESULTS.with_suffix(".md").write_text(written(results))


if __name__ == "__main__":
    main()
