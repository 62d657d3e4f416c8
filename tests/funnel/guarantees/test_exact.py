"""Rational bounds on e^ε and ln: on the safe side, always, and close."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.guarantees.exact import exp_below, log_above, secret_output

PRECISE = Context(prec=120)


def exp_precisely(value: Decimal) -> Fraction:
    return Fraction(PRECISE.exp(value))


@given(st.floats(0, 50))
def test_exp_below_is_below_and_close(epsilon: float) -> None:
    below = exp_below(epsilon)
    exact = min(exp_precisely(Decimal(epsilon)), exp_precisely(Decimal(repr(epsilon))))
    assert below <= exact
    # Never so far below that a level shows it.
    assert below >= max(Fraction(1), exact * (1 - Fraction(1, 2**48)))
    # Whoever compares with the float e^ε comes to the same verdict.
    assert below <= Fraction(math.nextafter(math.exp(epsilon), math.inf))


@pytest.mark.parametrize("epsilon", [-1e-300, -1.0, math.inf, math.nan])
def test_exp_below_refuses_what_is_no_budget(epsilon: float) -> None:
    with pytest.raises(ValueError, match="epsilon"):
        exp_below(epsilon)


@given(st.integers(1, 2**90), st.integers(0, 2**120))
def test_log_above_is_above_and_close(denominator: int, excess: int) -> None:
    ratio = Fraction(denominator + excess, denominator)
    value = log_above(ratio)
    assert exp_precisely(Decimal(value)) * (1 + Fraction(1, 10**100)) >= ratio
    lower = math.nextafter(math.nextafter(value, 0), 0)
    assert value == 0 or exp_precisely(Decimal(lower)) <= ratio


@given(st.data())
def test_the_distribution_of_secret_and_output_is_exact(data: st.DataObject) -> None:
    c, a, b = (data.draw(st.integers(1, 4)) for _ in range(3))
    counts = np.array(
        data.draw(
            st.lists(st.lists(st.integers(0, 2**31 // (c * a) - 1), min_size=a, max_size=a), min_size=c, max_size=c)
        )
    )
    weights = np.array(
        data.draw(st.lists(st.lists(st.integers(0, 2**63), min_size=a, max_size=a), min_size=b, max_size=b)),
        dtype=np.uint64,
    )
    distribution = secret_output(counts.astype(np.int64), weights)
    for s in range(c):
        for y in range(b):
            assert distribution[s, y] == sum(int(counts[s, x]) * int(weights[y, x]) for x in range(a))
