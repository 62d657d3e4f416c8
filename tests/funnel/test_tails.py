"""Tails: never below the exact ones, and hardly above them."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from funnel.tails import fisher, hypergeometric_two_sided


def exact(k: int, marked: int, drawn: int, total: int) -> Fraction:
    """Twice the smaller tail, at most 1, in whole numbers."""
    ways = {j: comb(marked, j) * comb(total - marked, drawn - j) for j in range(drawn + 1)}
    above = sum(way for j, way in ways.items() if j >= k)
    below = sum(way for j, way in ways.items() if j <= k)
    return min(Fraction(1), 2 * Fraction(min(above, below), comb(total, drawn)))


@st.composite
def tables(draw: st.DrawFn) -> tuple[int, int, int, int]:
    total = draw(st.integers(1, 400))
    marked, drawn = draw(st.integers(0, total)), draw(st.integers(0, total))
    return draw(st.integers(max(0, marked + drawn - total), min(marked, drawn))), marked, drawn, total


@given(st.lists(tables(), min_size=1, max_size=5))
def test_hypergeometric_tails_are_exact_and_never_below(some: list[tuple[int, int, int, int]]) -> None:
    found = hypergeometric_two_sided(*(np.array(part) for part in zip(*some, strict=True)))
    for p, one in zip(found, some, strict=True):
        whole = exact(*one)
        assert p >= min(1, float(whole))
        # Near the mode a tail is set to 1 rather than added up; elsewhere it is exact but for rounding.
        assert p == 1 or p <= float(whole) * (1 + 1e-5) + 1e-300


def test_tails_of_a_hundred_million_records() -> None:
    total, marked, drawn = 10**8, 3 * 10**7, 10**6
    sigma = np.sqrt(drawn * 0.3 * 0.7)
    for sigmas in (-8.0, -5.0, 2.0, 6.0):
        k = int(300_000 + sigmas * sigma)
        (found,) = hypergeometric_two_sided(*(np.array([part]) for part in (k, marked, drawn, total)))
        # The law is almost the normal one, with the correction of a finite population.
        normal = 2 * stats.norm.sf(abs(k - 300_000) / (sigma * np.sqrt(1 - drawn / total)))
        assert found == pytest.approx(normal, rel=0.05)


def test_fisher_of_uniform_values_is_uniform() -> None:
    assert fisher(np.empty(0)) == 1
    assert fisher(np.array([0.3])) == pytest.approx(0.3, rel=1e-5)
    assert fisher(np.array([0.5, 0.0])) == 0
    assert fisher(np.array([0.1, 0.2, 0.4])) == pytest.approx(stats.combine_pvalues([0.1, 0.2, 0.4]).pvalue, rel=1e-5)
