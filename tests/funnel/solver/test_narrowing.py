"""Narrowing: what is cut off a cell has no row that holds and is above the aim, and much is cut off."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel import Guarantee, Joint
from funnel.joint import FloatArray
from funnel.solver.cell_programme import Solved
from funnel.solver.filling_cells import ABOVE, ANY, BELOW, BETWEEN, HIGH, LOW, Cell, Flags
from funnel.solver.narrowing import Left
from tests.funnel.solver.test_cells import is_in
from tests.funnel.solver.test_threshold_pricing import (
    BOTH,
    RARE,
    WIDER,
    few_inputs_too,
    gains,
    pricer_of,
    rows_that_hold,
    thresholds_of,
)

__all__ = ["few_inputs_too"]
PLACES = np.linspace(0.0, 1.0, 41)


@given(st.integers(0, 2**32 - 1), st.sampled_from(BOTH), st.sampled_from([RARE, WIDER]))
@settings(max_examples=8, deadline=None)
def test_no_row_above_the_aim_is_cut_off(seed: int, guarantee: Guarantee, counts: tuple[list[int], ...]) -> None:
    cuts, pricer = pricer_of(Joint.from_counts(counts), guarantee)
    random = np.random.default_rng(seed)
    known = rows_that_hold(Joint.from_counts(counts), cuts, random, 1500)
    prices = np.log(random.dirichlet(np.full(len(cuts.problem.distribution), 2.0)))
    climbed, _ = pricer.climb(known[np.argsort(-gains(known, prices))[:30]], prices)
    known = np.vstack([known, cuts.inside(climbed)])
    theta, rows = thresholds_of(cuts, known / cuts.problem.distribution)
    known, rows = known[theta >= pricer._least], rows[theta >= pricer._least]
    worth = gains(known, prices)
    assert cuts._widest is not None
    limits, programme = cuts._widest[1], pricer._cells
    cells: list[tuple[Cell, Solved | None]] = [(Cell.whole(programme.highest()), None)]
    above = 0
    for _ in range(12):
        cell, parent = cells.pop(0)
        solved = programme.solve(cell, prices, parent)
        if solved is None or solved.left is None:
            continue
        for share in (0.3, 0.03):
            aim = float(worth.max()) - share
            rest = solved.left.of(cell, aim)
            for row in rows[worth > aim]:
                assert is_in(rest, row, limits) or not is_in(cell, row, limits)
                above += 1
        cells += [
            (part, solved) for part in cell.cut(solved.entries, solved.ratio, random.random(len(limits.lower)), 0.3)
        ]
    assert above


def cell_of(kind: int, random: np.random.Generator, n: int) -> Cell:
    """A cell of entries of one kind, with bounds that the kind may have."""
    first, last = np.sort(random.random(2))
    beyond = kind in (ANY, LOW, HIGH, ABOVE)
    low = random.uniform(0, 0.4, n) if kind in (BELOW, BETWEEN) else np.full(n, float(kind == ABOVE))
    high = random.uniform(1.5, 4.0, n) if beyond else random.uniform(0.6, 1.0, n)
    return Cell(float(first), float(last), np.full(n, kind, dtype=np.int64), low, high)


def places(kind: int, cell: Cell, x: int, ratio: float) -> tuple[FloatArray, FloatArray]:
    """Entries t/θ of a cell, and between which ends each is: end k and share s are k + s."""
    ends = cell.ends(ratio)
    used = np.flatnonzero(ends.used[x])
    at = np.concatenate([used[0] + segment + PLACES for segment in range(len(used) - 1)])
    k = np.minimum(at.astype(int), used[-1] - 1)
    entries = ends.entries[x]
    return entries[k] + (at - k) * (entries[k + 1] - entries[k]), at


@pytest.mark.parametrize("kind", [ANY, LOW, HIGH, BELOW, BETWEEN, ABOVE])
def test_what_stays_is_all_above_the_aim_and_little_more(kind: int) -> None:
    """Against the Lagrangian itself, place by place, at both ends of the ratio."""
    random, n, smaller = np.random.default_rng(kind), 3, 0
    for _ in range(200):
        cell = cell_of(kind, random, n)
        used = np.stack([cell.ends(ratio).used for ratio in (cell.first, cell.last)])
        entries = np.where(used, random.normal(0, 1.0, (2, n, 4)), -np.inf)
        slopes = entries.max(axis=2).sum(axis=1) - entries.max(axis=2).sum(axis=1).max() - random.uniform(0.2, 1.0)
        slopes[random.integers(2)] -= random.choice([0.0, 0.5])
        left = Left(entries, slopes, 0.0, 0.5)

        def bound(slope: FloatArray) -> FloatArray:
            unit = np.maximum(-1 / np.minimum(slope, -1e-12), 0.5)
            return np.asarray(unit * slope + np.log(unit))

        aim = float(bound(slopes).max()) - random.uniform(0.01, 0.6)
        rest = left.of(cell, aim)
        assert cell.first <= rest.first <= rest.last <= cell.last
        shares = [0.0, 0.2, 0.5, 0.8, 1.0]
        for x in range(n):
            for share in shares:
                ratio = cell.first + share * (cell.last - cell.first)
                t, at = places(kind, cell, x, ratio)
                k = np.minimum(at.astype(int), 2)
                both = np.maximum(entries[:, x], -1e3)
                worth = both[:, k] + np.where(at > k, (at - k) * (both[:, k + 1] - both[:, k]), 0.0)
                slope = slopes[:, None] - both.max(axis=1)[:, None] + worth
                above = bound((1 - share) * slope[0] + share * slope[1]) > aim
                inside = _inside(rest, x, t, ratio)
                assert inside[above].all()
                smaller += int((~inside).sum())
    assert smaller > 1000


def _inside(cell: Cell, x: int, t: FloatArray, ratio: float) -> Flags:
    close, kind = 1e-9, cell.kind[x]
    if not cell.first - close <= ratio <= cell.last + close:
        return np.zeros(len(t), dtype=bool)
    low, high = cell.low[x], cell.high[x]
    if kind == BELOW:
        return np.asarray((t >= low * ratio - close) & (t <= high * ratio + close))
    if kind == BETWEEN:
        return np.asarray((t <= 1 - low * (1 - ratio) + close) & (t >= 1 - high * (1 - ratio) - close))
    if kind == ABOVE:
        return np.asarray((t >= low - close) & (t <= high + close))
    most = {ANY: high, LOW: 1.0, HIGH: high}[int(kind)]
    return np.asarray((t <= most + close) & (t >= (ratio if kind == HIGH else 0.0) - close))
