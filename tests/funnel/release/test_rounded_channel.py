"""An effective channel as it is published: rounded to a grid no finer than shares, true to a step, inside its bound."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import funnel
from funnel.joint import Joint
from funnel.measures import mutual_information
from funnel.protocol import DENOMINATOR, Protocol
from funnel.release.coarse import LARGEST_COST, rounded_channel
from funnel.release.public import share_step
from funnel.rounding import marginal_weights

COUNTS = st.lists(st.lists(st.integers(5, 400), min_size=3, max_size=3), min_size=2, max_size=2)


def channel_of(joint: Joint, shares: np.ndarray) -> Protocol:
    weights = np.floor(shares * 2.0**62).astype(np.uint64) * np.uint64(2)
    weights[0] += np.uint64(DENOMINATOR) - weights.sum(axis=0)
    return Protocol(weights, marginal_weights(joint, weights), joint.inputs, joint.inputs, "optimal", "lip:1.0")


@given(COUNTS, st.integers(0, 2**32 - 1))
def test_it_is_what_it_was_to_a_step_and_keeps_its_bound(counts: list[list[int]], seed: int) -> None:
    joint = Joint.from_counts(counts)
    shares = np.random.default_rng(seed).dirichlet([0.4, 0.4, 0.4], 3).T
    channel = channel_of(joint, shares)
    bound = funnel.LIP(funnel.LIP(1.0).level(joint, channel).value * 1.05 + 1e-3)
    rounded = rounded_channel(joint, bound, channel)
    assert bound.holds(joint, rounded)
    assert ((rounded.weights > 0) == (channel.weights > 0)).all()
    assert rounded.outputs == channel.outputs
    told = mutual_information(joint, channel)
    slack = max(LARGEST_COST * told, share_step(joint.n) / 2 * joint.entropy)
    assert abs(mutual_information(joint, rounded) - told) <= slack + 1e-15
    if (rounded.weights != channel.weights).any():
        unit = min(int(weight) & -int(weight) for weight in rounded.weights.ravel() if weight)
        gaps = np.sort(np.abs(rounded.matrix - channel.matrix), axis=0) * 2.0**63 / unit
        # All but the largest of a column, which takes the rest.
        assert (gaps[:-1] <= 1 + 1e-9).all()
        assert (gaps[-1] <= len(gaps)).all()


def test_shares_of_few_people_cannot_be_read_from_it() -> None:
    """What one person more with some history changes is lost in the grid."""
    joint = Joint.from_counts([[300, 300], [300, 300]])
    told = []
    for people in (100, 101):
        share = people / 600
        matrix = np.array([[1 - 0.3 * share, 0.2], [0.3 * share, 0.8]])
        told.append(rounded_channel(joint, funnel.LIP(2.0), channel_of(joint, matrix)).digest)
    assert told[0] == told[1]


def test_what_is_possible_stays_so_where_a_grid_has_too_few_steps() -> None:
    """Six hundred outputs need more than the 256 steps of the coarsest grid."""
    joint = Joint.from_counts([[300, 300], [300, 300]])
    weights = np.full((600, 2), DENOMINATOR // 600, dtype=np.uint64)
    weights[0] += np.uint64(DENOMINATOR) - weights.sum(axis=0)
    outputs = funnel.Alphabet(("x",), tuple((str(y),) for y in range(600)))
    channel = Protocol(weights, marginal_weights(joint, weights), joint.inputs, outputs, "optimal", "lip:1.0")
    rounded = rounded_channel(joint, funnel.LIP(1.0), channel)
    assert (rounded.weights > 0).all()
    assert set(rounded.weights[1:].ravel().tolist()) == {2**53}
