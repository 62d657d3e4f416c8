"""The measures against qif, a library of quantitative information flow; it counts in bits."""

from __future__ import annotations

import math

import numpy as np
import pytest
import qif
from hypothesis import given, settings

from funnel import Joint, Protocol, measures
from funnel.joint import FloatArray
from tests.funnel.measures.channels import channels, full_law

BIT = math.log(2)
COUNTED: tuple[measures.Counted, ...] = ("inputs", "secret", "secret and inputs")


def prior_and_channel(joint: Joint, protocol: Protocol, counts: measures.Counted) -> tuple[FloatArray, FloatArray]:
    law = full_law(joint, protocol)
    table = {"inputs": law.sum(axis=0), "secret": law.sum(axis=1), "secret and inputs": law.reshape(-1, law.shape[2])}
    seen = table[counts][table[counts].sum(axis=1) > 0]
    prior = seen.sum(axis=1)
    channel = seen / prior[:, None]
    return prior / prior.sum(), channel / channel.sum(axis=1, keepdims=True)


@settings(max_examples=50)
@given(channels())
def test_guesses(channel: tuple[Joint, Protocol]) -> None:
    """Bayes vulnerability, its gain, and its multiplicative capacity: the exponential of maximal leakage."""
    vulnerability = qif.measure.bayes_vuln
    for counts in COUNTED:
        prior, matrix = prior_and_channel(*channel, counts)
        assert measures.guess_accuracy(*channel, counts) == pytest.approx(vulnerability.posterior(prior, matrix))
        leakage = BIT * vulnerability.min_entropy_leakage(prior, matrix)
        assert measures.min_entropy_leakage(*channel, counts) == pytest.approx(leakage, abs=1e-9)
        capacity = vulnerability.mult_capacity(matrix)
        assert math.exp(measures.maximal_leakage(*channel, counts)) == pytest.approx(capacity)


@settings(max_examples=50)
@given(channels())
def test_information(channel: tuple[Joint, Protocol]) -> None:
    for counts in COUNTED:
        prior, matrix = prior_and_channel(*channel, counts)
        information = BIT * qif.measure.shannon.add_leakage(prior, matrix)
        assert measures.mutual_information(*channel, counts) == pytest.approx(information, abs=1e-9)


@settings(max_examples=50)
@given(channels(max_secrets=3))
def test_every_property_leaks_at_most_maximal_leakage(channel: tuple[Joint, Protocol]) -> None:
    """qif's vulnerability of a yes-or-no property, for each of them."""
    prior, matrix = prior_and_channel(*channel, "secret")
    bound = math.exp(measures.maximal_leakage(*channel))
    for code in range(2 ** len(prior)):
        members = np.array([code >> s & 1 for s in range(len(prior))], dtype=np.uint64)
        assert qif.measure.pred_vuln.mult_leakage(members, prior, matrix) <= bound * (1 + 1e-9)
