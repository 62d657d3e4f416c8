"""Guarantees of sparse weights, some outputs at a time: what is said of all of them at once, by the same witness."""

from __future__ import annotations

from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel.guarantees import base
from funnel.protocol import DENOMINATOR, Protocol
from tests.funnel.test_sparse_weights import as_sparse, channels


@settings(max_examples=60)
@given(channels(), st.sampled_from([funnel.LIP(0.5), funnel.ALIP(0.3, 0.7), funnel.PML(0.4)]), st.integers(1, 3))
def test_outputs_are_judged_a_few_at_a_time_as_all_at_once(
    channel: tuple[funnel.Joint, np.ndarray], guarantee: funnel.Guarantee, few: int
) -> None:
    joint, weights = channel
    sparse = as_sparse(joint, weights)
    table = Protocol(weights, sparse.marginal, sparse.inputs, sparse.outputs)
    with mock.patch.object(base, "_OUTPUTS", few):
        level, holds = guarantee.level(joint, sparse).value, guarantee.holds(joint, sparse)
    assert level == guarantee.level(joint, table).value
    assert holds == guarantee.holds(joint, table)


@pytest.mark.parametrize("few", [1, 4])
def test_the_output_that_tells_most_is_named_by_its_place_among_all(few: int) -> None:
    """Here the third; nobody who was counted is published as the second."""
    joint = funnel.Joint.from_counts([[8, 2, 0], [2, 8, 0]])
    half = DENOMINATOR // 2
    weights = np.array([[half, half, 0], [0, 0, DENOMINATOR], [half - 1, 0, 0], [1, half, 0]], dtype=np.uint64)
    with mock.patch.object(base, "_OUTPUTS", few):
        found = funnel.LIP(0.1).level(joint, as_sparse(joint, weights))
    # P(s | y) / P(s) is 0.2 / 0.5 of the other secret.
    assert (found.witness.output, found.witness.ratio) == (2, Fraction(5, 2))
