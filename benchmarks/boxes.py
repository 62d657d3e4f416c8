"""What a bound keeps over boxes of distributions and over noisy counts, beside χ² and the counts alone (certified).

``python -m benchmarks.boxes`` measures every case that ``benchmarks/results/boxes.json`` lacks and writes
``benchmarks/results/boxes.md``. Seconds are of processor time of all threads; the limit is work that is counted.
Noise is discrete Laplace with ε_c = 1, always the same draw, and its bounds hold with 1 - β = 0.99.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import funnel
from funnel import Guarantee, Joint, parse_guarantee
from funnel.frequencies.limits import bounds_of
from funnel.frequencies.noise import Noise

HERE = Path(__file__).parent
RESULTS = HERE / "results"
ADULT = (
    ("sex", "occupation"),
    ("income", "education"),
    ("relationship", "occupation"),
    ("marital-status", "education"),
)
# (what is written, whether the counts have noise).
BOUNDS = (
    ("ldp:1.0", False),
    ("rldp:1.0,0.05", False),
    ("rldp:1.0,0.05,chi2", False),
    ("ldp:1.0", True),
    ("rldp:1.0,0.05", True),
    ("lip:1.0", False),
    ("rlip:1.0,0.05", False),
    ("lip:1.0", True),
    ("rlip:1.0,0.05", True),
)
POLYOPT = ("rldp:1.0,0.05,chi2",)


def noisy(joint: Joint) -> Joint:
    """The counts with noise, and bounds on the true ones."""
    noise, random = Noise(1.0, 0.0, 0.01), np.random.default_rng(0)
    success = 1 - np.exp(-1.0)
    drawn = random.geometric(success, joint.counts.shape) - random.geometric(success, joint.counts.shape)
    counts = joint.counts + drawn
    return Joint(np.maximum(counts, 0), joint.secret, joint.inputs, bounds_of(counts, noise))


def panel(path: Path) -> Joint:
    """Outwork given the fifth of income and whether there are kids, of the health panel's largest wave."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: pq.read_table(path)[name].to_numpy() for name in ("year", "outwork", "hhninc", "kids")}
    years, sizes = np.unique(columns["year"], return_counts=True)
    wave = columns["year"] == years[sizes.argmax()]
    income = columns["hhninc"][wave]
    fifth = np.searchsorted(np.quantile(income, [0.2, 0.4, 0.6, 0.8]), income, side="left")
    codes = {"outwork": columns["outwork"][wave], "income": fifth, "kids": columns["kids"][wave]}
    table = pa.table({name: pa.array([str(value) for value in values]) for name, values in codes.items()})
    return Joint.from_table(table, secret=["outwork"], inputs=["income", "kids"])


def measured(joint: Joint, guarantee: Guarantee, gap: float, limit: float) -> dict[str, Any]:
    """Shares of H(X) kept and at most to be kept, and seconds."""
    started = time.process_time()
    best = funnel.optimal(joint, guarantee, gap * joint.entropy, limit)
    if not guarantee.holds(joint, best.protocol):
        raise AssertionError(f"the optimum does not meet {guarantee}")
    return {
        "kept": round(best.utility / joint.entropy, 6),
        "bound": round(best.bound / joint.entropy, 6),
        "status": best.status,
        "cuts": best.vertices,
        "seconds": round(time.process_time() - started, 2),
    }


def polyopt(joint: Joint, guarantee: Guarantee, limit: float) -> float | None:
    """Share of H(X) that PolyOpt keeps of X, which reads the secret; None where it does not apply."""
    try:
        protocol = funnel.fit("polyopt", joint, guarantee, limit)
    except funnel.FunnelError:
        return None
    return round(funnel.measures.normalised_mutual_information(joint, protocol), 6)


def write(rows: list[dict[str, Any]], path: Path) -> None:
    """The table."""
    lines = [
        "# Bounds over boxes of distributions and over noisy counts",
        "",
        "Made by `python -m benchmarks.boxes`. Shares of H(X) in %; *noise*: counts with ε_c = 1, β = 0.01. Seconds of "
        "processor time. *PolyOpt* reads the secret and is over the χ² set.",
        "",
        "| secret given columns | bound | counts | kept | at most | gap | seconds | status | PolyOpt |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        other = "" if row.get("polyopt") is None else f"{100 * row['polyopt']:.1f}"
        lines.append(
            f"| {row['case']} | {row['guarantee']} | {'noise' if row['noise'] else 'as they are'} "
            f"| {100 * row['kept']:.2f} | {100 * row['bound']:.2f} | {100 * (row['bound'] - row['kept']):.2f} "
            f"| {row['seconds']:.1f} | {row['status']} | {other} |"
        )
    path.write_text("\n".join(lines) + "\n")


def main() -> None:
    """Measure what is missing and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=HERE.parent / "data" / "adult.parquet", type=Path)
    parser.add_argument("--panel", type=Path, help="the health panel as a parquet file; left out without")
    parser.add_argument("--limit", default=60.0, type=float, help="seconds for an optimum, as work that is counted")
    parser.add_argument("--gap", default=1e-3, type=float, help="the gap asked for, as a share of H(X)")
    parser.add_argument("--polyopt", action="store_true", help="PolyOpt beside the χ² set too; it can take long")
    arguments = parser.parse_args()
    path = RESULTS / "boxes.json"
    rows: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    cases = {f"{s}, {x}": Joint.from_table(arguments.data, secret=[s], inputs=[x]) for s, x in ADULT}
    if arguments.panel is not None:
        cases["outwork, income fifth × kids"] = panel(arguments.panel)
    for case, joint in cases.items():
        for text, noise in BOUNDS:
            key = {"case": case, "guarantee": text, "noise": noise}
            if any(all(row[name] == value for name, value in key.items()) for row in rows):
                continue
            row = {
                **key,
                **measured(noisy(joint) if noise else joint, parse_guarantee(text), arguments.gap, arguments.limit),
            }
            if arguments.polyopt and text in POLYOPT:
                row["polyopt"] = polyopt(joint, parse_guarantee(text), arguments.limit)
            rows.append(row)
            print(row, flush=True)
            path.write_text("[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n")
    write(rows, RESULTS / "boxes.md")


if __name__ == "__main__":
    main()
