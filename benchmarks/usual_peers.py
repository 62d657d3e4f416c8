"""Usual statistics of released records beside those of statsmodels: estimates and intervals of the same records.

``python -m benchmarks.usual_peers --packages FOLDER [--census census_income_kdd.parquet]`` makes releases as
`benchmarks.invariant_coverage` does and computes the statistics of each by `benchmarks.usual_statistics`, whose
coverage that benchmark measures, and by statsmodels. It is no dependency of this project: ``pip install --no-deps
--target FOLDER statsmodels patsy``. The rows go to ``benchmarks/results/usual-peers.json`` and a page of them to
``usual-peers.md``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.invariant_coverage import Case, cases, of_value, randoms, regression_design, value_numbers
from benchmarks.rows import Row, save_as_they_come, table
from benchmarks.usual_statistics import (
    Z,
    chi_square,
    least_squares,
    log_odds_ratios,
    logistic,
    means,
    members,
    shares,
)
from funnel import Alphabet
from funnel.joint import FloatArray

CASES = ("Adult, lip:1", "Census-Income, lip:1")
# Estimates, then half the length of intervals, or both ends of them; (k,) each.
Found = tuple[FloatArray, ...]
Peer = Callable[[FloatArray], Found]


def pairs(inputs: Alphabet) -> Iterator[tuple[str, Peer, Peer]]:
    """What a statistic is called, and how both compute it of counts (a,)."""
    import statsmodels.api as sm
    from statsmodels.stats.proportion import proportion_confint
    from statsmodels.stats.weightstats import DescrStatsW

    design, hours = regression_design(inputs), value_numbers(inputs, "hours")
    much = of_value(inputs, "hours", max(symbol[inputs.columns.index("hours")] for symbol in inputs.symbols))
    groups, sexes = (members(inputs, (column,)) for column in ("education", "sex"))

    def ours(statistic: Any) -> Peer:
        def found(counts: FloatArray) -> Found:
            figures = statistic(counts)
            return (figures.estimates, *figures.interval(np.ones(len(figures.estimates))))

        return found

    def fitted(response: FloatArray, family: Any, kind: str) -> Peer:
        def found(counts: FloatArray) -> Found:
            fit = sm.GLM(response, design, family=family, freq_weights=counts).fit(cov_type=kind, tol=1e-13)
            return fit.params, fit.params - Z * fit.bse, fit.params + Z * fit.bse

        return found

    def of_shares(counts: FloatArray) -> Found:
        cells, n = groups @ counts, counts.sum()
        return (cells / n, *map(np.asarray, proportion_confint(cells, n, method="wilson")))

    def of_means(counts: FloatArray) -> Found:
        found = [DescrStatsW(hours, weights=counts * group) for group in groups]
        mean, error = (np.array([getattr(one, name) for one in found]) for name in ("mean", "std_mean"))
        return mean, mean - Z * error, mean + Z * error

    def of_odds(counts: FloatArray) -> Found:
        corners = [[[(one * other) @ counts for other in sexes] for one in (groups[0], cell)] for cell in groups[1:]]
        found = [sm.stats.Table2x2(np.array(one), shift_zeros=False) for one in corners]
        odds, error = (
            np.array([getattr(one, name) for one in found]) for name in ("log_oddsratio", "log_oddsratio_se")
        )
        return odds, odds - Z * error, odds + Z * error

    def of_chi_square(counts: FloatArray) -> Found:
        tested = sm.stats.Table((groups * counts) @ sexes.T, shift_zeros=False).test_nominal_association()
        return np.array([tested.statistic]), np.array([tested.df])

    gaussian, binomial = sm.families.Gaussian(), sm.families.Binomial()
    yield "shares, Wilson's intervals", ours(shares(groups)), of_shares
    yield "log odds ratios", ours(log_odds_ratios(groups, sexes)), of_odds
    yield "means by group", ours(means(groups, hours)), of_means
    yield "linear regression", ours(least_squares(design, hours, robust=False)), fitted(hours, gaussian, "nonrobust")
    yield "the same, robust errors", ours(least_squares(design, hours, robust=True)), fitted(hours, gaussian, "HC0")
    yield "logistic regression", ours(logistic(design, much)), fitted(much, binomial, "nonrobust")
    yield "the same, robust errors", ours(logistic(design, much, robust=True)), fitted(much, binomial, "HC0")
    yield (
        "chi-square",
        lambda counts: tuple(map(np.atleast_1d, map(float, chi_square(counts, groups, sexes)))),
        of_chi_square,
    )


def measured(name: str, case: Case, releases: int) -> Iterator[Row]:
    """By statistic the largest difference over releases, relative to half the length of an interval."""
    shown = [case.published(random).shown.astype(float) for random in randoms(name, releases)]
    for kind, own, theirs in pairs(case.values):
        off = 0.0
        for counts in shown:
            one, other = own(counts), theirs(counts)
            unit = (one[2] - one[1]) / 2 if len(one) > 2 else one[0]
            off = max(off, *(float((np.abs(a - b) / unit).max()) for a, b in zip(one, other, strict=True)))
        yield {"case": name, "releases": releases, "statistic": kind, "largest difference": float(f"{off:.1e}")}


def page(rows: list[Row]) -> str:
    """A page of the rows."""
    head = ["case", "releases", "statistic", "largest difference"]
    lines = [
        "# Usual statistics beside those of statsmodels",
        "",
        "Written by `python -m benchmarks.usual_peers`: estimates and both ends of intervals at 95 % of the records of",
        "releases, by the code whose [coverage](invariant-coverage.md) is measured and by statsmodels. The largest",
        "difference over all releases is relative to half the length of an interval; of chi-square to the statistic.",
        "",
        *table(head, ([f"{row['releases']}" if key == "releases" else row[key] for key in head] for row in rows)),
    ]
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", default=300, type=int)
    parser.add_argument("--packages", type=Path, required=True, help="a folder that holds statsmodels and patsy")
    parser.add_argument("--census", type=Path, help="census_income_kdd.parquet; without it Adult alone")
    arguments = parser.parse_args()
    sys.path.append(str(arguments.packages))
    asked = ((name, made()) for name, made in cases(arguments.census).items() if name in CASES)
    found = ((name, case) for name, case in asked if isinstance(case, Case))
    save_as_they_come(
        (row for name, case in found for row in measured(name, case, arguments.releases)), "usual-peers", page
    )


if __name__ == "__main__":
    main()
