"""Accuracy of the best guess, and secrets that never occur."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings

from funnel import Joint, Protocol, measures
from funnel.joint import FloatArray
from tests.funnel.measures.channels import channels, full_distribution, protocol_of


@settings(max_examples=50)
@given(channels())
def test_no_rule_of_guessing_is_better(channel: tuple[Joint, Protocol]) -> None:
    """The accuracy is that of the best of all functions from outputs to values."""
    joint, protocol = channel
    distribution = full_distribution(joint, protocol)
    tables: tuple[tuple[measures.Counted, FloatArray], ...] = (
        ("inputs", distribution.sum(axis=0)),
        ("secret", distribution.sum(axis=1)),
    )
    for counts, table in tables:
        outputs = range(table.shape[1])
        rules = itertools.product(range(table.shape[0]), repeat=len(outputs))
        best = max(sum(table[value, y] for value, y in zip(rule, outputs, strict=True)) for rule in rules)
        assert measures.guess_accuracy(joint, protocol, counts) == pytest.approx(best)


def test_an_unseen_secret_leaks_nothing() -> None:
    seen = Joint.from_counts([[4, 1], [1, 4]])
    unseen = Joint.from_counts([[4, 1], [0, 0], [1, 4]])
    told = [measures.secret_information(joint, protocol_of(joint, np.eye(2))) for joint in (unseen, seen)]
    assert told[0] == told[1] > 0


def test_an_accuracy_is_never_above_one() -> None:
    """The shares of 44 values sum to 1 and a last digit: an honest report of them was refused."""
    joint = Joint.from_counts(np.arange(1, 45)[None, :])
    assert joint.p_input.sum() > 1
    assert measures.guess_accuracy(joint, protocol_of(joint, np.eye(44))) == 1
