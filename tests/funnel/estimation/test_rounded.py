"""Channels that are told rounded: intervals have room for whatever the true one is, and for no more."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funnel
from funnel import Alphabet, Protocol
from funnel.errors import SpecError
from funnel.estimation.linear import rounding_off
from funnel.estimation.means import estimate_numbers
from funnel.estimation.weighted import estimate_weighted
from funnel.protocol import DENOMINATOR

INPUTS = Alphabet(("job", "weight"), (("a", "1"), ("a", "3"), ("b", "1"), ("b", "3")))


def told(seed: int) -> Protocol:
    matrix = 0.6 * np.eye(4) + 0.4 * np.random.default_rng(seed).dirichlet(np.ones(4), size=4).T
    weights = np.floor(matrix * 2.0**40).astype(np.uint64) * np.uint64(2**23)
    weights[0] += np.uint64(DENOMINATOR) - weights.sum(axis=0)
    return Protocol(weights, weights[:, 0], INPUTS, INPUTS, "given", "lip:1.0")


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=5))
def test_the_worst_change_of_a_channel_moves_an_estimate_by_what_is_said(weights: list[float]) -> None:
    """Over all changes of one column with sum nought and entries of at most one, by their corners."""
    w = np.array(weights)
    corners = [np.array(one) for one in product((-1.0, 0.0, 1.0), repeat=len(w)) if sum(one) == 0]
    assert float(rounding_off(w, 1.0)) == pytest.approx(max(float(w @ one) for one in corners), abs=1e-9)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["em", "inverse"]))
def test_whatever_the_true_channel_is_the_truth_stays_inside(seed: int, method: str) -> None:
    """Counts that are exactly those expected of another channel so near: without noise, all that is off is rounding."""
    random, rounded, n = np.random.default_rng(seed), 0.01, 10**9
    protocol = told(seed)
    signs = np.array([random.permutation([1, 1, -1, -1]) for _ in range(4)]).T
    truth = random.dirichlet(np.full(4, 5.0))
    counts = np.round((protocol.matrix + rounded * signs) @ truth * n).astype(np.int64)
    found = funnel.estimate(counts, protocol, method=method, rounded=rounded)
    # The errors are smaller than the intervals, and the sentence says why.
    assert "with room for the rounding of the published probabilities, of 0.01 at most" in found.about
    assert "rounding" not in funnel.estimate(counts, protocol, method=method).about
    plain = funnel.estimate(counts, protocol, method=method)
    assert (found.lower <= truth).all()
    assert (truth <= found.upper).all()
    assert ((plain.lower > truth) | (truth > plain.upper)).any()
    numbers = estimate_numbers(counts, protocol, of="weight", method=method, rounded=rounded)
    mean = float(truth @ [1, 3, 1, 3])
    assert numbers.mean_lower[0] <= mean <= numbers.mean_upper[0]
    weighted = estimate_weighted(counts, protocol, "weight", {"1": (1, 1, 1), "3": (3, 3, 3)}, rounded=rounded)
    share = float(truth @ [1, 3, 0, 0]) / mean
    assert weighted.lower[0] <= share <= weighted.upper[0]
    within = funnel.estimate(counts, protocol, "weight", within="job", method=method, rounded=rounded)
    parts = np.array([truth[0], truth[1]]) / truth[:2].sum()
    assert (within.lower[:2] <= parts).all()
    assert (parts <= within.upper[:2]).all()


def test_nothing_rounded_changes_nothing_and_no_probability_is_off_by_more_than_one() -> None:
    counts = np.array([400, 300, 200, 100])
    one, other = funnel.estimate(counts, told(1)), funnel.estimate(counts, told(1), rounded=0.0)
    assert one.to_dict() == other.to_dict()
    with pytest.raises(SpecError, match="off by 0 to 1"):
        funnel.estimate(counts, told(1), rounded=1.5)
