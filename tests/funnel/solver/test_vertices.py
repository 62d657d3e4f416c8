"""Vertices: all of them, or an error; never a list with a gap, on which a false bound would rest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import funnel
from funnel import ALIP, LDP, LIP, Guarantee, Joint, PerfectPrivacy, SolverError
from funnel.guarantees.base import PosteriorGuarantee
from funnel.guarantees.exact import exp_below
from funnel.solver.budget import Budget
from funnel.solver.presolve import merge_equal_posteriors
from funnel.solver.vertices import InconsistentVerticesError, enumerate_vertices, exact_vertices, require_complete
from tests.brute import cone_by_fractions, vertices_by_fractions
from tests.strategies import joints

kinds = st.sampled_from([LIP, LDP])
# Where cddlib alone loses vertices without a word: nearly deterministic secrets, large and small budgets.
HARD: list[tuple[list[list[int]], Guarantee]] = [
    ([[1, 0, 0], [0, 1, 0], [0, 0, 1]], LDP(10.0)),
    ([[1, 0, 0], [200, 3129400, 0], [0, 600, 0], [0, 2700, 1000]], LDP(2.5)),
    ([[1000, 1, 1, 1], [1, 1000, 1, 1], [1, 1, 1000, 1], [1, 1, 1, 1000]], LDP(0.01)),
    ([[342, 929], [0, 723], [729, 1], [730, 601]], LIP(10.0)),
    ([[3, 211, 2327, 1855], [2624, 5826, 515, 6782], [39, 2399, 5607, 760]], LIP(1e-9)),
    ([[13079, 0, 0, 17603], [0, 0, 10750, 14167], [10507, 21526, 21818, 0]], LIP(20.0)),
]


def same_points(one: np.ndarray, other: np.ndarray) -> bool:
    distance = np.abs(one[:, None] - other[None]).max(axis=2)
    return bool(distance.min(axis=0).max() < 1e-8 and distance.min(axis=1).max() < 1e-8)


def merged(joint: Joint) -> Joint:
    return merge_equal_posteriors(joint).joint


@settings(max_examples=60)
@given(joints(max_secrets=3, max_inputs=4), kinds, st.sampled_from([0.01, 0.2, 1.0, 3.0, 8.0]))
def test_equal_to_every_support_with_every_tight_set(joint: Joint, kind: type[Guarantee], epsilon: float) -> None:
    joint = merged(joint)
    assume(len(joint.secret) > 1)
    guarantee = kind(epsilon)
    expected = vertices_by_fractions(cone_by_fractions(joint, guarantee, exp_below(epsilon)))
    assert same_points(enumerate_vertices(joint, guarantee), expected)


@pytest.mark.parametrize(("counts", "guarantee"), HARD)
def test_vertices_that_floating_point_loses_are_found(counts: list[list[int]], guarantee: Guarantee) -> None:
    joint = Joint.from_counts(counts)
    expected = vertices_by_fractions(cone_by_fractions(joint, guarantee, exp_below(guarantee.epsilon)))
    assert same_points(enumerate_vertices(joint, guarantee), expected)
    assert isinstance(guarantee, PosteriorGuarantee)
    assert same_points(exact_vertices(guarantee.posterior_cone(joint.p_secret), joint.counts), expected)


@settings(max_examples=30)
@given(joints(max_secrets=3, max_inputs=4), kinds)
def test_perfect_privacy_is_an_equality(joint: Joint, kind: type[Guarantee]) -> None:
    joint = merged(joint)
    vertices = enumerate_vertices(joint, kind(0.0))
    lifts = vertices @ joint.secret_given_input.T / joint.p_secret
    assert lifts == pytest.approx(1, abs=1e-6)
    if len(joint.secret) > 1:
        expected = vertices_by_fractions(cone_by_fractions(joint, LIP(0.0), exp_below(0.0)))
        assert same_points(vertices, expected)


@pytest.mark.parametrize("text", ["alip:0,1", "alip:0,inf", "alip:1,0", "alip:inf,0"])
@pytest.mark.parametrize(
    "counts", [[[9, 0, 3], [9, 2, 0], [9, 0, 3]], [[0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 5, 0]], [[1, 2, 3], [4, 5, 6]]]
)
def test_a_side_of_zero_has_the_optimum_of_perfect_privacy(counts: list[list[int]], text: str) -> None:
    """Lifts that are all on one side of 1 are all 1: the region is flat, which rounding must not make empty."""
    joint, guarantee = Joint.from_counts(counts), funnel.parse_guarantee(text)
    found = funnel.optimal(joint, guarantee)
    assert guarantee.holds(joint, found.protocol)
    assert found.utility == pytest.approx(funnel.optimal(joint, PerfectPrivacy()).utility, abs=1e-6)


def test_a_region_that_rounding_makes_empty_is_no_list_of_no_vertices() -> None:
    """As floats the conditions of so small a budget contradict each other; columns find what there is."""
    joint, guarantee = Joint.from_counts([[9, 0, 3], [9, 2, 0], [9, 0, 3]]), ALIP(1e-17, 1.0)
    with pytest.raises(SolverError):
        enumerate_vertices(joint, guarantee)
    found = funnel.optimal(joint, guarantee)
    assert guarantee.holds(joint, found.protocol)
    assert found.bound >= funnel.optimal(joint, PerfectPrivacy()).utility


@pytest.mark.parametrize("guarantee", [LIP(0.4), LDP(0.4)])
def test_a_gap_is_noticed_whichever_vertex_is_missing(guarantee: Guarantee) -> None:
    joint = Joint.from_counts(np.random.default_rng(6).integers(1, 100, (4, 5)))
    rows, none = guarantee.cone(joint) / joint.p_input, np.zeros((0, 5))
    vertices = enumerate_vertices(joint, guarantee)
    require_complete(vertices, rows, none)
    for missing in range(len(vertices)):
        with pytest.raises(InconsistentVerticesError, match=r"missing|span"):
            require_complete(np.delete(vertices, missing, axis=0), rows, none)
    for wrong, word in (
        (np.vstack([vertices, vertices[:1]]), "twice|missing"),
        (np.vstack([vertices, joint.p_input]), "not a vertex"),
        (np.vstack([vertices, np.eye(5)[:1]]), "outside"),
        (np.vstack([vertices, [[-0.1, 1.1, 0, 0, 0]]]), "negative"),
        (vertices[:0], "no vertex"),
    ):
        with pytest.raises(InconsistentVerticesError, match=word):
            require_complete(wrong, rows, none)


def test_a_list_that_may_be_too_long_is_not_begun() -> None:
    joint = Joint.from_counts(np.random.default_rng(8).integers(1, 9999, (7, 16)))
    with pytest.raises(SolverError, match="over 16 distinct inputs may be too many to be listed"):
        enumerate_vertices(joint, LDP(0.5))


def test_a_budget_ends_the_exact_enumeration() -> None:
    joint = Joint.from_counts(np.random.default_rng(9).integers(1, 9999, (5, 6)))
    with pytest.raises(SolverError, match="did not finish in time"):
        exact_vertices(LDP(0.5).posterior_cone(joint.p_secret), joint.counts, Budget.of(1e-5, lambda: 0.0))


def test_one_secret_or_one_input_leaves_every_point_allowed() -> None:
    assert enumerate_vertices(Joint.from_counts([[3, 4, 5]]), LDP(0.1)).tolist() == np.eye(3).tolist()
    assert enumerate_vertices(Joint.from_counts([[3], [4], [5]]), LIP(0.0)).tolist() == [[1.0]]
