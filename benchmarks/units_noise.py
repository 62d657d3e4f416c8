"""Several rows a unit under noise: what is kept when all that is public is made of noisy tables, and what it is not.

``python -m benchmarks.units_noise --panel health_panel.parquet`` takes the panel's cases of `benchmarks.units`, and
with ``--encounters`` the synthetic one, which takes long. With the default noise, epsilon 1, of which a quarter is for
how rows follow one another, it makes one version of all rows by `funnel.history.expected_waves`. The level is the
largest of all histories that units have, under the published distribution; beside it stands what a reader believes who
knows the exact counts of first rows and of all pairs of successive rows, by the recursion of `benchmarks.units`. Writes
``benchmarks/results/units-noise.json`` and ``units-noise.md``.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.units import RESULTS, Case, _draw, _Reader, _rows_of, encounters, panel_cases
from funnel import Joint
from funnel.frequencies.public_counts import part_for, protect
from funnel.frequencies.selection import NOTHING
from funnel.frequencies.unit_tables import UnitCounts
from funnel.history.expected import Expected, attending, expected_people
from funnel.history.expected_waves import ExpectedUnits
from funnel.history.following import VersionTerms, inner_bound
from funnel.history.past import Past
from funnel.history.unit_rows import MOST_ROWS, UnitRows, counted_cells
from funnel.history.waves import UnitVersion, follow_waves
from funnel.measures import mutual_information
from funnel.protocol import Protocol
from funnel.sampling.codes import input_codes
from funnel.settings.protection_settings import FrequencySettings
from funnel.solver.optimum import optimal


def run(case: Case, seed: int = 5) -> dict[str, Any]:
    """Everything that is told of a case."""
    random = np.random.default_rng(seed)
    joint = Joint.from_table(case.table, [case.secret], list(case.inputs))
    xs = input_codes(case.table, joint.inputs)
    cells = input_codes(case.table, joint.secret) * len(joint.inputs) + xs
    _, units = np.unique(case.table.column(case.unit).to_numpy(), return_inverse=True)
    rows = UnitRows.ordered(units, random.random(len(units)))
    settings = FrequencySettings()
    exact = counted(rows, cells, joint)
    distribution = protect(exact.first, settings, tables=1).joint
    tables = exact.with_noise(part_for(settings, NOTHING))
    begun = time.process_time()
    target = optimal(distribution, inner_bound(case.guarantee, 1.0), time_limit=30).protocol
    who = attending(Past(), Expected.nobody(), {}, float(distribution.n))
    expected = ExpectedUnits(
        who, expected_people(Past(), who, distribution, {}), tables.changes(distribution), tables.waves
    )
    terms = VersionTerms(case.guarantee, "v", target)
    asked = UnitVersion(Past(), rows, cells, joint, np.zeros(rows.count, np.int64), terms)
    waves = follow_waves(asked, expected, _draw(random, xs))
    took = time.process_time() - begun
    assert waves.fitted is not None
    reader = _Reader(rows, cells, joint, case.guarantee.epsilon)
    knowing = reader.beliefs(waves.outputs, _rows_of(waves))
    predicted = waves.fitted.predicted
    return {
        "case": case.name,
        "guarantee": str(case.guarantee),
        "rows": len(cells),
        "units": rows.count,
        "expected": list(tables.waves),
        "predicted": predicted.histories,
        "histories": len(np.unique(waves.before)),
        "level": max(step.level.value for step in waves.step.waves),
        "kept": predicted.utility / predicted.entropy,
        "kept_alone": predicted.alone / predicted.entropy,
        "kept_drawn": drawn(waves.outputs, xs, waves.step.channel, joint) / joint.entropy,
        "unpredicted": waves.fitted.unpredicted / len(cells),
        "silent": waves.fitted.silent / len(cells),
        "knowing_level": knowing["level"],
        "knowing_outside": knowing["outside"],
        "seconds": took,
    }


def counted(rows: UnitRows, cells: np.ndarray, joint: Joint) -> UnitCounts:
    """Exact counts of first and second rows."""
    first, second = rows.at(1), rows.at(2)
    before, after = cells[first][rows.units[second]], cells[second]
    stayed, left = (
        np.bincount(before[chosen], minlength=joint.counts.size).reshape(joint.counts.shape)
        for chosen in (before == after, before != after)
    )
    sizes = np.bincount(np.bincount(rows.units), minlength=MOST_ROWS + 1)[1:]
    return UnitCounts(counted_cells(cells[first], joint), stayed, left, sizes)


def drawn(outputs: np.ndarray, xs: np.ndarray, like: Protocol, joint: Joint) -> float:
    """I(X;Y) of what rows really drew, in nats."""
    found = np.zeros(like.matrix.shape)
    np.add.at(found, (outputs, xs), 1)
    shares = found / np.maximum(found.sum(axis=0), 1)
    weights = np.ldexp(shares, 63).astype(np.uint64)
    weights[weights.argmax(axis=0), np.arange(weights.shape[1])] += np.uint64(2**63) - weights.sum(
        axis=0, dtype=np.uint64
    )
    empirical = Protocol(weights, like.marginal, like.inputs, like.outputs, "drawn", like.guarantee)
    return mutual_information(joint, empirical)


def page(results: list[dict[str, Any]]) -> str:
    """The results as a page."""
    lines = [
        "# Several rows a unit, under noise",
        "",
        "By `python -m benchmarks.units_noise`: ε = 1 for all that is public of a version, ¼ of it for how rows follow",
        "one another. *Kept* is I(X; W) as a share of H(X) for first rows, by what is public; *drawn* that of what all",
        "rows really drew. *Level* is the largest of all histories that units have, by the published "
        "distribution; *not",
        "predicted* are rows with a history that nobody expected, *silent* those of them that are drawn from what",
        "tells nothing. *Who knows all* has the exact counts of first rows and of all pairs of successive rows, which",
        "are not public.",
        "",
        "| case | rows | units | predicted | histories | kept | alone | drawn | level | not predicted | silent "
        "| who knows all: level | outside | s |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in results:
        outside = one["knowing_outside"] / one["units"]
        lines.append(
            f"| {one['case']}, {one['guarantee']} | {one['rows']:,} | {one['units']:,} | {one['predicted']:,} | "
            f"{one['histories']:,} | {one['kept']:.3f} | {one['kept_alone']:.3f} | {one['kept_drawn']:.3f} | "
            f"{one['level']:.9f} | {one['unpredicted']:.1%} | {one['silent']:.1%} | {one['knowing_level']:.2f} | "
            f"{one['knowing_outside']:,} ({outside:.1%}) | {one['seconds']:.0f} |"
        )
    return "\n".join([*lines, ""])


def main() -> None:
    """Run all cases and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--panel", type=Path, required=True)
    parser.add_argument("--encounters", action="store_true")
    options = parser.parse_args()
    cases = [*panel_cases(options.panel), *([encounters()] if options.encounters else [])]
    results = [run(case) for case in cases]
    (RESULTS / "units-noise.json").write_text(json.dumps({"cases": results}, indent=1) + "\n")
    (RESULTS / "units-noise.md").write_text(page(results))
    print(page(results))


if __name__ == "__main__":
    main()
