"""Weighted frequencies of Census-Income from releases of classes of its survey weights, against the true ones.

``python -m benchmarks.weighted --census census_income_kdd.parquet`` publishes race and classes of the weights for the
people of 1995, income being secret, and estimates weighted shares from many drawings. Classes and their means are those
of 1994, which are known from elsewhere. A page goes to ``benchmarks/results/weighted.md``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

import funnel
from funnel import Alphabet, Joint
from funnel.estimation.weighted import WeightClasses, estimate_weighted

RESULTS = Path(__file__).parent / "results"
LARGEST = 20_000
COLUMNS = ["race", "instance-weight", "year", "income"]
HEAD = (
    "| race | of records | weighted, true | by means of classes | estimated, mean | error told | found | covered "
    "| least to largest | by middles |"
)


def classes_of(before: pd.Series, number: int) -> tuple[list[float], list[str], WeightClasses]:
    """Edges at the quantiles of weights, names of the classes, and their means, least and largest weights."""
    edges = [round(float(before.quantile(k / number)), -1) for k in range(1, number)]
    ends = list(zip([0.0, *edges], [*edges, float(LARGEST)], strict=True))
    names = [f"{low:.0f} to under {high:.0f}" for low, high in ends]
    means = before.groupby(np.searchsorted(edges, before, side="right")).mean()
    return edges, names, {name: (float(means[k]), *ends[k]) for k, name in enumerate(names)}


def part(table: pd.DataFrame, number: int, bound: str, releases: int, random: np.random.Generator) -> list[str]:
    """Lines on the releases of so many classes under a bound."""
    edges, names, classes = classes_of(table[table["year"] == 94]["instance-weight"], number)
    people = table[table["year"] == 95].copy()
    people["weight"] = [names[k] for k in np.searchsorted(edges, people["instance-weight"], side="right")]
    counted = people.groupby(["income", "race", "weight"]).size().unstack("income", fill_value=0)
    inputs = Alphabet(("race", "weight"), tuple((str(race), str(weight)) for race, weight in counted.index))
    joint = Joint.from_counts(counted.to_numpy().T, inputs=inputs)
    true = people.groupby("race")["instance-weight"].sum() / people["instance-weight"].sum()
    means = people["weight"].map({name: told[0] for name, told in classes.items()})
    by_means = means.groupby(people["race"]).sum() / means.sum()
    of_records = people["race"].value_counts(normalize=True)
    best = funnel.optimal(joint, funnel.parse_guarantee(bound), utility="estimation")
    channel = best.protocol.matrix / best.protocol.matrix.sum(axis=0)
    drawn = [random.multinomial(joint.counts.sum(axis=0), channel.T).sum(axis=0) for _ in range(releases)]
    found = [estimate_weighted(counts, best.protocol, "weight", classes) for counts in drawn]
    middles = {name: ((low + high) / 2, low, high) for name, (_, low, high) in classes.items()}
    other = estimate_weighted(drawn[0], best.protocol, "weight", middles)
    lines = ["", f"## {bound}, {number} classes", "", HEAD, "| --- " * 10 + "|"]
    for place, (race,) in enumerate(found[0].cells):
        shares = np.array([one.frequencies[place] for one in found])
        covered = np.mean([one.lower[place] <= by_means[race] <= one.upper[place] for one in found])
        told = np.mean([one.errors[place] for one in found])
        lines.append(
            f"| {race} | {of_records[race]:.2%} | {true[race]:.2%} | {by_means[race]:.2%} | {shares.mean():.2%} "
            f"| {told:.3%} | {shares.std():.3%} | {covered:.0%} "
            f"| {found[0].least[place]:.1%} to {found[0].largest[place]:.1%} | {other.frequencies[place]:.2%} |"
        )
    return lines


def page(census: Path, releases: int, seed: int) -> str:
    """The results, as Markdown."""
    table = pq.read_table(census, columns=COLUMNS).to_pandas()
    random = np.random.default_rng(seed)
    lines = [
        "# Weighted frequencies from released classes of weights",
        "",
        f"Census-Income, the {int((table['year'] == 95).sum()):,} people of 1995. Published: race and classes of the",
        f"weight; secret: income; {releases} drawings of each release (`python -m benchmarks.weighted`). Classes",
        "are quantiles of the weights of 1994 and stand for their means then. *By means of classes* is what the",
        "weighted shares of these people are if everybody weighs the mean of 1994 of their class: intervals are",
        "about that (*covered*), and how far it is from the truth is what classes cost. *Least to largest* is what the",
        "shares could be if weights within the classes were as far from their means as they can be.",
    ]
    for bound, number in (("lip:1.0", 6), ("lip:0.25", 6), ("lip:0.25", 12)):
        lines += part(table, number, bound, releases, random)
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--census", type=Path, required=True)
    parser.add_argument("--releases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=16)
    arguments = parser.parse_args()
    found = page(arguments.census, arguments.releases, arguments.seed)
    (RESULTS / "weighted.md").write_text(found, encoding="utf-8")
    print(found)


if __name__ == "__main__":
    main()
