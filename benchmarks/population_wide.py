"""What a release of many columns is worth in the population: the estimate of the report beside the truth.

``python -m benchmarks.population_wide`` takes the Adult data as the population. Records are drawn from it, an optimum
for LIP 1 is made from them, and its outputs are held against the distribution of the population: the share of the
records whose output is outside the bound there, beside what `funnel.findings.population` estimates from the records
alone. The rows go to ``benchmarks/results/population-wide.md``.
"""

from __future__ import annotations

import argparse
import zlib
from pathlib import Path
from statistics import mean

import numpy as np
import pyarrow.parquet as pq

import funnel
from funnel import LIP, Joint
from funnel.findings.population import InPopulation, in_population

RESULT = Path(__file__).parent / "results" / "population-wide.md"
WIDE = (
    "workclass", "education", "marital-status", "occupation", "relationship", "race", "sex", "native-country",
)  # fmt: skip
CASES = (
    ("income", WIDE),
    ("income", ("education", "sex", "race", "relationship")),
    ("income", ("education", "occupation")),
    ("sex", ("occupation",)),
    ("marital-status", ("education",)),
)
SIZES = (5_000, 20_000)
GUARANTEE = LIP(1.0)
_NEAR = 1e-9


def truth(population: Joint, sample: Joint, protocol: funnel.Protocol) -> tuple[float, float]:
    """Shares of the records whose output is outside the bound in the population, and of people of unseen values.

    Parameters
    ----------
    population, sample : Joint
        Over the same alphabets.
    protocol : Protocol
        Made from the sample.
    """
    entries = protocol.sparse_for(population.inputs)
    shares, b = entries.values / 2.0**63, len(protocol.outputs)
    of_inputs = sample.p_input[entries.inputs] * shares
    seen = sample.counts.any(axis=0)
    # Observers know the distribution of those who can be in the records: others draw from the marginal.
    distribution = population.p * seen
    of_output = np.array(
        [np.bincount(entries.outputs, weights=p[entries.inputs] * shares, minlength=b) for p in distribution]
    )
    cone = GUARANTEE.posterior_cone(population.p_secret)
    least = _NEAR * np.abs(cone).max(axis=1, keepdims=True) * of_output.sum(axis=0)
    outside = (cone @ of_output > least).any(axis=0)
    released = np.bincount(entries.outputs, weights=of_inputs, minlength=b)
    return float(released[outside].sum()), float(population.p[:, ~seen].sum())


def measured(population: Joint, n: int, seed: int) -> tuple[float, float, InPopulation]:
    """One sample: the truth, and what is estimated from the sample."""
    random = np.random.default_rng(seed)
    counts = random.multinomial(n, population.p.ravel()).reshape(population.counts.shape)
    sample = Joint(counts, population.secret, population.inputs)
    gap = 1e-3 * sample.entropy
    protocol = funnel.optimal(sample.occurring, GUARANTEE, gap=gap, time_limit=20.0).protocol
    found = in_population(sample.occurring, protocol, GUARANTEE)
    if found is None:
        raise ValueError("LIP is about the posterior of the secret")
    return *truth(population, sample, protocol), found


def main() -> None:
    """Measure all cases and write the table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("data", nargs="?", type=Path, default=Path("data/adult.parquet"))
    arguments.add_argument("--repeats", type=int, default=3)
    chosen = arguments.parse_args()
    table = pq.read_table(chosen.data)
    lines = [
        "# What a release of many columns is worth in the population",
        "",
        "Adult, all 48,842 records, as the population; the optimum for LIP 1 from a sample of them. Outside: the share",
        "of the sample's records whose output says more than the bound allows to an observer who knows the "
        "population, and",
        f"what `funnel.findings.population` estimates from the sample alone; means of {chosen.repeats} samples.",
        "",
        "| secret given published | sample | combinations | outside | estimated (over the distributions drawn) "
        "| people whose values no record has | estimated |",
        "|---|---|---|---|---|---|---|",
    ]
    for secret, published in CASES:
        population = Joint.from_table(table, secret, published)
        for n in SIZES:
            seeds = [zlib.crc32(f"{secret}|{published}|{n}|{k}".encode()) for k in range(chosen.repeats)]
            rows = [measured(population, n, seed) for seed in seeds]
            outside, unseen = mean(row[0] for row in rows), mean(row[1] for row in rows)
            found = [row[2] for row in rows]
            lines.append(
                f"| {secret} given {', '.join(published) if len(published) < 8 else 'eight columns'} | {n:,} "
                f"| {len(population.inputs):,} | {outside:.1%} | {mean(one.outside for one in found):.1%} "
                f"({min(one.least for one in found):.0%}–{max(one.most for one in found):.0%}) | {unseen:.1%} "
                f"| {mean(one.unseen for one in found):.1%} |"
            )
            print(lines[-1], flush=True)
    RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
