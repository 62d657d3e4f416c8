"""An effective channel as it is published: rounded to a grid no finer than shares, true to a step, inside its bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funnel
from funnel.joint import Joint
from funnel.measures import mutual_information
from funnel.protocol import DENOMINATOR, Protocol
from funnel.recount.chapters import Chapter
from funnel.recount.rounded import rounding_complaints
from funnel.release.coarse import LARGEST_UNDERSTATEMENT, _rounded, _slightly_mixed, coarsened, on_grid, rounded_channel
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
    told, kept = mutual_information(joint, channel), mutual_information(joint, rounded)
    slack = max(LARGEST_UNDERSTATEMENT * told, share_step(joint.n) * joint.entropy)
    # What is published never tells more than what was drawn, so that no figure of it is too high.
    assert told - slack - 1e-12 <= kept <= told + 1e-12
    assert list(complaints(joint, rounded, channel)) == []


def complaints(joint: Joint, told: Protocol, exact: Protocol) -> Iterator[str]:
    return rounding_complaints(told.weights.tolist(), exact.weights.tolist(), chapter_of(joint), False)


def chapter_of(joint: Joint) -> Chapter:
    a = len(joint.inputs)
    constant = tuple(tuple((x, DENOMINATOR if y == 0 else 0) for x in range(a) if y == 0) for y in range(3))
    return Chapter(
        ordinal=0,
        name="people/1.0.0",
        secret=joint.secret.symbols,
        inputs=joint.inputs.symbols,
        outputs=tuple((str(y),) for y in range(3)),
        counts=tuple(joint.counts.ravel().tolist()),
        changes={},
        channels={0: constant},
        followed={0: 0},
        first=1,
        parents=(0,),
        drawn=(0,),
        guarantee="lip:1.0",
        reserve=Fraction(1),
    )


JOINT = Joint.from_counts([[300, 200, 100], [100, 200, 300]])
EXACT = channel_of(JOINT, np.array([[0.61, 0.13, 0.2], [0.33, 0.85, 0.07], [0.06, 0.02, 0.73]]))
PUBLISHED = rounded_channel(JOINT, funnel.LIP(2.0), EXACT)


def altered(change: Callable[[np.ndarray], np.ndarray]) -> Protocol:
    return replace(PUBLISHED, weights=change(PUBLISHED.weights.copy()))


def moved(weights: np.ndarray) -> np.ndarray:
    """One step of the grid goes from one output to another."""
    unit = min(int(weight) & -int(weight) for weight in weights.ravel() if weight)
    weights[0, 0] -= np.uint64(unit)
    weights[1, 0] += np.uint64(unit)
    return weights


OTHERS = {
    "a step of the grid moved": altered(moved),
    "two inputs swapped": altered(lambda weights: weights[:, [1, 0, 2]]),
    "two outputs swapped": altered(lambda weights: weights[[1, 0, 2]]),
    "coarsened and optimised anew": coarsened(JOINT, funnel.LIP(2.0), EXACT),
    "on a grid coarser than public shares": replace(EXACT, weights=on_grid(EXACT.matrix, 2)),
    "to the last unit": EXACT,
}


def test_what_is_published_is_rounded_as_documented() -> None:
    assert (PUBLISHED.weights != EXACT.weights).any()
    assert list(complaints(JOINT, PUBLISHED, EXACT)) == []


@pytest.mark.parametrize("name", OTHERS)
def test_any_other_channel_is_noticed(name: str) -> None:
    assert (OTHERS[name].weights != PUBLISHED.weights).any()
    assert list(complaints(JOINT, OTHERS[name], EXACT))


def test_where_the_bound_leaves_no_room_a_little_of_the_law_is_mixed_in() -> None:
    """A bound at exactly the level of the channel: no rounding of it alone would do."""
    rng = np.random.default_rng(14)
    found = 0
    for _ in range(20):
        joint = Joint.from_counts(rng.integers(20, 400, (3, 12)))
        channel = channel_of(joint, rng.dirichlet(np.full(12, 0.5), 12).T)
        bound = funnel.LIP(funnel.LIP(1.0).level(joint, channel).value)
        rounded = rounded_channel(joint, bound, channel)
        assert (rounded.weights != channel.weights).any()
        assert bound.holds(joint, rounded)
        found += 1
    assert found == 20


def test_what_is_mixed_in_is_a_thousandth_of_the_law_of_the_output() -> None:
    joint = Joint.from_counts([[300, 200, 100], [100, 200, 300]])
    channel = channel_of(joint, np.array([[0.61, 0.0, 0.2], [0.33, 0.98, 0.0], [0.06, 0.02, 0.8]]))
    exact = [[Fraction(weight, DENOMINATOR) for weight in row] for row in channel.weights.tolist()]
    mixed = _slightly_mixed(joint, channel).tolist()
    for y, row in enumerate(exact):
        # Every input is as common as the others.
        law = sum(row) / 3
        for x, weight in enumerate(row):
            expected = weight + (law - weight) / 1024 if weight else 0
            assert abs(Fraction(mixed[y][x], DENOMINATOR) - expected) <= Fraction(3, DENOMINATOR)


def test_shares_of_few_people_cannot_be_read_from_it() -> None:
    """What one person more with some history changes is lost in the grid."""
    joint = Joint.from_counts([[3000, 3000], [3000, 3000]])
    told = []
    for people in range(1000, 1100):
        share = people / 6000
        matrix = np.array([[1 - 0.3 * share, 0.2], [0.3 * share, 0.8]])
        told.append(rounded_channel(joint, funnel.LIP(2.0), channel_of(joint, matrix)).digest)
    # A step of 2^-10 is twenty of them.
    assert len(set(told)) <= 10


def test_what_is_possible_stays_so_where_a_grid_has_too_few_steps() -> None:
    """Six hundred outputs need more than the 256 steps of the coarsest grid."""
    joint = Joint.from_counts([[300, 300], [300, 300]])
    weights = np.full((600, 2), DENOMINATOR // 600, dtype=np.uint64)
    weights[0] += np.uint64(DENOMINATOR) - weights.sum(axis=0)
    outputs = funnel.Alphabet(("x",), tuple((str(y),) for y in range(600)))
    channel = Protocol(weights, marginal_weights(joint, weights), joint.inputs, outputs, "optimal", "lip:1.0")
    rounded = rounded_channel(joint, funnel.LIP(1.0), channel)
    assert (rounded.weights > 0).all()
    assert len(set(rounded.weights[1:].ravel().tolist())) == 1


def test_where_the_bound_is_an_equation_it_stays_as_it_is() -> None:
    joint = Joint.from_counts([[10, 20, 30], [30, 21, 17]])
    channel = funnel.optimal(joint, funnel.PerfectPrivacy()).protocol
    assert mutual_information(joint, channel) > 0.1
    assert rounded_channel(joint, funnel.PerfectPrivacy(), channel) is channel


@pytest.mark.parametrize("seed", [0, 22])
def test_channels_whose_outputs_are_at_the_bound_are_rounded_from_other_parts_of_a_step(seed: int) -> None:
    """Whether a rounded output is within the bound is chance: no release should be refused for bad luck."""
    joint = Joint.from_counts(np.random.default_rng(seed).integers(20, 90, (2, 6)))
    bound = funnel.LIP(0.15)
    exact = funnel.optimal(joint, bound, gap=1e-4).protocol
    rounded = rounded_channel(joint, bound, exact)
    assert bound.holds(joint, rounded)
    assert not (rounded.weights % np.uint64(2**35)).any()
    assert ((rounded.weights > 0) == (exact.weights > 0)).all()
    assert list(complaints(joint, rounded, exact)) == []
    # Neither up nor to the nearest step.
    for bits in range(8, 29, 2):
        for weights, part in ((exact.weights, 8), (exact.weights, 16), (_slightly_mixed(joint, exact), 16)):
            tried = _rounded(weights, bits, part)
            assert tried is None or not bound.holds_for(joint, tried)
