"""The test of outputs against the secret, given the input."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funnel
from funnel.drawn import DrawnCounts
from funnel.findings.consistency import draw_consistency, independence
from funnel.protocol import DENOMINATOR, Protocol


def protocol_of(distribution: list[list[float]]) -> Protocol:
    """From the distribution of each input."""
    weights = np.array([[int(p * 2**20) << 43 for p in row] for row in distribution], dtype=np.uint64).T
    weights[-1] += np.uint64(DENOMINATOR) - weights.sum(axis=0)
    b, a = weights.shape
    return Protocol(weights, weights[:, 0].copy(), funnel.Alphabet.of(None, a, "X"), funnel.Alphabet.of(None, b, "Y"))


PROTOCOL = protocol_of([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])


def drawn(totals: list[list[int]], random: np.random.Generator, protocol: Protocol = PROTOCOL) -> np.ndarray:
    """Clean draws, shape (c + 1, a + 1, b), without anything outside."""
    b, a = protocol.size
    distribution = protocol.weights.T.astype(float) / DENOMINATOR
    table = np.zeros((len(totals) + 1, a + 1, b), dtype=np.int64)
    for s, row in enumerate(totals):
        for x, total in enumerate(row):
            table[s, x] = random.multinomial(total, distribution[x])
    return table


def compositions(total: int, parts: int) -> list[tuple[int, ...]]:
    return [c for c in itertools.product(range(total + 1), repeat=parts) if sum(c) == total]


def test_by_all_outcomes_a_small_p_value_is_as_rare_as_it_says() -> None:
    totals = {(0, 0): 3, (0, 1): 2, (1, 0): 2}
    distribution = PROTOCOL.weights.T.astype(float) / DENOMINATOR
    outcomes: defaultdict[float, float] = defaultdict(float)
    for rows in itertools.product(*(compositions(total, 3) for total in totals.values())):
        table, chance = np.zeros((3, 3, 3), dtype=np.int64), 1.0
        for (s, x), row in zip(totals, rows, strict=True):
            table[s, x] = row
            chance *= math.factorial(sum(row)) * math.prod(
                p**k / math.factorial(k) for p, k in zip(distribution[x], row, strict=True)
            )
        outcomes[independence(DrawnCounts.of(table), PROTOCOL).p_value] += chance
    seen = 0.0
    for p_value in sorted(outcomes):
        seen += outcomes[p_value]
        assert seen <= p_value * (1 + 1e-9)
    assert seen == pytest.approx(1)


@given(
    st.integers(0, 2**32 - 1), st.lists(st.lists(st.integers(0, 3000), min_size=2, max_size=2), min_size=1, max_size=5)
)
def test_clean_draws_are_not_suspected(seed: int, totals: list[list[int]]) -> None:
    table = drawn(totals, np.random.default_rng(seed))
    # By the proof, once in 10^13 examples.
    assert independence(DrawnCounts.of(table), PROTOCOL).p_value > 1e-13


def test_draws_that_look_at_the_secret_are_found_where_the_pairs_show_nothing() -> None:
    table = drawn([[2000, 2000], [2000, 2000]], np.random.default_rng(3))
    # What one secret has too many of, the other has too few.
    for x in range(2):
        table[0, x] += [150, 0, -150] if table[0, x, 2] > 150 else [0, 100, -100]
        table[1, x] -= [150, 0, -150] if table[1, x, 0] > 150 else [0, 100, -100]
    found = independence(DrawnCounts.of(table), PROTOCOL)
    assert draw_consistency(DrawnCounts.of(table).pairs, PROTOCOL).p_value > 1e-9
    assert found.p_value < 1e-9
    assert found.groups == 4
    assert found.impossible == 0


def test_many_small_faults_of_one_secret_add_up() -> None:
    random = np.random.default_rng(4)
    distribution = [[0.5, 0.3, 0.2]] * 40
    protocol = protocol_of(distribution)
    table = drawn([[300] * 40] * 2, random, protocol)
    table[1, :40] += np.array([24, -12, -12])
    found = independence(DrawnCounts.of(table), protocol)
    assert found.p_value < 1e-20
    assert found.worst_secret == 1


def test_outputs_that_the_protocol_never_gives_are_counted() -> None:
    protocol = protocol_of([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
    table = np.zeros((3, 3, 3), dtype=np.int64)
    table[1, 0] = [5, 5, 2]
    found = independence(DrawnCounts.of(table), protocol)
    assert (found.p_value, found.worst_secret, found.worst_input, found.impossible) == (0, 1, 0, 2)


def test_no_draws_are_not_suspected() -> None:
    assert independence(DrawnCounts.of(np.zeros((3, 3, 3), dtype=np.int64)), PROTOCOL).p_value == 1
