"""Lifts against their definition, and where there is none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from funnel import Joint, Protocol, measures
from tests.funnel.measures.channels import channels, full_distribution, protocol_of


@settings(max_examples=50)
@given(channels())
def test_lifts_are_those_of_their_definition_and_nan_where_nothing_occurs(channel: tuple[Joint, Protocol]) -> None:
    joint, protocol = channel
    distribution = full_distribution(joint, protocol).sum(axis=1)
    prior, marginal = distribution.sum(axis=1), distribution.sum(axis=0)
    found = measures.lift(joint, protocol)
    for (s, y), mass in np.ndenumerate(distribution):
        expected = mass / (prior[s] * marginal[y]) if prior[s] * marginal[y] > 0 else np.nan
        assert found[s, y] == pytest.approx(expected, rel=1e-9, nan_ok=True)


def test_an_output_that_excludes_a_secret() -> None:
    joint = Joint.from_counts([[1, 1], [0, 2], [0, 0]])
    protocol = protocol_of(joint, np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]))
    expected = [[2, 2 / 3, np.nan], [0, 4 / 3, np.nan], [np.nan] * 3]
    assert measures.lift(joint, protocol) == pytest.approx(np.array(expected), nan_ok=True)
