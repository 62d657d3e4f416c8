"""What a float cannot say is rounded against the release: levels up, limits down. Checked by Arb and in fractions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from funnel import ALIP, LIP, RLDP, AlphaLift, Chi2Lift, Joint, L1Lift, MutualInformation
from funnel.guarantees import mutual_information, rldp
from funnel.guarantees.chi2_ball import tilt
from funnel.guarantees.exact import exp_below, log_above, secret_output, square_root_above
from funnel.guarantees.worst_case import Neighbourhood

FULL = 2**63


@pytest.fixture(autouse=True)
def many_bits() -> Iterator[None]:
    """Arb with far more bits than what it checks."""
    before, ctx.prec = ctx.prec, 600
    yield
    ctx.prec = before


def exact(value: Fraction | float) -> arb:
    fraction = Fraction(value)
    return arb(fraction.numerator) / arb(fraction.denominator)


@given(st.floats(1e-15, 90))
def test_what_holds_is_below_every_float_that_could_stand_for_the_bound(epsilon: float) -> None:
    """The margin of 2^-50: four floats below e^ε are still above the limit, and no level above ε is accepted."""
    limit = exp_below(epsilon)
    if limit == 1:
        # e^ε is too close to 1 for the margin: nothing but equality is accepted.
        assert epsilon < 2.0**-49
        return
    assert exact(limit) < exact(epsilon).exp() * (1 - exact(Fraction(1, 2**51)))
    assert exact(limit) > exact(epsilon).exp() * (1 - exact(Fraction(1, 2**46)))
    near = math.exp(epsilon)
    for _ in range(2):
        near = math.nextafter(near, 0)
    assert limit < Fraction(near)


def test_the_exponential_is_capped_where_no_ratio_is() -> None:
    assert exp_below(600.0) == exp_below(601.0) == exp_below(1e300)
    assert exp_below(599.0) < exp_below(600.0)
    # The largest ratio of weights below 2^63 and fewer than 2^31 records.
    assert exp_below(600.0) > 2**63 * 2**31 * 2**31


@given(st.floats(1e-6, 80), st.floats(1e-6, 90), st.floats(1e-6, 90))
def test_a_level_of_two_budgets_is_rounded_up(nats: float, lower: float, upper: float) -> None:
    for guarantee in (ALIP(lower, upper), L1Lift(lower, upper)):
        for side in (lower, upper):
            scaled = guarantee.scaled(nats, side)
            true = Fraction(nats) * Fraction(guarantee.budget) / Fraction(side)
            assert Fraction(scaled) >= true
            assert Fraction(math.nextafter(scaled, 0)) < true or scaled == nats


@given(st.lists(st.lists(st.integers(0, 5000), min_size=3, max_size=3), min_size=2, max_size=3), st.integers(0, 2**30))
def test_mutual_information_is_rounded_up(counts: list[list[int]], seed: int) -> None:
    counts[0][0] += 1
    joint = Joint.from_counts(counts)
    cut = np.random.default_rng(seed).integers(1, FULL, size=3).astype(object)
    weights = np.array([cut, FULL - cut], dtype=object).astype(np.uint64)
    distribution = secret_output(joint.counts, weights)
    total = int(distribution.sum())
    true = arb(0)
    for (s, y), cell in np.ndenumerate(distribution):
        if cell:
            share = exact(Fraction(int(cell), total))
            true += (
                share
                * (exact(Fraction(int(cell) * total, int(distribution[s].sum()) * int(distribution[:, y].sum())))).log()
            )
    level = MutualInformation(1.0).level_for(joint, weights).value
    assert exact(level) >= true or level == 0
    assert exact(level) <= true * (1 + exact(2.0**-49)) + exact(1e-50)
    # A level is a bound that holds, and the float below it need not be.
    assert MutualInformation(level).holds_for(joint, weights)


@given(st.fractions(Fraction(1, 10**6), 10**6, max_denominator=10**9))
def test_the_upper_end_of_an_interval_is_above_it(value: Fraction) -> None:
    """An interval as wide as a double's last digits: its middle would be below half of what it holds."""
    wide = exact(value) + arb(0, 2.0**-40 * float(value))
    assert Fraction(mutual_information._above([wide])) >= value * (1 + Fraction(1, 2**41))
    assert Fraction(mutual_information._above([exact(value)])) >= value


@given(st.floats(1.0, 1e300))
def test_the_level_of_a_robust_ratio_is_rounded_up(ratio: float) -> None:
    level = rldp._log_above(ratio)
    assert exact(level).exp() >= exact(ratio)
    assert exact(level) <= exact(ratio).log() * (1 + exact(2.0**-50)) + exact(1e-300)
    assert rldp._log_above(1.0) == 0
    assert rldp._log_above(math.inf) == math.inf


@given(st.floats(0, 100))
def test_the_limit_of_a_robust_ratio_is_rounded_down(epsilon: float) -> None:
    limit = rldp.limit_below(epsilon)
    assert Fraction(limit) <= exp_below(epsilon) * (1 - Fraction(1, 2**53))
    assert Fraction(limit) >= exp_below(epsilon) * (1 - Fraction(1, 2**50))


@given(st.integers(60, 400), st.integers(1, 2**20))
def test_levels_of_ratios_next_to_one_are_above_and_close(power: int, excess: int) -> None:
    """Ratios of large counts come far closer to 1 than the digits of a decimal quotient reach."""
    ratio = 1 + Fraction(excess, 2**power)
    level = log_above(ratio)
    assert exact(level) >= exact(ratio).log()
    assert exact(level) <= exact(ratio).log() * (1 + exact(2.0**-50))


@given(st.floats(1e-12, 10), st.floats(1e-15, 1), st.floats(1e-6, 1))
def test_what_the_confidence_set_allows_is_rounded_up(radius: float, share: float, prior: float) -> None:
    """κ = √(1+B) - 1 and D = (1 + θκ/P̂)²; each close as well."""
    near = Neighbourhood(np.ones((1, 1)), np.array([prior]), radius)
    kappa = (1 + exact(radius)).sqrt() - 1
    assert exact(near.deviation) >= kappa
    assert exact(near.deviation) <= kappa * (1 + exact(2.0**-47))
    divergence = float(near.divergence(np.array([0]), np.array([share]))[0])
    allowed = (1 + exact(share) * kappa / exact(prior)) ** 2
    assert exact(divergence) >= allowed
    assert exact(divergence) <= (1 + exact(share) * exact(near.deviation) / exact(prior)) ** 2 * (1 + exact(2.0**-46))


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.floats(0, 1)), min_size=1, max_size=12),
    st.floats(0, 3),
    st.sampled_from([1.0, -1.0]),
)
def test_a_mean_over_a_ball_is_rounded_up(cells: list[tuple[int, float]], excess: float, sign: float) -> None:
    """The ball holds its centre, whose mean is a fraction."""
    counts, row = np.array([count for count, _ in cells]), sign * np.array([value for _, value in cells])
    counts[0] += 1
    distribution = counts / counts.sum()
    mean = sum(
        (Fraction(int(count)) * Fraction(value) for count, value in zip(counts, row, strict=True)), Fraction(0)
    ) / int(counts.sum())
    for divergence in (1.0, 1 + excess):
        above = tilt(row[None], distribution[None], np.array([divergence])).above(np.array([divergence]))[0]
        assert Fraction(float(above)) >= mean
        # Never far above what no distribution exceeds.
        assert above <= row.max() + 1e-9
    if row.min() == row.max():
        assert above <= row.max() + 1e-12


@given(st.fractions(0, 10**12, max_denominator=10**12))
def test_square_roots_are_rounded_up(value: Fraction) -> None:
    above = square_root_above(value)
    assert above**2 >= value
    assert above == 0 or (above - Fraction(2, 10**60)) ** 2 <= value


@given(st.fractions(0, 10**6, max_denominator=10**9))
def test_levels_of_averages_are_rounded_up(measure: Fraction) -> None:
    """ln(1 + m), ln(1 + √m) and ln(m)/α, each never below and at most a few ulps above."""
    root = exact(measure).sqrt()
    mean = 1 + measure
    for level, true in (
        (L1Lift(1, 1).nats(measure), exact(mean).log()),
        (Chi2Lift(1, 1).nats(measure), (1 + root).log()),
        (AlphaLift(1, 1, 3).nats(mean), exact(mean).log() / 3),
        (AlphaLift(1, 1, 1000).nats(mean), exact(mean).log() / 1000),
    ):
        assert exact(level) >= true - exact(1e-100)
        assert exact(level) <= true * (1 + exact(2.0**-50)) + exact(1e-40)


@given(st.floats(0.01, 50))
def test_averages_just_above_what_a_budget_allows_are_refused(budget: float) -> None:
    """Compared with rationals below e^ε - 1, (e^ε - 1)² and e^(αε): nothing above these passes, all well below does."""
    growth = exact(budget).exp()
    for guarantee, limit in (
        (L1Lift(1, 1), growth - 1),
        (Chi2Lift(1, 1), (growth - 1) ** 2),
        (AlphaLift(1, 1, 2), growth**2),
        (AlphaLift(1, 1, 3), growth**3),
        (AlphaLift(1, 1, 10), growth**10),
    ):
        mantissa, power = limit.upper().man_exp()
        measure = Fraction(int(mantissa)) * Fraction(2) ** int(power)
        assert not guarantee.within(measure, budget)
        assert guarantee.within(measure * (1 - Fraction(1, 2**35)), budget)


def test_levels_and_decisions_agree_at_the_level_itself() -> None:
    """The level of a channel, taken as the budget, may be refused by the margin; an ulp more than that is not."""
    joint = Joint.from_counts([[70, 30, 11], [25, 60, 7]])
    cut = [2**61, 3 * 2**61, 2**62 + 12345]
    weights = np.array([cut, [FULL - part for part in cut]], dtype=np.uint64)
    for guarantee in (LIP(1.0), ALIP(1.3, 0.7), RLDP(1.0), L1Lift(1, 1), MutualInformation(1.0)):
        level = guarantee.level_for(joint, weights).value
        assert guarantee.with_budget(level * (1 + 1e-8 if guarantee.precision else 1 + 2.0**-46)).holds_for(
            joint, weights
        )
        assert not guarantee.with_budget(level * (1 - (1e-7 if guarantee.precision else 2.0**-50))).holds_for(
            joint, weights
        )
