"""Where floating point ends: tiny and huge budgets, rare secrets, the largest tables; proven, never wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel import LDP, LIP, Guarantee, Joint
from funnel.joint import MAX_ROWS
from funnel.solver.request import Solution
from tests.strategies import joints

kinds = st.sampled_from([LIP, LDP])


def check(joint: Joint, guarantee: Guarantee) -> Solution:
    solution = funnel.optimal(joint, guarantee)
    assert guarantee.holds(joint, solution.protocol)
    assert solution.gap >= 0
    assert solution.bound <= joint.entropy + 1e-12
    assert len(solution.protocol.outputs) <= len(joint.inputs)
    assert solution.protocol.weights.any(axis=1).all()
    assert (solution.status == "optimal") == (solution.gap <= 1e-6)
    for name in ("grr", "identity"):
        try:
            other = funnel.fit(name, joint, guarantee)
        except funnel.InfeasibleGuarantee:
            continue
        assert funnel.measures.mutual_information(joint, other) <= solution.bound + 1e-12
    return solution


@settings(max_examples=60)
@given(joints(), kinds, st.sampled_from([1e-5, 10.0, 20.0, 44.0, 800.0, 1e300]))
def test_extreme_budgets(joint: Joint, kind: type[Guarantee], epsilon: float) -> None:
    check(joint, kind(epsilon))


@settings(max_examples=60)
@given(joints(), kinds, st.sampled_from([1e-17, 1e-12, 1e-9, 1e-7]))
def test_budgets_too_small_for_floating_point(joint: Joint, kind: type[Guarantee], epsilon: float) -> None:
    """The polytope is thinner than the solver's tolerance: the protocol is proven all the same, with an honest gap."""
    check(joint, kind(epsilon))


@settings(max_examples=40)
@given(joints(), kinds)
def test_perfect_privacy(joint: Joint, kind: type[Guarantee]) -> None:
    solution = check(joint, kind(0.0))
    assert kind(0.0).level(joint, solution.protocol).value == 0


@settings(max_examples=40)
@given(joints(max_secrets=3, min_inputs=2), kinds, st.sampled_from([0.01, 0.5, 3.0]), st.integers(1, 10**5))
def test_rare_secrets_in_the_largest_tables(joint: Joint, kind: type[Guarantee], epsilon: float, rare: int) -> None:
    """As many records as exact arithmetic is laid out for, and a secret of probability 5e-10 to 5e-5."""
    counts = joint.counts * ((MAX_ROWS - 10**6) // joint.n)
    counts[0, 0] += MAX_ROWS - 1 - rare - counts.sum()
    largest = Joint.from_counts(np.vstack([counts, np.eye(1, counts.shape[1], 1, dtype=np.int64) * rare]))
    assert largest.n == MAX_ROWS - 1
    assert check(largest, kind(epsilon)).gap <= 1e-5


def test_what_is_independent_of_the_secret_is_published_unchanged() -> None:
    joint = Joint.from_counts(np.outer([3, 5, 7], [1, 2, 3, 4]))
    for guarantee in (LIP(0.0), LDP(0.0), LIP(1e-15), LDP(2.0)):
        solution = check(joint, guarantee)
        assert solution.utility == pytest.approx(joint.entropy)
        assert solution.protocol.outputs.labels == joint.inputs.labels
        assert guarantee.level(joint, solution.protocol).value == 0


def test_ties_give_the_same_protocol_every_time() -> None:
    joint = Joint.from_counts([[9, 1, 1], [1, 9, 1], [1, 1, 9]])
    digests = {funnel.optimal(joint, LDP(0.7)).protocol.digest for _ in range(3)}
    assert len(digests) == 1


def test_a_bound_is_not_taken_from_an_incomplete_list_of_vertices() -> None:
    """cddlib finds a single vertex here; a bound from it was below what GRR reaches."""
    joint = Joint.from_counts([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]])
    for guarantee in (LDP(10.0), LIP(10.0)):
        assert check(joint, guarantee).utility > 1.097
