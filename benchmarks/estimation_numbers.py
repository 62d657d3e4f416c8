"""How often intervals of means, totals, medians, shares of a part and changes hold the truth over simulated releases.

``python -m benchmarks.estimation_numbers`` draws releases of a column of numbers crossed with one of two values, and
counts. The rows go to ``benchmarks/results/estimation-numbers.json`` and ``estimation-numbers.md``.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from benchmarks.rows import Row, save_as_they_come, table
from funnel import LDP, Joint, Protocol, estimate, fit
from funnel.alphabet import Alphabet
from funnel.estimation.means import estimate_numbers
from funnel.estimation.trend import estimate_trend

AGES = ("19", "27", "33", "48", "61")
INPUTS = Alphabet(("sex", "age"), tuple((sex, age) for sex in "fm" for age in AGES))
SHARES = np.array([0.2, 0.17, 0.12, 0.07, 0.04, 0.12, 0.1, 0.09, 0.06, 0.03])
NUMBERS = np.array([float(symbol[1]) for symbol in INPUTS.symbols])
ILL = np.array([0.7, 0.2, 0.6, 0.3, 0.5, 0.25, 0.65, 0.35, 0.55, 0.15])


def people_of(n: int, shift: float = 0.0) -> Any:
    """Records of each value; later years have more of the last ages."""
    shares = SHARES * (1 + shift * (NUMBERS - NUMBERS.mean()) / NUMBERS.mean())
    counts = np.rint(shares / shares.sum() * n).astype(np.int64)
    counts[0] += n - counts.sum()
    return counts


def protocol_of(people: Any, epsilon: float) -> Protocol:
    ill = np.rint(people * ILL).astype(np.int64)
    return fit("grr", Joint(np.stack([ill, people - ill]), Alphabet(("s",), (("i",), ("w",))), INPUTS), LDP(epsilon))


def quantile(people: Any, q: float) -> float:
    order = np.argsort(NUMBERS, kind="stable")
    every = np.repeat(NUMBERS[order], people[order])
    return float(every[int(np.ceil(q * len(every))) - 1])


def measured(n: int, epsilon: float, releases: int) -> Row:
    """Coverage of every kind of interval, pooled over its cells."""
    random, first, second = np.random.default_rng(n), people_of(n), people_of(n, 0.15)
    protocol = protocol_of(first, epsilon)
    channel = protocol.matrix / protocol.matrix.sum(axis=0)
    parts = [np.where(np.arange(10) < 5, first, 0), np.where(np.arange(10) >= 5, first, 0)]
    means = np.array([NUMBERS @ part / part.sum() for part in parts])
    totals = np.array([float(NUMBERS @ part) for part in parts])
    middle = np.array([quantile(part, 0.5) for part in parts])
    inside = np.concatenate([part[part > 0] / part.sum() for part in parts])
    ages = np.array([first[:5] + first[5:], second[:5] + second[5:]]) / n
    held: dict[str, list[Any]] = {name: [] for name in ("mean", "total", "median", "share of a part", "change")}
    for _ in range(releases):
        counts = random.multinomial(first, channel.T).sum(axis=0)
        found = estimate_numbers(counts, protocol, "age", "sex", quantiles=[0.5])
        held["mean"].append((found.mean_lower <= means) & (means <= found.mean_upper))
        held["total"].append((found.total_lower <= totals) & (totals <= found.total_upper))
        low, up = found.quantile_lower[:, 0], found.quantile_upper[:, 0]
        held["median"].append((low <= middle) & (middle <= up))
        part = estimate(counts, protocol, "age", within="sex")
        held["share of a part"].append((part.lower <= inside) & (inside <= part.upper))
        later = random.multinomial(second, channel.T).sum(axis=0)
        years = [estimate(one, protocol, "age") for one in (counts, later)]
        change = estimate_trend(years, same_people=False).whole
        held["change"].append((change.lower <= ages[1] - ages[0]) & (ages[1] - ages[0] <= change.upper))
    told = {name: round(float(np.mean(rows)), 4) for name, rows in held.items()}
    return {"records": n, "epsilon": epsilon, "releases": releases, **told}


def page(rows: list[Row]) -> str:
    """A page of the rows."""
    names = ("mean", "total", "median", "share of a part", "change")
    lines = [
        "# Coverage of intervals of numbers, parts and changes",
        "",
        "Nominal: 95 %; of medians of few distinct numbers at least that. Pooled over cells; GRR.",
        "Written by `python -m benchmarks.estimation_numbers`.",
        "",
    ]
    cells = (
        (f"{row['records']:,}", row["epsilon"], f"{row['releases']:,}", *(f"{row[name]:.1%}" for name in names))
        for row in rows
    )
    return "\n".join([*lines, *table(["records", "ε", "releases", *names], cells), ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", default=2000, type=int, help="simulated releases of each case")
    arguments = parser.parse_args()
    cases = ((50_000, 1.0), (5_000, 1.0), (500, 1.0), (50_000, 0.2))
    save_as_they_come((measured(*case, arguments.releases) for case in cases), "estimation-numbers", page)


if __name__ == "__main__":
    main()
