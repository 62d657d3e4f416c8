"""Cases of `benchmarks.invariant_coverage` in which whole records are published, by their class.

Every release is of a new sample: classes are chosen and a protocol is fitted for it, and donors are drawn by the code
that releases. Statistics are those of the published columns; r is told by the published records and the protocol.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.usual_statistics import (
    Shown,
    Statistic,
    least_squares,
    log_odds_ratios,
    logistic,
    means,
    members,
    quantiles,
    shares,
)
from benchmarks.whole_record_draws import draw_records, input_places, published_table
from funnel import LIP, Alphabet, Attribute, Joint, fit
from funnel.donors.growing import record_classes
from funnel.estimation.by_class import whole_records
from funnel.estimation.plain_counts import PlainCounts
from funnel.estimation.variance_ratios import table_ratio
from funnel.guarantees import Guarantee
from funnel.joint import FloatArray, IntArray
from funnel.sampling.donors import Donors
from funnel.source.counting import count_joint
from funnel.spec import ReleaseSpec

SPEC = Path(__file__).parents[1] / "data" / "adult-wide.toml"
# As a spec has them by default, without a rule of dominance.
_LEAST, _MOST, _FEW = 50, 400, 10
CENSUS_SPEC = """
name = "census-wide"
title = "Twelve columns of Census-Income"
secret = ["income"]
publish = [
    "education", "sex", "race", "marital-stat", "age", "major-occupation-code", "major-industry-code",
    "detailed-household-summary-in-household", "weeks-worked-in-year", "class-of-worker", "tax-filer-stat",
    "country-of-birth-self",
]
guarantee = "lip:1.0"
mechanism = "invariant"
source = {path = "PATH"}
recode.age = {bins = [15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70]}
recode.weeks-worked-in-year = {bins = [1, 14, 27, 40, 50, 52]}
frequencies = {protection = "threshold", threshold = 10}
metadata = {licence = "CC-BY-4.0"}
"""
_SCHOOL = (
    "Preschool 1st-4th 5th-6th 7th-8th 9th 10th 11th 12th HS-grad Some-college Assoc-voc Assoc-acdm Bachelors Masters"
)
YEARS = {name: number for number, name in enumerate([*_SCHOOL.split(), "Prof-school", "Doctorate"], 1)}


class Drawn(NamedTuple):
    """A release of whole records.

    Attributes
    ----------
    counts : ndarray of int, shape (c, a)
        The sample.
    plain : PlainCounts
        Published records, counted.
    row_of : ndarray of int
        Of every published record its value among these.
    values : ndarray of int
        And among those of the population.
    stayed : float
        The share of records that are true.
    """

    counts: IntArray
    plain: PlainCounts
    row_of: IntArray
    values: IntArray
    stayed: float


@dataclass(frozen=True, eq=False)
class WholeRecords:
    """A population of records, what is published of its samples, and what is computed from that.

    Attributes
    ----------
    population : Joint
        Its counts (c, a) by record. Under attribute protection the secret is published with the record.
    records : int
        Of a sample.
    guarantee : Guarantee
    statistics : mapping of str to Statistic
    tests : tuple of (str, str)
        Pairs of columns that are tested for independence.
    """

    population: Joint
    records: int
    guarantee: Guarantee
    statistics: Mapping[str, Statistic]
    tests: tuple[tuple[str, str], ...] = ()
    _categories: list[tuple[str, ...]] = field(init=False)
    _codes: IntArray = field(init=False)

    def __post_init__(self) -> None:
        texts = list(zip(*self.population.inputs.symbols, strict=True))
        categories = [tuple(sorted(set(column))) for column in texts]
        codes = np.array([np.searchsorted(names, column) for names, column in zip(categories, texts, strict=True)]).T
        object.__setattr__(self, "_categories", categories)
        object.__setattr__(self, "_codes", codes)

    @property
    def with_secret(self) -> bool:
        """Whether a value that is published is a secret and a record."""
        return isinstance(self.guarantee, Attribute)

    @property
    def whole(self) -> FloatArray:
        """Records of the population with each value."""
        return np.asarray(self._of_values(self.population.counts), dtype=np.float64)

    @property
    def values(self) -> Alphabet:
        """What these values are."""
        return self.population.with_secret().inputs if self.with_secret else self.population.inputs

    def _of_values(self, counts: IntArray) -> IntArray:
        return counts.ravel() if self.with_secret else counts.sum(axis=0)

    def drawn(self, random: np.random.Generator) -> Drawn:
        """The release of a sample of the population, with classes and a protocol of its own."""
        counts = random.multinomial(self.records, self.population.p.ravel()).reshape(self.population.counts.shape)
        there = np.flatnonzero(counts.sum(axis=0))
        population, columns = self.population, self.population.inputs.columns
        inputs = Alphabet(columns, tuple(population.inputs.symbols[x] for x in there))
        sample = Joint(counts[:, there], population.secret, inputs)
        classes = record_classes(sample, _LEAST, _MOST, _FEW, _all)
        counted = classes.counted(sample)
        protocol = fit("invariant", counted.with_secret() if self.with_secret else counted, self.guarantee)
        of_record, people = classes.of_records(inputs), sample.counts.sum(axis=0)
        codes = self._codes[there].astype(np.int32)
        donors = Donors(columns, tuple(self._categories), codes, classes.names, of_record, people)
        # Every person by secret and record; without the secret by record alone.
        secret, row = (
            np.repeat(place, sample.counts.ravel()) for place in np.indices(sample.counts.shape).reshape(2, -1)
        )
        named = population.secret if self.with_secret else None
        places = input_places(protocol, named, classes.names)
        drawn = draw_records(
            donors, protocol, places, secret if self.with_secret else np.zeros_like(secret), row, random
        )
        published = published_table(donors, named, drawn)
        plain, row_of = whole_records(published, protocol)
        values = drawn.secrets * len(population.inputs) * self.with_secret + there[drawn.taken]
        return Drawn(counts, plain, row_of, values, float(drawn.stayed.mean()))

    def published(self, random: np.random.Generator) -> Shown:
        """The same, as usual statistics of it are computed."""
        population = self.population
        counts, plain, row_of, values, stayed = self.drawn(random)
        # Every published record with every secret: also pairs that nobody was published with.
        width = len(population.secret) if self.with_secret else 1
        value = np.full((width, len(plain.counts) // width), -1)
        value.ravel()[row_of] = values
        records = value.max(axis=0) % len(population.inputs)
        secrets = [
            population.secret.index(x[:1]) if self.with_secret else 0 for x in plain.values.symbols[:: len(records)]
        ]
        value = np.add.outer(np.array(secrets) * len(population.inputs), records).ravel()
        return Shown(
            self._of_values(counts),
            np.bincount(values, minlength=len(self.values)),
            stayed,
            lambda influence: plain.ratio(influence[:, value]),
            partial(table_ratio, plain),
        )


def _all(tables: IntArray) -> npt.NDArray[np.bool_]:
    return np.ones(tables.shape[1:], dtype=np.bool_)


def _column(inputs: Alphabet, column: str) -> list[str]:
    place = inputs.columns.index(column)
    return [symbol[place] for symbol in inputs.symbols]


def _number(inputs: Alphabet, column: str) -> FloatArray:
    """The mean of the numbers that an interval is written with."""
    known = {text: np.mean([float(n) for n in re.findall(r"\d+", text)]) for text in set(_column(inputs, column))}
    return np.array([known[text] for text in _column(inputs, column)])


def _is(inputs: Alphabet, column: str, *values: str) -> FloatArray:
    return np.array([text in values for text in _column(inputs, column)], dtype=float)


def _rank(numbers: FloatArray) -> FloatArray:
    return np.unique(numbers, return_inverse=True)[1].astype(float)


def _of_adult(inputs: Alphabet) -> dict[str, Statistic]:
    hours, age = _number(inputs, "hours-per-week"), _number(inputs, "age") / 10
    years = np.array([YEARS.get(name, 10) for name in _column(inputs, "education")], dtype=float)
    female, married = _is(inputs, "sex", "Female"), _is(inputs, "marital-status", "Married-civ-spouse")
    gain, boss = 1 - _is(inputs, "capital-gain", "under 1"), _is(inputs, "occupation", "Exec-managerial")
    design = np.array([age**0, years, female, married, age, age**2, female * married, years * age, female * years]).T
    return {
        "shares of one column": shares(np.concatenate([members(inputs, (column,)) for column in inputs.columns[:9]])),
        "shares of two columns": shares(members(inputs, ("education", "relationship"))),
        "shares of three columns": shares(members(inputs, ("sex", "race", "age"))),
        "odds ratios": log_odds_ratios(members(inputs, ("education",)), np.array([married, 1 - married])),
        "means by group": means(members(inputs, ("age", "sex")), hours),
        "quartiles of age": quantiles(_rank(age), (0.25, 0.5, 0.75)),
        "linear regression": least_squares(design, hours, robust=False),
        "linear regression, robust errors": least_squares(design, hours, robust=True),
        "logistic regression of capital gains": logistic(design, gain),
        "logistic regression of capital gains, robust errors": logistic(design, gain, robust=True),
        "logistic regression of managers": logistic(design, boss),
    }


def _of_published_income(inputs: Alphabet) -> dict[str, Statistic]:
    age, high = _number(inputs, "age") / 10, _is(inputs, "income", ">50K")
    years = np.array([YEARS.get(name, 10) for name in _column(inputs, "education")], dtype=float)
    female, married = _is(inputs, "sex", "Female"), _is(inputs, "marital-status", "Married-civ-spouse")
    design = np.array([age**0, years, female, married, age]).T
    both = np.array([high, 1 - high])
    return {
        "shares of one column": shares(np.concatenate([members(inputs, (column,)) for column in inputs.columns[:9]])),
        "shares of income and another column": shares(
            np.concatenate([members(inputs, ("income", column)) for column in ("education", "marital-status", "sex")])
        ),
        "odds ratios": log_odds_ratios(members(inputs, ("race",)), both),
        "means by group": means(members(inputs, ("sex", "race")), high),
        "linear regression of income, robust errors": least_squares(design, high, robust=True),
        "logistic regression of income, robust errors": logistic(design, high, robust=True),
        "logistic regression of marriage, robust errors": logistic(design[:, [0, 1, 2, 4]], married, robust=True),
    }


def _of_census(inputs: Alphabet) -> dict[str, Statistic]:
    weeks, age = _number(inputs, "weeks-worked-in-year"), _number(inputs, "age") / 10
    degree = np.array([bool(re.search("degree", name)) for name in _column(inputs, "education")], dtype=float)
    degree *= 1 - _is(inputs, "education", "Some college but no degree")
    female = _is(inputs, "sex", "Female")
    married = _is(inputs, "marital-stat", "Married-civilian spouse present")
    joint = np.array([name.startswith("Joint") for name in _column(inputs, "tax-filer-stat")], dtype=float)
    design = np.array([age**0, degree, female, married, age, age**2, female * married, degree * age]).T
    return {
        "shares of one column": shares(np.concatenate([members(inputs, (column,)) for column in inputs.columns[:5]])),
        "shares of two columns": shares(members(inputs, ("sex", "age"))),
        "odds ratios": log_odds_ratios(members(inputs, ("race",)), np.array([degree, 1 - degree])),
        "means by group": means(members(inputs, ("age", "sex")), weeks),
        "quartiles of age": quantiles(_rank(age), (0.25, 0.5, 0.75)),
        "linear regression": least_squares(design, weeks, robust=False),
        "linear regression, robust errors": least_squares(design, weeks, robust=True),
        "logistic regression of degrees": logistic(np.delete(design, [1, 7], axis=1), degree),
        "logistic regression of joint tax": logistic(np.delete(design, [3, 6], axis=1), joint),
    }


def _independent(joint: Joint, column: str) -> Joint:
    """The same population but that a column is independent of everything else; a thousand times as many records."""
    place = joint.inputs.columns.index(column)
    texts, counts = _column(joint.inputs, column), joint.counts.sum(axis=0)
    shares_of = {text: round(1000 * counts[np.array(texts) == text].sum() / joint.n) for text in sorted(set(texts))}
    rest: dict[tuple[str, ...], IntArray] = {}
    for symbol, of_secrets in zip(joint.inputs.symbols, joint.counts.T, strict=True):
        others = symbol[:place] + symbol[place + 1 :]
        rest[others] = rest.get(others, 0) + of_secrets
    symbols = [(*others[:place], text, *others[place:]) for others in rest for text, n in shares_of.items() if n]
    table = np.array([n * of_secrets for of_secrets in rest.values() for n in shares_of.values() if n]).T
    return Joint(table, joint.secret, Alphabet(joint.inputs.columns, tuple(symbols)))


def whole_record_cases(census: Path | None) -> dict[str, Callable[[], WholeRecords]]:
    """Twelve columns of Adult, and of Census-Income where it is there."""

    def read(spec: ReleaseSpec) -> Joint:
        return count_joint(spec, lambda *_: None)

    def plain(guarantee: Guarantee) -> WholeRecords:
        joint = read(ReleaseSpec.load(SPEC))
        return WholeRecords(joint, joint.n, guarantee, _of_adult(joint.inputs))

    def with_income() -> WholeRecords:
        joint = read(ReleaseSpec.load(SPEC))
        return WholeRecords(joint, joint.n, Attribute(1.0), _of_published_income(joint.with_secret().inputs))

    def independent() -> WholeRecords:
        joint = read(ReleaseSpec.load(SPEC))
        tests = (("race", "education"), ("race", "relationship"), ("race", "sex"))
        return WholeRecords(_independent(joint, "race"), joint.n, LIP(0.25), {}, tests)

    def of_census(path: Path) -> WholeRecords:
        joint = read(ReleaseSpec.parse(CENSUS_SPEC.replace("PATH", str(path.resolve())), SPEC))
        return WholeRecords(joint, joint.n, LIP(1.0), _of_census(joint.inputs))

    found = {
        "Adult, 12 columns, lip:1": lambda: plain(LIP(1.0)),
        "Adult, 12 columns with income, attribute:1": with_income,
        "Adult, 12 columns, lip:0.25": lambda: plain(LIP(0.25)),
        "Adult, 12 columns, race independent, lip:0.25": independent,
    }
    if census is not None:
        found["Census-Income, 12 columns, lip:1"] = lambda: of_census(census)
    return found
