"""Departures: what people add to them, how much at most, and that estimates without them are off."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import funnel
from benchmarks.units_estimates import coarse_visits
from funnel import LIP
from funnel.estimation.departed_shares import DepartedShares
from funnel.frequencies.unit_tables import UnitCounts
from funnel.history import departures
from funnel.history.corrected import PARTS
from funnel.history.departures import declared_length, departures_of_people, departures_of_units, shortened
from funnel.history.expected import Expected, attending, expected_people
from funnel.history.expected_waves import ExpectedUnits
from funnel.history.following import VersionTerms
from funnel.history.past import Past
from funnel.history.step import Step
from funnel.history.unit_rows import UnitRows, counted_cells, second_rows
from funnel.history.waves import UnitVersion, Waves, follow_waves
from funnel.joint import IntArray
from funnel.sampling.codes import input_codes

WHOLE = 1 << 40


@pytest.fixture(scope="module")
def made() -> tuple[Waves, UnitRows, IntArray]:
    """Visits whose age stays and whose ward changes, decided by tables that are all but exact; and inputs by row."""
    random = np.random.default_rng(4)
    data = coarse_visits(700)
    joint = funnel.Joint.from_table(data, ["secret"], ["ward", "age"])
    a = len(joint.inputs)
    table = pa.Table.from_pandas(data, preserve_index=False)
    xs = input_codes(table, joint.inputs)
    cells = input_codes(table, joint.secret) * a + xs
    units = np.unique(data["unit"].to_numpy(), return_inverse=True)[1]
    rows = UnitRows.ordered(units, random.random(len(units)))
    distribution = counted_cells(cells[rows.at(1)], joint)
    sizes = np.bincount(np.bincount(units), minlength=12)[1:]
    tables = UnitCounts(distribution, *second_rows(rows, cells, joint), sizes).with_noise(1e6)
    who = attending(Past(), Expected.nobody(), {}, float(distribution.n))
    expected = ExpectedUnits(
        who, expected_people(Past(), who, distribution, {}), tables.changes(distribution), tables.waves
    )
    target = funnel.optimal(distribution, LIP(1.0), time_limit=1).protocol
    terms = VersionTerms(LIP(1.0), "v", target, budget=1.0)
    asked = UnitVersion(Past(), rows, cells, joint, np.zeros(rows.count, np.int64), terms)

    def draw(step: Step, wave: IntArray, before: IntArray) -> IntArray:
        return step.drawn(before, xs[wave], random.integers(0, 2**64, len(wave), dtype=np.uint64))

    return follow_waves(asked, expected, draw), rows, xs


def by_hand(waves: Waves, rows: UnitRows, xs: IntArray) -> np.ndarray:
    """The same by unit, in floats, one row at a time."""
    step = waves.step
    drawn_from = dict(zip(step.followed.tolist(), step.drawn_from.tolist(), strict=True))
    found = np.zeros((rows.count, len(step.channel.outputs)))
    for unit, before, x in zip(rows.units.tolist(), waves.before.tolist(), xs.tolist(), strict=True):
        found[unit] += step.library[drawn_from[before]][:, x] / 2.0**63 - step.channel.weights[:, x] / 2.0**63
    return found


def test_estimates_are_off_without_departures_and_right_with_them(made: tuple[Waves, UnitRows, IntArray]) -> None:
    waves, rows, xs = made
    channel, n = waves.step.channel, len(xs)
    inputs = np.bincount(xs, minlength=len(channel.inputs))
    told = departures_of_units(waves.step, rows.units, waves.before, xs, WHOLE)
    # What is published on average, given the histories that people have: no answer is drawn.
    mean = channel.matrix @ inputs + by_hand(waves, rows, xs).sum(axis=0)
    assert mean == pytest.approx(channel.matrix @ inputs + told / PARTS, abs=n * len(mean) / PARTS)
    times = 10**6
    counts = np.rint(mean * times).astype(np.int64)
    departed = DepartedShares.of_counts(told.astype(float), 1.0, float(n * PARTS))
    young = np.array([symbol[1] == "under 48" for symbol in channel.inputs.symbols])
    true = float(inputs[young].sum()) / n
    shares = [
        dict(zip([cell[0] for cell in one.cells], one.frequencies, strict=True))["under 48"]
        for one in (funnel.estimate(counts, channel, "age", departed=known) for known in (None, departed))
    ]
    assert abs(shares[0] - true) > 0.01
    assert shares[1] == pytest.approx(true, abs=1e-4)


def test_one_unit_more_changes_departures_by_their_length_at_most(made: tuple[Waves, UnitRows, IntArray]) -> None:
    waves, rows, xs = made
    length = PARTS // 2
    sizes = np.abs(by_hand(waves, rows, xs)).sum(axis=1)
    assert (sizes > 0.6).any()
    whole = departures_of_units(waves.step, rows.units, waves.before, xs, length)
    for unit in [*np.argsort(-sizes)[:5].tolist(), *range(5)]:
        left = rows.units != unit
        others = departures_of_units(waves.step, rows.units[left], waves.before[left], xs[left], length)
        moved = int(np.abs(whole - others).sum())
        assert moved <= length
        assert moved == pytest.approx(min(length, sizes[unit] * PARTS), abs=100)


def test_units_are_added_up_in_parts_of_any_size(
    made: tuple[Waves, UnitRows, IntArray], monkeypatch: pytest.MonkeyPatch
) -> None:
    waves, rows, xs = made
    whole = departures_of_units(waves.step, rows.units, waves.before, xs, PARTS)
    monkeypatch.setattr(departures, "_UNITS", 7)
    assert departures_of_units(waves.step, rows.units, waves.before, xs, PARTS).tolist() == whole.tolist()


def test_people_who_are_forgotten_depart_too(made: tuple[Waves, UnitRows, IntArray]) -> None:
    waves, rows, xs = made
    step, before = waves.step, waves.before.copy()
    before[rows.units == 3] = -1
    found = departures_of_units(step, rows.units, before, xs, WHOLE)
    constant = step.channel.marginal / 2.0**63
    by_unit = by_hand(waves, rows, xs)
    by_unit[3] = sum(constant - step.channel.matrix[:, x] for x in xs[rows.units == 3])
    assert found == pytest.approx(by_unit.sum(axis=0) * PARTS, abs=len(xs) * 2)


def test_people_with_one_row_each_are_units_with_one_row(made: tuple[Waves, UnitRows, IntArray]) -> None:
    waves, _, xs = made
    step = waves.step
    observed = step.observed
    people = np.repeat(np.arange(len(observed.records)), observed.records)
    units = np.arange(len(people))
    for length in (PARTS // 8, WHOLE):
        one = departures_of_people(step, length)
        other = departures_of_units(step, units, observed.nodes[people], observed.inputs[people], length)
        assert one.tolist() == other.tolist()
    assert len(people) == len(xs)


def test_departures_are_shortened_in_proportion_and_never_beyond_their_length() -> None:
    numbers = np.array([[6, -3, -3], [1, -1, 0], [0, 0, 0], [10**12, -7, 1 - 10**12]])
    assert shortened(numbers, 6).tolist() == [[3, -1, -1], [1, -1, 0], [0, 0, 0], [2, 0, -2]]
    random = np.random.default_rng(0)
    for length in (1, 5, 1000):
        assert (np.abs(shortened(random.integers(-500, 500, (200, 7)), length)).sum(axis=1) <= length).all()


def test_the_length_grows_with_what_answers_vary_by_and_has_an_end(made: tuple[Waves, UnitRows, IntArray]) -> None:
    channel = made[0].step.channel
    p = np.full(len(channel.inputs), 1 / len(channel.inputs))
    lengths = [declared_length(channel, p, n, 30, 0.25) for n in (1, 10_000, 40_000, 10**9)]
    assert lengths[0] == departures.LEAST
    assert lengths[2] == pytest.approx(2 * lengths[1], rel=1e-6)
    assert lengths[3] == 30 * departures.MOST_OF_ROW
    spread = (channel.matrix * (1 - channel.matrix)).mean(axis=1).mean()
    assert lengths[1] / PARTS == pytest.approx(2.5 * 0.25 * np.sqrt(10_000 * spread / 2), rel=1e-5)
