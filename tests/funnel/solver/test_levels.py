"""Pricing between levels: its corners against linear programmes, its bounds against boxes of posteriors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from funnel import RLDP, Joint
from funnel.mechanisms.polyopt import polyopt_cone
from funnel.mechanisms.robust_reporting import least_conditionals
from funnel.solver.budget import Budget
from funnel.solver.columns import ColumnGeneration
from funnel.solver.corners import Block
from funnel.solver.levels import LevelCone, LevelPricer
from funnel.solver.region import Region


def problem(counts: np.ndarray, epsilon: float) -> tuple[LevelCone, Region]:
    """PolyOpt's cone of counts (c, u), as levels and as rows."""
    read = Joint.from_counts(counts).with_secret()
    near = RLDP(epsilon, set="chi2").neighbourhood(read)
    law = read.p_input
    seen = law > 0
    rows = polyopt_cone(near, epsilon)
    rows = rows[:, seen] + rows[:, ~seen].sum(axis=1, keepdims=True) * law[seen]
    levels = LevelCone(counts / counts.sum(), least_conditionals(near), float(np.exp(epsilon)))
    return levels, Region.of(rows / law[seen], law[seen])


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.integers(1, 4))
def test_the_corners_of_a_part_include_the_maximum_of_every_linear_function(seed: int, size: int) -> None:
    random = np.random.default_rng(seed)
    least = random.dirichlet(np.ones(size)) * random.uniform(0.05, 0.95)
    rest, law = 1 - least.sum(), random.dirichlet(np.ones(size))
    floor = random.uniform(0.2, 1.0)
    ceiling = floor * random.uniform(1.0, 9.0)
    block = Block(least, law, rest)
    pair = (np.array([floor]), np.array([ceiling]))
    terms, masses = block.listed(*pair, np.zeros(size))
    corners = np.flatnonzero(np.isfinite(terms[0]))
    rows = block.corner(np.full(len(corners), floor), np.full(len(corners), ceiling), corners)
    weighed = (rows @ least)[:, None] + rest * rows
    assert (rows >= 0).all()
    assert weighed.min() >= floor * (1 - 1e-7)
    assert weighed.max() <= ceiling * (1 + 1e-7)
    np.testing.assert_allclose(masses[0, corners], rows @ law, rtol=1e-9)
    np.testing.assert_allclose(
        terms[0, corners], (rows * law * np.log(np.maximum(rows * law, 1e-300))).sum(axis=1), rtol=1e-9, atol=1e-12
    )
    matrix = least[None] + rest * np.eye(size)
    for _ in range(5):
        cost = random.normal(size=size)
        best = linprog(-cost, A_ub=np.vstack([matrix, -matrix]), b_ub=np.r_[[ceiling] * size, [-floor] * size])
        assert (rows @ cost).max() == pytest.approx(-best.fun, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_levels_and_boxes_of_posteriors_bound_each_other(seed: int) -> None:
    random = np.random.default_rng(seed)
    counts = random.multinomial(int(random.integers(50, 2000)), random.dirichlet(np.ones(6))).reshape(2, 3) + 1
    levels, region = problem(counts, float(random.choice([0.3, 1.0, 2.5])))
    pricer = LevelPricer.of(levels, Budget.of(1.0, lambda: 0.0))
    assert pricer is not None
    by_levels = ColumnGeneration(region, Budget.of(1.0, lambda: 0.0), pricer).run(0.02).split
    by_boxes = ColumnGeneration(region).run(1e-3).split
    assert by_levels.value <= by_boxes.bound
    assert by_boxes.value <= by_levels.bound
    assert (by_levels.posteriors @ region.rows.T).max(initial=0.0) <= 1e-9
    np.testing.assert_allclose(by_levels.mass @ by_levels.posteriors, region.law, atol=1e-8)
    # No posterior found in the other way exceeds what one search proves.
    prices = random.normal(-1.0, 1.0, size=region.inputs)
    priced = pricer.search(prices, 1e-2)
    assert (by_boxes.posteriors @ -prices + pricer.gains(by_boxes.posteriors)).max() <= priced.bound
    assert pricer.cone.contains(by_boxes.posteriors / region.law).all()


def test_five_secrets_and_five_symbols_are_certified() -> None:
    """The size that the RLDP paper leaves out as infeasible."""
    random = np.random.default_rng(1)
    counts = random.multinomial(1000, random.dirichlet(np.full(25, 5.0))).reshape(5, 5)
    levels, region = problem(counts, 1.0)
    pricer = LevelPricer.of(levels)
    assert pricer is not None
    found = ColumnGeneration(region, None, pricer).run(0.15)
    assert found.finished
    assert found.split.bound - found.split.value <= 0.15
    assert found.split.value + float(-region.law @ np.log(region.law)) > 0.1


@pytest.mark.parametrize("seed", range(3))
def test_mixtures_are_whole_and_within_the_bound(seed: int) -> None:
    random = np.random.default_rng(seed)
    counts = random.multinomial(1000, random.dirichlet(np.full(9, 2.0))).reshape(3, 3) + 1
    levels, region = problem(counts, 2.0)
    pricer = LevelPricer.of(levels)
    assert pricer is not None
    prices = np.log(random.dirichlet(np.full(region.inputs, 3.0)))
    priced = pricer.search(prices, 1e-2)
    assert len(priced.mixtures)
    np.testing.assert_allclose(priced.mixtures.sum(axis=1), 1.0, atol=1e-8)
    assert (priced.mixtures >= 0).all()
    above = priced.worth - priced.mixtures @ prices
    assert (above > 1e-2).all()
    assert above.max() <= priced.bound
    # What is convex is worth no less in parts than together.
    assert (priced.worth >= pricer.gains(priced.mixtures) - 1e-9).all()


def test_prices_of_mixtures_close_what_prices_of_columns_leave() -> None:
    """Of four secrets at ε = 2 the multiplier left 0.12 nats at the prices of the columns."""
    random = np.random.default_rng(1)
    counts = random.multinomial(1000, random.dirichlet(np.full(12, 2.0))).reshape(4, 3) + 1
    levels, region = problem(counts, 2.0)
    budget = Budget.of(4.0, lambda: 0.0)
    found = ColumnGeneration(region, budget, LevelPricer.of(levels, budget)).run(0.012).split
    assert found.bound - found.value <= 0.06
