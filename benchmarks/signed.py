"""The sample's release as it is and as it was, step by step, and a wave of the health panel: what signing one costs.

``python -m benchmarks.signed`` writes ``benchmarks/results/signed.json`` and ``signed.md``; the panel is that of
``--panel``, and what is there already stays without it. For each step: what the optimum keeps of H(X), the level of
local information privacy over all distributions that the sample does not rule out, and over all that
sample and noise do not rule out together. Noise is that of `benchmarks.boxes`, always the same draw.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import funnel
from benchmarks.boxes import noisy, panel
from funnel import LIP, RLIP, Joint, parse_guarantee

HERE = Path(__file__).parent
RESULTS = HERE / "results"
ALPHA = 0.05


@dataclass(frozen=True)
class Step:
    """One way to make the release: the bound, and whether values are grouped and counts have noise."""

    guarantee: str
    grouped: bool
    noise: bool


ADULT = (
    Step("lip:1.0", grouped=False, noise=False),
    Step("lip:1.0", grouped=True, noise=False),
    Step("rlip:1.0,0.05", grouped=False, noise=False),
    Step("rlip:1.0,0.05", grouped=True, noise=False),
    Step("lip:1.0", grouped=True, noise=True),
    Step("rlip:1.0,0.05", grouped=True, noise=True),
)
PANEL = tuple(
    Step(text, grouped=False, noise=noise)
    for noise in (False, True)
    for text in ("lip:1.0", "rlip:1.0,0.05", "lip:0.5", "rlip:0.5,0.05")
)


def sample(spec: Path, *, grouped: bool) -> Joint:
    """Marital status and education of the sample, with the groups of its spec or with every value by itself."""
    settings = tomllib.loads(spec.read_text(encoding="utf-8"))
    secret, inputs = settings["secret"], settings["publish"]
    table = pq.read_table(spec.parent / settings["source"]["path"], columns=[*secret, *inputs])
    columns = {name: _plain(table[name]) for name in table.column_names}
    if grouped:
        for name, recode in settings["recode"].items():
            group_of = {value: group for group, values in recode["groups"].items() for value in values}
            columns[name] = [group_of.get(value, value) for value in columns[name]]
    return Joint.from_table(pa.table(columns), secret=secret, inputs=inputs)


def _plain(column: pa.ChunkedArray) -> list[str]:
    values: list[str] = pc.cast(column, pa.string()).to_pylist()
    return values


def measured(counted: Joint, step: Step, limit: float) -> dict[str, Any]:
    """The optimum of one step, and its levels."""
    joint = noisy(counted) if step.noise else counted
    guarantee = parse_guarantee(step.guarantee)
    best = funnel.optimal(joint, guarantee, 1e-3 * joint.entropy, limit)
    if not guarantee.holds(joint, best.protocol):
        raise AssertionError(f"the optimum does not meet {guarantee}")
    boxes = RLIP(1.0, ALPHA)
    return {
        "secrets": len(counted.secret),
        "values": len(counted.inputs),
        "records": int(counted.counts.sum()),
        "entropy": round(joint.entropy, 4),
        "kept": round(best.utility / joint.entropy, 4),
        "at_most": round(best.bound / joint.entropy, 4),
        "status": best.status,
        "counted": round(LIP(1.0).level(counted, best.protocol).value, 4),
        "boxes": round(boxes.level(counted, best.protocol).value, 4),
        "with_noise": round(boxes.level(joint, best.protocol).value, 4) if step.noise else None,
    }


def write(rows: list[dict[str, Any]], path: Path) -> None:
    """The tables, one a case."""
    lines = [
        "# A release that one would sign, and what it costs",
        "",
        "Made by `python -m benchmarks.signed`. *Kept* and *at most*: share of H(X), in %, that the optimum of the "
        "bound keeps, and that no other can exceed. The levels are of local information privacy, in nats: under the "
        "counts, over the set of distributions that the sample does not rule out at significance 0.05, by "
        "boxes, and over boxes that allow for the noise besides. *Noise*: "
        "ε_c = 1, β = 0.01.",
    ]
    for case in dict.fromkeys(row["case"] for row in rows):
        lines += [
            "",
            f"## {case}",
            "",
            "| bound | frequencies | secrets × values | H(X), nats | kept | at most | level, counts | by boxes "
            "| boxes and noise |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        for row in (row for row in rows if row["case"] == case):
            noise = "" if row["with_noise"] is None else f"{row['with_noise']:.2f}"
            lines.append(
                f"| {row['guarantee']} | {'noise' if row['noise'] else 'exact'} | {row['secrets']} × {row['values']} "
                f"| {row['entropy']:.3f} | {100 * row['kept']:.1f} | {100 * row['at_most']:.1f} "
                f"| {row['counted']:.2f} | {row['boxes']:.2f} | {noise} |"
            )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Measure what is missing and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", default=HERE.parent / "data" / "adult-education.toml", type=Path)
    parser.add_argument("--panel", type=Path, help="the health panel as a parquet file; left out without")
    parser.add_argument("--limit", default=60.0, type=float, help="seconds for an optimum, as work that is counted")
    arguments = parser.parse_args()
    path = RESULTS / "signed.json"
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    tables = {grouped: sample(arguments.spec, grouped=grouped) for grouped in (False, True)}
    cases = [("Adult: marital status given education", tables[step.grouped], step) for step in ADULT]
    if arguments.panel is not None:
        wave = panel(arguments.panel)
        cases += [("Health panel, its largest wave: outwork given income fifth and kids", wave, step) for step in PANEL]
    for case, counted, step in cases:
        key = {"case": case, "guarantee": step.guarantee, "grouped": step.grouped, "noise": step.noise}
        if any(all(row[name] == value for name, value in key.items()) for row in rows):
            continue
        rows.append({**key, **measured(counted, step, arguments.limit)})
        print(rows[-1], flush=True)
        path.write_text(
            "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n", encoding="utf-8"
        )
    write(rows, RESULTS / "signed.md")


if __name__ == "__main__":
    main()
