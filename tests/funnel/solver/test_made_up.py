"""Inputs that noise may have made up: no protocol that holds beats the bound, whether or not it tells them apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel import Joint, parse_guarantee
from funnel.bounds import Bounds
from funnel.frequencies.helping import expected
from funnel.frequencies.noise import Noise
from funnel.measures import mutual_information
from funnel.rounding import integer_weights, marginal_weights, mix
from funnel.solver import over_distributions
from funnel.solver.request import Solution

GAP = 1e-3
GUARANTEES = ("ldp:1.0", "lip:0.8", "alip:0.5,1.0", "pml:0.5", "rlip:1.5,0.05")
OLDER = ("grr", "subset-random-response", "watchdog")


def with_noise(joint: Joint, width: int) -> Joint:
    """The same counts, each known up to a few records, and totals better than their sums."""
    counts = joint.counts
    lower, sums = np.maximum(counts - width, 0), counts.sum(axis=1)
    totals = np.stack([np.maximum(sums - width, lower.sum(axis=1)), sums + width], axis=1)
    return Joint(counts, joint.secret, joint.inputs, Bounds(lower, counts + width, totals, 0.01))


def optimum_of(joint: Joint, text: str, few: int) -> Solution:
    """The optimum where more than so many inputs that noise may have made up are not told apart."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(over_distributions, "_FEW_MADE_UP", few)
        patched.setattr(over_distributions, "_MADE_UP", 1.0)
        return funnel.optimal(joint, parse_guarantee(text), GAP, 0.2)


@st.composite
def with_rare_inputs(draw: st.DrawFn) -> Joint:
    """Two or three common inputs, one or two that noise may have made up, and at times one that never occurred."""
    c = draw(st.integers(2, 3))
    common = draw(st.lists(st.lists(st.integers(40, 400), min_size=c, max_size=c), min_size=2, max_size=3))
    rare = draw(st.lists(st.lists(st.integers(0, 12), min_size=c, max_size=c), min_size=1, max_size=2))
    never = [[0] * c] * draw(st.integers(0, 1))
    return with_noise(Joint.from_counts(np.array([*common, *rare, *never]).T), 12)


@given(with_rare_inputs(), st.sampled_from(GUARANTEES), st.integers(0, 2**32 - 1))
@settings(max_examples=8, deadline=None)
def test_no_protocol_that_holds_beats_the_bound(joint: Joint, text: str, seed: int) -> None:
    guarantee = parse_guarantee(text)
    merged, apart = optimum_of(joint, text, 0), optimum_of(joint, text, 100)
    least = min(merged.bound, apart.bound)
    kept = [merged.utility, apart.utility]
    for name in OLDER:
        protocol = funnel.fit(name, joint, guarantee)
        assert guarantee.holds(joint, protocol)
        kept.append(mutual_information(joint, protocol))
    random, a = np.random.default_rng(seed), len(joint.inputs)
    for sharpness in (0.1, 0.3, 1.0):
        # Nearly the identity, or anything; the inputs that never occurred get rows of their own too.
        weights = integer_weights((np.eye(a) + random.dirichlet(np.full(a, sharpness), size=a).T) / 2)
        marginal, low, high = marginal_weights(joint, weights), 0.0, 1.0
        for _ in range(16):
            middle = (low + high) / 2
            holds = guarantee.holds_for(joint, mix(weights, marginal, middle))
            low, high = (low, middle) if holds else (middle, high)
        mixed = mix(weights, marginal, high)
        if guarantee.holds_for(joint, mixed):
            distribution = joint.p_input
            channel = mixed / 2.0**63
            masses = channel * distribution
            with np.errstate(divide="ignore", invalid="ignore"):
                terms = masses * np.log(channel / masses.sum(axis=1, keepdims=True))
            kept.append(float(np.nansum(terms)))
    assert max(kept) <= least + 1e-12


def test_on_adult_an_older_protocol_does_not_beat_the_bound() -> None:
    """Preschool, 83 of 48,842: not told apart .9387 of H(X), told apart .9431, which was above what was called most."""
    table = Joint.from_table("data/adult.parquet", secret=["income"], inputs=["education"])
    joint = expected(table, Noise(0.1, 0.0, 0.01))
    guarantee, gap = funnel.LDP(1.0), 2e-3 * joint.entropy
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(over_distributions, "_FEW_MADE_UP", 0)
        merged = funnel.optimal(joint, guarantee, gap, 4.0)
    apart = funnel.optimal(joint, guarantee, gap, 4.0)
    assert guarantee.holds(joint, apart.protocol)
    assert merged.utility < apart.utility <= merged.bound
    assert apart.status == "optimal"
    assert apart.utility > 0.943 * joint.entropy
    # What they could add at most: that one of them it is.
    rare = float(joint.p_input[~joint.bounds.lower.any(axis=0)].sum()) if joint.bounds is not None else 0.0
    whole = -rare * np.log(rare) - (1 - rare) * np.log(1 - rare)
    assert merged.gap <= whole + 2 * gap
