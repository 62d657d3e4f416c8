"""Waves: all rows of a unit under one bound, against a reader who adds up every way that rows could have been."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel.errors import SpecError
from funnel.history import following
from funnel.history.changes import Changes
from funnel.history.following import VersionTerms
from funnel.history.past import Past
from funnel.history.unit_rows import UnitRows, row_changes
from funnel.history.waves import CountedUnits, UnitVersion, Waves, follow_waves
from funnel.joint import IntArray
from funnel.sampling.codes import input_codes
from tests.funnel.history.unit_brute import Cell, UnitReader, Version, by_secret, drawn, moved

SECRET = bytes(range(32))
ROOM = 1 + Fraction(1, 10**9)


@st.composite
def versions(draw: st.DrawFn) -> list[Version]:
    """One or two versions of units with one to three rows; the secret stays within a version."""
    made = []
    for _ in range(draw(st.integers(1, 2))):
        random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        units = [u for u in range(draw(st.integers(6, 30))) if random.random() < 0.8] or [0]
        version: Version = {}
        for unit in units:
            secret, usual = int(random.integers(2)), int(random.integers(3))
            sizes = 1 + int(random.integers(1 + 2 * secret)) if random.random() < 0.7 else 1
            version[unit] = [
                (secret, (usual if random.random() < 0.6 else int(random.integers(3)))) for _ in range(sizes)
            ]
        made.append(version)
    return made


class Book:
    """Versions followed one after the other, with draws from a generator."""

    def __init__(self, guarantee: funnel.Guarantee, read_alone: bool, seed: int, invariant: bool = False) -> None:
        self.guarantee, self.read_alone, self.invariant = guarantee, read_alone, invariant
        self.random = np.random.default_rng(seed)
        self.past = Past()
        self.nodes: dict[int, int] = {}
        self.done: list[tuple[Version, Waves]] = []

    def extend(self, version: Version) -> Waves:
        t = len(self.done)
        named = sorted(version)
        units = np.array([place for place, u in enumerate(named) for _ in version[u]])
        places = np.array([row + 1 for u in named for row in range(len(version[u]))])
        flat = [cell for u in named for cell in version[u]]
        secrets, inputs = sorted({s for s, _ in flat}), sorted({x for _, x in flat})
        cells = np.array([secrets.index(s) * len(inputs) + inputs.index(x) for s, x in flat])
        joint = funnel.Joint.from_counts(
            np.bincount(cells, minlength=len(secrets) * len(inputs)).reshape(len(secrets), -1),
            secret=list(map(str, secrets)),
            inputs=self.named(inputs),
        )
        self.alphabets = (*getattr(self, "alphabets", ()), (secrets, inputs))
        nodes = np.array([self.nodes.get(u, 0) for u in named])
        target = funnel.fit("invariant", joint, self.guarantee) if self.invariant else None
        terms = VersionTerms(self.guarantee, f"v{t}", target, right=self.invariant)
        waves = follow_waves(
            UnitVersion(self.past, UnitRows(units, places), cells, joint, nodes, terms),
            CountedUnits(self._changes(version), self.read_alone),
            lambda step, rows, had: drawn(self.random, step, cells[rows] % len(inputs), had),
        )
        self.done.append((version, waves))
        self.past = waves.past
        last = UnitRows(units, places).last
        self.nodes.update(zip(named, waves.after[last].tolist(), strict=True))
        return waves

    def named(self, inputs: list[int]) -> list[str] | funnel.Alphabet:
        """How inputs are published."""
        return list(map(str, inputs))

    def got(self, unit: int, t: int) -> tuple[int, ...]:
        """The outputs of the rows of a unit in a version."""
        version, waves = self.done[t]
        start = sum(len(rows) for other, rows in version.items() if other < unit)
        return tuple(waves.outputs[start : start + len(version[unit])].tolist())

    def _changes(self, version: Version) -> dict[int, Changes]:
        found = {}
        for ordinal, chapter in enumerate(self.past.chapters):
            v = int(chapter.version[1:].partition("#")[0])
            before = self.done[v][0]
            both = [u for u in version if u in before]
            secrets, inputs = self.alphabets[v]
            now_secrets, now_inputs = (
                sorted({r[0] for u in version for r in version[u]}),
                sorted({r[1] for u in version for r in version[u]}),
            )
            cells = [secrets.index(before[u][-1][0]) * len(inputs) + inputs.index(before[u][-1][1]) for u in both]
            now = [
                now_secrets.index(version[u][0][0]) * len(now_inputs) + now_inputs.index(version[u][0][1]) for u in both
            ]
            found[ordinal] = Changes.counted(np.array(cells, dtype=int), np.array(now, dtype=int))
        return found


@settings(max_examples=25, deadline=None)
@given(
    versions(),
    st.sampled_from([funnel.LIP(0.5), funnel.LIP(1.2), funnel.LDP(1.0)]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_all_rows_of_a_unit_are_within_the_bound_for_whoever_adds_up_all_ways(
    made: list[Version], guarantee: funnel.Guarantee, read_alone: bool, invariant: bool, seed: int
) -> None:
    reader, book = UnitReader(made), Book(guarantee, read_alone or invariant, seed, invariant)
    # So that rows which few units have tell something too.
    with patch.object(following, "FEWEST_ROWS", 0):
        for version in made:
            book.extend(version)
    for _, waves in book.done if invariant else ():
        assert max(records_off(waves)) <= 1
    for t, (version, waves) in enumerate(book.done):
        worst, people = 0.0, 0
        for unit in version:
            told = told_of(reader, book, unit, t)
            for found in told:
                beyond = [lift for lift in found.lifts if not allowed(guarantee, lift)]
                if found.moved:
                    continue
                assert not beyond
                worst = max(worst, *(level(guarantee, lift) for lift in found.lifts))
            people += any(found.moved for found in told[:1])
        assert people == waves.step.moved
        if worst:
            assert waves.step.level.value >= worst - 1e-9
        assert waves.step.level.value <= guarantee.budget  # type: ignore[attr-defined]
        if read_alone:
            assert guarantee.holds(waves.step.joint, waves.step.channel)


def records_off(waves: Waves) -> list[float]:
    """By how many records each value is published too often or too rarely, given the histories before all rows."""
    step, observed = waves.step, waves.step.observed
    channels = step.channels_of(observed.nodes)
    rows = step.library[channels, :, observed.inputs] / 2.0**63
    there = np.bincount(observed.inputs, weights=observed.records, minlength=len(step.joint.inputs))
    return [float(one) for one in np.abs((rows * observed.records[:, None]).sum(axis=0) - there)]


class Found:
    """What a reader believes of a unit after a row: lifts of every output that it could have got, by secret."""

    def __init__(self, lifts: list[dict[int, Fraction]], moved: bool) -> None:
        self.lifts, self.moved = lifts, moved


def told_of(reader: UnitReader, book: Book, unit: int, t: int) -> list[Found]:
    """For every row of a unit in a version."""
    distribution: dict[Cell, Fraction] = {}
    history: tuple[tuple[str, int], ...] = ()
    before: int | None = None
    found = []
    for v in range(t + 1):
        version, waves = book.done[v]
        if unit not in version:
            continue
        prior = reader.secrets(before, v)
        distribution = (
            reader.first(v)
            if before is None
            else moved(distribution, {cell: reader.next_version(before, v, cell) for cell in distribution})
        )
        start = sorted(version).index(unit)
        at = sum(len(version[u]) for u in sorted(version)[:start])
        outside = False
        for row in range(len(version[unit])):
            if row:
                distribution = moved(distribution, {cell: reader.next_row(v, cell) for cell in distribution})
            else:
                outside = not allowed(
                    book.guarantee,
                    {s: share / prior[s] for s, share in by_secret(distribution).items() if s in prior}
                    | {s: Fraction(0) for s in prior if s not in by_secret(distribution)},
                )
            weights = waves.step.rows_for(history)
            inputs = book.alphabets[v][1]
            lifts = []
            for y in range(weights.shape[0]):
                after = {(s, x): share * int(weights[y, inputs.index(x)]) for (s, x), share in distribution.items()}
                if any(after.values()):
                    after_secret = by_secret(after)
                    lifts.append({s: after_secret.get(s, Fraction(0)) / prior[s] for s in prior})
            if v == t:
                found.append(Found(lifts, outside))
            y = int(waves.outputs[at + row])
            distribution = {(s, x): share * int(weights[y, inputs.index(x)]) for (s, x), share in distribution.items()}
            distribution = {cell: share for cell, share in distribution.items() if share}
            history = (*history, (f"v{v}" if row == 0 else f"v{v}#{row + 1}", y))
        before = v
    return found


def level(guarantee: funnel.Guarantee, lifts: dict[int, Fraction]) -> float:
    logs = [math.log(lift) if lift else -math.inf for lift in lifts.values()]
    return max(logs) - min(logs) if isinstance(guarantee, funnel.LDP) else max(*logs, -min(logs))


def allowed(guarantee: funnel.Guarantee, lifts: dict[int, Fraction]) -> bool:
    return level(guarantee, lifts) <= guarantee.budget * (1 + 1e-12)  # type: ignore[attr-defined]


def encounters(units: int = 400, seed: int = 0) -> pa.Table:
    """Rows of units: those with the rarer secret have more of them, and values that come again."""
    random = np.random.default_rng(seed)
    secrets = (random.random(units) < 0.3).astype(int)
    sizes = 1 + random.integers(0, 2 + 3 * secrets)
    unit = np.repeat(np.arange(units), sizes)
    usual = np.where(random.random(units) < 0.4, 2 * secrets, random.integers(0, 4, units))
    values = np.where(random.random(len(unit)) < 0.7, usual[unit], random.integers(0, 4, len(unit)))
    return pa.table(
        {
            "row": np.arange(len(unit)),
            "patient": unit,
            "ill": np.array(["no", "yes"])[secrets[unit]],
            "ward": np.array(list("abcd"))[values],
        }
    )


def extended(book: funnel.History, table: pa.Table, version: str, **settings: Any) -> funnel.history.step.Step:
    settings = {"key": ["row"], "secret_bytes": SECRET, **settings}
    return book.extend(table, unit=["patient"], secret=["ill"], inputs=["ward"], version=version, **settings)


def test_a_table_with_several_rows_a_unit_keeps_the_bound_in_the_library() -> None:
    table = encounters()
    book = funnel.History(funnel.LIP(0.5), read_alone=True)
    first, second = extended(book, table, "1"), extended(book, table, "2")
    for step in (first, second):
        assert step.released is not None
        assert step.released.num_rows == table.num_rows
        assert step.level.value <= 0.5
        assert step.moved == step.outside == 0
        assert step.guarantee.holds(step.joint, step.channel)
        assert step.utility > 0.2 * step.entropy
    assert [chapter.version for chapter in book.past.chapters][:3] == ["1", "1#2", "1#3"]
    # The reader's distribution, in whole numbers, of the second row of a unit.
    output = next(y for y in range(len(first.channel.outputs)) if book.past.node([("1", y)]) is not None)
    distribution = book.distribution([("1", output)], "1#2")
    assert distribution.sum() == pytest.approx(1)
    posterior = distribution.sum(axis=1)
    prior = book.past.chapters[0].joint.p_secret
    assert np.abs(np.log(posterior / prior)).max() <= 0.5


def test_rows_of_a_unit_taken_for_different_people_leave_the_bound() -> None:
    version = by_unit(encounters())
    book = Book(funnel.LIP(0.5), read_alone=True, seed=1)
    step = book.extend(version).step
    apart = funnel.optimal(step.joint, funnel.LIP(0.5)).protocol
    reader = UnitReader([version])
    assert beyond(reader, lambda history: apart.weights) > 40
    assert beyond(reader, step.rows_for) == 0


def by_unit(table: pa.Table) -> Version:
    rows: Version = {}
    for unit, ill, ward in zip(*(table.column(name).to_pylist() for name in ("patient", "ill", "ward")), strict=True):
        rows.setdefault(unit, []).append((int(ill == "yes"), "abcd".index(ward)))
    return rows


def beyond(reader: UnitReader, rows_for: Any) -> int:
    """Units of whom a reader of all rows, drawn anew, believes something outside LIP 0.5 in the end."""
    found, random = 0, np.random.default_rng(3)
    prior = reader.secrets(None, 0)
    following = {cell: reader.next_row(0, cell) for rows in reader.versions[0].values() for cell in rows}
    for rows in reader.versions[0].values():
        distribution, history = reader.first(0), ()
        for number, (_, x) in enumerate(rows):
            if number:
                distribution = moved(distribution, following)
            weights = rows_for(history)
            chances = weights[:, x].astype(float)
            y = int(random.choice(len(chances), p=chances / chances.sum()))
            distribution = {
                (s, x): share * int(weights[y, x]) for (s, x), share in distribution.items() if weights[y, x]
            }
            history = (*history, ("v0" if number == 0 else f"v0#{number + 1}", y))
        found += any(abs(math.log(share / prior[s])) > 0.5 for s, share in by_secret(distribution).items())
    return found


def test_a_run_that_is_repeated_draws_the_same_and_another_order_of_the_source_too() -> None:
    table = encounters(150)
    shuffled = table.take(np.random.default_rng(1).permutation(table.num_rows))
    released = []
    for one in (table, table, shuffled):
        step = extended(funnel.History(funnel.LIP(1.0)), one, "1")
        assert step.released is not None
        answers = zip(one.column("row").to_pylist(), *(c.to_pylist() for c in step.released.columns), strict=True)
        released.append(sorted(answers))
    assert released[0] == released[1] == released[2]


def test_units_with_too_many_rows_are_refused() -> None:
    table = pa.table(
        {"row": range(102), "patient": [1] * 101 + [2], "ill": ["no"] * 101 + ["yes"], "ward": ["a"] * 102}
    )
    with pytest.raises(SpecError, match=r"1 of 2 units \('patient'\) have more than 100 rows, the largest 101"):
        extended(funnel.History(funnel.LIP(1.0)), table, "1")


def test_one_row_a_unit_is_what_it_is_without_units() -> None:
    table = encounters(60).to_pandas().drop_duplicates("patient")
    alone = funnel.History(funnel.LIP(0.5)).extend(
        table, key=["patient"], secret=["ill"], inputs=["ward"], version="1", secret_bytes=SECRET
    )
    other = extended(funnel.History(funnel.LIP(0.5)), pa.Table.from_pandas(table), "1")
    assert (other.channel.weights == alone.channel.weights).all()
    assert other.level.value == pytest.approx(alone.level.value, rel=1e-12)


def test_successive_rows_are_counted_together_and_what_none_follows_is_a_first_row() -> None:
    rows = UnitRows.ordered(np.array([0, 0, 0, 1, 1, 2]), np.array([1, 2, 3, 9, 8, 5]))
    assert rows.places.tolist() == [1, 2, 3, 2, 1, 1]
    assert rows.at(1).tolist() == [0, 4, 5]
    assert rows.last.tolist() == [2, 3, 5]
    cells = np.array([0, 1, 1, 4, 3, 5])
    first = funnel.Joint.from_counts([[1, 0, 0], [1, 0, 1]])
    changes = row_changes(rows, cells, first)
    pairs = dict(zip(zip(changes.before.tolist(), changes.after.tolist(), strict=True), changes.records, strict=True))
    # From the cells 4 and 5 no row follows: first rows with that secret are in the cells 3 and 5.
    assert pairs == {(0, 1): 1, (1, 1): 1, (3, 4): 1, (4, 3): 1, (4, 5): 1, (5, 3): 1, (5, 5): 1}
    assert all(before // 3 == after // 3 for before, after in pairs)


def as_they_are(table: pa.Table, seed: int, bound: float = 0.4) -> Waves:
    """All rows of units with values as they are, drawn from a generator."""
    random = np.random.default_rng(seed)
    joint = funnel.Joint.from_table(table, secret=["ill"], inputs=["ward"])
    xs = input_codes(table, joint.inputs)
    cells = input_codes(table, joint.secret) * len(joint.inputs) + xs
    rows = UnitRows.ordered(table["patient"].to_numpy(), random.random(table.num_rows))
    guarantee = funnel.LIP(bound)
    terms = VersionTerms(guarantee, "v", funnel.fit("invariant", joint, guarantee), right=True)

    def draw(step: Any, wave: IntArray, before: IntArray) -> IntArray:
        channels = step.channels_of(before)
        shares = step.library[channels, :, xs[wave]].astype(float).cumsum(axis=1)
        return np.asarray((random.random(len(wave))[:, None] * shares[:, -1:] > shares).sum(axis=1))

    asked = UnitVersion(Past(), rows, cells, joint, np.zeros(rows.count, dtype=np.int64), terms)
    return follow_waves(asked, CountedUnits({}, read_alone=True), draw)


def test_values_as_they_are_keep_the_bound_and_are_right_whatever_was_drawn() -> None:
    waves = as_they_are(encounters(), seed=1)
    step = waves.step
    assert step.channel.is_invariant
    assert step.level.value <= 0.4
    assert funnel.LIP(0.4).holds(step.joint, step.channel)
    assert max(records_off(waves)) <= 1
    # By the rows that there are, and not by each of their rows: these tables nobody publishes.
    counts = step.joint.counts.sum(axis=0)
    assert np.abs(step.channel.matrix @ counts - counts).max() <= 1
    assert float(step.channel.matrix.diagonal() @ counts) > 0.6 * step.joint.n


def test_rows_that_few_units_have_tell_nothing() -> None:
    waves = as_they_are(encounters(), seed=1)
    for number, wave in enumerate(waves.step.waves, 1):
        used = wave.library[wave.drawn_from]
        telling = (used != used[:, :, :1]).any()
        assert telling == (number == 1 or wave.joint.n >= following.FEWEST_ROWS)
    assert not telling


def test_counts_of_many_draws_are_right_and_vary_as_those_of_different_people() -> None:
    table, draws = encounters(units=150, seed=4), 60
    found = [as_they_are(table, seed) for seed in range(draws)]
    counts = np.array([np.bincount(waves.outputs, minlength=4) for waves in found])
    there = found[0].step.joint.counts.sum(axis=0)
    # As if all rows were those of different people, which is never too little, to within what being off adds.
    at_most = np.array([(one.step.channel.matrix * (1 - one.step.channel.matrix)) @ there for one in found]).mean(
        axis=0
    )
    # Six standard errors are passed with a probability below 2e-9.
    assert (np.abs(counts.mean(axis=0) - there) < 1 + 6 * np.sqrt(at_most / draws)).all()
    # Sums of squares of 60 deviations pass 2.6 times their mean with a probability below 1e-9.
    assert (((counts - there) ** 2).mean(axis=0) < 2.6 * (np.sqrt(at_most) + 1) ** 2).all()
    # Two rows of one unit are alike less often than in truth: such tables are not right on average.
    units = table["patient"].to_numpy()
    truth = pairs_alike(input_codes(table, found[0].step.joint.inputs), units)
    assert np.mean([pairs_alike(one.outputs, units) for one in found]) < 0.9 * truth


def pairs_alike(values: IntArray, units: IntArray) -> int:
    """How many pairs of rows of one unit have the same value."""
    _, same = np.unique(units * 4 + values, return_counts=True)
    return int((same * (same - 1) // 2).sum())
