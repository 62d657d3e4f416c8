"""Guarantees over sets of distributions: which one is meant, what it says, and the ends of what it is asked."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from math import comb

import numpy as np
import pytest

import funnel
from funnel import Guarantee, Joint
from funnel.bounds import Bounds
from funnel.guarantees import robustly
from funnel.guarantees.binomial_limits import UNIT, _rare, lower_limit
from funnel.guarantees.count_box import count_box
from funnel.guarantees.distribution_box import distribution_box
from funnel.guarantees.robust_guarantee import Robust
from funnel.guarantees.sided import OverCounts, over_set
from funnel.protocol import DENOMINATOR, WeightArray

COUNTED: list[Guarantee] = [funnel.LDP(1.0), funnel.LIP(1.0), funnel.ALIP(0.5, 1.0), funnel.PML(1.0)]
ROBUST: list[Robust] = [
    funnel.RLDP(1.0, 0.1),
    funnel.RLDP(1.0, 0.1, "chi2"),
    funnel.RLIP(1.0, 0.1),
    funnel.RALIP(0.5, 1.0, 0.1),
    funnel.RPML(1.0, 0.1),
]
AVERAGES: list[Guarantee] = [funnel.MutualInformation(0.1), funnel.AlphaLift(1.0, 1.0, 2)]


def counted() -> Joint:
    return Joint.from_counts([[30, 20, 5], [10, 40, 7]])


def noisy(noise: int = 2) -> Joint:
    """The same, known up to noise."""
    joint = counted()
    totals = joint.counts.sum(axis=1)
    bounds = Bounds(
        np.maximum(joint.counts - noise, 0),
        joint.counts + noise,
        np.stack([totals - noise, totals + noise], axis=1),
        0.01,
    )
    return replace(joint, bounds=bounds)


def weights_of(shares: list[list[int]]) -> WeightArray:
    """Weights (b, a) in the proportion of whole numbers whose columns sum to a power of two."""
    table = np.array(shares, dtype=object)
    return (table * (DENOMINATOR // table.sum(axis=0))).astype(np.uint64)


@pytest.mark.parametrize("guarantee", COUNTED, ids=str)
def test_counts_are_a_set_only_where_they_are_noisy(guarantee: Guarantee) -> None:
    assert over_set(guarantee, counted()) is None
    over = over_set(guarantee, noisy())
    assert over == OverCounts(guarantee)  # type: ignore[arg-type]
    assert over is not None
    assert over.covers_noise
    assert str(over) == str(guarantee)
    assert over.with_budget(0.25).budget == 0.25
    assert over.with_budget(0.25) == OverCounts(guarantee.with_budget(0.25))  # type: ignore[arg-type]
    assert not over.is_perfect
    assert over.with_budget(0.0).is_perfect
    rows = weights_of([[6, 1, 2], [2, 7, 6]]) / 2.0**63
    assert (guarantee.output_levels(noisy(), rows) == over.output_levels(noisy(), rows)).all()
    assert (guarantee.output_levels(noisy(), rows) > guarantee.output_levels(counted(), rows)).all()
    # It is over a set already, and stays what it is.
    assert over_set(over, counted()) is over


@pytest.mark.parametrize("guarantee", [*AVERAGES, funnel.PerfectPrivacy()], ids=str)
def test_averages_are_over_no_set_whatever_the_counts(guarantee: Guarantee) -> None:
    assert over_set(guarantee, counted()) is None
    assert over_set(guarantee, noisy()) is None


@pytest.mark.parametrize("guarantee", ROBUST, ids=str)
def test_robust_guarantees_are_over_boxes_but_for_the_set_of_the_paper(guarantee: Robust) -> None:
    assert over_set(guarantee, counted()) is (guarantee if guarantee.over_boxes else None)
    assert guarantee.arithmetic == (
        "in exact arithmetic" if guarantee.over_boxes else "with every rounding taken against the release"
    )


@pytest.mark.parametrize("guarantee", [one for one in ROBUST if one.over_boxes], ids=str)
def test_robust_and_counted_are_each_others_of_the_same_budgets(guarantee: Robust) -> None:
    nominal = guarantee.nominal
    assert nominal.name == guarantee.name[1:]
    assert list(nominal.sides.finite()) == list(guarantee.sides.finite())
    assert nominal.arithmetic == "in exact arithmetic"
    assert robustly(nominal, 0.1) == guarantee


@pytest.mark.parametrize("guarantee", AVERAGES, ids=str)
def test_averages_have_no_robust_form(guarantee: Guarantee) -> None:
    assert robustly(guarantee, 0.1) is None


def test_only_logarithms_are_decided_in_intervals() -> None:
    assert funnel.MutualInformation(0.1).arithmetic == "in interval arithmetic"


def test_maximal_leakage_is_the_half_of_alip_in_every_part() -> None:
    joint, rows = counted(), np.array([[0.5, 0.1, 0.2], [0.5, 0.9, 0.8]])
    leakage, half = funnel.PML(0.3), funnel.ALIP(math.inf, 0.3)
    prior = joint.counts.sum(axis=1) / joint.counts.sum()
    assert (leakage.posterior_cone(prior) == half.posterior_cone(prior)).all()
    assert (leakage.output_levels(joint, rows) == half.output_levels(joint, rows)).all()
    assert leakage.output_levels(joint, rows).max() > 0


@pytest.mark.parametrize("guarantee", [one for one in ROBUST if one.over_boxes], ids=str)
def test_levels_of_rows_are_those_that_are_proven(guarantee: Robust) -> None:
    joint, weights = counted(), weights_of([[6, 1, 2], [1, 5, 2], [1, 2, 4]])
    levels = guarantee.output_levels(joint, weights / 2.0**63)
    assert levels.max() == pytest.approx(guarantee.level_for(joint, weights).value, rel=1e-9)
    assert levels.max() > levels.min() > 0


def test_no_rows_break_nothing() -> None:
    spaces, of, by = funnel.RLIP(0.1).half_spaces(counted(), np.zeros((0, 3)))
    assert spaces.shape == (0, 3)
    assert len(of) == len(by) == 0


def test_an_output_that_a_secret_never_gives_raises_no_belief_in_it() -> None:
    row = np.array([[0, 0, 0], [DENOMINATOR] * 3], dtype=np.uint64)
    for box in (count_box(counted()), count_box(noisy()), distribution_box(counted(), 0.1)):
        assert box.exact_lift(row, 0, True) == 0
        assert box.exact_lift(row, 0, False) is None
        lift = box.exact_lift(row, 1, True)
        assert lift is not None
        assert lift > 1


def test_a_secret_that_no_table_has_is_compared_with_nothing() -> None:
    bounds = Bounds(
        np.array([[2, 2], [0, 0], [3, 1]]), np.array([[4, 4], [0, 0], [5, 2]]), np.array([[4, 8], [0, 0], [4, 7]]), 0.01
    )
    plain = Joint.from_counts([[3, 3], [0, 0], [4, 1]])
    joint, without = replace(plain, bounds=bounds), Joint.from_counts([[3, 3], [4, 1]])
    without = replace(without, bounds=Bounds(bounds.lower[::2], bounds.upper[::2], bounds.totals[::2], 0.01))
    weights = weights_of([[3, 1], [1, 3]])
    for guarantee in COUNTED:
        level = guarantee.level_for(without, weights).value
        assert guarantee.level_for(joint, weights).value == level
        assert guarantee.with_budget(level * 1.001).holds_for(joint, weights)
        assert not guarantee.with_budget(level * 0.999).holds_for(joint, weights)


def test_without_limit_stays_so_in_every_block() -> None:
    """An input that nobody with the first secret need have: in many blocks of numbers, and in all of them."""
    bounds = Bounds(
        np.array([[500, 0], [100, 600]]), np.array([[700, 200], [300, 900]]), np.array([[500, 900], [700, 1200]]), 0.01
    )
    joint = replace(Joint.from_counts([[600, 100], [200, 700]]), bounds=bounds)
    row = np.array([[0, DENOMINATOR]], dtype=np.uint64)
    assert count_box(joint).exact_lift(row, 0, False) is None
    assert count_box(joint).exact_lift(row, 0, True) is not None
    assert not funnel.LIP(50.0).holds_for(joint, weights_of([[1, 0], [0, 1]]))
    assert funnel.LIP(50.0).level_for(joint, weights_of([[1, 0], [0, 1]])).value == math.inf


def tail_of(successes: int, trials: int, j: int) -> Fraction:
    """P(Bin(n, j / 2^32) >= k)."""
    total = sum(comb(trials, i) * j**i * (UNIT - j) ** (trials - i) for i in range(successes, trials + 1))
    return Fraction(total, UNIT**trials)


def test_limits_at_the_ends_of_what_can_be_written() -> None:
    """So small that the smallest number above 0 is too large, and so large that only 1 is."""
    assert lower_limit(1, 10_000, Fraction(1, 10**6)) == 0
    assert -math.expm1(10_000 * math.log1p(-1 / UNIT)) > 1e-6
    assert lower_limit(10**12, 10**12, Fraction(1, 3)) == UNIT - 1
    assert not _rare(5, 5, UNIT, Fraction(1, 3))


def test_a_tail_as_close_as_floats_cannot_tell_is_decided_by_more_digits() -> None:
    """Apart by 2^-200 relatively they are told apart; equal, they are not, and then it is not rare."""
    exact = tail_of(3, 7, UNIT // 3)
    for bits in (60, 120, 200):
        assert _rare(3, 7, UNIT // 3, exact * (1 + Fraction(1, 2**bits)))
        assert not _rare(3, 7, UNIT // 3, exact * (1 - Fraction(1, 2**bits)))
    assert not _rare(3, 7, UNIT // 3, exact)
