"""How often usual intervals and tests hold the truth with records that an invariant protocol has published.

``python -m benchmarks.invariant_coverage [--census census_income_kdd.parquet]`` draws samples of a population, which is
the data set itself, fits an invariant protocol to every sample, publishes it, and computes statistics of the published
records as analysts do. Of intervals at 95 % it counts how many hold the truth in the population, as they are and with
the factor √(1 + r), and in the sample, as they are and with the factor √r; of chi-square tests at 5 %, where columns
are independent, how many reject. The rows go to ``benchmarks/results/invariant-coverage.json`` and a page of them to
``benchmarks/results/invariant-coverage.md``.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import chi2

from benchmarks.rows import Row, save_as_they_come, saved, table
from benchmarks.usual_statistics import (
    Figures,
    Shown,
    Statistic,
    chi_square,
    least_squares,
    log_odds_ratios,
    logistic,
    means,
    members,
    quantiles,
    shares,
)
from benchmarks.whole_record_cases import WholeRecords, whole_record_cases
from funnel import LIP, Alphabet, Attribute, Joint, fit, protect
from funnel.estimation import chi_square_ratio, variance_ratio
from funnel.guarantees import Guarantee
from funnel.joint import FloatArray

SAMPLE = Path(__file__).parents[1] / "data" / "adult.parquet"
_HEAD = ["case", "records", "releases", "unchanged", "statistic", "estimates", "r, mean and most"]
_HEAD += ["population, with √(1 + r)", "population, as usual", "the sample, as usual", "the sample, with √r"]
_INTERVALS = ("population", "population_as_usual", "sample_as_usual", "sample")
# Of an estimate that no change of records moves.
_ROUNDING = 1e-9
EDUCATION = {"school": 8, "HS-grad": 9, "some college": 10, "associate": 12, "bachelor": 13, "higher": 14}


@dataclass(frozen=True, eq=False)
class Case:
    """A population, what is published of its samples, and what is computed from that.

    Attributes
    ----------
    population : Joint
        Its counts (c, a); samples have as many records.
    guarantee : Guarantee
    statistics : mapping of str to Statistic
    tests : tuple of (str, str)
        Pairs of columns that are tested for independence.
    noise : float or None
        The ε of the counts that protocols are fitted to; None for exact ones.
    """

    population: Joint
    guarantee: Guarantee
    statistics: Mapping[str, Statistic]
    tests: tuple[tuple[str, str], ...] = ()
    noise: float | None = None

    @property
    def whole(self) -> FloatArray:
        """Records of the population with each value (a,)."""
        return np.asarray(self.population.counts.sum(axis=0), dtype=np.float64)

    @property
    def values(self) -> Alphabet:
        """What these values are."""
        return self.population.inputs

    def published(self, releases: int, random: np.random.Generator) -> Iterator[Shown]:
        """Releases of samples of the population, each by a protocol of its own."""
        population = self.population
        for _ in range(releases):
            counts = random.multinomial(population.n, population.p.ravel()).reshape(population.counts.shape)
            sample = Joint(counts, population.secret, population.inputs)
            known = sample if self.noise is None else protect(sample, self.noise).as_published
            protocol = fit("invariant", known, self.guarantee)
            records, channel = counts.sum(axis=0), protocol.matrix.T
            shown = random.multinomial(records, channel / channel.sum(axis=1, keepdims=True)).sum(axis=0)
            yield Shown(
                records,
                shown,
                float(records @ np.diag(protocol.matrix)) / records.sum(),
                partial(variance_ratio, shown, protocol),
                partial(chi_square_ratio, shown, protocol),
            )


def adult() -> pd.DataFrame:
    """Columns of Adult in classes."""
    people = pd.read_parquet(SAMPLE)
    edges = [0, *(number for number in EDUCATION.values() if number != 14), 16]
    return pd.DataFrame(
        {
            "income": people["income"].astype(str),
            "education": pd.cut(people["education-num"], edges, labels=list(EDUCATION)).astype(str),
            "sex": people["sex"].astype(str),
            "age": pd.cut(people["age"], [0, 30, 45, 120], labels=["25", "38", "55"]).astype(str),
            "hours": pd.cut(people["hours-per-week"], [0, 34, 40, 120], labels=["20", "40", "50"]).astype(str),
            "years": (people["age"] // 3 * 3).clip(upper=75).astype(str),
        }
    )


def census(path: Path) -> pd.DataFrame:
    """Columns of the adults of Census-Income in classes."""
    people = pd.read_parquet(path)
    people = people[people["age"] >= 18]
    degrees = {
        "High school graduate": "HS-grad",
        "Some college but no degree": "some college",
        "Associates degree-occup /vocational": "associate",
        "Associates degree-academic program": "associate",
        "Bachelors degree(BA AB BS)": "bachelor",
        "Masters degree(MA MS MEng MEd MSW MBA)": "higher",
        "Prof school degree (MD DDS DVM LLB JD)": "higher",
        "Doctorate degree(PhD EdD)": "higher",
    }
    return pd.DataFrame(
        {
            "income": people["income"].astype(str),
            "education": people["education"].astype(str).map(lambda name: degrees.get(name, "school")),
            "sex": people["sex"].astype(str),
            "age": pd.cut(people["age"], [0, 30, 45, 120], labels=["25", "38", "55"]).astype(str),
            "hours": pd.cut(people["weeks-worked-in-year"], [-1, 0, 49, 52], labels=["0", "25", "51"]).astype(str),
        }
    )


def _number(inputs: Alphabet, column: str) -> FloatArray:
    return np.array([float(symbol[inputs.columns.index(column)]) for symbol in inputs.symbols])


def _is(inputs: Alphabet, column: str, *values: str) -> FloatArray:
    return np.array([symbol[inputs.columns.index(column)] in values for symbol in inputs.symbols], dtype=float)


def _design(inputs: Alphabet) -> FloatArray:
    """A constant, education as a number, sex, and two classes of age where it is there."""
    years = np.array([EDUCATION[symbol[inputs.columns.index("education")]] for symbol in inputs.symbols], dtype=float)
    ages = ["38", "55"] if "age" in inputs.columns else []
    return np.array(
        [np.ones(len(inputs)), years, _is(inputs, "sex", "Female"), *(_is(inputs, "age", a) for a in ages)]
    ).T


def _usual(joint: Joint) -> dict[str, Statistic]:
    """Statistics of education, sex, age and hours (of Census-Income: weeks)."""
    inputs = joint.inputs
    hours, design = _number(inputs, "hours"), _design(inputs)
    much = (hours == hours.max()).astype(float)
    return {
        "shares of one column": shares(np.concatenate([members(inputs, (column,)) for column in inputs.columns])),
        "shares of two columns": shares(members(inputs, ("education", "age"))),
        "odds ratios": log_odds_ratios(members(inputs, ("education",)), np.array([much, 1 - much])),
        "means by group": means(members(inputs, ("education", "sex")), hours),
        "linear regression": least_squares(design, hours, robust=False),
        "linear regression, robust errors": least_squares(design, hours, robust=True),
        "logistic regression": logistic(design, much),
    }


def _of_income(joint: Joint) -> dict[str, Statistic]:
    """Statistics of a published secret, education and sex."""
    inputs = joint.inputs
    high, design = _is(inputs, "income", ">50K"), _design(inputs)
    return {
        "shares of one column": shares(np.concatenate([members(inputs, (column,)) for column in inputs.columns])),
        "shares of two columns": shares(members(inputs, ("income", "education"))),
        "odds ratios": log_odds_ratios(members(inputs, ("education",)), np.array([high, 1 - high])),
        "means by group": means(members(inputs, ("education", "sex")), high),
        "linear regression, robust errors": least_squares(design, high, robust=True),
        "logistic regression": logistic(design, high),
    }


def _independent(joint: Joint, column: str) -> Joint:
    """The same population but that a column is independent of everything else; ten times as many records."""
    inputs = joint.inputs
    of = members(inputs, (column,))
    rest = members(inputs, tuple(name for name in inputs.columns if name != column))
    shares_of_column = of.T @ (of @ joint.counts.sum(axis=0)) / joint.n
    counts = 10 * ((joint.counts @ rest.T) @ rest) * shares_of_column
    return Joint(np.rint(counts).astype(np.int64), joint.secret, inputs)


def cases(path: Path | None) -> dict[str, Callable[[], Case | WholeRecords]]:
    """All cases; the census where it is there."""

    def four(people: pd.DataFrame) -> Joint:
        return Joint.from_table(people, ["income"], ["education", "sex", "age", "hours"])

    def plain() -> Case:
        return Case(four(adult()), LIP(1.0), _usual(four(adult())))

    def noisy() -> Case:
        return replace(plain(), noise=1.0)

    def with_income() -> Case:
        joint = Joint.from_table(adult(), ["income"], ["education", "sex"]).with_secret()
        return Case(joint, Attribute(1.0), _of_income(joint))

    def ages() -> Case:
        joint = Joint.from_table(adult(), ["income"], ["years", "sex"])
        return Case(joint, LIP(0.5), {"quartiles": quantiles(_number(joint.inputs, "years") / 3, (0.25, 0.5, 0.75))})

    def independent() -> Case:
        tests = (("sex", "age"), ("sex", "hours"), ("sex", "education"))
        return Case(_independent(four(adult()), "sex"), LIP(0.5), {}, tests)

    def of_census(path: Path) -> Case:
        joint = four(census(path))
        return Case(joint, LIP(1.0), _usual(joint))

    found: dict[str, Callable[[], Case | WholeRecords]] = {
        "Adult, lip:1": plain,
        "Adult, lip:1, fitted to noisy counts": noisy,
        "Adult with income, attribute:1": with_income,
        "Adult, ages by three years, lip:0.5": ages,
        "Adult, sex independent, lip:0.5": independent,
    }
    if path is not None:
        found["Census-Income, lip:1"] = lambda: of_census(path)
    return found | whole_record_cases(path)


def measured(name: str, case: Case | WholeRecords, releases: int) -> Iterator[Row]:
    """Coverage of every statistic of a case, and how often tests reject."""
    random = np.random.default_rng(zlib.crc32(name.encode()))
    truths = {kind: statistic(case.whole).estimates for kind, statistic in case.statistics.items()}
    held: dict[str, list[Any]] = {kind: [] for kind in case.statistics}
    rejected: dict[tuple[str, str], list[Any]] = {pair: [] for pair in case.tests}
    kept, tested = [], {column: members(case.values, (column,)) for pair in case.tests for column in pair}
    for one in case.published(releases, random):
        shown, records = (counts.astype(float) for counts in (one.shown, one.records))
        kept.append(one.unchanged)
        for kind, statistic in case.statistics.items():
            found, own = statistic(shown), statistic(records).estimates
            r = one.ratio(found.influence)
            held[kind].append(
                [
                    _holds(found, truths[kind], 1 + r),
                    _holds(found, truths[kind], np.ones_like(r)),
                    _holds(found, own, np.ones_like(r)),
                    _holds(found, own, r),
                    r,
                ]
            )
        for pair in case.tests:
            value, degrees = chi_square(shown, *(tested[column] for column in pair))
            r = one.chi_square_ratio(*pair)
            rejected[pair].append([chi2.sf(value / (1 + r), degrees) < 0.05, chi2.sf(value, degrees) < 0.05, r])
    about: Row = {
        "case": name,
        "records": int(records.sum()),
        "releases": releases,
        "unchanged": round(float(np.mean(kept)), 4),
    }
    for kind, figures in held.items():
        *coverage, r = np.moveaxis(np.array(figures, dtype=float), 1, 0)
        yield (
            about
            | {
                "statistic": kind,
                "estimates": r.shape[1],
                "r": round(float(r.mean()), 3),
                "r_most": round(float(r.mean(axis=0).max()), 3),
            }
            | {
                key: round(float(figure), 4)
                for name, found in zip(_INTERVALS, coverage, strict=True)
                for key, figure in ((name, found.mean()), (f"{name}_least", found.mean(axis=0).min()))
            }
        )
    for pair, tests in rejected.items():
        divided, as_usual, r = np.array(tests, dtype=float).T
        yield about | {
            "statistic": f"chi-square of {pair[0]} and {pair[1]}",
            "r": round(float(r.mean()), 3),
            "rejected": round(float(divided.mean()), 4),
            "rejected_as_usual": round(float(as_usual.mean()), 4),
        }


def _holds(found: Figures, truth: FloatArray, factor: FloatArray) -> npt.NDArray[np.bool_]:
    low, up = found.interval(factor)
    return np.asarray((low - _ROUNDING <= truth) & (truth <= up + _ROUNDING))


def page(rows: list[Row]) -> str:
    """A page of the rows."""
    of_intervals = [row for row in rows if "population" in row]
    of_tests = [row for row in rows if "rejected" in row]
    missed = [
        f"{row['case']}, {row['statistic']}: population {row['population']:.1%}, sample {row['sample_as_usual']:.1%}"
        for row in of_intervals
        if not (0.94 <= row["population"] <= 0.99 and row["sample_as_usual"] >= 0.93)
    ]
    lines = [
        "# Coverage of usual intervals with records of invariant releases",
        "",
        "Nominal: 95 %. Written by `python -m benchmarks.invariant_coverage`. Every release is of a new sample of the",
        "population, with a protocol of its own. In brackets the estimate whose intervals hold the truth least often.",
        "",
        *table(
            _HEAD,
            (
                [
                    row["case"],
                    f"{row['records']:,}",
                    row["releases"],
                    f"{row['unchanged']:.1%}",
                    row["statistic"],
                    row["estimates"],
                    f"{row['r']:.2f}, {row['r_most']:.2f}",
                    *(f"{row[name]:.1%} ({row[f'{name}_least']:.1%})" for name in _INTERVALS),
                ]
                for row in of_intervals
            ),
        ),
        "",
        "Targets: 94 to 99 % for the population with the factor, at least 93 % for the sample without. "
        + (f"Missed: {'; '.join(missed)}." if missed else "All are met."),
        "",
        "Tests at 5 % of columns that are independent in the population:",
        "",
        *table(
            ["case", "records", "releases", "test", "r", "rejected, divided by 1 + r", "rejected, as usual"],
            (
                [
                    row["case"],
                    f"{row['records']:,}",
                    row["releases"],
                    row["statistic"],
                    f"{row['r']:.2f}",
                    f"{row['rejected']:.1%}",
                    f"{row['rejected_as_usual']:.1%}",
                ]
                for row in of_tests
            ),
        ),
    ]
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", default=300, type=int, help="samples that are drawn and published of each case")
    parser.add_argument("--census", type=Path, help="census_income_kdd.parquet; without it Adult alone")
    parser.add_argument("--only", help="cases whose names have this; rows of others are kept as they were written")
    arguments = parser.parse_args()
    asked = {name: made for name, made in cases(arguments.census).items() if (arguments.only or "") in name}
    before = saved("invariant-coverage") if arguments.only else []
    kept = [row for row in before if row["case"] not in asked]
    rows = (row for name, made in asked.items() for row in measured(name, made(), arguments.releases))
    save_as_they_come(chain(kept, rows), "invariant-coverage", page)


if __name__ == "__main__":
    main()
