"""The test of draws: quiet about honest ones, loud about wrong, exchanged and impossible ones."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel import LIP, Alphabet, Joint, Protocol, tails
from funnel.findings.consistency import draw_consistency

FULL = 2**63


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


def of_shares(*distributions: list[int]) -> Protocol:
    """A protocol whose inputs draw their outputs by whole shares, exactly where these sum to a power of two."""
    weights = np.array(
        [[share * (FULL // sum(distribution)) for share in distribution] for distribution in distributions],
        dtype=object,
    )
    weights[:, 0] += [FULL - total for total in weights.sum(axis=1)]
    matrix = weights.T.astype(np.uint64)
    a, b = weights.shape
    return Protocol(matrix, matrix[:, 0].copy(), Alphabet.of(None, a, "X"), Alphabet.of(None, b, "Y"))


def outcomes(total: int, shares: list[int]) -> list[tuple[tuple[int, ...], Fraction]]:
    """All counts of so many records, with their exact probabilities."""
    found = []
    whole = sum(shares)
    for cuts in itertools.combinations(range(total + len(shares) - 1), len(shares) - 1):
        places = (-1, *cuts, total + len(shares) - 1)
        counts = tuple(high - low - 1 for low, high in itertools.pairwise(places))
        ways, left = 1, total
        for count in counts:
            ways *= math.comb(left, count)
            left -= count
        mass = math.prod(share**count for share, count in zip(shares, counts, strict=True))
        found.append((counts, Fraction(ways * mass, whole**total)))
    return found


def assert_never_more_often_than_said(protocol: Protocol, samples: list[tuple[np.ndarray, Fraction]]) -> None:
    """P(p <= t) <= t at every p-value that occurs: by adding up the probabilities of all outcomes."""
    found = sorted((draw_consistency(pairs, protocol).p_value, chance) for pairs, chance in samples)
    assert sum(chance for _, chance in found) == 1
    below = Fraction(0)
    for place, (p_value, chance) in enumerate(found):
        below += chance
        if place + 1 == len(found) or found[place + 1][0] > p_value:
            # Below the floats a p-value is 0.
            assert below <= max(Fraction(p_value), Fraction(1, 10**290))


@pytest.mark.parametrize(
    ("total", "shares"),
    [
        # An output of expectation 5, the threshold at which a χ² test was refused 350 times as often as said.
        (40, [4, 28]),
        (640, [1, 127]),
        (24, [1, 3]),
        (1, [1, 1, 2]),
        (5, [1, 1, 2]),
        (40, [4, 12, 16]),
        (60, [5, 59 - 27, 27]),
        (20, [4, 4, 4, 4]),
        (16, [1, 2, 5, 8]),
        (13, [1, 1, 1, 1, 12]),
    ],
)
def test_correct_draws_are_suspected_no_more_often_than_said(total: int, shares: list[int]) -> None:
    nobody = [0] * len(shares)
    samples = [(np.array([counts, nobody]), chance) for counts, chance in outcomes(total, shares)]
    assert_never_more_often_than_said(of_shares(shares), samples)


def test_nor_over_several_inputs() -> None:
    protocol = of_shares([1, 3, 4], [6, 1, 1])
    one, other = outcomes(12, [1, 3, 4]), outcomes(9, [6, 1, 1])
    samples = [
        (np.array([first, second, (0, 0, 0)]), chance * odds)
        for (first, chance), (second, odds) in itertools.product(one, other)
    ]
    assert_never_more_often_than_said(protocol, samples)


@pytest.mark.parametrize("expected", [5, 10, 30, 100])
def test_the_stated_rate_of_a_thousand_million_holds_for_rare_outputs(expected: int) -> None:
    """Many outputs of one small expectation among 1,024 records: how often one of them is refused, exactly."""
    total, shares = 2**10, [expected] * 3 + [2**10 - 3 * expected]
    protocol = of_shares(shares)
    refused = Fraction(0)
    q = Fraction(expected, total)
    for count in range(6 * expected + 80):
        # The others as near to their expectation as can be.
        rest = round((total - count) * expected / (total - expected))
        counts = [count, rest, rest, total - count - 2 * rest]
        if draw_consistency(np.array([counts, [0] * 4]), protocol).p_value < 1e-9:
            refused += math.comb(total, count) * q**count * (1 - q) ** (total - count)
    assert 0 < refused < Fraction(1, 10**9)


@settings(max_examples=60)
@given(st.integers(1, 10**9), st.floats(-12, -0.302), st.floats(-15, 15))
def test_tails_are_exact_up_to_their_margin(total: int, power: float, deviations: float) -> None:
    """Against Arb, at up to fifteen standard deviations, for probabilities near zero and near one."""
    weight = max(1, int(10**power * FULL))
    q = weight / FULL
    count = int(min(max(0, total * q + deviations * math.sqrt(total * q + 1)), total))
    before, ctx.prec = ctx.prec, 256
    try:
        exact = arb(weight) / arb(FULL)
        at_least = exact.beta_lower(count, total - count + 1, regularized=True) if count else arb(1)
        at_most = (1 - exact).beta_lower(total - count, count + 1, regularized=True) if count < total else arb(1)
        true = min(1.0, 2 * min(float(at_least.mid()), float(at_most.mid())))
    finally:
        ctx.prec = before
    for k, w in ((count, weight), (total - count, FULL - weight)):
        p = tails.binomial_two_sided(
            np.array([k]), np.array([total]), np.array([w], dtype=np.uint64), np.array([FULL], dtype=np.uint64)
        )[0]
        assert true <= p <= true * (1 + 2.0**-19) + 1e-300


@pytest.mark.parametrize(("outputs", "n", "off"), [(16, 10_000, 0.1), (16, 100_000, 0.03), (100, 100_000, 0.042)])
def test_many_small_faults_add_up(outputs: int, n: int, off: float) -> None:
    """Every other output is too frequent by a few per cent: no single one stands out, all of them do."""
    distribution = (1 + off * np.where(np.arange(outputs) % 2, 1, -1)) / outputs
    protocol = of_shares([1] * outputs)
    random = np.random.default_rng(6)
    found = [
        draw_consistency(np.array([random.multinomial(n, distribution), [0] * outputs]), protocol).p_value
        for _ in range(30)
    ]
    assert sum(p < 1e-9 for p in found) >= 27


def test_an_input_that_is_never_random_needs_no_test() -> None:
    protocol = of_shares([1, 0, 0], [1, 1, 2])
    sure = np.array([[50, 0, 0], [0, 0, 0], [0, 0, 0]])
    assert draw_consistency(sure, protocol).tests == 0
    assert draw_consistency(sure, protocol).p_value == 1
    assert draw_consistency(np.array([[50, 0, 0], [20, 20, 40], [0, 0, 0]]), protocol).tests == 4
