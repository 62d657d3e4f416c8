"""The measures against qif, a library of quantitative information flow; it counts in bits."""

from __future__ import annotations

import math

import pytest
import qif
from hypothesis import given, settings

from funnel import Joint, Protocol, measures
from funnel.joint import FloatArray
from tests.funnel.measures.channels import channels, full_distribution

BIT = math.log(2)
COUNTED: tuple[measures.Counted, ...] = ("inputs", "secret", "secret and inputs")


def prior_and_channel(joint: Joint, protocol: Protocol, counts: measures.Counted) -> tuple[FloatArray, FloatArray]:
    distribution = full_distribution(joint, protocol)
    table = {
        "inputs": distribution.sum(axis=0),
        "secret": distribution.sum(axis=1),
        "secret and inputs": distribution.reshape(-1, distribution.shape[2]),
    }
    seen = table[counts][table[counts].sum(axis=1) > 0]
    prior = seen.sum(axis=1)
    channel = seen / prior[:, None]
    return prior / prior.sum(), channel / channel.sum(axis=1, keepdims=True)


@settings(max_examples=50)
@given(channels())
def test_guesses(channel: tuple[Joint, Protocol]) -> None:
    """Bayes vulnerability given an output."""
    vulnerability = qif.measure.bayes_vuln
    for counts in COUNTED:
        prior, matrix = prior_and_channel(*channel, counts)
        assert measures.guess_accuracy(*channel, counts) == pytest.approx(vulnerability.posterior(prior, matrix))


@settings(max_examples=50)
@given(channels())
def test_information(channel: tuple[Joint, Protocol]) -> None:
    for counts in COUNTED:
        prior, matrix = prior_and_channel(*channel, counts)
        information = BIT * qif.measure.shannon.add_leakage(prior, matrix)
        assert measures.mutual_information(*channel, counts) == pytest.approx(information, abs=1e-9)
