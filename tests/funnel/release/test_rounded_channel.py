"""An effective channel as it is published: rounded to a grid no finer than shares, true to a step, inside its bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funnel
from funnel.audit.protected import is_usual, off_complaints
from funnel.bounds import Bounds
from funnel.guarantees.base import ConeGuarantee
from funnel.joint import Joint
from funnel.measures import mutual_information
from funnel.protocol import DENOMINATOR, Protocol
from funnel.recount.chapters import Chapter
from funnel.recount.rounded import rounding_complaints
from funnel.release.coarse import LARGEST_UNDERSTATEMENT, _rounded, _slightly_mixed, coarsened, on_grid, rounded_channel
from funnel.release.inside import far_inside, moved_inside, steps_off
from funnel.release.public.rounding import share_step
from funnel.rounding import integer_weights, marginal_weights

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


def complaints(
    joint: Joint, told: Protocol, exact: Protocol, off: float | None = None, bound: str = "lip:1.0"
) -> Iterator[str]:
    return rounding_complaints(told.weights.tolist(), exact.weights.tolist(), chapter_of(joint, bound), False, off=off)


def chapter_of(joint: Joint, bound: str = "lip:1.0") -> Chapter:
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
        guarantee=bound,
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


def test_where_the_bound_leaves_no_room_a_little_of_the_distribution_is_mixed_in() -> None:
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


def test_what_is_mixed_in_is_a_thousandth_of_the_distribution_of_the_output() -> None:
    joint = Joint.from_counts([[300, 200, 100], [100, 200, 300]])
    channel = channel_of(joint, np.array([[0.61, 0.0, 0.2], [0.33, 0.98, 0.0], [0.06, 0.02, 0.8]]))
    exact = [[Fraction(weight, DENOMINATOR) for weight in row] for row in channel.weights.tolist()]
    mixed = _slightly_mixed(joint, channel).tolist()
    for y, row in enumerate(exact):
        # Every input is as common as the others.
        distribution = sum(row) / 3
        for x, weight in enumerate(row):
            expected = weight + (distribution - weight) / 1024 if weight else 0
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


def at_the_bound(seed: int) -> tuple[Joint, funnel.LIP, Protocol]:
    """Six inputs of some hundred people each, whose optimum has nearly every output at its bound."""
    joint = Joint.from_counts(np.random.default_rng(seed).integers(20, 90, (2, 6)))
    bound = funnel.LIP(0.15)
    return joint, bound, funnel.optimal(joint, bound, gap=1e-4).protocol


def no_usual_way(joint: Joint, bound: funnel.LIP, exact: Protocol) -> bool:
    """Whether no rounding to the nearest step, up, or up with a little of the distribution mixed in keeps the bound."""
    ways = [
        _rounded(weights, bits, part)
        for bits in range(8, 29, 2)
        for weights, part in ((exact.weights, 8), (exact.weights, 16), (_slightly_mixed(joint, exact), 16))
    ]
    return not any(way is not None and bound.holds_for(joint, way) for way in ways)


def test_no_channel_is_refused_because_of_how_it_happens_to_be_rounded() -> None:
    """Optima at ε = 0.15, of which some have no usual rounding that keeps the bound, and two none of 34 on any grid."""
    moved = []
    for seed in range(40):
        joint, bound, exact = at_the_bound(seed)
        rounded = rounded_channel(joint, bound, exact)
        assert bound.holds(joint, rounded)
        assert not (rounded.weights % np.uint64(2**35)).any()
        assert ((rounded.weights > 0) == (exact.weights > 0)).all()
        off = steps_off(rounded.weights, exact.weights)
        assert list(complaints(joint, rounded, exact, off, str(bound))) == []
        furthest = abs(rounded.weights.astype(object) - exact.weights.astype(object)).max()
        assert furthest <= int(off * DENOMINATOR)
        if no_usual_way(joint, bound, exact):
            moved.append(seed)
            # On a coarse grid, since nothing is left to chance.
            assert not (rounded.weights % np.uint64(2**53)).any()
            assert off <= 8 / 256
        assert is_audited(rounded, off)
    assert moved == [0, 13, 19, 22]


JOINT_13, LIP_13, EXACT_13 = at_the_bound(13)
MOVED = rounded_channel(JOINT_13, LIP_13, EXACT_13)
OFF = steps_off(MOVED.weights, EXACT_13.weights)


def test_a_channel_may_be_moved_only_where_that_is_said() -> None:
    assert list(complaints(JOINT_13, MOVED, EXACT_13, OFF, "lip:0.15")) == []
    assert list(complaints(JOINT_13, MOVED, EXACT_13, None, "lip:0.15")) == [NO_ROUNDING]
    # With another bound one of the usual ways would have done.
    said = list(complaints(JOINT_13, MOVED, EXACT_13, OFF, "lip:0.3"))
    assert said == [f"{NO_ROUNDING}, though a rounding keeps the bound"]


NO_ROUNDING = "is not the effective channel, rounded to a grid"


@pytest.mark.parametrize("off", [OFF - 2**-8, OFF + 2**-8, 0.0, OFF / 2, OFF * (1 - 2**-20)])
def test_another_distance_than_the_least_in_whole_steps_is_noticed(off: float) -> None:
    said = f"is said to be within {off} of the effective one, and is not, or nearer"
    assert list(complaints(JOINT_13, MOVED, EXACT_13, off, "lip:0.15")) == [said]


@pytest.mark.parametrize("change", ["one zero less", "one zero more", "finer"])
def test_another_support_or_grid_is_noticed(change: str) -> None:
    weights = MOVED.weights.copy()
    x = int(np.flatnonzero((weights > 0).sum(axis=0) > 1)[0])
    ys = np.flatnonzero(weights[:, x])
    if change == "one zero less":
        free, step = int(np.flatnonzero(weights[:, x] == 0)[0]), np.uint64(2**55)
        weights[free, x] += step
        weights[ys[0], x] -= step
    elif change == "one zero more":
        weights[ys[0], x] += weights[ys[1], x]
        weights[ys[1], x] = 0
    else:
        weights[ys[0], x] += np.uint64(2**34)
        weights[ys[1], x] -= np.uint64(2**34)
    told = replace(MOVED, weights=weights)
    off = steps_off(weights, EXACT_13.weights)
    assert NO_ROUNDING in list(complaints(JOINT_13, told, EXACT_13, off, "lip:0.15"))


def test_a_channel_that_tells_more_than_there_is_is_noticed_even_at_its_distance() -> None:
    """A step more of what is told, honestly said: refused by its information."""
    weights = MOVED.weights.copy()
    x = int(np.flatnonzero((weights > 0).sum(axis=0) > 1)[0])
    ys = np.argsort(weights[:, x])[-2:]
    weights[ys[1], x] += weights[ys[0], x] - np.uint64(2**55)
    weights[ys[0], x] = np.uint64(2**55)
    told = replace(MOVED, weights=weights)
    assert mutual_information(JOINT_13, told) > mutual_information(JOINT_13, EXACT_13)
    said = list(complaints(JOINT_13, told, EXACT_13, steps_off(weights, EXACT_13.weights), "lip:0.15"))
    assert said == ["keeps more than the effective channel, or far less"]


@given(
    st.lists(st.lists(st.integers(1, 60), min_size=4, max_size=4), min_size=2, max_size=3),
    st.sampled_from(["lip:0.02", "lip:0.15", "lip:1.0", "alip:0.3,0.1", "pml:0.2", "ldp:0.2"]),
)
def test_optima_at_the_bound_of_small_tables_have_a_rounding(counts: list[list[int]], text: str) -> None:
    joint, bound = Joint.from_counts(counts), funnel.parse_guarantee(text)
    exact = funnel.optimal(joint, bound, gap=1e-3).protocol
    rounded = rounded_channel(joint, bound, exact)
    assert bound.holds(joint, rounded)
    assert not (rounded.weights % np.uint64(2**35)).any()
    off = steps_off(rounded.weights, exact.weights)
    assert list(complaints(joint, rounded, exact, off, text)) == []
    assert is_audited(rounded, off)


def is_audited(told: Protocol, off: float) -> bool:
    """Whether an audit of public files holds counts to the probabilities, instead of saying that they are far off."""
    rows = tuple(tuple((x, int(weight)) for x, weight in enumerate(row) if weight) for row in told.weights.tolist())
    document = SimpleNamespace(entries=rows, rounded=off)
    return is_usual(document) and not list(off_complaints(document, "same"))


@pytest.mark.parametrize("kept", [128, 130, 160, 192, 255])
def test_weights_of_few_bits_by_chance_are_not_said_to_be_further_off(kept: int) -> None:
    """Of two values and two outputs all weights may well be quarters: they are still told to one part of 256."""
    joint = Joint.from_counts([[40, 60], [60, 40]])
    near = np.uint64(kept << 55) + np.uint64(2**52)
    weights = np.array([[near, np.uint64(2**63) - near], [np.uint64(2**63) - near, near]], dtype=np.uint64)
    exact = channel_of(joint, weights / np.float64(2**63))
    rounded = rounded_channel(joint, funnel.LIP(1.0), exact)
    off = steps_off(rounded.weights, exact.weights)
    assert off == 2**-8
    assert is_audited(rounded, off)
    assert list(complaints(joint, rounded, exact, off)) == []


@given(
    st.lists(st.lists(st.integers(9, 60), min_size=4, max_size=4), min_size=2, max_size=3),
    st.sampled_from(["lip", "pml", "ldp"]),
    st.integers(0, 2**32 - 1),
    st.booleans(),
)
def test_every_channel_can_be_moved_far_inside_its_bound(
    counts: list[list[int]], kind: str, seed: int, noisy: bool
) -> None:
    """Theorem 3: with no more of a constant distribution than it asks for, whatever channel and open table."""
    joint = Joint.from_counts(counts)
    if noisy:
        joint = with_noise(joint)
    matrix = np.random.default_rng(seed).dirichlet([0.4, 0.4, 0.4], 4).T
    weights = integer_weights(np.where(matrix > 0.02, matrix, 0.0) / np.where(matrix > 0.02, matrix, 0.0).sum(axis=0))
    bound = funnel.parse_guarantee(f"{kind}:1.0")
    assert isinstance(bound, ConeGuarantee)
    level = bound.level_for(joint, weights).value
    if math.isinf(level):
        return
    bound = bound.with_budget(max(level * (1 + 1e-12), 1e-3))
    far = far_inside(joint, bound, weights, 28, 1)
    assert bound.holds_for(joint, far)
    b, kappa = len(weights), 1 / math.tanh(bound.budget / 2)
    assert steps_off(far, weights) <= b * (math.ceil(b * kappa) + 1) * 2.0**-28
    # What was impossible has one and the same weight, the least of all.
    assert len(set(far[weights == 0].tolist())) <= 1
    assert (far > 0).all()


def with_noise(joint: Joint) -> Joint:
    """Its counts known up to three."""
    counts, sums = joint.counts, joint.counts.sum(axis=1)
    bounds = Bounds(np.maximum(counts - 3, 0), counts + 3, np.stack([sums - 3, sums + 3], axis=1), 0.01)
    return replace(joint, bounds=bounds)


def test_where_noise_leaves_tables_open_it_is_moved_inside_what_holds_under_all_of_them() -> None:
    joint, bound = with_noise(Joint.from_counts([[40, 60, 30, 70], [90, 50, 60, 20]])), funnel.LIP(0.15)
    exact = funnel.optimal(joint, bound, gap=1e-3).protocol.weights
    for bits in (12, 20):
        moved = moved_inside(joint, bound, exact, bits)
        assert bound.holds_for(joint, moved)
        assert ((moved > 0) == (exact > 0)).all()
        # Theorem 2: it comes as near as grids are fine.
        assert steps_off(moved, exact) <= 100 * 2.0**-bits


def thin() -> tuple[Joint, funnel.PML, Protocol]:
    """Of a support only channels within some 10^-13 of one keep the bound, and none of them is on a grid.

    Two outputs share the second of the inputs that they may come from, and are together as likely given the first
    secret as each of them may be: so much of it has to be in the one, 35 parts of 107.
    """
    joint = Joint.from_counts([[40, 17, 60, 80], [10, 23, 12, 120]])
    together = Fraction(117, 162) / Fraction(197, 362)
    bound = funnel.PML(math.log(together) + 1e-13)
    part = DENOMINATOR * 35 // 107
    weights = np.zeros((3, 4), dtype=np.uint64)
    weights[0, :2], weights[1, 1:3] = (DENOMINATOR, part), (DENOMINATOR - part, DENOMINATOR)
    weights[2, 3] = DENOMINATOR
    outputs = funnel.Alphabet(("x",), (("0",), ("1",), ("2",)))
    marginal = marginal_weights(joint, weights)
    return joint, bound, Protocol(weights, marginal, joint.inputs, outputs, "optimal", str(bound))


def test_where_a_support_has_no_depth_a_little_of_a_constant_distribution_is_mixed_in() -> None:
    """No channel on a grid has that support: everything is possible then, and what was not has one weight."""
    joint, bound, exact = thin()
    assert bound.holds(joint, exact)
    for part in (2**35, -(2**35)):
        moved = exact.weights.astype(object)
        moved[:2, 1] += [part, -part]
        assert not bound.holds_for(joint, moved.astype(np.uint64))
    assert all(moved_inside(joint, bound, exact.weights, bits) is None for bits in range(8, 29))
    rounded = rounded_channel(joint, bound, exact)
    assert bound.holds(joint, rounded)
    off = steps_off(rounded.weights, exact.weights)
    assert off <= 2.0**-21
    assert (rounded.weights > 0).all()
    assert list(complaints(joint, rounded, exact, off, str(bound))) == []
    # One of those that were zero has another weight than the others.
    weights = rounded.weights.copy()
    weights[0, 2] += np.uint64(2**35)
    weights[1, 2] -= np.uint64(2**35)
    off = steps_off(weights, exact.weights)
    assert NO_ROUNDING in list(complaints(joint, replace(rounded, weights=weights), exact, off, str(bound)))


def test_a_channel_that_has_to_be_as_it_is_may_not_be_rounded() -> None:
    joint = Joint.from_counts([[300, 100, 60], [100, 200, 240]])
    channel = channel_of(joint, np.random.default_rng(3).dirichlet([0.4, 0.4, 0.4], 3).T)
    rounded = rounded_channel(joint, funnel.LIP(3.0), channel)
    assert (rounded.weights != channel.weights).any()

    def said(told: Protocol, off: float) -> list[str]:
        weights = told.weights.tolist(), channel.weights.tolist()
        return list(rounding_complaints(*weights, chapter_of(joint), False, off=off, as_it_is=True))

    assert said(channel, 0.0) == []
    assert "no other is in balance" in said(rounded, 0.0)[0]
    assert "no other is in balance" in said(channel, 2.0**-10)[0]
