"""The test of draws: quiet about honest ones, loud about wrong, exchanged and impossible ones."""

from __future__ import annotations

import numpy as np

import funnel
from funnel import LIP, Joint
from funnel.audit import draw_consistency


def setting() -> tuple[funnel.Protocol, np.ndarray]:
    joint = Joint.from_counts([[3000, 100, 2000, 3], [1000, 300, 2500, 9]])
    protocol = funnel.fit("optimal", joint, LIP(0.4))
    return protocol, joint.counts.sum(axis=0)


def drawn(protocol: funnel.Protocol, totals: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    columns = protocol.matrix / protocol.matrix.sum(axis=0)
    rows = [rng.multinomial(n, columns[:, x]) for x, n in enumerate(totals)]
    return np.array([*rows, np.zeros(len(protocol.outputs), dtype=np.int64)])


def test_honest_draws_are_seldom_suspected() -> None:
    protocol, totals = setting()
    rng = np.random.default_rng(1)
    p_values = np.array([draw_consistency(drawn(protocol, totals, rng), protocol).p_value for _ in range(400)])
    # Bonferroni over dependent, discrete tests is on the safe side.
    assert (p_values < 0.05).mean() <= 0.07
    assert (p_values < 1e-4).sum() == 0


def test_exchanged_inputs_are_noticed_though_the_marginal_is_right() -> None:
    protocol, totals = setting()
    pairs = drawn(protocol, totals, np.random.default_rng(2))
    pairs[[0, 2]] = pairs[[2, 0]]
    found = draw_consistency(pairs, protocol)
    assert found.p_value < 1e-12
    assert found.worst_input in (0, 2)


def test_a_slightly_wrong_probability_is_noticed() -> None:
    protocol, totals = setting()
    pairs = drawn(protocol, totals * 100, np.random.default_rng(3))
    y, z = np.argsort(-pairs[0])[:2]
    pairs[0, y] -= pairs[0, y] // 20
    pairs[0, z] += pairs[0, y] // 20
    assert draw_consistency(pairs, protocol).p_value < 1e-9


def test_one_impossible_output_is_enough() -> None:
    protocol, totals = setting()
    pairs = drawn(protocol, totals, np.random.default_rng(4))
    x, y = next((x, y) for y, x in zip(*np.nonzero(protocol.weights == 0), strict=True) if pairs[x].sum())
    pairs[x, y] += 1
    found = draw_consistency(pairs, protocol)
    assert (found.p_value, found.impossible, found.worst_input) == (0.0, 1, x)


def test_a_fault_in_a_rare_output_is_not_lost_in_the_pool() -> None:
    joint = Joint.from_counts([[10**6, 10**6], [10**6, 10**6]])
    protocol = funnel.fit("grr", joint, LIP(14.0))
    pairs = np.array([[10**6, 0], [0, 10**6], [0, 0]])
    assert draw_consistency(pairs, protocol).p_value > 1e-9
    skewed = funnel.Protocol(
        funnel.rounding.integer_weights(np.array([[1 - 1e-6, 1e-6], [1e-6, 1 - 1e-6]])),
        protocol.marginal,
        protocol.inputs,
        protocol.outputs,
    )
    assert draw_consistency(np.array([[10**6 - 60, 60], [0, 10**6], [0, 0]]), skewed).p_value < 1e-12


def test_no_record_is_no_evidence() -> None:
    protocol, totals = setting()
    assert draw_consistency(np.zeros((len(totals) + 1, len(protocol.outputs)), dtype=np.int64), protocol).tests == 0
