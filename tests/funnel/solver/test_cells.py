"""Cells of thresholds: parts cover the whole, and between their ends greedy filling is what it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.joint import FloatArray
from funnel.solver.filling_cells import ABOVE, ANY, BELOW, BETWEEN, HIGH, LOW, Cell, Limits

seeds = st.integers(0, 2**32 - 1)


def some_limits(random: np.random.Generator, n: int) -> Limits:
    """Limits around a distribution that few records show, in whole units of 2^-32."""
    distribution = random.dirichlet(np.ones(n))
    lower = np.floor(distribution * random.uniform(0, 0.6, n) * 2**32) / 2**32
    upper = np.ceil(np.minimum(distribution + random.uniform(0.3, 0.9, n), 1.0) * 2**32) / 2**32
    return Limits(lower, upper)


def some_row(random: np.random.Generator, n: int) -> FloatArray:
    """A row of a channel with zeros and with entries that are the same."""
    row = random.choice([0.0, 0.2, 1.0, random.random(), 3 * random.random()], n)
    row[random.integers(n)] = 1.0
    return np.asarray(row)


def filled(row: FloatArray, limits: Limits, largest: bool) -> float:
    """What the distribution gives a row at most, or at least, by filling one input after another."""
    distribution, left = limits.lower.copy(), limits.free
    for x in np.argsort(-row if largest else row, kind="stable"):
        more = min(left, limits.room[x])
        distribution[x] += more
        left -= more
    return float(distribution @ row)


def thresholds(row: FloatArray, limits: Limits) -> tuple[float, float]:
    """θ and φ of a row, by definition."""
    high = max(t for t in row if limits.room[row >= t].sum() >= limits.free)
    low = min(t for t in row if limits.room[row <= t].sum() >= limits.free)
    return float(high), float(low)


def is_in(cell: Cell, row: FloatArray, limits: Limits) -> bool:
    """Whether a row is in a cell, by what its bounds are said to be."""
    theta, phi = thresholds(row, limits)
    if theta == 0 or not cell.first <= phi / theta <= cell.last:
        return False
    close = 1e-12
    for t, kind, low, high in zip(row / theta, cell.kind, cell.low, cell.high, strict=True):
        ratio = phi / theta
        at = {
            ANY: t <= high,
            LOW: t <= 1,
            HIGH: ratio <= t <= high,
            # Where φ is zero, zeros are at φ.
            BELOW: low * ratio - close <= t <= high * ratio + close and (phi > 0 or high == 1),
            BETWEEN: 1 - high * (1 - ratio) - close <= t <= 1 - low * (1 - ratio) + close,
            ABOVE: low - close <= t <= high + close,
        }
        if not at[int(kind)]:
            return False
    return True


def test_where_there_is_room_for_twice_what_is_free_the_thresholds_are_in_order() -> None:
    random = np.random.default_rng(1)
    found = 0
    for _ in range(300):
        limits = some_limits(random, int(random.integers(2, 6)))
        theta, phi = thresholds(some_row(random, len(limits.lower)), limits)
        if limits.ordered:
            assert phi <= theta
            found += 1
    assert found > 100
    assert not Limits(np.array([0.1, 0.1]), np.array([0.8, 0.7])).ordered


@given(seeds)
@settings(max_examples=25, deadline=None)
def test_parts_cover_a_cell_and_greedy_filling_is_linear_between_their_ends(seed: int) -> None:
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 6))
    limits, row = some_limits(random, n), some_row(random, n)
    theta, _ = thresholds(row, limits)
    if not limits.ordered or theta == 0:
        return
    cell = Cell.whole(np.full(n, float(row.max() / theta) + 0.5))
    assert is_in(cell, row, limits)
    for _ in range(8):
        ratio = random.uniform(cell.first, cell.last)
        parts = cell.cut(random.choice([0.0, ratio, 1.0, 1.7], n), ratio, random.random(n), 4 * random.random())
        assert len(parts) == 2
        holding = [part for part in parts if is_in(part, row, limits)]
        assert holding, (parts, row)
        for part in holding:
            check_ends(part, row, limits)
        cell = holding[int(random.integers(len(holding)))]


def check_ends(cell: Cell, row: FloatArray, limits: Limits) -> None:
    theta, phi = thresholds(row, limits)
    ends = cell.ends(phi / theta)
    high, low = 1.0, phi / theta
    rooms = np.zeros(4)
    for x, t in enumerate(row / theta):
        places = np.flatnonzero(ends.used[x])
        at = ends.entries[x, places]
        assert (np.diff(at) >= -1e-12).all()
        assert at[0] - 1e-9 <= t <= at[-1] + 1e-9
        # The weights of the two ends next to the entry, or of one of those that are the same.
        weights = np.zeros(4)
        right = int(np.clip(np.searchsorted(at, t), 1, len(at) - 1)) if len(at) > 1 else 0
        left = max(right - 1, 0)
        share = 0.0 if at[right] == at[left] else float(np.clip((t - at[left]) / (at[right] - at[left]), 0, 1))
        weights[places[left]] += 1 - share
        weights[places[right]] += share
        upper, lower = limits.upper[x], limits.lower[x]
        high += float(weights @ (np.where(ends.raised[x], upper, lower) * (ends.entries[x] - 1)))
        low += float(weights @ (np.where(ends.lowered[x], upper, lower) * (ends.entries[x] - phi / theta)))
        room, close = limits.room[x], 1e-9
        # Of ends that are the same any may stand for the entry.
        same = np.isclose(ends.entries[x], t, rtol=0, atol=1e-9) & ends.used[x]
        over, under = (
            min(float(weights @ flags[x]), float(flags[x][same].all()) if same.any() else 1.0)
            for flags in (ends.over, ends.under)
        )
        assert over <= (t > 1) + close
        assert under <= (t < phi / theta) + close
        not_under = max(float(weights @ ends.not_under[x]), float((same & ends.not_under[x]).any()))
        not_over = max(float(weights @ ends.not_over[x]), float((same & ends.not_over[x]).any()))
        rooms += room * np.array([over, not_under, under, not_over])
        assert not_under >= (t >= 1) - close
        assert not_over >= (t <= phi / theta) - close
    assert theta * high == pytest.approx(filled(row, limits, True), rel=1e-9, abs=1e-9)
    assert theta * low == pytest.approx(filled(row, limits, False), rel=1e-9, abs=1e-9)
    assert rooms[0] <= limits.free + 1e-6
    assert rooms[1] >= limits.free - 1e-6
    assert rooms[2] <= limits.free + 1e-6
    assert rooms[3] >= limits.free - 1e-6


def test_nothing_is_cut_where_chords_are_the_utility() -> None:
    cell = Cell.whole(np.full(3, 4.0))
    assert cell.cut(np.ones(3), 0.5, np.zeros(3), 0.0) == []
    assert len(cell.cut(np.ones(3), 0.5, np.array([0.0, 0.1, 0.0]), 0.0)) == 2
    first, second = cell.cut(np.ones(3), 0.5, np.zeros(3), 1.0)
    assert (first.last, second.first) == (0.5, 0.5)
