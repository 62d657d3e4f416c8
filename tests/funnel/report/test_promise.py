"""The limits that a guarantee sets to beliefs, against a linear programme over its own cone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from funnel import LDP, LIP, SRLIP
from funnel.guarantees.several import Several
from funnel.report.public.report_tables import promised_by
from tests.funnel.report.contents import NOVEL

PRIORS = st.lists(st.integers(1, 50), min_size=2, max_size=5).map(lambda counts: np.array(counts) / sum(counts))
EPSILONS = st.floats(min_value=0.0, max_value=4.0)


@pytest.mark.parametrize("kind", [LIP, LDP])
@given(prior=PRIORS, epsilon=EPSILONS)
@settings(max_examples=25)
def test_limits_on_beliefs_are_exactly_those_of_the_cone(
    kind: type[LIP] | type[LDP], prior: np.ndarray, epsilon: float
) -> None:
    guarantee = kind(epsilon)
    belief = guarantee.posterior_limits(prior)
    assert belief is not None
    cone = guarantee.posterior_cone(prior)
    for s in range(len(prior)):
        for limit, sign in ((belief[0][s], 1), (belief[1][s], -1)):
            cost = np.zeros(len(prior))
            cost[s] = sign
            # The prior itself is always a possible posterior, so a tolerance on the cone keeps it so at ε = 0.
            found = linprog(cost, A_ub=cone, b_ub=np.full(len(cone), 1e-9), A_eq=np.ones((1, len(prior))), b_eq=[1])
            assert found.status == 0
            assert sign * found.fun == pytest.approx(limit, abs=1e-5)


def test_the_example_of_a_third_under_one_nat() -> None:
    belief = LIP(1.0).posterior_limits(np.array([0.33, 0.67]))
    low, high = belief
    assert low[0] == pytest.approx(0.33 * np.exp(-1))
    # Not e times 33 %: the other value cannot lose more than a factor e either.
    assert high[0] == pytest.approx(1 - 0.67 * np.exp(-1))
    assert high[0] < 0.33 * np.e


@pytest.mark.parametrize("guarantee", [LIP(2.0), LDP(2.0), LIP(0.0), LDP(100.0)])
def test_a_secret_of_one_value_is_certain_and_one_that_never_occurs_impossible(guarantee: LIP | LDP) -> None:
    belief = guarantee.posterior_limits(np.array([1.0, 0.0]))
    assert belief is not None
    np.testing.assert_array_equal(belief, [[1, 0], [1, 0]])


def test_which_limits_each_guarantee_sets() -> None:
    assert promised_by(LIP(1.0)).lift_limits == (pytest.approx(np.exp(-1)), pytest.approx(np.e))
    assert promised_by(LIP(1.0)).ratio_limit is None
    assert promised_by(LDP(1.0)).ratio_limit == pytest.approx(np.e)
    assert promised_by(LDP(1.0)).lift_limits is None
    assert promised_by(NOVEL).kind == "other"
    assert promised_by(NOVEL).lift_limits is promised_by(NOVEL).ratio_limit is None


def test_of_several_records_of_a_person_observers_know_columns_of_one() -> None:
    """The bound is for these; what somebody who knows columns of two rows may conclude is not bounded."""
    for guarantee in (SRLIP(1.0), Several([LIP(1.0), SRLIP(2.0)])):
        assert promised_by(guarantee, several=True).meaning.endswith("they know columns of one, whichever it is.")
        assert promised_by(guarantee).meaning == guarantee.meaning
    assert promised_by(LIP(1.0), several=True).meaning == LIP(1.0).meaning
