"""A vertex of the region has nothing left to say: decided by rank, and by linear programmes that look for something."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from funnel import LIP, Joint
from funnel.history.vertex import NOTHING, nothing_left, what_is_left
from funnel.joint import FloatArray
from funnel.solver.vertices import enumerate_vertices
from tests.strategies import joints


def most_that_is_said(law: FloatArray, cone: FloatArray, rng: np.random.Generator) -> float:
    """A lower bound on what is left: the most that an output of two can lean to some inputs, in random directions."""
    posterior = law.sum(axis=0)
    seen = posterior > 0
    law, p = law[:, seen], posterior[seen]
    limits = np.maximum(cone @ law.sum(axis=1), 0)
    conditions = cone @ law - limits[:, None] * p
    best = 0.0
    for _ in range(4):
        gain = rng.normal(size=len(p))
        gain -= gain @ p
        # One row T of two, and 1 - T, both of them allowed.
        found = linprog(
            -gain * p, np.vstack([conditions, -conditions]), np.r_[np.zeros(len(cone)), -conditions.sum(axis=1)],
            bounds=(0, 1), method="highs",
        )  # fmt: skip
        if found.status == 0:
            best = max(best, float(np.abs(p * (found.x - p @ found.x)).sum()))
    return best


def law_of(joint: Joint, posterior: FloatArray) -> FloatArray:
    return np.asarray(joint.secret_given_input * posterior)


@given(joints(max_secrets=3, max_inputs=5, min_inputs=2), st.sampled_from([0.1, 0.5, 1.0]), st.integers(0, 2**31))
@settings(max_examples=25, deadline=None)
def test_vertices_have_nothing_left_and_points_between_them_have(joint: Joint, budget: float, seed: int) -> None:
    assume(joint.counts.any(axis=1).all() and joint.counts.any(axis=0).all())
    ratios = joint.secret_given_input
    distances = np.abs(ratios[:, :, None] - ratios[:, None, :]).sum(axis=0) + np.eye(ratios.shape[1])
    assume(distances.min() > 1e-3 and len(ratios) > 1)
    cone = LIP(budget).posterior_cone(joint.p_secret)
    vertices = enumerate_vertices(joint, LIP(budget))
    rng = np.random.default_rng(seed)
    laws = np.stack([law_of(joint, np.where(v > 1e-12, v, 0)) for v in vertices])
    left = what_is_left(laws, cone)
    for law, bound in zip(laws, left, strict=True):
        # The bound is above whatever a programme finds, where it is one at all.
        assert most_that_is_said(law, cone, rng) <= bound + 1e-6
    if len(vertices) > 1:
        first, second = rng.choice(len(vertices), 2, replace=False)
        between = law_of(joint, (vertices[first] + vertices[second]) / 2)
        apart = np.abs(vertices[first] - vertices[second]).sum() / 2
        # Its two ends are a protocol that is allowed.
        assert what_is_left(between[None], cone)[0] >= apart / 2 - 1e-6


def test_the_vertices_of_plain_regions_are_found() -> None:
    joint = Joint.from_counts([[60, 30, 10], [10, 30, 60]])
    cone = LIP(0.3).posterior_cone(joint.p_secret)
    vertices = enumerate_vertices(joint, LIP(0.3))
    laws = np.stack([law_of(joint, v) for v in vertices])
    assert len(vertices) >= 3
    assert nothing_left(laws, cone).all()
    assert not nothing_left(law_of(joint, joint.p_input)[None], cone).any()
    # A budget larger by a thousandth leaves about so much to say: more than nothing.
    wider = what_is_left(laws, LIP(0.3003).posterior_cone(joint.p_secret))
    pairs = (vertices > 0).sum(axis=1) == 2
    assert ((wider[pairs] > NOTHING) & (wider[pairs] < 0.01)).all()
    # A person whose input is known for certain has nothing left, whatever the budget.
    assert (~pairs).any()
    assert (what_is_left(laws[~pairs], cone) < 1e-15).all()


def test_a_history_that_the_frequencies_moved_is_held_where_it_is() -> None:
    joint = Joint.from_counts([[60, 30, 10], [10, 30, 60]])
    cone = LIP(0.3).posterior_cone(joint.p_secret)
    # Outside the bound: whatever is said, the posterior of the secret must stay as it is.
    moved = law_of(joint, np.array([0.9, 0.0, 0.1]))[None]
    assert (cone @ moved[0].sum(axis=1) > 0).any()
    assert nothing_left(moved, cone).all()
    # With an input of equal meaning for the secret, those two can be told apart for ever.
    twins = Joint.from_counts([[60, 30, 30, 10], [10, 5, 30, 60]])
    still = law_of(twins, np.array([0.5, 0.4, 0.0, 0.1]))[None]
    assert np.isinf(what_is_left(still, LIP(0.3).posterior_cone(twins.p_secret))).all()


def test_a_history_with_more_inputs_than_secrets_is_never_at_a_vertex() -> None:
    joint = Joint.from_counts([[60, 30, 10], [10, 30, 60]])
    law = law_of(joint, np.array([0.5, 0.25, 0.25]))[None]
    assert np.isinf(what_is_left(law, LIP(0.3).posterior_cone(joint.p_secret))).all()
