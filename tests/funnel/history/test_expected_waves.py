"""Rows of units by published tables: within the bound for an observer of these, and a function of nothing else."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel.frequencies.unit_tables import NoisyRows
from funnel.history.changes import Changes
from funnel.history.expected import LEAST, Expected, attending, expected_people
from funnel.history.expected_waves import ExpectedUnits
from funnel.history.following import VersionTerms
from funnel.history.past import Past
from funnel.history.unit_rows import UnitRows
from funnel.history.waves import UnitVersion, Waves, follow_waves
from funnel.joint import IntArray
from funnel.protocol import DENOMINATOR
from funnel.solver.optimum import optimal
from tests.funnel.history.test_waves import allowed
from tests.funnel.history.unit_brute import by_secret, drawn, moved

C, A = 2, 3
LAW = funnel.Joint.from_counts([[30, 14, 11], [9, 20, 16]])
TABLES = NoisyRows(
    0.25, np.array([[25, 9, 8], [7, -2, 11]]), np.array([[6, 7, 0], [3, 12, 5]]), np.array([80, 70, -3, 67])
)
BOUNDS = (funnel.LIP(0.5), funnel.LIP(1.2), funnel.LDP(1.0))


def expected_units(distribution: funnel.Joint = LAW, tables: NoisyRows = TABLES) -> ExpectedUnits:
    who = attending(Past(), Expected.nobody(), {}, float(distribution.n))
    return ExpectedUnits(
        who, expected_people(Past(), who, distribution, {}), tables.changes(distribution), tables.waves
    )


def units(seed: int, number: int = 25) -> tuple[UnitRows, IntArray]:
    """Units with one to six rows, of which tables expect four."""
    random = np.random.default_rng(seed)
    sizes = 1 + random.integers(6, size=number)
    of = np.repeat(np.arange(number), sizes)
    cells = random.integers(C, size=number)[of] * A + random.integers(A, size=len(of))
    return UnitRows.ordered(of, random.random(len(of))), cells


def followed(guarantee: funnel.Guarantee, rows: UnitRows, cells: IntArray, seed: int, gone: int = 0) -> Waves:
    random = np.random.default_rng(seed)

    def draw(step: Any, wave: IntArray, had: IntArray) -> IntArray:
        # A sampler has no channel for nobody.
        assert len(wave)
        return drawn(random, step, cells[wave] % A, had)

    joint = funnel.Joint.from_counts(np.bincount(cells, minlength=C * A).reshape(C, A))
    nodes = np.where(np.arange(rows.count) < gone, -1, 0)
    target = optimal(LAW, guarantee).protocol
    asked = UnitVersion(Past(), rows, cells, joint, nodes, VersionTerms(guarantee, "v", target))
    return follow_waves(asked, expected_units(), draw)


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(BOUNDS))
def test_every_row_that_a_unit_could_get_is_within_the_bound_under_the_published_distribution(
    seed: int, guarantee: funnel.Guarantee
) -> None:
    """By fractions, history by history, of predicted histories and of all others that somebody has."""
    waves = followed(guarantee, *units(seed), seed, gone=2)
    distribution = {(s, x): Fraction(int(n)) for (s, x), n in np.ndenumerate(LAW.counts)}
    kernel = rows_of(TABLES.changes(LAW))
    prior = by_secret(distribution)
    distributions = {0: distribution}
    for step, chapter in zip(waves.step.waves, waves.past.chapters, strict=True):
        for node in step.followed.tolist():
            before = distributions[node]
            if chapter.row > 1:
                before = moved(before, kernel)
            weights = step.library[step.channels_of(node)]
            for y, row in enumerate(weights.tolist()):
                after = {(s, x): share * row[x] for (s, x), share in before.items() if share * row[x]}
                if after:
                    told = by_secret(after)
                    assert allowed(guarantee, {s: told.get(s, Fraction(0)) / share for s, share in prior.items()})
                for place in np.flatnonzero((chapter.parents == node) & (chapter.outputs == y)).tolist():
                    distributions[chapter.first + place] = after
    assert guarantee.holds(LAW, waves.step.channel)
    assert waves.fitted is not None
    assert waves.fitted.predicted.level.value <= guarantee.budget  # type: ignore[attr-defined]
    assert (waves.outputs >= 0).sum() == (waves.before >= 0).sum()


def test_what_is_published_does_not_depend_on_who_is_there() -> None:
    """Other units, with other rows and other answers: the same channels, expected people and levels."""
    one, other = (followed(funnel.LIP(0.8), *units(seed, 20 + 8 * seed), seed) for seed in (1, 2))
    assert one.fitted is not None
    assert other.fitted is not None
    assert one.expected is not None
    assert other.expected is not None
    mine, theirs = one.fitted.predicted, other.fitted.predicted
    assert mine.channel.digest == theirs.channel.digest == one.step.channel.digest
    assert (mine.level, mine.histories, mine.moved, mine.utility) == (
        theirs.level,
        theirs.histories,
        theirs.moved,
        theirs.utility,
    )
    assert one.expected.people.tolist() == other.expected.people.tolist()
    known = [[waves.past.history(node) for node in waves.expected.nodes.tolist()] for waves in (one, other)]
    assert known[0] == known[1]
    for mine, theirs in zip(one.fitted.predicted.waves, other.fitted.predicted.waves, strict=True):
        histories = [[step.past.history(node) for node in step.followed.tolist()] for step in (mine, theirs)]
        assert histories[0] == histories[1]
        assert (mine.library[mine.drawn_from] == theirs.library[theirs.drawn_from]).all()


def test_units_are_expected_as_often_as_there_are_rows() -> None:
    waves = followed(funnel.LIP(0.8), *units(3), 3)
    expected = waves.expected
    assert expected is not None
    # One history after its last row for each unit, predicted or not.
    assert float(expected.people.sum() + expected.lost.sum()) == pytest.approx(LAW.n)
    assert len(expected.lost) == len(waves.past)
    # Four waves by the tables, six by the units.
    assert waves.fitted is not None
    assert (len(waves.fitted.predicted.waves), len(waves.step.waves)) == (4, 6)
    beyond = waves.step.waves[-1]
    assert (beyond.library == beyond.library[:, :, :1]).all()


@pytest.mark.parametrize("gone", [0, 25])
def test_nobody_need_be_in_a_wave_that_is_expected(gone: int) -> None:
    """Tables expect four waves, units have one row each, and perhaps all of them are forgotten."""
    number = np.arange(25)
    waves = followed(funnel.PML(1.0), UnitRows(number, np.ones_like(number)), number % (C * A), 5, gone)
    assert waves.fitted is not None
    assert len(waves.fitted.predicted.waves) == len(waves.step.waves) == 4
    assert ((waves.outputs < 0) == (number < gone)).all()
    assert funnel.PML(1.0).holds(LAW, waves.step.channel)


def test_the_effective_channel_is_the_mean_over_waves_by_how_many_units_are_in_each() -> None:
    waves = followed(funnel.LIP(0.8), *units(4), 4)
    assert waves.fitted is not None
    steps = waves.fitted.predicted.waves
    total = sum(TABLES.waves)
    p = LAW.p_input
    mean = np.zeros((len(waves.step.channel.outputs), A))
    unknown = [0.0]
    for step in steps[1:]:
        predicted = sum(
            people for node, people in zip(*predicted_before(waves, step), strict=True) if node in step.followed
        )
        everybody = LAW.n * TABLES.waves[len(unknown)] / TABLES.waves[0]
        unknown.append(1 - predicted / everybody)
    for step, units_in, share in zip(steps, TABLES.waves, unknown, strict=True):
        alike = (step.channel.matrix @ p)[:, None]
        mean += units_in / total * ((1 - share) * step.channel.matrix + share * alike)
    assert waves.step.channel.matrix == pytest.approx(mean, abs=1e-7)


def predicted_before(waves: Waves, step: Any) -> tuple[list[int], list[float]]:
    """Histories before a wave and how many units are expected to have each, worked out from the waves before."""
    people = {0: float(LAW.n)}
    kernel = TABLES.changes(LAW)
    table = np.zeros((C * A, C * A))
    table[kernel.before, kernel.after] = kernel.records
    table /= table.sum(axis=1, keepdims=True)
    distributions = {0: LAW.p.reshape(-1)}
    assert waves.fitted is not None
    for number, (one, chapter) in enumerate(zip(waves.fitted.predicted.waves, waves.past.chapters, strict=False)):
        if one is step:
            break
        share = TABLES.waves[number + 1] / TABLES.waves[number]
        following, after = {}, {}
        for node in one.followed.tolist():
            distribution = distributions[node] if number == 0 else distributions[node] @ table
            row = one.library[one.channels_of(node)].astype(float) / DENOMINATOR
            for place in np.flatnonzero(chapter.parents == node).tolist():
                told = distribution * np.tile(row[chapter.outputs[place]], C)
                if people[node] * told.sum() >= LEAST and share * people[node] * told.sum() >= LEAST:
                    following[chapter.first + place] = share * people[node] * told.sum()
                    after[chapter.first + place] = told / told.sum()
        people, distributions = following, after
    return list(people), list(people.values())


def rows_of(changes: Changes) -> dict[tuple[int, int], dict[tuple[int, int], Fraction]]:
    found: dict[tuple[int, int], dict[tuple[int, int], Fraction]] = {}
    for before, after, records in zip(changes.before, changes.after, changes.records, strict=True):
        found.setdefault(divmod(int(before), A), {})[divmod(int(after), A)] = Fraction(int(records))
    return {cell: {to: share / sum(row.values()) for to, share in row.items()} for cell, row in found.items()}
