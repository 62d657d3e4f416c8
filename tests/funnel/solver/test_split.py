"""The programme over vertices and the repair of its solution: sums to the last bit, and a bound that is one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from funnel import LDP, LIP, Guarantee, Joint, SolverError
from funnel.joint import FloatArray
from funnel.solver.goal import negative_entropy
from funnel.solver.integers import polish
from funnel.solver.presolve import merge_equal_posteriors
from funnel.solver.repair import repaired
from funnel.solver.split import Split, best_split
from funnel.solver.vertices import enumerate_vertices
from tests.strategies import joints


@st.composite
def programmes(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Random posteriors with zeros, all corners of the simplex among them, and a distribution with rare inputs."""
    a, k = draw(st.integers(1, 5)), draw(st.integers(0, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    points = rng.dirichlet(np.full(a, 0.5), size=k) * (rng.random((k, a)) < 0.7)
    points = points[points.sum(axis=1) > 0]
    distribution = rng.dirichlet(np.ones(a)) * 10.0 ** -rng.integers(0, 9, a)
    return np.vstack(
        [np.eye(a) * 0.9 + 0.1 * distribution / distribution.sum(), points / points.sum(axis=1, keepdims=True)]
    ), distribution / distribution.sum()


@given(programmes())
def test_a_split_adds_up_and_is_optimal(programme: tuple[np.ndarray, np.ndarray]) -> None:
    posteriors, distribution = programme
    split = best_split(posteriors, distribution)
    assert (split.mass > 0).all()
    assert len(split.mass) <= len(distribution)
    # Relative to each input, however rare.
    assert split.mass @ split.posteriors / distribution == pytest.approx(1, abs=1e-9)
    assert split.value == pytest.approx(split.mass @ negative_entropy(split.posteriors), abs=1e-12)
    assert split.value <= split.bound + 1e-12
    # As near for rare inputs as for others: what the solver leaves open would be more than all of theirs.
    equations = (posteriors / distribution).T
    reference = linprog(-negative_entropy(posteriors), A_eq=equations, b_eq=np.ones(len(equations)), method="highs")
    assert split.value == pytest.approx(-reference.fun, abs=1e-6)


def test_a_distribution_outside_the_hull_is_an_error() -> None:
    with pytest.raises(SolverError, match="not a mixture of the 1 posteriors given"):
        best_split(np.array([[1.0, 0.0]]), np.array([0.5, 0.5]))


def split_of(distribution: Joint, guarantee: Guarantee) -> tuple[Split, FloatArray]:
    """The best split of a joint distribution, and the rows of its guarantee for posteriors of inputs."""
    return best_split(enumerate_vertices(distribution, guarantee), distribution.p_input), guarantee.cone(
        distribution
    ) / distribution.p_input


@settings(max_examples=60)
@given(joints(min_inputs=2), st.sampled_from([LIP, LDP]), st.sampled_from([0.1, 1.0, 3.0]))
def test_repair_goes_inside_and_stays_near(joint: Joint, kind: type[Guarantee], epsilon: float) -> None:
    distribution, guarantee = merge_equal_posteriors(joint).joint, kind(epsilon)
    if len(distribution.secret) == 1:
        return
    split, rows = split_of(distribution, guarantee)
    moved = repaired(split, distribution.p_input, guarantee.tightened(1e-8).cone(distribution) / distribution.p_input)
    if moved is None:
        return
    # Zeros stay zeros.
    assert ((moved.mass @ (moved.posteriors > 0)) <= (split.mass @ (split.posteriors > 0)) + 1e-6).all()
    assert moved.mass @ moved.posteriors / distribution.p_input == pytest.approx(1, abs=1e-8)
    size = np.abs(rows) @ moved.posteriors.T
    assert (rows @ moved.posteriors.T <= 1e-9 * size).all()
    assert moved.value == pytest.approx(split.value, abs=1e-5)


def test_a_plain_split_is_repaired() -> None:
    """Otherwise every protocol would have to be mixed with the marginal, and would lose its zeros."""
    distribution = Joint.from_counts(np.random.default_rng(3).integers(1, 1000, (3, 5)))
    for guarantee in (LIP(0.3), LDP(0.3)):
        split, _ = split_of(distribution, guarantee)
        moved = repaired(
            split, distribution.p_input, guarantee.tightened(1e-8).cone(distribution) / distribution.p_input
        )
        assert moved is not None
        assert ((moved.posteriors > 0) == (split.posteriors > 0)).all()


@settings(max_examples=60)
@given(joints(min_inputs=2), st.sampled_from([LIP, LDP]), st.sampled_from([0.1, 1.0, 3.0]))
def test_polishing_goes_inside_and_stays_near(joint: Joint, kind: type[Guarantee], epsilon: float) -> None:
    distribution, guarantee = merge_equal_posteriors(joint).joint, kind(epsilon)
    if len(distribution.secret) == 1:
        return
    split, rows = split_of(distribution, guarantee)
    polished = polish(
        split, distribution.p_input, rows, guarantee.tightened(1e-9).cone(distribution) / distribution.p_input
    )
    if polished is None:
        return
    assert ((polished.posteriors > 0) == (split.posteriors > 0)).all()
    assert polished.posteriors == pytest.approx(split.posteriors, abs=1e-5)
    assert polished.mass @ polished.posteriors / distribution.p_input == pytest.approx(1, abs=1e-12)
    size = np.abs(rows) @ polished.posteriors.T
    assert (rows @ polished.posteriors.T <= 1e-14 * size).all()
    assert polished.value == pytest.approx(split.value, abs=1e-6)


def test_a_plain_corner_is_polished() -> None:
    """Otherwise every protocol would have to be repaired, and would lose its zeros."""
    distribution = Joint.from_counts(np.random.default_rng(3).integers(1, 1000, (3, 5)))
    for guarantee in (LIP(0.3), LDP(0.3)):
        split, rows = split_of(distribution, guarantee)
        assert (
            polish(
                split, distribution.p_input, rows, guarantee.tightened(1e-11).cone(distribution) / distribution.p_input
            )
            is not None
        )
