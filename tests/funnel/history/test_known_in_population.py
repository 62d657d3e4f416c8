"""Observers who know published columns, over versions and in a population: added up in what samples leave open."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import funnel
from funnel.history import worst_tables
from funnel.history.allowed import allowed_by
from funnel.history.possible_distributions import DistributionSet
from funnel.joint import FloatArray, IntArray
from tests.funnel.history.populations import Known, book_of, carried, clopper_pearson, corner, end, followed, telling
from tests.funnel.history.test_possible import lifts, within

ALPHA, PEOPLE = 0.05, 12_000
# Inputs are pairs of values of two columns.
INPUTS = [(size, town) for size in "ab" for town in "xy"]


def panel(seed: int, versions: int) -> list[pa.Table]:
    """The same people; who is ill has another size in each town, and more are so in one of these."""
    drawn = np.random.default_rng(seed)
    town = drawn.integers(0, 2, PEOPLE)
    ill = drawn.random(PEOPLE) < 0.25 + 0.3 * town
    size = np.where(drawn.random(PEOPLE) < 0.5, ill ^ town, drawn.integers(0, 2, PEOPLE))
    found = []
    for _ in range(versions):
        found.append(
            pa.table(
                {
                    "id": np.arange(PEOPLE),
                    "ill": np.where(ill, "yes", "no"),
                    "size": np.array(list("ab"))[size],
                    "town": np.array(list("xy"))[town],
                }
            )
        )
        ill = ill ^ (drawn.random(PEOPLE) < 0.05)
        size = np.where(drawn.random(PEOPLE) < 0.2, drawn.integers(0, 2, PEOPLE), size)
    return found


def known() -> list[list[int]]:
    """What may be known: nothing, or the value of one column."""
    found: list[list[int]] = [list(range(len(INPUTS)))]
    for (column,) in combinations(range(2), 1):
        values = dict.fromkeys(one[column] for one in INPUTS)
        found += [[x for x, one in enumerate(INPUTS) if one[column] == value] for value in values]
    return found


class Sample:
    """What a version leaves open, by the theorem, counted here."""

    def __init__(self, number: int, now: pa.Table, before: pa.Table | None) -> None:
        self.counts, c = counted(now), 2
        half = ALPHA / (number * (number + 1)) / 2
        tail = half / sum(2 * (c * len(some) + c) for some in known())
        by_secret = self.counts.sum(axis=1)
        self.inputs = [[clopper_pearson(n, by_secret[s], tail) for n in row] for s, row in enumerate(self.counts)]
        self.priors = []
        for some in known():
            of_some = self.counts[:, some].sum(axis=1)
            self.priors.append([clopper_pearson(n, of_some.sum(), tail) for n in of_some])
        if before is not None:
            tail = half / (number - 1) / (2 * (c * c + 2 * c))
            (s, x), (t, y) = cells(before), cells(now)
            self.secrets = [
                [clopper_pearson(int((t[s == was] == now).sum()), int((s == was).sum()), tail) for now in range(c)]
                for was in range(c)
            ]
            self.stays = [
                clopper_pearson(int((x == y)[s == was].sum()), int((s == was).sum()), tail) for was in range(c)
            ]
            self.both = [clopper_pearson(int((t == now).sum()), len(t), tail) for now in range(c)]


def cells(table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    pairs = zip(table["size"].to_pylist(), table["town"].to_pylist(), strict=True)
    return np.array(table["ill"].to_pylist()) == "yes", np.array([INPUTS.index(pair) for pair in pairs])


def counted(table: pa.Table) -> np.ndarray:
    s, x = cells(table)
    return np.bincount(s * len(INPUTS) + x, minlength=2 * len(INPUTS)).reshape(2, -1)


class Population:
    """Shares that no sample rules out: cells as far towards a corner as all limits of a version let them go."""

    def __init__(self, samples: list[Sample], drawn: np.random.Generator) -> None:
        self.cells = []
        for sample in samples:
            wanted = np.array(
                [
                    [float(p * x) for x in corner(row, drawn)]
                    for p, row in zip(corner(sample.priors[0], drawn), sample.inputs, strict=True)
                ]
            )
            shares = sample.counts / sample.counts.sum()
            steps = (shares + step * (wanted - shares) for step in np.linspace(1, 0, 200))
            self.cells.append(exactly(next(one for one in steps if possible(one, sample))))
        self.secrets = [[corner(row, drawn) for row in one.secrets] for one in samples[1:]]
        self.stays = [[end(one, drawn) for one in sample.stays] for sample in samples[1:]]
        self.both = [corner(one.both, drawn) for one in samples[1:]]

    def inputs(self, t: int) -> list[list[Fraction]]:
        """How common inputs are among people with each secret."""
        rows = [self.cells[t][: len(INPUTS)], self.cells[t][len(INPUTS) :]]
        return [[one / sum(row) for one in row] for row in rows]

    def before(self, t: int, node: int, told: Known | None) -> Known:
        if told is None:
            return self.cells[t], []
        return carried(told[0], self.secrets[t - 1], self.stays[t - 1], self.inputs(t)), []

    def prior(self, t: int, some: list[int], is_new: bool) -> list[Fraction]:
        """How common secrets are among people with these inputs; of all, among those in both versions."""
        a = len(INPUTS)
        if len(some) == a and not is_new:
            return self.both[t - 1]
        sums = [sum(self.cells[t][s * a + x] for x in some) for s in range(2)]
        return [one / sum(sums) for one in sums]


def exactly(shares: FloatArray) -> list[Fraction]:
    found = [Fraction(float(one)) for one in shares.ravel()]
    return [one / sum(found) for one in found]


def possible(shares: FloatArray, sample: Sample) -> bool:
    by_secret = shares / shares.sum(axis=1, keepdims=True)
    pairs = list(zip(by_secret.ravel(), (one for row in sample.inputs for one in row), strict=True))
    for some, limits in zip(known(), sample.priors, strict=True):
        of_some = shares[:, some].sum(axis=1)
        pairs += zip(of_some / of_some.sum(), limits, strict=True)
    return all(low <= one <= high for one, (low, high) in pairs)


def released(bound: str, versions: int) -> tuple[funnel.History, list[Sample]]:
    tables = panel(1, versions)
    book = book_of(bound, tables, inputs=["size", "town"])
    assert all(step.joint.inputs.symbols == tuple(INPUTS) for step in book.steps)
    return book, [Sample(t + 1, now, tables[t - 1] if t else None) for t, now in enumerate(tables)]


def told_to(channel: IntArray, distribution: list[Fraction]) -> Iterator[tuple[list[int], list[int]]]:
    """Of every output what may be known, and the row for those inputs alone, where that tells something."""
    for row, some in product(telling(channel), known()):
        given = [weight if x in some else 0 for x, weight in enumerate(row)]
        # Who knows what all rows are the same for learns nothing.
        is_telling = len({row[x] for x in some}) > 1
        if is_telling and any(u * given[cell % len(INPUTS)] for cell, u in enumerate(distribution)):
            yield some, given


def beyond(book: funnel.History, samples: list[Sample], populations: int) -> tuple[int, int]:
    """Of outputs of histories, for what may be known: how many tell something later on, and how many are beyond."""
    allowed, drawn, said, wrong = allowed_by(book.guarantee), np.random.default_rng(1), 0, 0
    for _ in range(populations):
        population = Population(samples, drawn)
        pairs = zip(book.steps, book.past.chapters, strict=True)
        for t, node, channel, distribution, _ in followed(pairs, population.before):
            for some, given in told_to(channel, distribution):
                said += t > 0
                wrong += not within(lifts(population.prior(t, some, not node), distribution, given), allowed)
    return said, wrong


@pytest.mark.parametrize("bound", ["rsrlip:0.8,0.05", "rattribute:0.8,0.05"])
def test_no_observer_of_columns_is_beyond_the_bound_in_any_population(bound: str) -> None:
    book, samples = released(bound, 3)
    assert all(step.level.value <= book.guarantee.budget for step in book.steps)
    assert all(step.utility > 0.2 * step.entropy for step in book.steps)
    assert {one.observer for one in book.steps[-1].bounded_for} >= {"transitions", "transitions, knowing size"}
    said, wrong = beyond(book, samples, 6)
    assert said > 100
    assert not wrong


@pytest.mark.parametrize(
    "mutant", ["", "nobody knows columns", "a column is forgotten", "known are counted", "what others get counts"]
)
def test_only_a_maker_with_a_wrong_line_is_beyond_the_bound(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if mutant == "nobody knows columns":
        real = DistributionSet.of

        def without(past: Any, observed: Any, allowed: Any) -> DistributionSet | None:
            return real(past, observed, replace(allowed, for_known=False))

        monkeypatch.setattr(DistributionSet, "of", without)
        # Nor do the observers of the counted changes.
        monkeypatch.setattr("funnel.history.history_status._known", lambda guarantee, joint: [((), None)])
    elif mutant == "a column is forgotten":
        real_known = DistributionSet._known_in
        monkeypatch.setattr(DistributionSet, "_known_in", lambda self, joint: real_known(self, joint)[:2])
    elif mutant == "known are counted":
        # As if there were a thousand times as many people.
        real_parts = DistributionSet._parts

        def counted_parts(self: DistributionSet, joint: Any, number: int) -> Any:
            return real_parts(self, replace(joint, counts=joint.counts * 1000), number)

        monkeypatch.setattr(DistributionSet, "_parts", counted_parts)
    elif mutant == "what others get counts":
        real_told = worst_tables.worst_after
        monkeypatch.setattr(
            worst_tables,
            "worst_after",
            lambda step, reach, rows, told, allowed: real_told(step, reach, 0 * rows + rows.max(), told, allowed),
        )
    book, samples = released("rsrlip:0.5,0.05", 2)
    assert bool(beyond(book, samples, 12)[1]) is bool(mutant)
