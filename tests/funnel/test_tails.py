"""Tails: never below the exact ones, and hardly above them."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import comb, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from funnel.joint import IntArray
from funnel.tails import fisher, hypergeometric_two_sided, likeness


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
        # The distribution is almost the normal one, with the correction of a finite population.
        normal = 2 * stats.norm.sf(abs(k - 300_000) / (sigma * np.sqrt(1 - drawn / total)))
        assert found == pytest.approx(normal, rel=0.05)


def test_fisher_of_uniform_values_is_uniform() -> None:
    assert fisher(np.empty(0)) == 1
    assert fisher(np.array([0.3])) == pytest.approx(0.3, rel=1e-5)
    assert fisher(np.array([0.5, 0.0])) == 0
    assert fisher(np.array([0.1, 0.2, 0.4])) == pytest.approx(stats.combine_pvalues([0.1, 0.2, 0.4]).pvalue, rel=1e-5)


@settings(max_examples=20)
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=2, max_size=3), st.sampled_from([1, 30]))
def test_a_likeness_is_a_p_value(cells: list[tuple[int, int]], group: int) -> None:
    """Of all tables with the same sums those at least as alike are no likelier than the value, in exact counts."""
    first, second = (np.array(part) for part in zip(*cells, strict=True))
    pooled, drawn = first + second, int(first.sum())
    ways: dict[float, int] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("funnel.tails._GROUP", group)
        for some in itertools.product(*(range(count + 1) for count in pooled[:-1])):
            last = drawn - sum(some)
            if 0 <= last <= pooled[-1]:
                table = np.array([*some, last])
                p = likeness([(table, pooled - table)])
                ways[p] = ways.get(p, 0) + prod(comb(int(n), int(k)) for n, k in zip(pooled, table, strict=True))
    total, below = sum(ways.values()), 0
    for p, number in sorted(ways.items()):
        below += number
        assert p >= min(1, Fraction(below, total))


def test_the_same_people_are_alike_and_others_are_not() -> None:
    random = np.random.default_rng(31)
    shares = random.dirichlet(np.ones(42))
    first, anew = (random.choice(42, size=30_000, p=shares) for _ in range(2))

    def against(other: IntArray) -> float:
        return likeness([(np.bincount(first, minlength=42), np.bincount(other, minlength=42))])

    assert against(first[1:]) < 1e-30
    assert against(np.append(anew[:1500], first[1500:])) < 1e-12
    assert against(anew) > 0.01
    # Other people of another population are less alike than those of one.
    assert against(np.append(anew[:15_000], anew[:15_000])) > 0.01
    assert (
        likeness([(np.zeros(3, dtype=np.int64), np.array([5, 0, 9]))])
        == likeness([(np.array([9]), np.array([9]))])
        == 1
    )
