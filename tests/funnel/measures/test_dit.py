"""The measures against dit, a library of information theory; it counts in bits."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings

from funnel import Joint, Protocol, measures
from tests.funnel.measures.channels import channels, full_distribution

BIT = math.log(2)


@settings(max_examples=40)
@given(channels())
def test_information(channel: tuple[Joint, Protocol]) -> None:
    # Takes two seconds, which the other worker need not spend.
    import dit

    joint, protocol = channel
    distribution = full_distribution(joint, protocol)
    whole = dit.Distribution.from_ndarray(distribution / distribution.sum())
    S, X, Y = [0], [1], [2]
    for counts, columns in (("inputs", X), ("secret", S), ("secret and inputs", S + X)):
        information = BIT * dit.shannon.mutual_information(whole, columns, Y)
        assert measures.mutual_information(joint, protocol, counts) == pytest.approx(information, abs=1e-8)  # type: ignore[arg-type]
