"""RLDP: no distribution in the set exceeds the level, one attains it, and it tends to plain LDP as the data grow."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import chi2

import funnel
from funnel import LDP, RLDP, DataError, Joint, SpecError
from funnel.guarantees import worst_case
from funnel.guarantees.chi2_ball import extreme_distribution, tightest, tilt
from funnel.guarantees.worst_case import Neighbourhood, attaining_distribution, pair_ratios, within, worst_pair
from funnel.protocol import DENOMINATOR
from funnel.rounding import integer_weights


def random_case(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Counts (c, u) with some cells never seen, and rows (b, c, u) of a channel over (s, u)."""
    random = np.random.default_rng(seed)
    c, u = random.integers(2, 5), random.integers(2, 5)
    n = int(10 ** random.uniform(1.5, 4))
    counts = random.multinomial(n, random.dirichlet(np.full(c * u, 0.6))).reshape(c, u)
    counts[counts.sum(axis=1) == 0, 0] = 1
    rows = random.random((3, c, u)) ** 2 + 0.02
    return counts, rows / rows.sum(axis=0)


def around(counts: np.ndarray, alpha: float = 0.05) -> Neighbourhood:
    sizes, n = counts.sum(axis=1), counts.sum()
    return Neighbourhood(counts / sizes[:, None], sizes / n, float(chi2.ppf(1 - alpha, counts.size - 1)) / n)


def distance(distribution: np.ndarray, estimate: np.ndarray) -> float:
    """Σ (P̂ - P)²/P, infinite where P excludes what was seen."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(
            np.where(
                distribution > 0, (estimate - distribution) ** 2 / distribution, np.where(estimate > 0, np.inf, 0)
            ).sum()
        )


def exact_distance(distribution: np.ndarray, counts: np.ndarray) -> Fraction:
    """The same in whole numbers, of what the distribution says once its entries sum to 1."""
    total, n = sum(map(Fraction, distribution.ravel())), int(counts.sum())
    pairs = zip(counts.ravel().tolist(), map(Fraction, distribution.ravel()), strict=True)
    return sum((Fraction(count, n) ** 2 * total / p for count, p in pairs if count), Fraction(0)) - 1


def largest_ratio(rows: np.ndarray, distribution: np.ndarray) -> float:
    given = distribution / distribution.sum(axis=1, keepdims=True)
    outputs = np.einsum("bsu,su->bs", rows, given)
    return float((outputs.max(axis=1) / outputs.min(axis=1)).max())


@pytest.mark.parametrize("seed", range(25))
def test_one_distribution_attains_the_level_and_none_exceeds_it(seed: int) -> None:
    counts, rows = random_case(seed)
    near = around(counts)
    estimate = counts / counts.sum()
    worst = worst_pair(rows, near)
    distribution = attaining_distribution(rows, near, worst)
    assert distribution.sum() == pytest.approx(1)
    assert exact_distance(distribution, counts) <= Fraction(near.radius)
    assert largest_ratio(rows, distribution) == pytest.approx(worst.ratio, rel=1e-6)
    random = np.random.default_rng(seed + 1000)
    for k in range(200):
        # Distributions on the boundary and inside, some with mass on cells that were never seen.
        direction = random.dirichlet(np.full(counts.size, 0.3 if k % 2 else 1.0)).reshape(counts.shape)
        low, high = 0.0, 1.0
        for _ in range(40):
            middle = (low + high) / 2
            if distance((1 - middle) * estimate + middle * direction, estimate) <= near.radius:
                low = middle
            else:
                high = middle
        share = low * random.random() if k % 3 == 0 else low
        assert largest_ratio(rows, (1 - share) * estimate + share * direction) <= worst.ratio * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_a_generic_solver_finds_nothing_worse(seed: int) -> None:
    """Multi-start SLSQP over whole distributions, in logarithms so that they stay positive."""
    counts, rows = random_case(seed)
    near = around(counts)
    estimate = counts / counts.sum()
    worst = worst_pair(rows, near)
    random = np.random.default_rng(seed)
    best = 1.0
    for _ in range(6):
        start = np.log(np.maximum(estimate, 1e-4) * np.exp(0.1 * random.normal(size=counts.shape))).ravel()

        def distribution(logs: np.ndarray) -> np.ndarray:
            weights = np.exp(logs - logs.max()).reshape(counts.shape)
            return weights / weights.sum()

        def value(logs: np.ndarray) -> float:
            given = distribution(logs) / distribution(logs).sum(axis=1, keepdims=True)
            outputs = rows[worst.output] * given
            return -math.log(outputs[worst.high].sum() / outputs[worst.low].sum())

        found = minimize(
            value,
            start,
            method="SLSQP",
            constraints={"type": "ineq", "fun": lambda logs: near.radius - distance(distribution(logs), estimate)},
            options={"maxiter": 300, "ftol": 1e-13},
        )
        if distance(distribution(found.x), estimate) <= near.radius * (1 + 1e-7):
            best = max(best, math.exp(-found.fun))
    assert best <= worst.ratio * (1 + 1e-6)
    assert best >= worst.ratio * (1 - 1e-3)


def near_deterministic(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Counts from 0 to 20,000 in one table, and a channel that nearly says its input: (c, u) and (b, c, u)."""
    random = np.random.default_rng(seed)
    c, u = (int(size) for size in random.integers(2, 5, size=2))
    counts = (np.exp(random.uniform(0, 10, size=(c, u))) * random.integers(0, 2, size=(c, u))).astype(int)
    counts[:, 0] += 1
    channel = random.random((u, u)) ** 8 + 1e-6
    return counts, np.repeat((channel / channel.sum(axis=0))[:, None, :], c, axis=1)


def searched(rows: np.ndarray, near: Neighbourhood, place: tuple[int, int, int]) -> float:
    """The largest ratio for one output and two secrets: distributions in F for splits down to 1e-15."""
    y, s, t = place

    def attained(odds: float) -> float:
        given = []
        for secret, share, sign in ((s, 1 / (1 + math.exp(-odds)), 1), (t, 1 / (1 + math.exp(odds)), -1)):
            divergence = (1 + share * near.deviation / near.prior[secret]) ** 2
            given.append(
                float(
                    extreme_distribution(sign * rows[y, secret], near.distribution[secret], divergence)
                    @ rows[y, secret]
                )
            )
        return given[0] / given[1]

    low, high, best = -35.0, 35.0, 0.0
    for _ in range(4):
        odds = np.linspace(low, high, 40)
        values = [attained(value) for value in odds]
        k = int(np.argmax(values))
        best = max(best, values[k])
        low, high = odds[max(k - 1, 0)], odds[min(k + 1, len(odds) - 1)]
    return best


@pytest.mark.parametrize("seed", range(14))
def test_the_bound_is_tight_for_near_deterministic_tables_too(seed: int) -> None:
    """Where cells are rare the best split of the deviation is close to an end."""
    counts, rows = near_deterministic(seed)
    near = around(counts)
    worst = worst_pair(rows, near)
    best = searched(rows, near, (worst.output, worst.high, worst.low))
    assert best <= worst.ratio <= best * (1 + 1e-8)
    distribution = attaining_distribution(rows, near, worst)
    assert exact_distance(distribution, counts) <= Fraction(near.radius)
    assert largest_ratio(rows, distribution) == pytest.approx(worst.ratio, rel=1e-7)
    # The first bounds, of all pairs at once, are bounds too, and not far off.
    coarse = pair_ratios(rows, near)
    assert worst.ratio <= coarse.above.max() <= worst.ratio**1.01
    assert (coarse.found <= coarse.above * (1 + 1e-12)).all()
    assert within(rows, near, worst.ratio)
    assert not within(rows, near, best * (1 - 1e-8))


@pytest.mark.parametrize("case", [random_case, near_deterministic])
@pytest.mark.parametrize("seed", range(8))
def test_tangents_bound_every_split_of_an_interval(
    case: Callable[[int], tuple[np.ndarray, np.ndarray]], seed: int
) -> None:
    """N/M with fixed multipliers, in every interval around the split they are made for, however wide it is."""
    counts, rows = case(seed)
    near = around(counts)
    random = np.random.default_rng(seed)
    pairs = [(y, s, t) for y in range(len(rows)) for s in range(len(counts)) for t in range(len(counts)) if s != t]
    y, high, low = np.array([pairs[k] for k in random.integers(0, len(pairs), size=200)]).T
    odds = np.sort(random.normal(scale=random.choice([1, 6], size=(200, 1)), size=(200, 3)), axis=1).T
    left, middle, right = (worst_case._Splits.of(side) for side in odds)
    upper = tilt(rows[y, high], near.distribution[high], near.divergence(high, middle.share))
    lower = tilt(-rows[y, low], near.distribution[low], near.divergence(low, middle.rest))
    fixed = worst_case._Pairs(upper, lower, near, high, low)
    ratio, before, after = fixed.bounds(middle, left, right)
    assert (ratio <= np.minimum(before, after)).all()
    for part in np.linspace(0, 1, 9):
        for start, end, bound in ((odds[0], odds[1], before), (odds[1], odds[2], after)):
            split = worst_case._Splits.of(start + part * (end - start))
            least = fixed.denominator(split)
            possible = least > 0
            assert (fixed.numerator(split)[possible] <= (bound * least)[possible]).all()


def test_a_best_split_next_to_an_end() -> None:
    """Stated as 10.675 when the split was sought on an even grid."""
    joint = Joint.from_counts([[2809, 518, 1], [4150, 468, 16696]])
    published = np.array([[2**63, 0, 0], [0, 2**63, 0], [0, 0, 2**63]], dtype=np.uint64)
    level = RLDP(1.0, set="chi2").level_for(joint, published)
    rows = np.repeat(np.eye(3)[:, None, :], 2, axis=1)
    attained = math.log(searched(rows, RLDP(1.0, set="chi2").neighbourhood(joint), (2, 1, 0)))
    assert attained == pytest.approx(10.43102207)
    assert attained <= level.value <= attained + 1e-8
    assert RLDP(10.432, set="chi2").holds_for(joint, published)
    assert not RLDP(10.431, set="chi2").holds_for(joint, published)


def test_averages_over_a_ball() -> None:
    random = np.random.default_rng(0)
    for k in range(200):
        u = int(random.integers(2, 7))
        distribution = random.dirichlet(np.full(u, 0.7))
        if k % 3 == 0:
            distribution[random.integers(u)] = 0
            distribution /= distribution.sum()
        row = random.random(u) * 10 ** random.uniform(-3, 1)
        divergence = np.array([1 + 10 ** random.uniform(-6, 1)])
        bound = float(tilt(row[None], distribution[None], divergence).above(divergence)[0])
        attained = extreme_distribution(row, distribution, float(divergence[0]))
        seen = distribution > 0
        assert (distribution[seen] ** 2 / attained[seen]).sum() <= divergence[0] * (1 + 1e-6)
        assert bound - 1e-8 * row.max() <= attained @ row <= bound


@pytest.mark.parametrize("rare", [1e-9, 1e-14, 1e-17, 1e-40])
def test_a_mean_is_told_from_zero_however_rarely_it_is_more(rare: float) -> None:
    """An entry above 0 that was seen has some of it under every distribution: rounding must not take it."""
    random = np.random.default_rng(4)
    for k in range(50):
        distribution = random.dirichlet(np.ones(4))
        distribution[2] = 0.0
        distribution /= distribution.sum()
        # Never of the last, rarely of the second, and often of one that nobody was seen with.
        row = -np.array([rare * random.random(), rare, 1.0, 0.0])
        divergence = np.array([1 + 10 ** random.uniform(-4, 1)])
        found = tilt(row[None], distribution[None], divergence)
        proven = tightest(found, row[None], distribution[None], divergence)
        bound = float(proven.above(divergence)[0])
        assert bound <= float(found.above(divergence)[0])
        assert bound < 0
        attained = extreme_distribution(row, distribution, float(divergence[0])) @ row
        assert attained <= bound * (1 - 1e-9), k
        # (Σ P̂ √t)² / D, of which nothing is lost but the last digits.
        least = float((distribution * np.sqrt(-row)).sum() ** 2 / divergence[0])
        assert -bound >= least * (1 - 1e-13)


def test_rows_that_reach_above_zero_keep_the_multiplier_that_was_found() -> None:
    row, distribution, divergence = np.array([[0.2, 0.7]]), np.array([[0.5, 0.5]]), np.array([1.1])
    found = tilt(row, distribution, divergence)
    same = tightest(found, row, distribution, divergence)
    assert (same.distance, same.mass) == (found.distance, found.mass)
    # And no average is above the largest entry, however much may be deviated.
    assert 0.7 <= float(found.above(np.array([1e9]))[0]) <= 0.7 * (1 + 1e-15)


def test_what_is_nearly_never_published_of_a_secret_has_a_finite_level() -> None:
    joint = Joint.from_counts([[1000, 1, 0], [1, 85691, 0], [1, 0, 1020]])
    columns = [[0, 2 / 5, 3 / 5], [2.7e-12, 1 - 3.6e-12, 9e-13], [0.5, 0.5, 0.0]]
    weights = integer_weights(np.array(columns).T)
    assert 30 < RLDP(1.0, 0.05, set="chi2").level_for(joint, weights).value < 40
    # Where somebody may be left with nothing at all, it is not.
    weights = integer_weights(np.array([[0, 0.4, 0.6], [0, 0.5, 0.5], [0.5, 0.5, 0.0]]).T)
    assert RLDP(1.0, 0.05, set="chi2").level_for(joint, weights).value == math.inf


@pytest.mark.parametrize("reads_secret", [False, True])
def test_robust_levels_are_above_plain_ones_and_tend_to_them(reads_secret: bool) -> None:
    base = np.array([[5, 3, 2], [2, 3, 5]])
    levels = []
    for factor in (10, 100, 10_000, 1_000_000):
        joint = Joint.from_counts(base * factor)
        read = joint.with_secret() if reads_secret else joint
        matrix = np.random.default_rng(1).random((2, len(read.inputs)))
        weights = integer_weights(matrix / matrix.sum(axis=0))
        plain = LDP(1.0).level_for(read, weights).value
        level = RLDP(1.0, set="chi2").level_for(read, weights)
        assert level.value > plain
        assert level.witness.distribution is not None
        levels.append(level.value)
    assert levels == sorted(levels, reverse=True)
    # At n = 20 million conditionals are known to about 1e-3.
    assert levels[-1] == pytest.approx(plain, abs=2e-3)


def test_a_smaller_significance_is_a_larger_set() -> None:
    joint = Joint.from_counts([[50, 30], [20, 60]])
    protocol = funnel.fit("grr", joint, LDP(1.0))
    levels = [RLDP(1.0, alpha, set="chi2").level(joint, protocol).value for alpha in (0.5, 0.05, 0.001)]
    assert levels == sorted(levels)
    calibrated = funnel.fit("grr", joint, RLDP(1.0, set="chi2"))
    assert RLDP(1.0, set="chi2").holds(joint, calibrated)
    assert not RLDP(0.99, set="chi2").holds(joint, calibrated)
    assert LDP(1.0).level(joint, calibrated).value < 1.0


def test_an_output_that_a_distribution_in_the_set_excludes_is_infinitely_bad() -> None:
    joint = Joint.from_counts([[50, 50], [50, 50]])
    weights = np.array([[2**63, 0], [0, 2**63]], dtype=np.uint64)
    assert LDP(1.0).level_for(joint, weights).value == 0
    # Whatever the sample, both secrets keep every value: the level is finite, and above 0.
    assert 0 < RLDP(1.0, set="chi2").level_for(joint, weights).value < 2
    rare = Joint.from_counts([[50, 50], [100, 0]])
    assert math.isinf(RLDP(1.0, set="chi2").level_for(rare, weights).value)
    assert not RLDP(1.0, set="chi2").holds_for(rare, weights)


def test_what_the_data_cannot_say() -> None:
    joint = Joint.from_counts([[3, 1], [0, 0]], secret=["here", "nowhere"])
    with pytest.raises(DataError, match="'nowhere'"):
        funnel.fit("grr", joint, RLDP(1.0, set="chi2"))
    for alpha in (0.0, 1.0, 2.0):
        with pytest.raises(SpecError, match="alpha"):
            RLDP(1.0, alpha, set="chi2")


def test_a_wide_protocol_is_judged_within_a_second() -> None:
    """Not timed here; 30 outputs, 15 secrets and 30 inputs are merely within reach of every test run."""
    random = np.random.default_rng(0)
    worst = worst_pair(random.random((30, 15, 30)), around(random.integers(1, 1000, size=(15, 30))))
    assert 1 < worst.ratio < 10


@pytest.mark.parametrize("seed", range(6))
def test_the_worst_pair_does_not_depend_on_how_many_are_looked_at_together(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts, rows = random_case(seed)
    near = around(counts)
    at_once = worst_pair(rows, near)
    monkeypatch.setattr(worst_case, "_FIRST", 1)
    monkeypatch.setattr(worst_case, "_AT_ONCE", 1)
    # Nor on an output that is split into two that are alike.
    for split in (rows, np.concatenate([rows / 2, rows / 2])):
        one_by_one = worst_pair(split, near)
        assert one_by_one.ratio == pytest.approx(at_once.ratio, rel=1e-8)
        assert one_by_one.output % len(rows) == at_once.output


@pytest.mark.parametrize("reads_secret", [False, True])
def test_levels_of_rows_are_above_the_level_of_the_channel_and_near_it(reads_secret: bool) -> None:
    """What the search is led by: bounds that are never below what the exact decision finds."""
    joint = Joint.from_counts([[300, 100, 40], [100, 500, 60]])
    joint = joint.with_secret() if reads_secret else joint
    guarantee = RLDP(1.0, 0.05, set="chi2")
    rows = np.random.default_rng(4).dirichlet(np.ones(3), size=joint.counts.shape[1]).T
    weights = integer_weights(rows)
    levels = guarantee.output_levels(joint, weights / 2.0**63)
    assert levels.shape == (3,)
    found = guarantee.level_for(joint, weights)
    assert levels.max() >= found.value - 1e-12
    assert levels.max() == pytest.approx(found.value, rel=0.02)
    assert int(levels.argmax()) == found.witness.output


def test_only_robust_guarantees_have_a_significance() -> None:
    assert RLDP(1.0, 0.01, set="chi2").significance == 0.01
    assert LDP(1.0).significance is None


def test_a_channel_that_says_nothing_has_level_zero() -> None:
    joint = Joint.from_counts([[30, 10], [10, 50]])
    weights = np.zeros((2, 2), dtype=np.uint64)
    weights[1] = DENOMINATOR
    level = RLDP(1.0, set="chi2").level_for(joint, weights)
    assert level.value == 0.0
    assert level.witness.output == 1
