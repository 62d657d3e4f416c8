"""Attacks: the best guess against all guesses one by one, pairs of versions by their definition, the worst first."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel import LIP, Joint, fit, measures
from funnel.findings.attacks import attack, both_versions, true_value, worst_first


def distributions(values: int = 1) -> st.SearchStrategy[tuple[np.ndarray, np.ndarray]]:
    """Counts (2, 3, k) that are not all zero, and a channel (3, 3)."""
    cell = st.integers(0, 9)
    counts = st.lists(cell, min_size=6 * values, max_size=6 * values).filter(any)
    column = st.lists(st.integers(0, 5), min_size=3, max_size=3).filter(any)
    return st.tuples(
        counts.map(lambda flat: np.array(flat, dtype=np.int64).reshape(2, 3, values)),
        st.lists(column, min_size=3, max_size=3).map(lambda rows: (np.array(rows) / np.sum(rows, axis=1)[:, None]).T),
    )


@given(distributions(2))
@settings(max_examples=40)
def test_no_guess_is_right_more_often_than_the_best_one(drawn: tuple[np.ndarray, np.ndarray]) -> None:
    counts, channel = drawn
    found = attack(counts, channel)
    assert found is not None
    distribution = np.einsum("sxz,yx->syz", counts / counts.sum(), channel)
    # Every way to guess a secret from (y, z), one by one.
    rights = [
        sum(distribution[guess, y, z] for (y, z), guess in zip(np.ndindex(3, 2), guesses, strict=True))
        for guesses in product(range(2), repeat=6)
    ]
    assert found.after == pytest.approx(max(rights))
    without = [sum(distribution[g[z], :, z].sum() for z in range(2)) for g in product(range(2), repeat=2)]
    assert found.before == pytest.approx(max(without))
    assert found.gain >= -1e-12
    given_side = distribution.sum(axis=1)
    information = sum(
        p * math.log(p * given_side[:, z].sum() / (given_side[s, z] * distribution[:, y, z].sum()))
        for (s, y, z), p in np.ndenumerate(distribution)
        if p > 0
    )
    assert found.information == pytest.approx(information, abs=1e-12)


def test_a_single_record_is_the_measure_of_the_library() -> None:
    joint = Joint.from_counts([[30, 10, 5], [10, 50, 20]])
    protocol = fit("grr", joint, LIP(0.5))
    found = attack(joint.counts[:, :, np.newaxis], protocol.matrix)
    assert found is not None
    assert found.after == pytest.approx(measures.guess_accuracy(joint, protocol, "secret"))
    assert found.information == pytest.approx(measures.secret_information(joint, protocol))


@given(distributions())
@settings(max_examples=40)
def test_two_independent_records_tell_what_their_pairs_do(drawn: tuple[np.ndarray, np.ndarray]) -> None:
    counts, channel = drawn
    distribution = counts[:, :, 0] / counts.sum()
    other = channel[::-1, ::-1]
    found = both_versions(distribution, channel, other)
    assert found is not None
    pairs = np.einsum("sx,yx,zx->syz", distribution, channel, other).reshape(2, -1)
    assert found.after == pytest.approx(pairs.max(axis=0).sum())
    one, whole = attack(counts, channel), true_value(distribution)
    assert one is not None
    assert one.after - 1e-12 <= found.after <= whole.after + 1e-12
    assert one.information - 1e-9 <= found.information <= whole.information + 1e-9


def test_what_would_take_too_long_is_not_computed() -> None:
    assert attack(np.ones((2, 3000, 1000), dtype=np.int64), np.full((3000, 3000), 1 / 3000)) is None
    assert both_versions(np.full((2, 2000), 1 / 4000), np.full((2000, 2000), 1 / 2000), np.ones((2000, 2000))) is None


def test_the_worst_attack_comes_first() -> None:
    counts = np.array([[[4, 1], [1, 4]], [[1, 4], [4, 1]]], dtype=np.int64)
    channel = np.eye(2)
    useful, useless = attack(counts, channel), attack(counts, np.full((2, 2), 0.5))
    assert useful is not None
    assert useless is not None
    assert [name for name, _ in worst_first([("a", useless), ("b", useful), ("c", useless)])] == ["b", "a", "c"]
