"""A guarantee on some inputs alone: weaker than the guarantee, and blind to the rows of the others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel import Joint, parse_guarantee
from funnel.bounds import Bounds
from funnel.guarantees.sided import over_set
from funnel.rounding import integer_weights, marginal_weights, mix
from funnel.solver.over_distributions import KnownInputs, limited

TEXTS = ("ldp:1.0", "lip:0.5", "alip:0.5,1.0", "pml:0.5", "rlip:1.0,0.05", "rldp:1.0,0.05")


def noisy(counts: np.ndarray, width: int) -> Joint:
    """Counts that are known up to a few, with totals that are known better."""
    lower, sums = np.maximum(counts - width, 0), counts.sum(axis=1)
    totals = np.stack([np.maximum(sums - width, lower.sum(axis=1)), sums + width], axis=1)
    bare = Joint.from_counts(counts)
    return Joint(counts, bare.secret, bare.inputs, Bounds(lower, counts + width, totals, 0.01))


@given(st.integers(0, 2**32 - 1), st.sampled_from(TEXTS), st.booleans())
@settings(max_examples=40, deadline=None)
def test_what_holds_does_so_on_some_inputs_whatever_the_others_get(seed: int, text: str, reads_secret: bool) -> None:
    random = np.random.default_rng(seed)
    counts = random.integers(1, 40, (2, 4))
    counts[:, 3] = random.integers(0, 3, 2)
    joint = noisy(counts, 3)
    read = joint.with_secret() if reads_secret else joint
    over = over_set(parse_guarantee(text), read)
    assert over is not None
    known = np.tile(np.array([True, True, True, False]), len(read.inputs) // 4)
    asked = limited(over, read, known)
    assert isinstance(asked, KnownInputs)
    weights = integer_weights(random.dirichlet(np.full(3, 0.5), size=len(read.inputs)).T)
    held = 0
    for share in (0.2, 0.5, 0.8, 0.95, 1.0):
        mixed = mix(weights, marginal_weights(read, weights), share)
        other = mixed.copy()
        other[:, ~known] = mixed[::-1, ~known]
        assert asked.holds_for(read, mixed) == asked.holds_for(read, other)
        if over.holds_for(read, mixed):
            held += 1
            assert asked.holds_for(read, mixed)
            assert asked.level_for(read, mixed).value <= over.level_for(read, mixed).value + 1e-12
    assert held


def test_nothing_is_left_out_where_nobody_can_have_it() -> None:
    joint = noisy(np.array([[20, 30, 0], [30, 20, 0]]), 0)
    over = over_set(parse_guarantee("ldp:1.0"), joint)
    assert over is not None
    assert limited(over, joint, joint.p_input > 0) is over


@pytest.mark.parametrize("text", ["ldp:1.0", "rldp:1.0,0.05"])
def test_there_is_none_where_every_distribution_has_other_inputs(text: str) -> None:
    joint = noisy(np.array([[20, 300, 1], [30, 200, 0]]), 2)
    over = over_set(parse_guarantee(text), joint)
    assert over is not None
    # Of the commonest input some people are there whatever the noise was.
    assert limited(over, joint, np.array([True, False, True])) is None
    with pytest.raises(ValueError, match="other inputs"):
        KnownInputs(over, np.array([True, False, True])).distributions(joint)


def test_in_all_else_it_is_the_guarantee_that_is_asked_for_less() -> None:
    joint = noisy(np.array([[20, 30, 2], [30, 20, 1]]), 3)
    over = over_set(parse_guarantee("alip:0.5,1.0"), joint)
    assert over is not None
    asked = limited(over, joint, np.array([True, True, False]))
    assert isinstance(asked, KnownInputs)
    assert (asked.budget, asked.is_perfect, str(asked)) == (over.budget, over.is_perfect, str(over))
    smaller = asked.with_budget(0.25)
    assert (smaller.budget, str(smaller)) == (0.25, str(over.with_budget(0.25)))
    assert smaller.known.tolist() == [True, True, False]
    # Rows of the counts themselves would say something of the third input.
    assert asked.starting_cone(joint).shape == (0, 3)
