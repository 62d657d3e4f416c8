"""Rows of units under robust guarantees: every history of a unit, added up in populations that samples leave open."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import funnel
from funnel.history import open_shares, possible_distributions, waves
from funnel.history.allowed import allowed_by
from funnel.history.changes import MoveLimits
from funnel.history.possible_distributions import DistributionSet
from funnel.history.unit_rows import UnitRows, row_changes, second_rows
from funnel.joint import FloatArray, Joint
from tests.funnel.history.populations import (
    Known,
    book_of,
    carried,
    clopper_pearson,
    corner,
    end,
    followed,
    noted_orders,
    telling,
)
from tests.funnel.history.test_possible import alphabets, lifts, within

ALPHA = 0.05
BOUNDS = ("rlip:0.7,0.05", "ralip:1.0,0.5,0.05", "rldp:1.2,0.05", "rpml:0.6,0.05")
Cell = tuple[int, int]
Unit = list[Cell]


def visits(seed: int, units: int, versions: int, more: float = 0.3) -> list[dict[int, Unit]]:
    """Rows (secret, input) of units that have one to three of them; some units leave, and others come."""
    drawn = np.random.default_rng(seed)
    ill = (drawn.random(units) < 0.4).astype(int)
    usual = np.where(drawn.random(units) < 0.4, ill, drawn.integers(0, 3, units))
    found = []
    for version in range(versions):
        there = drawn.random(units) < 0.8 if version else np.ones(units, dtype=bool)
        sizes = 1 + drawn.binomial(2, more, units)
        found.append(
            {
                unit: [
                    (int(ill[unit]), int(usual[unit] if drawn.random() < 0.7 else drawn.integers(3)))
                    for _ in range(sizes[unit])
                ]
                for unit in np.flatnonzero(there).tolist()
            }
        )
        ill = ill ^ (drawn.random(units) < 0.1)
    return found


def table(version: dict[int, Unit]) -> pa.Table:
    rows = [(unit, s, x) for unit, of_unit in version.items() for s, x in of_unit]
    units, secrets, inputs = map(list, zip(*rows, strict=True))
    named = {"visit": range(len(rows)), "id": units, "ill": [str(s) for s in secrets], "size": [str(x) for x in inputs]}
    return pa.table({name: list(values) for name, values in named.items()})


def books(bound: str, versions: list[dict[int, Unit]]) -> funnel.History:
    return book_of(bound, map(table, versions), key=["visit"], unit=["id"])


class Sample:
    """What the rows of one version, in the order in which they were drawn, leave open: by the theorem, counted here."""

    def __init__(self, number: int, rows: list[Unit], came: list[tuple[Cell, Cell]], c: int, a: int) -> None:
        half = ALPHA / (number * (number + 1)) / 2
        of_counts, of_changes = half / (2 * (c * a + c)), half / number
        first = np.zeros((c, a), dtype=int)
        for unit in rows:
            first[unit[0]] += 1
        by_secret = first.sum(axis=1)
        self.inputs = [[clopper_pearson(n, by_secret[s], of_counts) for n in row] for s, row in enumerate(first)]
        self.prior = [clopper_pearson(n, first.sum(), of_counts) for n in by_secret]
        second = [(unit[0][0], unit[0] == unit[1]) for unit in rows if len(unit) > 1]
        self.rows = [
            clopper_pearson(second.count((s, True)), sum(one == s for one, _ in second), of_changes / (2 * c))
            for s in range(c)
        ]
        tail = of_changes / (2 * (c * c + 2 * c))
        of_secret = [[(before, after) for before, after in came if before[0] == s] for s in range(c)]
        self.secrets = [
            [clopper_pearson(sum(after[0] == t for _, after in some), len(some), tail) for t in range(c)]
            for some in of_secret
        ]
        self.stays = [
            clopper_pearson(sum(one[1] == other[1] for one, other in some), len(some), tail) for some in of_secret
        ]
        self.both = [clopper_pearson(sum(after[0] == s for _, after in came), len(came), tail) for s in range(c)]


class Population:
    """Shares at a corner of what samples leave open."""

    def __init__(self, samples: list[Sample], drawn: np.random.Generator) -> None:
        self.inputs = [[corner(row, drawn) for row in one.inputs] for one in samples]
        self.prior = [corner(one.prior, drawn) for one in samples]
        self.rows = [[end(one, drawn) for one in sample.rows] for sample in samples]
        self.secrets = [[corner(row, drawn) for row in one.secrets] for one in samples]
        self.stays = [[end(one, drawn) for one in sample.stays] for sample in samples]
        self.both = [corner(one.both, drawn) for one in samples]

    def before(self, t: int, row: int, told: Known | None) -> Known:
        """What is known before a row of version t, of new units or of those with a history."""
        if told is None:
            return [p * x for p, of in zip(self.prior[t], self.inputs[t], strict=True) for x in of], self.prior[t]
        if row == 1:
            return carried(told[0], self.secrets[t], self.stays[t], self.inputs[t]), self.both[t]
        c = len(self.rows[t])
        same = [[Fraction(s == now) for now in range(c)] for s in range(c)]
        return carried(told[0], same, self.rows[t], self.inputs[t]), told[1]


def samples_of(book: funnel.History, versions: list[dict[int, Unit]], orders: list[UnitRows]) -> list[Sample]:
    found, last = [], {}
    for t, (version, rows) in enumerate(zip(versions, orders, strict=True)):
        flat = [cell for unit in version.values() for cell in unit]
        ordered: dict[int, Unit] = {}
        for place in np.lexsort((rows.places, rows.units)).tolist():
            ordered.setdefault(int(rows.units[place]), []).append(flat[place])
        named = list(version)
        numbers = np.unique(rows.units, return_index=True)[1]
        of_rows = [unit for unit, of_unit in version.items() for _ in of_unit]
        names = {number: of_rows[int(place)] for number, place in enumerate(numbers)}
        assert sorted(names.values()) == sorted(named)
        came = [(last[names[u]], unit[0]) for u, unit in ordered.items() if names[u] in last]
        c, a = book.past.chapters[0].joint.counts.shape
        found.append(Sample(t + 1, list(ordered.values()), came, c, a))
        last |= {names[u]: unit[-1] for u, unit in ordered.items()}
    return found


def released(
    bound: str, seed: int, units: int, monkeypatch: pytest.MonkeyPatch, versions: int = 2, more: float = 0.3
) -> tuple[funnel.History, list[Sample]]:
    """Some versions, and what their samples leave open, in the order in which rows were put."""
    made = visits(seed, units, versions, more)
    with noted_orders(monkeypatch) as orders:
        book = books(bound, made)
    return book, samples_of(book, made, orders)


def beyond(book: funnel.History, samples: list[Sample], seed: int, populations: int) -> tuple[int, int]:
    """Of outputs of all histories that tell something: how many there are in later rows, and how many are beyond."""
    allowed, drawn, said, wrong = allowed_by(book.guarantee), np.random.default_rng(seed), 0, 0
    chapters = book.past.chapters
    waves_of = [(t, wave) for t, step in enumerate(book.steps) for wave in step.waves]
    pairs = list(zip((wave for _, wave in waves_of), chapters, strict=True))
    for _ in range(populations):
        population = Population(samples, drawn)

        def before(number: int, node: int, told: Known | None, population: Population = population) -> Known:
            return population.before(waves_of[number][0], chapters[number].row, told)

        for number, _, channel, distribution, prior in followed(pairs, before):
            for row in telling(channel):
                said += chapters[number].row > 1
                wrong += not within(lifts(prior, distribution, row), allowed)
    return said, wrong


@pytest.mark.parametrize("bound", BOUNDS)
def test_every_row_of_a_unit_is_within_the_bound_in_every_population(
    bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    book, samples = released(bound, 1, 6_000, monkeypatch)
    assert [len(step.waves) for step in book.steps] == [3, 3]
    assert all(step.level.value <= book.guarantee.budget and not step.outside for step in book.steps)
    assert all(step.utility > 0.3 * step.entropy for step in book.steps)
    said, wrong = beyond(book, samples, 1, 5)
    assert said > 50
    assert not wrong


# One line of the maker each, as it would be wrong; and none.
MUTANTS = {
    "": ("", open_shares, "shares_of_rows"),
    "second rows are no sample": ("rows", open_shares, "shares_of_rows"),
    "first rows are no sample": ("first", open_shares, "count_box"),
    "a row is like a new unit": ("new", possible_distributions, "shares_of_rows"),
    "a population is not asked for": ("nominal", DistributionSet, "of"),
}


@pytest.mark.parametrize("mutant", list(MUTANTS))
def test_only_a_maker_with_a_wrong_line_is_beyond_the_bound_in_some_population(
    mutant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    what, where, name = MUTANTS[mutant]
    real = getattr(where, name)

    def counted_rows(first: Joint, limits: MoveLimits, *asked: Any) -> open_shares.OpenShares:
        found = real(first, limits, *asked)
        stays = limits.stayed / (limits.stayed + limits.left)
        return open_shares.replace(found, stays=stays)

    def like_new(first: Joint, limits: MoveLimits, *asked: Any) -> open_shares.OpenShares:
        found = real(first, limits, *asked)
        return open_shares.replace(found, stays=np.zeros_like(found.stays))

    with monkeypatch.context() as patched:
        if what == "rows":
            patched.setattr(possible_distributions, name, counted_rows)
        elif what == "new":
            patched.setattr(possible_distributions, name, like_new)
        elif what == "first":
            # As if there were a hundred times as many units.
            patched.setattr(where, name, lambda joint: real(Joint(joint.counts * 100, joint.secret, joint.inputs)))
        elif what == "nominal":
            patched.setattr(DistributionSet, "of", classmethod(lambda cls, past, observed, allowed: None))
        # Few units have a second row, so that little is known of these.
        book, samples = released("rlip:0.4,0.05", 1, 20_000, patched, 1, 0.005)
    assert bool(beyond(book, samples, 1, 40)[1]) is bool(mutant)


def test_a_unit_counts_once_however_many_rows_it_has() -> None:
    # Pairs of rows of one unit are no independent ones: limits of all of them would miss the share that they are of.
    drawn, missed = np.random.default_rng(2), np.zeros(2, dtype=int)
    first = Joint(np.ones((1, 2), dtype=np.int64), *alphabets(1, 2))
    for _ in range(200):
        # Half of the units always have the same input, and the others never have it twice running.
        keeps = drawn.random(60) < 0.5
        cells = (drawn.integers(0, 2, (60, 1)) + np.arange(40) * ~keeps[:, None]) % 2
        rows = UnitRows(np.repeat(np.arange(60), 40), np.tile(np.arange(1, 41), 60))
        stayed, left = (int(one.sum()) for one in second_rows(rows, cells.ravel(), first))
        within_units = row_changes(rows, cells.ravel(), first)
        same = int(within_units.records[within_units.before == within_units.after].sum())
        for place, (number, trials) in enumerate(((stayed, stayed + left), (same, 60 * 39))):
            low, high = clopper_pearson(number, trials, 0.025)
            missed[place] += not low <= 0.5 <= high
    # Each of 200 misses with 1/20 at most: more than 35 with a probability below 1e-9.
    assert missed[0] <= 35
    assert missed[1] > 120


def test_second_rows_of_units_that_are_not_all_known() -> None:
    rows = UnitRows(np.array([3, 0, 3, 0, 3, 5]), np.array([2, 1, 1, 2, 3, 1]))
    first = Joint(np.ones((2, 2), dtype=np.int64), *alphabets(2, 2))
    stayed, left = second_rows(rows, np.array([2, 1, 3, 1, 2, 0]), first)
    assert stayed.tolist() == [[0, 1], [0, 0]]
    assert left.tolist() == [[0, 0], [0, 1]]


def test_limits_of_rows_are_those_of_clopper_and_pearson() -> None:
    first = Joint(np.array([[20, 20], [3, 7]]), *alphabets(2, 2))
    limits = MoveLimits.of_rows(np.array([[10, 5], [2, 0]]), np.array([[3, 2], [0, 1]]))
    found: FloatArray = open_shares.shares_of_rows(first, limits, 3, Fraction(1, 20)).stays
    for s, (stay, both) in enumerate(((15, 20), (2, 3))):
        assert found[:, s] == pytest.approx(clopper_pearson(stay, both, ALPHA / (2 * 3 * 4 * 3) / 4), abs=1e-9)


def test_rows_with_secrets_of_their_own_are_not_bounded_in_a_population() -> None:
    people = pa.table({"visit": [0, 1, 2], "id": [0, 0, 1], "ill": ["y", "n", "n"], "size": ["a", "b", "a"]})
    with pytest.raises(funnel.errors.SpecError, match=r"kept for one of a unit: choose lip:0\.5"):
        funnel.History(funnel.RLIP(0.5)).extend(
            people, key=["visit"], unit=["id"], secret=["ill"], inputs=["size"], version="v"
        )


def test_rows_without_limits_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waves._CountedRows, "_limits", lambda *_: None)
    with pytest.raises(funnel.errors.SpecError, match="count first and second rows"):
        books("rlip:0.5,0.05", visits(1, 50, 1))
