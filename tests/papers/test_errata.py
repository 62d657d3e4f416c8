"""One counterexample for every statement of the papers that is false and that privacy could rest on."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import funnel
from funnel import ALIP, LDP, LIP, SRLIP, Alphabet, Chi2Lift, InfeasibleGuarantee, Joint, L1Lift, Protocol, measures
from funnel.joint import FloatArray
from funnel.measures import mutual_information
from funnel.measures.information import information_of
from funnel.mechanisms.conditional_reporting import conditional_reporting_matrix
from funnel.mechanisms.family import calibrate
from funnel.mechanisms.merging import symbol_risks
from funnel.protocol import DENOMINATOR
from funnel.rounding import integer_weights, marginal_weights
from funnel.solver.budget import Budget
from funnel.solver.greedy import partition_weights


def two_columns() -> Joint:
    """Two columns that nearly always agree, and a secret that depends on what they agree on."""
    inputs = Alphabet(("first", "second"), (("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")))
    return Joint.from_counts([[700, 5, 5, 290], [290, 5, 5, 700]], inputs=inputs)


def reports(joint: Joint, flip: float) -> tuple[Protocol, list[float]]:
    """Randomised response on each column, and for each its worst level over all side channels in the other column."""
    channel = np.array([[1 - flip, flip], [flip, 1 - flip]])
    product = np.einsum("ax,by->abxy", channel, channel).reshape(4, 4)
    single = []
    for column in (0, 1):
        rows = np.zeros((2, 4))
        for x, symbol in enumerate(joint.inputs.symbols):
            rows[:, x] = channel[:, "ab".index(symbol[column])]
        # Alone, a report of one column is judged under SRLIP by exactly ε_j-LIP for all side channels.
        weights = integer_weights(rows)
        single.append(SRLIP(1.0).level_for(joint, weights).value)
    weights = integer_weights(product)
    outputs = Alphabet(("first", "second"), tuple((a, b) for a in "ab" for b in "ab"))
    return Protocol(weights, marginal_weights(joint, weights), joint.inputs, outputs), single


def test_levels_of_columns_do_not_add_up() -> None:
    """PF theorem 4: two reports of the same value compound beyond the sum of their levels."""
    # Secrets that a single report hardly moves, and two reports move more than twice as far.
    inputs = Alphabet(("first", "second"), (("a", "a"), ("b", "b")))
    joint = Joint.from_counts([[999, 1], [1, 999]], inputs=inputs)
    found = []
    for flip in (0.3, 0.4, 0.45):
        channel = np.array([[1 - flip, flip], [flip, 1 - flip]])
        single = LIP(1.0).level_for(joint, integer_weights(channel)).value
        both = np.einsum("ax,bx->abx", channel, channel).reshape(4, 2)
        found.append((2 * single, LIP(1.0).level_for(joint, integer_weights(both)).value))
    assert any(level > bound for bound, level in found)


def test_the_product_is_calibrated_to_its_exact_level() -> None:
    joint = two_columns()
    for epsilon in (0.05, 0.2, 0.5):
        guarantee = SRLIP(epsilon)
        protocol = funnel.fit("side-channel-product", joint, guarantee)
        assert guarantee.holds(joint, protocol)
        utility = measures.mutual_information(joint, protocol)
        assert utility > 0
        assert utility <= funnel.optimal(joint, guarantee).bound + 1e-9
        # Nothing is left on the table: the level is the budget, unless the columns go out as they are.
        assert guarantee.level(joint, protocol).value == pytest.approx(epsilon, rel=1e-3)


def test_the_level_of_a_product_is_not_the_sum_of_its_columns() -> None:
    joint = two_columns()
    protocol, single = reports(joint, 0.4)
    assert SRLIP(1.0).level(joint, protocol).value != pytest.approx(sum(single), rel=1e-3)


def test_lip_does_not_give_ldp_of_half_the_budget() -> None:
    """PF VII.A has it the wrong way round: LIP(ε/2) implies LDP(ε), and LIP(ε) no more than LDP(2ε)."""
    joint = Joint.from_counts([[80, 20], [20, 80]])
    protocol = funnel.fit("grr", joint, LIP(0.5))
    assert LIP(0.5).holds(joint, protocol)
    assert not LDP(0.25).holds(joint, protocol)
    assert not LDP(0.5).holds(joint, protocol)
    assert LDP(1.0).holds(joint, protocol)


def test_conditional_reporting_can_beat_what_reads_the_input_alone() -> None:
    """PF VII: "GRR and CR lie between Opt-LIP and OUE" is no distribution: Conditional Reporting reads the secret."""
    joint = Joint.from_counts([[60, 40], [40, 60]])
    reporting = funnel.fit("conditional-reporting", joint, LIP(0.05))
    best = funnel.optimal(joint, LIP(0.05))
    assert measures.mutual_information(joint, reporting) > best.bound
    aware = funnel.optimal(joint, LIP(0.05), reads_secret=True)
    assert measures.mutual_information(joint, reporting) <= aware.bound
    assert aware.utility > best.bound


def test_conditional_reporting_as_printed_ignores_the_input() -> None:
    """PF (43) without its delta has columns that do not depend on x and do not sum to 1."""
    joint = Joint.from_counts([[5, 3, 2], [1, 2, 7]])
    right = conditional_reporting_matrix(joint, 1.0)
    assert right.sum(axis=0) == pytest.approx(1)
    given, c = joint.input_given_secret, 2
    printed = np.exp(1.0) / (np.exp(1.0) + c - 1) + (given.sum(axis=0) - given)[:, :, None] / (np.exp(1.0) + c - 1)
    assert np.abs(printed.sum(axis=1) - 1).max() > 0.1
    # The right one tells inputs of the same secret apart.
    assert np.abs(right[:, 0] - right[:, 1]).max() > 0.5


def test_merged_high_risk_symbols_can_still_break_the_bound() -> None:
    """ALIP (8): complete merging of exactly the high-risk symbols is not enough; the watchdog merges more."""
    guarantee = ALIP(0.5, 0.5)
    joint = Joint.from_counts([[90, 70, 100, 100], [10, 20, 100, 100]])
    risks = symbol_risks(joint, guarantee, "watchdog", Budget.of(None))
    low, high = risks.high_risk()
    assert len(high) == 2
    naive = partition_weights(joint, (*((x,) for x in low), high))
    assert not guarantee.holds_for(joint, naive)
    protocol = funnel.fit("watchdog", joint, guarantee)
    assert guarantee.holds(joint, protocol)
    assert len(protocol.outputs) < len(naive)


def test_the_watchdog_says_nothing_rather_than_too_much() -> None:
    joint = Joint.from_counts([[100, 0], [0, 100]])
    protocol = funnel.fit("watchdog", joint, LDP(0.1))
    assert (protocol.weights == DENOMINATOR).all()
    with pytest.raises(InfeasibleGuarantee):
        funnel.fit("identity", joint, LDP(0.1))


# A trait x = 1 that is rare, and a hundred times as common where s = 1: [s][x].
RARE_TRAIT = [[99990, 10], [990, 10]]


def channel(joint: Joint, matrix: FloatArray) -> Protocol:
    """A channel (b, a) over all columns of a joint distribution as a protocol with numbered outputs."""
    weights = integer_weights(matrix)
    columns = joint.inputs.columns
    outputs = Alphabet(columns, tuple((str(y),) * len(columns) for y in range(len(weights))))
    return Protocol(weights, marginal_weights(joint, weights), joint.inputs, outputs)


def both(one: FloatArray, other: FloatArray) -> FloatArray:
    """Two independent reports of the same input, (b, a) and (b', a) to (b b', a)."""
    return (one[:, None, :] * other[None]).reshape(-1, one.shape[1])


def test_two_releases_of_the_same_record_leak_more_than_their_levels_add_up_to() -> None:
    """Neither LIP nor LDP with respect to S composes: S is protected only through X, of which two reports tell more."""
    joint = Joint.from_counts(RARE_TRAIT)
    report = np.array([[0.9, 0.0], [0.1, 1.0]])
    for kind in (LIP, LDP):
        single = kind(1.0).level(joint, channel(joint, report)).value
        assert kind(1.0).level(joint, channel(joint, both(report, report))).value > 2.5 * 2 * single


def test_conditional_reporting_solved_for_the_lip_level_is_not_ldp() -> None:
    """PF below proposition 1: "one can find the α to have CR satisfy ε-LDP by solving L(α) = ε" - that gives LIP."""
    joint = Joint.from_counts([[30, 10, 20], [10, 30, 20]])
    by_lip, by_ldp = (funnel.fit("conditional-reporting", joint, kind(0.4)) for kind in (LIP, LDP))
    assert LIP(0.4).holds(joint, by_lip)
    assert not LDP(0.4).holds(joint, by_lip)
    assert LDP(0.4).holds(joint, by_ldp)
    assert mutual_information(joint, by_ldp) < mutual_information(joint, by_lip)


def test_a_bound_on_lifts_is_no_bound_on_their_averages_where_lifts_may_fall_further_than_rise() -> None:
    """ALIP propositions 3.1 and 3.2: a mechanism that checks ALIP in place of the l1- or χ²-lift breaks those."""
    joint = Joint.from_counts([[9, 81], [0, 10]])
    upper, lower = math.log(10 / 9) + 1e-9, math.inf
    protocol = channel(joint, np.eye(2))
    assert ALIP(lower, upper).holds(joint, protocol)
    for kind in (L1Lift, Chi2Lift):
        assert not kind(lower, upper).holds(joint, protocol)
        assert kind(lower, upper).holds(joint, funnel.fit("subset-merging", joint, kind(lower, upper)))


def unary_encoding(size: int, alpha: float) -> FloatArray:
    """OUE(α) with all its 2^a outputs (PF equation (28)), shape (2^a, a)."""
    subsets = np.array(list(itertools.product((0, 1), repeat=size)))
    exponents = size - subsets.sum(axis=1)[:, None] - (1 - subsets)
    return np.asarray(np.exp(exponents * alpha) / (2 * (np.exp(alpha) + 1) ** (size - 1)))


def test_unary_encoding_may_beat_randomised_response() -> None:
    """PF section VII.C has OUE below GRR; at a small budget and a larger alphabet it is above."""
    joint = Joint.from_counts([[1, 5, 1, 5, 5, 4], [1, 5, 5, 5, 4, 2]])
    guarantee = LIP(0.02)
    _, weights = calibrate(lambda alpha: unary_encoding(6, alpha), joint, guarantee)
    assert guarantee.holds_for(joint, weights)
    unary = information_of((weights / 2.0**63 * joint.p_input).T)
    assert unary > 1.3 * mutual_information(joint, funnel.fit("grr", joint, guarantee))
