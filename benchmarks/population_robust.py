"""The level in the population of optima that were made from samples, nominal and robust, side by side.

``python -m benchmarks.population_robust`` takes the Adult data as the population, as `benchmarks.population` does. From
each sample of its records two optima are made, for LIP 1 and for RLIP 1 over boxes of significance 0.05; their levels
under all records are what an observer finds who knows how common values are among everybody. A sample that lacks a
value of the secret sets no bound on it: robust LIP refuses it. The rows go to
``benchmarks/results/population-robust.json`` as they come, and a page of them to
``benchmarks/results/population-robust.md``. A run that was interrupted goes on.
"""

from __future__ import annotations

import argparse
import json
import math
import zlib
from collections.abc import Iterable
from pathlib import Path
from statistics import median

import numpy as np

import funnel
from benchmarks.population import CASES, OUTSIDE, population_of
from benchmarks.rows import RESULTS, Row, save
from funnel import LIP, RLIP, Joint
from funnel.guarantees import Guarantee
from funnel.measures import normalised_mutual_information

HERE = Path(__file__).parent
SIZES = (1_000, 5_000, 20_000)
NOMINAL, ROBUST = LIP(1.0), RLIP(1.0, 0.05)


def measured(population: Joint, n: int, seed: int, seconds: float) -> Row | None:
    """One sample: levels under the population, and shares of H(X) kept there; None where robust LIP refuses it."""
    counts = np.random.default_rng(seed).multinomial(n, population.p.ravel()).reshape(population.counts.shape)
    if not counts.any(axis=1).all():
        return None
    sample = Joint.from_counts(counts, population.secret, population.inputs)
    row: Row = {}
    bounds: tuple[tuple[str, Guarantee], ...] = (("nominal", NOMINAL), ("robust", ROBUST))
    for name, guarantee in bounds:
        protocol = funnel.optimal(sample, guarantee, gap=5e-3, time_limit=seconds).protocol
        level = NOMINAL.level_for(population, protocol.weights_for(population.inputs)).value
        row[name] = None if math.isinf(level) else level
        row[f"{name} share"] = normalised_mutual_information(population, protocol)
    return row


def run(data: Path, repeats: int, seconds: float, path: Path) -> list[Row]:
    """All rows, those that are there already included."""
    rows: list[Row] = json.loads(path.read_text()) if path.exists() else []
    done = {(row["secret"], row["published"], row["n"], row["repeat"]) for row in rows}
    for secret, published in CASES:
        population = population_of(data, secret, published)
        for n in SIZES:
            for repeat in range(repeats):
                if (secret, published, n, repeat) in done:
                    continue
                seed = zlib.crc32(f"{secret}|{published}|{n}|{repeat}".encode())
                found = measured(population, n, seed, seconds)
                rows.append(
                    {"secret": secret, "published": published, "n": n, "repeat": repeat, "refused": found is None}
                    | (found or {})
                )
                save(rows, path)
    return rows


def table(rows: Iterable[Row]) -> str:
    """Medians by case and size, as Markdown; an infinite level counts as the largest."""
    rows = list(rows)
    parts = [
        "# What a sample hides from a nominal bound, and not from a robust one",
        "",
        "Adult, all 48,842 records, as the population. The optimum is made from a sample, for `lip:1` and for",
        "`rlip:1,0.05`. Levels are those in the population, in nats: medians over the samples, in brackets the",
        "largest.",
        "",
        "| secret given published | sample | samples | refused | level, lip | above 1 | level, rlip | above 1 "
        "| kept, lip | kept, rlip |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    above = told = 0
    for secret, published in CASES:
        for n in SIZES:
            here = [row for row in rows if (row["secret"], row["published"], row["n"]) == (secret, published, n)]
            judged = [row for row in here if not row["refused"]]
            if not here:
                continue
            cells = [f"{secret} given {published}", f"{n:,}", f"{len(here)}", f"{len(here) - len(judged)}"]
            for name in ("nominal", "robust"):
                levels = [math.inf if row[name] is None else row[name] for row in judged]
                outside = sum(level > OUTSIDE for level in levels)
                if name == "robust":
                    above, told = above + outside, told + len(levels)
                cells += (
                    [f"{_nats(median(levels))} ({_nats(max(levels))})", f"{outside / len(levels):.0%}"]
                    if levels
                    else ["–", "–"]
                )
            for name in ("nominal share", "robust share"):
                cells.append(f"{median(row[name] for row in judged):.1%}" if judged else "–")
            parts.append(f"| {' | '.join(cells)} |")
    parts += ["", f"Under `rlip:1,0.05` the level in the population was above 1 in {above} of {told} samples."]
    return "\n".join(parts) + "\n"


def _nats(level: float) -> str:
    return "infinite" if math.isinf(level) else f"{level:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=HERE.parent / "data" / "adult.parquet", type=Path)
    parser.add_argument("--repeats", default=20, type=int, help="samples of each size")
    parser.add_argument("--seconds", default=20.0, type=float, help="for each optimum")
    arguments = parser.parse_args()
    rows = run(arguments.data, arguments.repeats, arguments.seconds, RESULTS / "population-robust.json")
    (RESULTS / "population-robust.md").write_text(table(rows))


if __name__ == "__main__":
    main()
