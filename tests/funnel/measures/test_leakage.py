"""Leakage to guessers and accuracy of the best guess."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings

from funnel import Joint, Protocol, measures
from funnel.joint import FloatArray
from tests.funnel.measures.channels import channels, full_law, protocol_of


@settings(max_examples=50)
@given(channels())
def test_no_rule_of_guessing_is_better(channel: tuple[Joint, Protocol]) -> None:
    """The accuracy is that of the best of all functions from outputs to values."""
    joint, protocol = channel
    law = full_law(joint, protocol)
    tables: tuple[tuple[measures.Counted, FloatArray], ...] = (("inputs", law.sum(axis=0)), ("secret", law.sum(axis=1)))
    for counts, table in tables:
        outputs = range(table.shape[1])
        rules = itertools.product(range(table.shape[0]), repeat=len(outputs))
        best = max(sum(table[value, y] for value, y in zip(rule, outputs, strict=True)) for rule in rules)
        assert measures.guess_accuracy(joint, protocol, counts) == pytest.approx(best)


@settings(max_examples=50)
@given(channels())
def test_min_entropy_leakage_is_the_gain_in_accuracy(channel: tuple[Joint, Protocol]) -> None:
    joint, protocol = channel
    gain = measures.guess_accuracy(joint, protocol, "secret") / joint.p_secret.max()
    assert measures.min_entropy_leakage(joint, protocol) == pytest.approx(math.log(gain), abs=1e-12)


@settings(max_examples=50)
@given(channels())
def test_maximal_leakage_is_the_worst_gain_over_priors(channel: tuple[Joint, Protocol]) -> None:
    """Attained by the uniform prior on the secrets that occur, never exceeded by the prior there is."""
    joint, protocol = channel
    law = full_law(joint, protocol).sum(axis=1)
    law = law[law.sum(axis=1) > 0]
    uniform = (law / law.sum(axis=1, keepdims=True)).max(axis=0).sum()
    maximal = measures.maximal_leakage(joint, protocol)
    assert maximal == pytest.approx(math.log(uniform), abs=1e-12)
    assert measures.min_entropy_leakage(joint, protocol) <= maximal + 1e-12
    assert maximal <= math.log(min(law.shape)) + 1e-12


def test_an_unseen_secret_leaks_nothing() -> None:
    seen = Joint.from_counts([[4, 1], [1, 4]])
    unseen = Joint.from_counts([[4, 1], [0, 0], [1, 4]])
    for measure in (measures.maximal_leakage, measures.min_entropy_leakage, measures.secret_information):
        assert measure(unseen, protocol_of(unseen, np.eye(2))) == measure(seen, protocol_of(seen, np.eye(2))) > 0
