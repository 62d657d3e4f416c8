"""Presolve: inputs with the same posterior are one to the optimiser, and nothing is lost when they are split again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel import LDP, LIP, Joint
from funnel.guarantees.base import PosteriorGuarantee
from funnel.solver.goal import negative_entropy
from funnel.solver.presolve import merge_equal_posteriors, split_rows
from funnel.solver.split import best_split
from funnel.solver.vertices import exact_vertices
from tests.strategies import joints

kinds = st.sampled_from([LIP, LDP])


@st.composite
def repeated(draw: st.DrawFn) -> Joint:
    """Joint distributions in which a few columns occur several times, up to scale; some inputs never occur."""
    c, groups = draw(st.integers(2, 3)), draw(st.integers(1, 3))
    column = st.lists(st.integers(0, 9), min_size=c, max_size=c).filter(any)
    base = [draw(column) for _ in range(groups)]
    picks = draw(st.lists(st.tuples(st.integers(0, groups - 1), st.integers(0, 7)), min_size=1, max_size=5))
    counts = np.array([np.array(base[group]) * scale for group, scale in picks]).T
    if counts.sum() == 0:
        counts[0, 0] = 1
    return Joint.from_counts(counts)


@given(repeated())
def test_inputs_are_merged_exactly_when_their_posteriors_are_equal(joint: Joint) -> None:
    merged = merge_equal_posteriors(joint)
    place = {x: m for m, group in enumerate(merged.members) for x in group}
    assert set(place) == set(np.flatnonzero(joint.counts.any(axis=0)))
    for x, m in place.items():
        for y, k in place.items():
            # Proportional columns, by cross-multiplication in integers.
            proportional = (np.outer(joint.counts[:, x], joint.counts[:, y])).T.tolist() == np.outer(
                joint.counts[:, x], joint.counts[:, y]
            ).tolist()
            assert (m == k) == proportional
    assert merged.joint.n == joint.n
    assert (merged.joint.counts.sum(axis=1) > 0).all()


@settings(max_examples=60)
@given(repeated(), kinds, st.sampled_from([0.05, 0.5, 2.0]))
def test_the_optimum_is_that_of_the_programme_without_presolve(
    joint: Joint, kind: type[PosteriorGuarantee], epsilon: float
) -> None:
    guarantee = kind(epsilon)
    plain = Joint.from_counts(joint.counts[joint.counts.any(axis=1)][:, joint.counts.any(axis=0)])
    vertices = exact_vertices(guarantee.posterior_cone(plain.p_secret), plain.counts)
    direct = joint.entropy + best_split(vertices, plain.p_input).value
    solution = funnel.optimal(joint, guarantee)
    assert solution.utility == pytest.approx(direct, abs=1e-7)
    assert len(solution.protocol.outputs) <= len(plain.inputs)


@given(joints(), st.integers(0, 2**32 - 1))
def test_split_outputs_add_up_to_the_input_distribution_and_keep_their_entropy(joint: Joint, seed: int) -> None:
    merged = merge_equal_posteriors(joint)
    rng = np.random.default_rng(seed)
    channel = rng.dirichlet(np.full(3, 0.5), size=len(merged.members)).T
    distribution = channel * merged.joint.p_input
    mass, posteriors = distribution.sum(axis=1), distribution / distribution.sum(axis=1, keepdims=True)
    fine, fine_mass = split_rows(merged, posteriors, mass)
    assert fine_mass @ fine == pytest.approx(joint.p_input, abs=1e-12)
    assert fine_mass @ negative_entropy(fine) == pytest.approx(mass @ negative_entropy(posteriors), abs=1e-12)
    secret = merged.joint.secret_given_input
    allowed = {tuple(np.round(secret @ posterior, 9)) for posterior in posteriors}
    seen = joint.counts.any(axis=1)
    assert {tuple(np.round(joint.secret_given_input[seen] @ row, 9)) for row in fine} <= allowed


def test_members_that_end_together_leave_no_sliver() -> None:
    """1/3 + 1/3 and 2/3 differ as floats: a piece of one rounding error between them would be an output of its own."""
    joint = Joint.from_counts([[1, 1, 1, 20, 10], [3, 3, 3, 20, 10]])
    merged = merge_equal_posteriors(joint)
    assert merged.members == ((0, 1, 2), (3, 4))
    _, mass = split_rows(merged, np.array([[0.5, 0.5]]), np.array([1.0]))
    assert mass == pytest.approx([1 / 3] * 3)


@given(repeated(), st.integers(0, 2**32 - 1))
def test_pieces_are_few_and_their_zeros_many(joint: Joint, seed: int) -> None:
    """a - m + k pieces at most: every member is cut once for every further output that it is shared with."""
    merged = merge_equal_posteriors(joint)
    rng = np.random.default_rng(seed)
    channel = rng.dirichlet(np.full(3, 0.5), size=len(merged.members)).T
    channel = np.where(rng.random(channel.shape) < 0.6, channel, 0.0)
    channel[0] += 1e-3
    distribution = channel / channel.sum(axis=0) * merged.joint.p_input
    distribution = distribution[distribution.any(axis=1)]
    mass, posteriors = distribution.sum(axis=1), distribution / distribution.sum(axis=1, keepdims=True)
    fine, fine_mass = split_rows(merged, posteriors, mass)
    assert len(fine) <= int(joint.counts.any(axis=0).sum()) - len(merged.members) + len(mass)
    assert fine_mass @ fine == pytest.approx(joint.p_input, abs=1e-12)
    # Over merged inputs every piece is the very row it comes from.
    whole = np.stack([fine[:, list(group)].sum(axis=1) for group in merged.members], axis=1)
    assert {row.tobytes() for row in whole} <= {row.tobytes() for row in posteriors}
    assert ((fine > 0).sum(axis=1) == (whole > 0).sum(axis=1)).all()


def test_a_wide_table_is_split_with_about_as_many_entries_as_it_has_columns() -> None:
    """2 x 1,527 took 38 seconds and a gigabyte when every output was cut at the end of every member."""
    random = np.random.default_rng(0)
    posterior = random.integers(1, 60, size=(2, 80))
    counts = posterior[:, random.integers(80, size=1527)] * random.integers(1, 400, size=1527)
    joint = Joint.from_counts(counts)
    merged = merge_equal_posteriors(joint)
    a, m = 1527, len(merged.members)
    pairs = np.eye(m) + np.eye(m)[::-1]
    distribution = pairs / pairs.sum(axis=0) * merged.joint.p_input
    fine, mass = split_rows(merged, distribution / distribution.sum(axis=1, keepdims=True), distribution.sum(axis=1))
    assert m < 100 < a
    assert len(mass) <= a
    # One member of each of at most two merged inputs.
    assert np.count_nonzero(fine) <= 2 * len(mass)
    assert mass @ fine == pytest.approx(joint.p_input, abs=1e-12)
