"""From floats to proven integers: exact sums, kept zeros, and repairs that are as small as they can be."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from funnel import LDP, LIP, InfeasibleGuarantee, Joint, PerfectPrivacy, SolverError, SpecError
from funnel.protocol import DENOMINATOR, exact_sums
from funnel.rounding import (
    integer_weights,
    marginal_weights,
    mix,
    protocol_from_matrix,
    proven_weights,
    rounded_weights,
    silence_unseen,
    sparse_integer_weights,
    sparse_rounded_weights,
)
from funnel.sparse_weights import SparseWeights
from tests.strategies import joints

matrices = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.integers(1, 6)),
    elements=st.one_of(st.just(0.0), st.floats(1e-12, 1)),
).filter(lambda matrix: bool((matrix.sum(axis=0) > 0).all()))


@given(matrices)
def test_rounding_keeps_sums_zeros_and_proportions(matrix: np.ndarray) -> None:
    channel = matrix / matrix.sum(axis=0)
    weights = integer_weights(channel)
    assert set(exact_sums(weights)) == {DENOMINATOR}
    assert ((weights == 0) >= (channel == 0)).all()
    assert weights / float(DENOMINATOR) == pytest.approx(channel, rel=1e-12, abs=1e-18)


@pytest.mark.parametrize(
    "matrix", [[[0.5], [0.4]], [[1.1], [-0.1]], [[np.nan], [1.0]], [[np.inf], [1.0]], [[0.0], [0.0]]]
)
def test_what_is_no_channel_is_refused(matrix: list[list[float]]) -> None:
    with pytest.raises(SolverError, match="not a channel"):
        integer_weights(np.array(matrix))


@given(matrices, st.randoms(use_true_random=False))
def test_entries_in_any_order_are_rounded_as_a_table_is(matrix: np.ndarray, random: Random) -> None:
    """Only what a column lacks may go to another entry, where the largest are equal: to the first that is given."""
    outputs, inputs = np.nonzero(matrix)
    order = np.array(random.sample(range(len(outputs)), len(outputs)))
    outputs, inputs = outputs[order], inputs[order]
    # Sums in the same order are the same floats.
    channel = matrix / matrix.sum(axis=0)
    channel /= channel.sum(axis=0)
    found = sparse_integer_weights(outputs, inputs, channel[outputs, inputs], channel.shape)
    assert found.sums_by_input() == [DENOMINATOR] * channel.shape[1]
    sums = np.bincount(inputs, weights=channel[outputs, inputs])
    table, floored = found.table(), np.ldexp(channel / sums, 63).astype(np.uint64)
    for x in range(channel.shape[1]):
        (at,) = np.nonzero(table[:, x] != floored[:, x])
        given = outputs[inputs == x]
        first = next(y for y in given if floored[y, x] == floored[:, x].max())
        assert at.tolist() in ([], [first])


@pytest.mark.parametrize("values", [[0.5, 0.4], [1.5, -0.5], [np.nan, 1.0], [np.inf, 1.0]])
def test_entries_that_are_no_channel_are_refused(values: list[float]) -> None:
    with pytest.raises(SolverError, match="not a channel"):
        sparse_integer_weights(np.array([0, 1]), np.array([0, 0]), np.array(values), (2, 1))
    with pytest.raises(SolverError, match="a column does not sum to 1"):
        sparse_integer_weights(np.array([0]), np.array([0]), np.ones(1), (1, 2))


def test_an_input_that_is_drawn_as_it_is_weighs_all() -> None:
    found = sparse_integer_weights(np.array([1, 0]), np.array([0, 1]), np.ones(2), (2, 2))
    assert found.table().tolist() == [[0, DENOMINATOR], [DENOMINATOR, 0]]


def test_masses_are_shares_of_what_an_input_has() -> None:
    """P(x, y) of inputs of 1/4 and 3/4, in binary fractions: nothing is rounded."""
    joint = Joint.from_counts([[1, 2], [0, 1]])
    outputs, inputs, masses = np.array([0, 1, 0, 2]), np.array([0, 0, 1, 1]), np.array([1, 3, 6, 6]) / 16
    weights = sparse_rounded_weights(joint, outputs, inputs, masses, 4)
    quarter = DENOMINATOR // 4
    assert weights.table().tolist() == [[quarter, 2 * quarter], [3 * quarter, 0], [0, 2 * quarter], [0, 0]]
    # 1/4 1/4 + 3/4 1/2, and so on: what a unit of rounding is in the largest.
    assert marginal_weights(joint, weights).tolist() == [7 * quarter // 4, 3 * quarter // 4, 6 * quarter // 4, 0]


@given(joints(min_inputs=2), st.integers(0, 2**32 - 1))
def test_the_distribution_of_the_output_is_exact_however_weights_are_held(joint: Joint, seed: int) -> None:
    weights = integer_weights(np.random.default_rng(seed).dirichlet(np.ones(3), size=len(joint.inputs)).T)
    counts = joint.counts.sum(axis=0).tolist()
    exact = [sum(n * w for n, w in zip(counts, row, strict=True)) // joint.n for row in weights.tolist()]
    exact[exact.index(max(exact))] += DENOMINATOR - sum(exact)
    assert marginal_weights(joint, weights).tolist() == exact
    assert marginal_weights(joint, SparseWeights.of(weights)).tolist() == exact


@given(joints(min_inputs=2), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_mixing_lowers_every_level(joint: Joint, share: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = integer_weights(rng.dirichlet(np.ones(3), size=len(joint.inputs)).T)
    mixed = mix(weights, marginal_weights(joint, weights), share)
    assert set(exact_sums(mixed)) == {DENOMINATOR}
    for guarantee in (LIP(1.0), LDP(1.0)):
        before, after = (guarantee.worst(joint, w).ratio for w in (weights, mixed))
        assert before is not None
        assert after is not None
        # A unit in the last place of an integer weight is all that may be lost.
        assert float(after) <= float(before) * (1 + 1e-12)


@given(joints(min_inputs=2), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_mixing_is_exact(joint: Joint, share: float, seed: int) -> None:
    """Every weight is the exact mixture rounded down; the largest of a column takes what that leaves."""
    rng = np.random.default_rng(seed)
    weights = integer_weights(rng.dirichlet(np.ones(3), size=len(joint.inputs)).T)
    marginal, part = marginal_weights(joint, weights), round(share * DENOMINATOR)
    for column, mixed in zip(weights.T.tolist(), mix(weights, marginal, share).T.tolist(), strict=True):
        exact = [
            (w * (DENOMINATOR - part) + int(q) * part) // DENOMINATOR for w, q in zip(column, marginal, strict=True)
        ]
        exact[exact.index(max(exact))] += DENOMINATOR - sum(exact)
        assert mixed == exact


@given(joints(min_inputs=2), st.sampled_from([0.1, 0.5, 1.5]), st.integers(0, 2**32 - 1))
def test_a_miss_by_a_hair_is_repaired_by_a_hair(joint: Joint, epsilon: float, seed: int) -> None:
    """A channel scaled to lie on the bound up to float error ends within it, hardly changed."""
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.ones(3), size=len(joint.inputs)).T
    marginal = matrix @ joint.p_input
    guarantee = LIP(epsilon)

    def at(share: float) -> np.ndarray:
        return np.asarray((1 - share) * matrix + share * marginal[:, None])

    if (guarantee.cone(joint) @ matrix.T <= 0).all():
        return
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if (guarantee.cone(joint) @ at(middle).T <= 0).all() else (middle, high)
    edge = at(low)
    weights = proven_weights(joint, guarantee, edge)
    assert guarantee.holds_for(joint, weights)
    seen = joint.p_input > 0
    assert weights[:, seen] / float(DENOMINATOR) == pytest.approx(edge[:, seen], abs=1e-9)


def test_a_miss_by_more_is_refused_with_the_level_reached() -> None:
    joint = Joint.from_counts([[90, 10], [10, 90]])
    with pytest.raises(InfeasibleGuarantee, match="reaches level") as caught:
        proven_weights(joint, LIP(0.1), np.eye(2))
    # P(y|s)/P(y) is 0.1 / 0.5 for the rarer pair.
    assert caught.value.best_level == pytest.approx(np.log(5))


def test_a_faint_output_is_joined_to_another_instead_of_losing_entries() -> None:
    """Its entries lie on both sides of the dust: dropping some would make it exclude a secret."""
    joint = Joint.from_counts([[30, 10], [10, 30]])
    matrix = np.array([[0.6, 0.4], [0.4 - 3e-14, 0.6 - 5e-15], [3e-14, 5e-15]])
    weights = rounded_weights(joint, matrix)
    assert weights / float(DENOMINATOR) == pytest.approx(matrix[:2], abs=1e-13)
    assert set(exact_sums(weights)) == {DENOMINATOR}
    # Rather to one that its inputs can produce anyway, so that a true value stays one.
    plain = rounded_weights(joint, np.array([[1.0, 0.0], [0.0, 1 - 1e-10], [0.0, 1e-10]]))
    assert (plain == np.array([[2**63, 0], [0, 2**63]], dtype=np.uint64)).all()


def test_with_leave_to_mix_everything_every_channel_is_repaired() -> None:
    joint = Joint.from_counts([[90, 10], [10, 90]])
    for epsilon in (0.1, 1e-9, 1e-17):
        weights = proven_weights(joint, LDP(epsilon), np.eye(2), largest_repair=1.0)
        assert LDP(epsilon).holds_for(joint, weights)
    # The largest share of the truth that 0.1 allows: (1 - t) 0.9 + t / 2 = e^0.1 ((1 - t) 0.1 + t / 2).
    kept = proven_weights(joint, LDP(0.1), np.eye(2), largest_repair=1.0) / float(DENOMINATOR)
    truth = np.expm1(0.1) / 2 / (0.9 - 0.1 * np.exp(0.1) + np.expm1(0.1) / 2)
    assert kept[0, 0] - kept[0, 1] == pytest.approx(truth, rel=1e-7)
    assert kept[0, 0] - kept[0, 1] <= truth
    assert proven_weights(joint, LIP(0.0), np.eye(2)).tolist() == [[DENOMINATOR, DENOMINATOR]]


def test_inputs_that_never_occur_get_the_marginal() -> None:
    joint = Joint.from_counts([[30, 0, 10], [10, 0, 30]])
    weights = silence_unseen(joint, integer_weights(np.eye(3)))
    assert (weights[:, 1] == marginal_weights(joint, weights)).all()
    assert weights[:, 1] / float(DENOMINATOR) == pytest.approx([0.5, 0.0, 0.5])


@pytest.mark.parametrize("epsilon", [0.5, 0.1, 1e-3])
def test_inputs_that_never_occur_get_the_marginal_of_what_is_repaired(epsilon: float) -> None:
    """To the last unit: mixing moves the marginal by a few, and the silent columns follow."""
    for seed in range(20):
        random = np.random.default_rng(seed)
        counts = random.integers(1, 50, size=(2, 5))
        counts[:, seed % 5] = 0
        joint = Joint.from_counts(counts)
        matrix = random.dirichlet(np.full(4, 0.5), size=5).T
        repaired = proven_weights(joint, LIP(epsilon), matrix, largest_repair=1.0)
        assert (repaired[:, seed % 5] == marginal_weights(joint, repaired)).all()
        assert LIP(epsilon).holds_for(joint, repaired)


def test_a_channel_that_misses_perfect_privacy_becomes_one_output() -> None:
    """Mixing would come closer for ever."""
    joint = Joint.from_counts([[30, 10], [10, 50]])
    weights = proven_weights(joint, PerfectPrivacy(), np.array([[0.5 + 1e-9, 0.5], [0.5 - 1e-9, 0.5]]))
    assert weights.tolist() == [[DENOMINATOR] * 2]


def test_a_repair_that_does_not_hold_after_all_is_an_error() -> None:
    """Whatever a guarantee answers: what is returned is what it was asked about last, and it said yes."""
    answers = iter([False, True, True, True, True, False])

    class Fickle(LIP):
        def holds_for(self, joint: Joint, weights: np.ndarray) -> bool:
            return next(answers)

    with pytest.raises(SolverError, match="this is a defect"):
        proven_weights(Joint.from_counts([[30, 10], [10, 50]]), Fickle(1.0), np.eye(2))
    assert next(answers, None) is None


def test_a_share_that_failed_is_not_tried_again() -> None:
    """Shares are doubled until one holds; what is tried then lies above the last that failed."""
    asked: list[int] = []

    class Threshold(LIP):
        def holds_for(self, joint: Joint, weights: np.ndarray) -> bool:
            asked.append(int(weights[0, 1]))
            return asked[-1] >= 10**6

    weights = proven_weights(Joint.from_counts([[30, 10], [10, 50]]), Threshold(1.0), np.eye(2))
    first = next(i for i, found in enumerate(asked) if found >= 10**6)
    assert asked[: first + 1] == sorted(asked[: first + 1])
    assert all(asked[first - 1] < found < asked[first] for found in asked[first + 1 : -1])
    assert 10**6 <= weights[0, 1] <= 1.13 * 10**6


def test_what_a_solver_left_at_its_tolerance_is_no_way_to_an_output() -> None:
    joint = Joint.from_counts([[30, 10], [10, 50]])
    dusty = np.array([[1.0, 3e-15], [2e-15, 1.0]])
    assert (rounded_weights(joint, dusty) == np.eye(2) * DENOMINATOR).all()
    assert (rounded_weights(joint, np.array([[1.0, 1e-12], [0.0, 1.0]])) > 0).sum() == 3


def test_another_decision_may_be_asked_for() -> None:
    """What is asked instead of the guarantee itself decides alone."""
    asked: list[int] = []

    def holds(weights: np.ndarray) -> bool:
        asked.append(len(weights))
        return True

    weights = proven_weights(Joint.from_counts([[30, 10], [10, 50]]), LIP(0.0), np.eye(2), holds=holds)
    assert asked == [2]
    assert (weights == np.eye(2) * DENOMINATOR).all()


def test_a_matrix_of_others_is_a_protocol_with_its_own_level() -> None:
    """The level of two by two is by hand; a matrix the other way round is refused where it is no channel."""
    joint = Joint.from_counts([[300, 60], [100, 540]], inputs=["low", "high"])
    pram = protocol_from_matrix(joint, np.array([[0.9, 0.25], [0.1, 0.75]]))
    assert exact_sums(pram.weights) == [DENOMINATOR] * 2
    np.testing.assert_allclose(pram.matrix, [[0.9, 0.25], [0.1, 0.75]], rtol=1e-15)
    given = np.array([[300 * 0.9 + 60 * 0.25, 300 * 0.1 + 60 * 0.75], [100 * 0.9 + 540 * 0.25, 100 * 0.1 + 540 * 0.75]])
    distribution = given.sum(axis=0) / 1000
    np.testing.assert_allclose(pram.marginal / DENOMINATOR, distribution, rtol=1e-15)
    lifts = given / given.sum(axis=1, keepdims=True) / distribution
    assert LIP(1.0).level(joint, pram).value == pytest.approx(np.abs(np.log(lifts)).max(), rel=1e-12)
    assert pram.mechanism == "pram"
    # Probabilities that were written with three digits add up to one, nearly.
    protocol_from_matrix(joint, np.array([[0.333, 0.5], [0.6665, 0.5]]))
    for matrix, said in (
        ([[0.9, 0.1], [0.25, 0.75]], "no distribution; transpose"),
        ([[1.1, 0.5], [-0.1, 0.5]], "no distribution"),
        ([[np.nan, 0.5], [0.5, 0.5]], "no distribution"),
        ([[1.0, 1.0]], r"has the shape \(2, 2\), and this one has \(1, 2\)"),
    ):
        with pytest.raises(SpecError, match=said):
            protocol_from_matrix(joint, np.array(matrix))
