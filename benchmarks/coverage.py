"""How often a set of distributions holds the true one: Clopper–Pearson boxes and the χ² set, for any sample size.

``python -m benchmarks.coverage`` draws samples from distributions that are even, sparse or nearly deterministic and
counts how often each set, at α = 0.05, holds the distribution that they were drawn from. ``--again 8000`` measures rows
that were below 95 % again: whether that was chance is seen from other samples only. The rows go to
``benchmarks/results/coverage.json`` and a page of them to ``benchmarks/results/coverage.md``.
"""

from __future__ import annotations

import argparse
import json
import zlib
from collections.abc import Callable

import numpy as np
from scipy.stats import binom

from benchmarks.rows import RESULTS, Row, save
from funnel.confidence import confidence_radius
from funnel.guarantees.binomial_limits import UNIT
from funnel.guarantees.distribution_box import DistributionBox, distribution_box
from funnel.joint import FloatArray, Joint

ALPHA = 0.05
SIZES = (100, 1_000, 10_000, 100_000)
SHAPES = ((2, 3), (5, 5), (3, 12))


def even(random: np.random.Generator, c: int, u: int) -> FloatArray:
    """All combinations about as likely."""
    return np.asarray(random.dirichlet(np.full(c * u, 20.0)).reshape(c, u))


def jeffreys(random: np.random.Generator, c: int, u: int) -> FloatArray:
    """Dirichlet(½), as in the RLDP paper."""
    return np.asarray(random.dirichlet(np.full(c * u, 0.5)).reshape(c, u))


def sparse(random: np.random.Generator, c: int, u: int) -> FloatArray:
    """Most combinations very rare: Dirichlet(0.1) given each secret, secrets about as likely."""
    given = np.stack([random.dirichlet(np.full(u, 0.1)) for _ in range(c)])
    return np.asarray(given * random.dirichlet(np.full(c, 10.0))[:, None])


def deterministic(random: np.random.Generator, c: int, u: int) -> FloatArray:
    """The input all but decides the secret: two in a thousand are elsewhere."""
    given = np.full((c, u), 0.002 / u)
    given[np.arange(c), np.arange(c) % u] += 0.998
    return np.asarray(given * random.dirichlet(np.full(c, 10.0))[:, None])


LAWS: dict[str, Callable[[np.random.Generator, int, int], FloatArray]] = {
    "even": even,
    "Jeffreys": jeffreys,
    "sparse": sparse,
    "near-deterministic": deterministic,
}


def in_box(distribution: FloatArray, box: DistributionBox) -> bool:
    """Whether every p(x|s) and p(s) is within its limits."""
    prior = distribution.sum(axis=1)
    given = distribution / prior[:, None] * UNIT
    return bool(
        ((box.lower <= given) & (given <= box.upper)).all()
        and ((box.prior_lower <= prior * UNIT) & (prior * UNIT <= box.prior_upper)).all()
    )


def in_chi2(distribution: FloatArray, joint: Joint) -> bool:
    """Whether ``Σ (P̂ - P)²/P`` is within the radius."""
    seen = distribution > 0
    distance = float(((joint.p[seen] - distribution[seen]) ** 2 / distribution[seen]).sum())
    return distance <= confidence_radius(distribution.size, joint.n, ALPHA)


def measured(kind: str, shape: tuple[int, int], n: int, samples: int, seed: str = "") -> Row:
    """Shares of samples, each from its own distribution, whose sets hold it; those that lack a secret apart."""
    random = np.random.default_rng(zlib.crc32(f"{seed}{kind}|{shape}|{n}".encode()))
    boxes = chi2 = told = 0
    for _ in range(samples):
        distribution = LAWS[kind](random, *shape)
        counts = random.multinomial(n, distribution.ravel()).reshape(shape)
        if not counts.any(axis=1).all():
            continue
        joint = Joint.from_counts(counts)
        told += 1
        boxes += in_box(distribution, distribution_box(joint, ALPHA))
        chi2 += in_chi2(distribution, joint)
    return {
        "distribution": kind,
        "secrets": shape[0],
        "inputs": shape[1],
        "n": n,
        "samples": samples,
        "without a secret": samples - told,
        "boxes": boxes / told,
        "chi2": chi2 / told,
    }


def measure_again(rows: list[Row], samples: int) -> None:
    """Note of every row that was below the nominal coverage what other samples say, more of them."""
    for row in rows:
        if row["boxes"] < 1 - ALPHA:
            other = measured(row["distribution"], (row["secrets"], row["inputs"]), row["n"], samples, "again|")
            row["again"] = {"samples": samples - other["without a secret"], "boxes": other["boxes"]}


def page(rows: list[Row]) -> str:
    """The rows as Markdown."""
    parts = [
        "# How often a set of distributions holds the true one",
        "",
        "Nominal: 95 %. Each sample has a distribution of its own; those that lack a secret set no bound and are "
        "left out.",
        "",
        "| distribution | cells | records | samples | boxes | χ² set |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        told = row["samples"] - row["without a secret"]
        parts.append(
            f"| {row['distribution']} | {row['secrets']} × {row['inputs']} | {row['n']:,} | {told:,} | "
            f"{row['boxes']:.1%} "
            f"| {row['chi2']:.1%} |"
        )
    least = {name: min(row[name] for row in rows) for name in ("boxes", "chi2")}
    told = {name: sum(row[name] * (row["samples"] - row["without a secret"]) for row in rows) for name in least}
    every = sum(row["samples"] - row["without a secret"] for row in rows)
    # How likely so few are where the true coverage is 95 %.
    chance = min(
        float(binom.cdf(round(row["boxes"] * number), number, 1 - ALPHA))
        for row in rows
        for number in [row["samples"] - row["without a secret"]]
    )
    parts += [
        "",
        f"All samples together: boxes {told['boxes'] / every:.1%}, χ² set {told['chi2'] / every:.1%}. Least: boxes "
        f"{least['boxes']:.1%}, χ² set {least['chi2']:.1%}.",
        f"Boxes hold at least 95 % by proof; the row furthest below is so by chance with p = {chance:.2g}, of "
        f"{len(rows)} rows.",
    ]
    if repeated := [row for row in rows if "again" in row]:
        parts += [
            "",
            "Rows of boxes below 95 %, measured again with other samples, and more of them; p is how likely so few are "
            "where the true coverage is 95 %:",
            "",
            "| distribution | cells | records | first | again | samples | p |",
            "|---|---|---|---|---|---|---|",
        ]
        for row in repeated:
            number, share = row["again"]["samples"], row["again"]["boxes"]
            p = float(binom.cdf(round(share * number), number, 1 - ALPHA))
            parts.append(
                f"| {row['distribution']} | {row['secrets']} × {row['inputs']} | {row['n']:,} | {row['boxes']:.1%} "
                f"| {share:.1%} | {number:,} | {p:.2f} |"
            )
    return "\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", default=1000, type=int, help="samples of each distribution, shape and size")
    parser.add_argument("--page", action="store_true", help="write the page of the rows that are there, only")
    parser.add_argument(
        "--again", type=int, metavar="SAMPLES", help="measure rows below the nominal coverage again, only"
    )
    arguments = parser.parse_args()
    rows: list[Row] = []
    if arguments.page or arguments.again:
        rows = json.loads((RESULTS / "coverage.json").read_text())
        if arguments.again:
            measure_again(rows, arguments.again)
            save(rows, RESULTS / "coverage.json")
        (RESULTS / "coverage.md").write_text(page(rows))
        return
    for kind in LAWS:
        for shape in SHAPES:
            for n in SIZES:
                rows.append(measured(kind, shape, n, arguments.samples))
                save(rows, RESULTS / "coverage.json")
    (RESULTS / "coverage.md").write_text(page(rows))


if __name__ == "__main__":
    main()
