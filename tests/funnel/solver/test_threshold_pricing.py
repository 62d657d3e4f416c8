"""Pricing by thresholds: no row that holds is above a bound, nor further than said, and boxes of posteriors agree."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel import Guarantee, Joint
from funnel.guarantees.over_distributions import SetGuarantee
from funnel.joint import FloatArray
from funnel.solver import distribution_cuts, lift_cuts
from funnel.solver.budget import Budget
from funnel.solver.cell_programme import CellProgramme
from funnel.solver.cuts import Cuts, SetProblem
from funnel.solver.filling_cells import Cell, Limits
from funnel.solver.goal import negative_entropy
from funnel.solver.pricing import Priced
from funnel.solver.threshold_pricing import ThresholdPricer

# A value of the secret that few have: what its limits leave open is wide.
RARE = ([2000, 900, 1100], [3, 1, 3], [700, 1900, 1400])
WIDER = ([900, 300, 500, 200], [2, 4, 1, 3], [300, 800, 200, 400])
UNSEEN = ([900, 300, 500, 0], [2, 4, 1, 0], [300, 800, 200, 0])
GUARANTEE = funnel.RLDP(1.0, 0.05)
LIFTS = funnel.RLIP(1.0, 0.05)
BOTH = (GUARANTEE, LIFTS)


@pytest.fixture(autouse=True)
def few_inputs_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables small enough for brute force are searched by thresholds here."""
    monkeypatch.setattr("funnel.solver.distribution_cuts._MANY_INPUTS", 3)


def pricer_of(
    joint: Joint, guarantee: Guarantee = GUARANTEE, budget: float | None = None
) -> tuple[distribution_cuts.DistributionCuts, ThresholdPricer]:
    """Cuts of a few rows, and what prices the relaxation that they make."""
    assert isinstance(guarantee, SetGuarantee)
    cuts = lift_cuts.cuts_for(SetProblem.of(joint, guarantee))
    assert isinstance(cuts, distribution_cuts.LevelCuts | lift_cuts.LiftCuts)
    cuts.add(np.random.default_rng(0).random((30, len(cuts.problem.distribution))))
    spent = Budget.of(budget)
    pricer = cuts._part(cuts.least[0], spent) if isinstance(cuts, distribution_cuts.LevelCuts) else cuts.pricer(spent)
    assert isinstance(pricer, ThresholdPricer)
    return cuts, pricer


def to_the_end(pricer: ThresholdPricer, prices: FloatArray, target: float) -> Priced:
    """A search that does not leave it at the columns it found."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pricer, "patience", 10**6)
        return pricer.search(prices, target)


def thresholds_of(cuts: distribution_cuts.DistributionCuts, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """θ of rows (k, a), the average entry being 1, and the entries with what is not told apart as the last."""
    assert cuts._widest is not None
    _, limits = cuts._widest
    if len(limits.lower) > rows.shape[1]:
        rows = np.hstack([rows, np.ones((len(rows), 1))])
    order = np.argsort(-rows, axis=1)
    filled = np.cumsum(limits.room[order], axis=1)
    place = (filled >= limits.free).argmax(axis=1)[:, None]
    return np.take_along_axis(rows, np.take_along_axis(order, place, 1), 1)[:, 0], rows


def rows_that_hold(joint: Joint, cuts: Cuts, random: np.random.Generator, number: int) -> FloatArray:
    """Posteriors that meet the guarantee, nearly all at its edge."""
    rows = random.choice([0.0, 0.0, 0.3, 1.0, 1.0, 4.0], (number, len(cuts.problem.distribution))) + 1e-6
    rows[::3] *= random.random(rows[::3].shape)
    masses = rows * cuts.problem.distribution
    return cuts.inside(masses / masses.sum(axis=1, keepdims=True))


def gains(posteriors: FloatArray, prices: FloatArray) -> FloatArray:
    return np.asarray(negative_entropy(posteriors) - posteriors @ prices)


@pytest.mark.parametrize(("counts", "guarantee"), [(WIDER, GUARANTEE), (UNSEEN, GUARANTEE), (RARE, LIFTS)])
def test_no_row_that_holds_is_above_a_bound(counts: tuple[list[int], ...], guarantee: Guarantee) -> None:
    joint = Joint.from_counts(counts)
    cuts, pricer = pricer_of(joint, guarantee)
    random = np.random.default_rng(3)
    known = rows_that_hold(joint, cuts, random, 2000)
    assert len(known) > 700
    for prices in (
        np.log(cuts.problem.distribution),
        np.log(random.dirichlet(np.full(len(cuts.problem.distribution), 2.0))),
    ):
        climbed, _ = pricer.climb(known[np.argsort(-gains(known, prices))[:20]], prices)
        best = float(gains(np.vstack([known, cuts.inside(climbed)]), prices).max())
        pricer.charge(Budget.of(None))
        early = pricer.search(prices, best - 0.05)
        assert early.bound >= best
        # Above the target the search ends with columns; they attain what they are said to.
        assert (gains(early.columns, prices) > best - 0.05).all()
        # To the end: nothing that holds may be above what was proven.
        if guarantee is LIFTS:
            # Boxes of posteriors above the target would be cut for ever, so patient.
            pricer.charge(Budget.of(0.5))
        proven = to_the_end(pricer, prices, best - 0.01)
        best = float(gains(cuts.inside(proven.columns), prices).max(initial=best))
        assert proven.bound >= best
        # The region of the columns knows some distributions of the rare secret, the bound all of them.
        assert proven.bound <= float(gains(proven.columns, prices).max(initial=best)) + 1e-4


@given(st.integers(0, 2**32 - 1), st.sampled_from(BOTH))
@settings(max_examples=6, deadline=None)
def test_bounds_of_parts_are_bounds_of_the_rows_in_them(seed: int, guarantee: Guarantee) -> None:
    joint = Joint.from_counts(RARE)
    cuts, pricer = pricer_of(joint, guarantee)
    random = np.random.default_rng(seed)
    known = rows_that_hold(joint, cuts, random, 600)
    known = known[thresholds_of(cuts, known / cuts.problem.distribution)[0] >= pricer._least]
    prices = np.log(random.dirichlet(np.full(len(cuts.problem.distribution), 2.0)))
    best = float(gains(known, prices).max())
    programme = pricer._cells
    cells = [Cell.whole(programme.highest())]
    first = programme.solve(cells[0], prices)
    assert first is not None
    for _ in range(8):
        cell = cells.pop(0)
        solved = programme.solve(cell, prices)
        assert solved is not None
        cells.extend(cell.cut(solved.entries, solved.ratio, random.random(programme.entries), random.random()))
        answers = [programme.solve(part, prices, solved) for part in cells]
        assert max(np.inf if one is None else one.bound for one in answers) >= best
    # What was told apart is mostly bounded more closely than the whole. Multipliers of one part may be worse by a hair;
    # searches take the bound of what it is a part of then.
    assert np.median([np.inf if one is None else one.bound for one in answers]) < first.bound


@pytest.mark.parametrize("counts", [RARE, UNSEEN])
def test_any_multipliers_prove_a_bound(counts: tuple[list[int], ...], monkeypatch: pytest.MonkeyPatch) -> None:
    joint = Joint.from_counts(counts)
    cuts, pricer = pricer_of(joint)
    random = np.random.default_rng(5)
    prices, programme = np.log(cuts.problem.distribution), pricer._cells
    cell = Cell.whole(programme.highest())
    found = programme.solve(cell, prices)
    assert found is not None
    # Cut the best one until the programme has what a row has.
    cells = [(cell, found)]
    while True:
        cell, found = cells.pop(max(range(len(cells)), key=lambda k: cells[k][1].bound))
        parts = cell.cut(found.entries, found.ratio, np.where(found.losses > 1e-5, found.losses, 0.0), found.mixed)
        if not parts:
            break
        answers = [(part, programme.solve(part, prices, found)) for part in parts]
        cells += [(part, answer) for part, answer in answers if answer is not None]
    attained = float(gains(found.point[None, : len(prices)], prices)[0])
    assert found.bound == pytest.approx(attained, abs=1e-3)
    bounds = []
    solve = CellProgramme._run

    def roughly(programme: CellProgramme, rows: int) -> tuple[FloatArray, FloatArray] | None:
        answer = solve(programme, rows)
        assert answer is not None
        values, duals = answer
        off = random.choice([0.0, 0.01, 0.1, 0.4])
        # Conditions come last: without one of a pair the levels are worth what they can be at most.
        duals[rows:] *= random.random(len(duals) - rows) > off
        return values, duals * random.uniform(1 - off, 1 + off, len(duals)) + random.normal(0, off / 10, len(duals))

    monkeypatch.setattr(CellProgramme, "_run", roughly)
    for _ in range(60):
        solved = programme.solve(cell, prices)
        assert solved is not None
        bounds.append(solved.bound)
    assert min(bounds) >= attained - 1e-5
    assert np.isfinite(bounds).sum() > 20


@pytest.mark.parametrize("guarantee", BOTH)
@pytest.mark.parametrize("counts", [RARE, UNSEEN])
def test_entries_are_nowhere_further_from_the_threshold(counts: tuple[list[int], ...], guarantee: Guarantee) -> None:
    joint = Joint.from_counts(counts)
    cuts, pricer = pricer_of(joint, guarantee)
    highest = pricer._cells.highest()
    assert np.isfinite(highest).all()
    theta, rows = thresholds_of(
        cuts, rows_that_hold(joint, cuts, np.random.default_rng(4), 2000) / cuts.problem.distribution
    )
    cells = theta >= pricer._least
    assert (rows[cells] <= theta[cells, None] * highest).all()
    assert (rows[cells] / theta[cells, None]).max() > 0.25 * highest.max()
    # Rows of a lower threshold are in boxes.
    low = pricer._low
    assert low is not None
    posteriors = (rows[~cells, : len(cuts.problem.distribution)] * cuts.problem.distribution)[:, None]
    assert (posteriors <= low + 1e-12).all(axis=2).any(axis=1).all()


def test_sets_above_a_threshold_are_all_that_fit() -> None:
    random = np.random.default_rng(7)
    for size in (3, 6):
        room = np.round(random.random(size) * 2**32) / 2**32
        limits = Limits(np.zeros(size), room)
        for free in (0.0, 0.3, 0.8, 2.0):
            limits = Limits(np.append(np.zeros(size - 1), 1 - free), np.append(room[:-1], 1 - free + room[-1]))
            found = limits.above(size - 1, 1000)
            assert found is not None
            left = free - room[-1]
            fitting = [
                set(k) for n in range(size) for k in combinations(range(size - 1), n) if room[list(k)].sum() <= left
            ]
            largest = [one for one in fitting if not any(one < other for other in fitting)]
            assert sorted(map(sorted, largest)) == sorted(np.flatnonzero(row).tolist() for row in found)
            assert (limits.above(size - 1, len(found) - 1) is None) == (len(found) > 0)


@pytest.mark.parametrize(("counts", "guarantee"), [(RARE, GUARANTEE), (UNSEEN, GUARANTEE), (RARE, LIFTS)])
def test_boxes_of_posteriors_and_thresholds_bound_the_same(
    counts: tuple[list[int], ...], guarantee: Guarantee, monkeypatch: pytest.MonkeyPatch
) -> None:
    joint = Joint.from_counts(counts)
    by_thresholds = funnel.optimal(joint, guarantee, 3e-3)
    monkeypatch.setattr("funnel.solver.distribution_cuts._MANY_INPUTS", 5)
    by_boxes = funnel.optimal(joint, guarantee, 3e-3)
    # Over all protocols the bound has to allow for inputs that never occurred, which no protocol here tells apart.
    status = "optimal" if counts is RARE else "gap above request"
    assert by_thresholds.status == by_boxes.status == status
    assert by_thresholds.utility <= by_boxes.bound + 1e-9
    assert by_boxes.utility <= by_thresholds.bound + 1e-9


def test_the_same_budget_gives_the_same_bound_and_a_larger_one_none_that_is_worse() -> None:
    joint = Joint.from_counts(np.random.default_rng(6).integers(2, 12, (3, 6)) * [[200], [1], [150]])
    prices = np.log(joint.p_input)
    bounds = [to_the_end(pricer_of(joint, GUARANTEE, seconds)[1], prices, 0.0).bound for seconds in (0.05, 0.05, 0.3)]
    assert bounds[0] == bounds[1] >= bounds[2]


def test_little_that_is_open_and_few_inputs_are_left_to_boxes_of_posteriors(monkeypatch: pytest.MonkeyPatch) -> None:
    cuts = lift_cuts.cuts_for(SetProblem.of(Joint.from_counts([[600, 300, 100], [200, 500, 400]]), GUARANTEE))
    assert isinstance(cuts, distribution_cuts.LevelCuts)
    assert cuts._widest is None
    monkeypatch.undo()
    cuts = lift_cuts.cuts_for(SetProblem.of(Joint.from_counts(RARE), GUARANTEE))
    assert isinstance(cuts, distribution_cuts.LevelCuts)
    assert cuts._widest is None
