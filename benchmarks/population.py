"""What a sample hides: the level in the population of an optimum that was made from a sample, and whether F covers it.

``python -m benchmarks.population`` takes the Adult data as the population. From each sample of its records the optimum
for LIP 1 is made, whose level under the sample is 1; its level under all records is what an observer would find who
knows how common values are among everybody. The rows go to ``benchmarks/results/population.json`` as they come, and
their medians to ``benchmarks/results/population.md``. A run that was interrupted goes on where it was.
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
import pyarrow.parquet as pq

import funnel
from benchmarks.rows import RESULTS, Row, save
from funnel import ALIP, LIP, Joint
from funnel.confidence import confidence_set

HERE = Path(__file__).parent
CASES = (
    ("income", "education"),
    ("sex", "occupation"),
    ("relationship", "occupation"),
    ("marital-status", "education"),
)
SIZES = (1_000, 5_000, 20_000)
GUARANTEE = LIP(1.0)
# A hair above the bound is the bound: levels are known to many digits, samples are not.
OUTSIDE = 1.0 + 1e-9


def population_of(data: Path, secret: str, published: str) -> Joint:
    """The joint distribution of all records."""
    return Joint.from_table(pq.read_table(data), secret, published)


def measured(population: Joint, n: int, seed: int) -> Row:
    """One sample: the optimum's levels under it and under the population, and whether F holds that."""
    counts = np.random.default_rng(seed).multinomial(n, population.p.ravel()).reshape(population.counts.shape)
    sample = Joint.from_counts(counts, population.secret, population.inputs)
    found = funnel.optimal(sample, GUARANTEE, gap=1e-3, time_limit=60.0)
    weights = found.protocol.weights_for(population.inputs)
    return {
        "sample": GUARANTEE.level_for(sample, weights).value,
        "population": _finite(GUARANTEE.level_for(population, weights).value),
        "upper": _finite(ALIP(math.inf, 1.0).level_for(population, weights).value),
        "doubtful": confidence_set(sample).doubtful,
        "covered": _covered(sample, population),
    }


def _covered(sample: Joint, population: Joint) -> bool:
    """Whether the distribution of the population is in F of the sample."""
    distribution, estimate = population.p, sample.p
    seen = distribution > 0
    # Cells that the population lacks are missing in every sample.
    distance = float(((estimate[seen] - distribution[seen]) ** 2 / distribution[seen]).sum())
    return distance <= confidence_set(sample).radius


def _finite(level: float | None) -> float | None:
    return None if level is None or math.isinf(level) else level


def run(data: Path, repeats: int, path: Path) -> list[Row]:
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
                found = measured(population, n, seed)
                rows.append({"secret": secret, "published": published, "n": n, "repeat": repeat, **found})
                save(rows, path)
    return rows


def table(rows: Iterable[Row]) -> str:
    """Medians by case and size, as Markdown; an infinite level counts as the largest."""
    rows = list(rows)
    parts = [
        "# What a sample hides",
        "",
        "Adult, all 48,842 records, as the population. The optimum for LIP 1 is made from a sample: its level is 1",
        "there. Levels are in nats, medians over the samples, in brackets the largest; F is the confidence set of the",
        "sample at α = 0.05.",
        "",
        "| secret given published | sample | samples | level in the population | of them above 1 | infinite "
        "| F holds the population | F says that it is doubtful |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for secret, published in CASES:
        for n in SIZES:
            here = [row for row in rows if (row["secret"], row["published"], row["n"]) == (secret, published, n)]
            if not here:
                continue
            levels = [math.inf if row["population"] is None else row["population"] for row in here]
            above = sum(level > OUTSIDE for level in levels) / len(here)
            parts.append(
                f"| {secret} given {published} | {n:,} | {len(here)} | {_nats(median(levels))} ({_nats(max(levels))}) "
                f"| {above:.0%} | {sum(map(math.isinf, levels)) / len(here):.0%} "
                f"| {sum(row['covered'] for row in here) / len(here):.0%} "
                f"| {sum(row['doubtful'] for row in here) / len(here):.0%} |"
            )
    return "\n".join(parts) + "\n"


def _nats(level: float) -> str:
    return "infinite" if math.isinf(level) else f"{level:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=HERE.parent / "data" / "adult.parquet", type=Path)
    parser.add_argument("--repeats", default=50, type=int, help="samples of each size")
    arguments = parser.parse_args()
    rows = run(arguments.data, arguments.repeats, RESULTS / "population.json")
    (RESULTS / "population.md").write_text(table(rows))


if __name__ == "__main__":
    main()
