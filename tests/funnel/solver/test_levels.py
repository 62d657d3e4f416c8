"""Climbing between levels: its corners against linear programmes, its mixtures below the bounds of boxes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from funnel import RLDP, Joint
from funnel.joint import FloatArray
from funnel.mechanisms.polyopt import polyopt_cone
from funnel.mechanisms.robust_reporting import least_conditionals
from funnel.solver.budget import Budget
from funnel.solver.columns import ColumnGeneration
from funnel.solver.levels import Block, LevelCone, LevelPricer
from funnel.solver.region import Region
from funnel.solver.search import optimal_over_cone


def cones(counts: np.ndarray, epsilon: float) -> tuple[LevelCone, FloatArray, FloatArray]:
    """PolyOpt's cone of counts (c, u), as levels and as rows over the cells that occur, and their distribution."""
    read = Joint.from_counts(counts).with_secret()
    near = RLDP(epsilon, set="chi2").neighbourhood(read)
    distribution = read.p_input
    seen = distribution > 0
    rows = polyopt_cone(near, epsilon)
    rows = rows[:, seen] + rows[:, ~seen].sum(axis=1, keepdims=True) * distribution[seen]
    levels = LevelCone(counts / counts.sum(), least_conditionals(near), float(np.exp(epsilon)))
    return levels, rows, distribution[seen]


def problem(counts: np.ndarray, epsilon: float) -> tuple[LevelCone, Region]:
    """The same with the rows as a region."""
    levels, rows, distribution = cones(counts, epsilon)
    return levels, Region.of(rows / distribution, distribution)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.integers(1, 4))
def test_the_corners_of_a_part_include_the_maximum_of_every_linear_function(seed: int, size: int) -> None:
    random = np.random.default_rng(seed)
    least = random.dirichlet(np.ones(size)) * random.uniform(0.05, 0.95)
    rest, distribution = 1 - least.sum(), random.dirichlet(np.ones(size))
    floor = random.uniform(0.2, 1.0)
    ceiling = floor * random.uniform(1.0, 9.0)
    block = Block(least, distribution, rest)
    pair = (np.array([floor]), np.array([ceiling]))
    terms, masses = block.listed(*pair, np.zeros(size))
    corners = np.flatnonzero(np.isfinite(terms[0]))
    rows = block.corner(np.full(len(corners), floor), np.full(len(corners), ceiling), corners)
    weighed = (rows @ least)[:, None] + rest * rows
    assert (rows >= 0).all()
    assert weighed.min() >= floor * (1 - 1e-7)
    assert weighed.max() <= ceiling * (1 + 1e-7)
    np.testing.assert_allclose(masses[0, corners], rows @ distribution, rtol=1e-9)
    np.testing.assert_allclose(
        terms[0, corners],
        (rows * distribution * np.log(np.maximum(rows * distribution, 1e-300))).sum(axis=1),
        rtol=1e-9,
        atol=1e-12,
    )
    matrix = least[None] + rest * np.eye(size)
    for _ in range(5):
        cost = random.normal(size=size)
        best = linprog(-cost, A_ub=np.vstack([matrix, -matrix]), b_ub=np.r_[[ceiling] * size, [-floor] * size])
        assert (rows @ cost).max() == pytest.approx(-best.fun, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_what_climbs_find_is_inside_and_nearly_the_optimum(seed: int) -> None:
    """Below the bound that boxes of posteriors prove, and no more than so much below what these find."""
    random = np.random.default_rng(seed)
    counts = random.multinomial(int(random.integers(50, 2000)), random.dirichlet(np.ones(6))).reshape(2, 3) + 1
    levels, region = problem(counts, float(random.choice([0.3, 1.0, 2.5])))
    pricer = LevelPricer.of(levels)
    assert pricer is not None
    by_levels = ColumnGeneration(region, None, pricer).run(1e-3, None, False).split
    by_boxes = ColumnGeneration(region).run(1e-3).split
    assert by_boxes.value - 0.02 <= by_levels.value <= by_boxes.bound
    assert by_boxes.value <= by_levels.bound
    assert (by_levels.posteriors @ region.rows.T).max(initial=0.0) <= 1e-9
    np.testing.assert_allclose(by_levels.mass @ by_levels.posteriors, region.distribution, atol=1e-8)
    assert pricer.cone.contains(by_boxes.posteriors / region.distribution).all()
    # A climb ends no lower than it starts, and its values are those of posteriors of the cone.
    prices = random.normal(-1.0, 1.0, size=region.inputs)
    found, values = pricer.climb(by_boxes.posteriors, prices)
    np.testing.assert_allclose(values, pricer.gains(found) - found @ prices, atol=1e-9)
    assert values.max() >= (pricer.gains(by_boxes.posteriors) - by_boxes.posteriors @ prices).max() - 1e-9
    assert pricer.cone.contains(found / region.distribution).all()


def test_of_five_secrets_and_five_symbols_most_is_kept_by_levels() -> None:
    """The size that the RLDP paper leaves out as infeasible; by boxes of posteriors a tenth of a nat stays open."""
    random = np.random.default_rng(1)
    counts = random.multinomial(1000, random.dirichlet(np.full(25, 5.0))).reshape(5, 5)
    levels, rows, distribution = cones(counts, 1.0)
    by_levels, by_boxes = (
        optimal_over_cone(rows, distribution, 5e-3, Budget.of(limit, lambda: 0.0), levels=cone).split
        for limit, cone in ((8.0, levels), (2.0, None))
    )
    assert by_levels.value - float(distribution @ np.log(distribution)) > 0.1
    assert by_levels.value > by_boxes.value
    assert by_levels.value <= by_boxes.bound
