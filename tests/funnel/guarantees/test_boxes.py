"""Boxes of distributions and of counts: every corner and table on small cases, in fractions, against decisions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import funnel
from funnel import DataError, Joint, SpecError
from funnel.bounds import Bounds
from funnel.guarantees import count_box
from funnel.guarantees.binomial_limits import UNIT, lower_limit, upper_limit
from funnel.guarantees.distribution_box import DistributionBox, distribution_box
from funnel.guarantees.over_distributions import SetGuarantee
from funnel.guarantees.sided import OverCounts, Sided
from funnel.protocol import DENOMINATOR, WeightArray
from funnel.settings.guarantee import GuaranteeSettings

Distribution = list[list[Fraction]]

KINDS: list[SetGuarantee] = [
    OverCounts(funnel.LDP(0.6)),
    OverCounts(funnel.LIP(0.5)),
    OverCounts(funnel.ALIP(0.4, 0.6)),
    OverCounts(funnel.PML(0.5)),
]
ROBUST: list[SetGuarantee] = [
    funnel.RLDP(0.6, 0.3),
    funnel.RLIP(0.5, 0.3),
    funnel.RALIP(0.4, 0.6, 0.3),
    funnel.RPML(0.5, 0.3),
]


def weights_of(draw: list[list[int]]) -> WeightArray:
    """Weights (b, a) in the proportion of small numbers, columns summing to 2^63."""
    given = np.array(draw, dtype=object)
    scaled = given * DENOMINATOR // given.sum(axis=0)
    scaled[0] += DENOMINATOR - scaled.sum(axis=0)
    return scaled.astype(np.uint64)


def tables(lower: list[int], upper: list[int], least: int, most: int) -> Iterator[tuple[int, ...]]:
    """All whole numbers between the limits whose sum is between two."""
    ranges = [range(low, high + 1) for low, high in zip(lower, upper, strict=True)]
    yield from (table for table in itertools.product(*ranges) if least <= sum(table) <= most)


def ratios(counts: tuple[tuple[int, ...], ...], rows: list[list[list[int]]]) -> dict[str, Fraction | None]:
    """The largest ratios of each kind for a table (c, u), in fractions; rows (b, c, u). None is infinite."""
    best: dict[str, Fraction | None] = {"pairs": Fraction(0), "up": Fraction(0), "down": Fraction(0)}

    def seen(kind: str, numerator: Fraction, denominator: Fraction) -> None:
        if denominator:
            best[kind] = None if best[kind] is None else max(best[kind], numerator / denominator)
        elif numerator:
            best[kind] = None

    every = [s for s, row in enumerate(counts) if sum(row)]
    total = sum(map(sum, counts))
    for row in rows:
        told = {s: Fraction(sum(n * w for n, w in zip(counts[s], row[s], strict=True)), sum(counts[s])) for s in every}
        average = sum((told[s] * Fraction(sum(counts[s]), total) for s in every), Fraction(0))
        for s in every:
            seen("up", told[s], average)
            seen("down", average, told[s])
            for t in every:
                if s != t:
                    seen("pairs", told[s], told[t])
    return best


def test_a_distribution_that_is_not_in_the_box_cuts_nothing_off() -> None:
    """What `lifts` says of counts is an upper bound: here 2, of the least number and the best average apart."""
    bounds = Bounds(np.array([[1, 0], [1, 0]]), np.array([[1, 0], [1, 1]]), np.array([[1, 1], [1, 2]]), 0.01)
    joint = Joint.from_counts([[1, 0], [1, 1]])
    joint = Joint(joint.counts, joint.secret, joint.inputs, bounds)
    identity = np.eye(2)
    assert len(OverCounts(funnel.PML(math.log(1.6))).half_spaces(joint, identity)[2]) == 0
    _, of, by = OverCounts(funnel.PML(math.log(1.4))).half_spaces(joint, identity)
    assert sorted(of.tolist()) == [0, 1]
    assert by == pytest.approx(1.5 / 1.4 - 1)
    assert funnel.PML(1.0).level_for(joint, weights_of([[1, 0], [0, 1]])).witness.ratio == Fraction(3, 2)


def level(guarantee: SetGuarantee, worst: dict[str, Fraction | None]) -> float:
    """The level that the largest ratios give."""
    sides = guarantee.sides.finite()
    return max(
        guarantee.as_level(math.inf if worst[kind] is None else math.log(max(1, worst[kind])), budget)
        for kind, budget in sides
    )


@st.composite
def noisy(draw: st.DrawFn) -> tuple[Joint, list[tuple[tuple[int, ...], ...]]]:
    """A small joint distribution that is known up to noise, and every table that it may be."""
    c, a = draw(st.sampled_from([(2, 2), (2, 3), (3, 2)]))
    counts = np.array(draw(st.lists(st.integers(0, 6), min_size=c * a, max_size=c * a))).reshape(c, a)
    room = np.array(draw(st.lists(st.integers(0, 2), min_size=c * a, max_size=c * a))).reshape(c, a)
    counts[0, 0] += 1
    lower, upper = np.maximum(counts - room, 0), counts + room
    off = np.array(draw(st.lists(st.integers(0, 2), min_size=c, max_size=c)))
    totals = np.stack([np.maximum(counts.sum(axis=1) - off, 0), counts.sum(axis=1) + off], axis=1)
    joint = Joint(
        counts,
        *(Joint.from_counts(np.ones((c, a))).__getattribute__(n) for n in ("secret", "inputs")),
        Bounds(lower, upper, totals, 0.01),
    )
    rows = [list(tables(lower[s].tolist(), upper[s].tolist(), *totals[s].tolist())) for s in range(c)]
    return joint, [table for table in itertools.product(*rows) if sum(map(sum, table))]


@st.composite
def channels(draw: st.DrawFn, a: int) -> WeightArray:
    """A channel of small numbers, constant and excluding ones among them."""
    b = draw(st.integers(1, 3))
    cells = draw(st.lists(st.integers(0, 5), min_size=a * b, max_size=a * b))
    table = np.array(cells).reshape(b, a)
    table[0] = np.maximum(table[0], (table.sum(axis=0) == 0).astype(int))
    return weights_of(table.tolist())


@given(st.lists(st.integers(0, 4), min_size=12, max_size=12), st.lists(st.integers(0, 2), min_size=3, max_size=3))
def test_what_is_said_of_a_wider_secret_is_said_of_all_within_it(parts: list[int], room: list[int]) -> None:
    """A search leaves the narrower ones of such secrets out."""
    least = np.array(parts).reshape(3, 4) * (UNIT // 16)
    lower, upper = least, np.minimum(least + np.array(room)[:, None] * (UNIT // 8), UNIT)
    # Distributions are there where limits leave room for one.
    lower = np.where(lower.sum(axis=1, keepdims=True) <= UNIT, lower, 0)
    upper = np.where(upper.sum(axis=1, keepdims=True) >= UNIT, upper, UNIT)
    box = DistributionBox(lower, upper, np.zeros(3, dtype=np.int64), np.full(3, UNIT))
    rows = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 0.3, 0.7, 1.0], [0.2, 0.9, 0.1, 0.4]])
    high, low = box.given(rows[:, None, :])
    wider = box.wider
    assert wider.diagonal().all()
    for s, t in zip(*np.nonzero(wider), strict=True):
        assert (lower[s] <= lower[t]).all()
        assert (upper[t] <= upper[s]).all()
        assert (high[:, t] <= high[:, s] + 1e-12).all()
        assert (low[:, s] <= low[:, t] + 1e-12).all()
    # And none is left out that lies within: two secrets alike are within each other.
    alike = DistributionBox(lower[[0, 0]], upper[[0, 0]], np.zeros(2, dtype=np.int64), np.full(2, UNIT))
    assert alike.wider.all()


def test_of_other_sets_only_a_secret_itself_is_known_to_be_within_it() -> None:
    bounds = Bounds(np.array([[1, 0], [1, 0]]), np.array([[1, 0], [1, 1]]), np.array([[1, 1], [1, 2]]), 0.01)
    joint = Joint.from_counts([[1, 0], [1, 1]])
    box = count_box.count_box(Joint(joint.counts, joint.secret, joint.inputs, bounds))
    assert (box.wider == np.eye(2, dtype=bool)).all()


@pytest.mark.parametrize("reading", [False, True])
@settings(max_examples=40, deadline=None, derandomize=True)
@given(data=st.data())
def test_counts_within_noise_are_all_looked_at(reading: bool, data: st.DataObject) -> None:
    joint, every = data.draw(noisy())
    read = joint.with_secret() if reading else joint
    c, a = joint.counts.shape
    weights = data.draw(channels(read.counts.shape[1]))
    weights = weights[weights.any(axis=1)]
    exact = [
        [[int(w) for w in row[s * a : (s + 1) * a]] if reading else [int(w) for w in row] for s in range(c)]
        for row in weights
    ]
    found = [ratios(table, exact) for table in every]
    worst = {
        kind: None if any(one[kind] is None for one in found) else max(one[kind] for one in found) for kind in found[0]
    }
    for guarantee in KINDS:
        told = guarantee.level_for(read, weights)
        expected = level(guarantee, worst)
        assert told.value == pytest.approx(expected, rel=1e-12, abs=1e-13)
        assert guarantee.holds_for(read, weights) == (expected <= guarantee.budget)
        base = guarantee.base
        assert isinstance(base, Sided)
        assert base.level_for(read, weights).value == told.value
        assert max(guarantee.output_levels(read, weights / 2.0**63)) >= expected * (1 - 1e-9) - 1e-12


@settings(max_examples=40, deadline=None, derandomize=True)
@given(data=st.data())
def test_half_spaces_hold_for_every_table(data: st.DataObject) -> None:
    """What is cut off breaks the guarantee under a table that is possible, and rows that are feasible are kept."""
    joint, _ = data.draw(noisy())
    rows = data.draw(channels(joint.counts.shape[1])) / 2.0**63
    rows = rows[rows.any(axis=1)]
    for guarantee in KINDS:
        spaces, of, by = guarantee.half_spaces(joint, rows)
        assert (by > 0).all()
        for space, y in zip(spaces, of, strict=True):
            assert space @ rows[y] > 0
        feasible = guarantee.starting_cone(joint)
        weights = weights_of([*(rows * 2**20).astype(int).tolist(), [1] * rows.shape[1]])
        for row in weights / 2.0**63:
            if guarantee.output_levels(joint, row[None])[0] <= guarantee.budget - 1e-9:
                assert (spaces @ row <= 1e-12).all()
                assert (feasible @ row <= 1e-12).all()


def corners(box: DistributionBox) -> Iterator[Distribution]:
    """Distributions p(x|s) p(s) with all but one entry of each part at a limit, which the extreme ones are among."""

    def ends(lower: list[int], upper: list[int]) -> list[list[Fraction]]:
        found = set()
        for free in range(len(lower)):
            others = [k for k in range(len(lower)) if k != free]
            for chosen in itertools.product((0, 1), repeat=len(others)):
                point = [0] * len(lower)
                for k, high in zip(others, chosen, strict=True):
                    point[k] = upper[k] if high else lower[k]
                point[free] = UNIT - sum(point)
                if lower[free] <= point[free] <= upper[free]:
                    found.add(tuple(point))
        return [[Fraction(value, UNIT) for value in point] for point in sorted(found)]

    given_ = [ends(low, high) for low, high in zip(box.lower.tolist(), box.upper.tolist(), strict=True)]
    for prior in ends(box.prior_lower.tolist(), box.prior_upper.tolist()):
        for distribution in itertools.product(*given_):
            yield [[share * p for p in row] for share, row in zip(prior, distribution, strict=True)]


@pytest.mark.parametrize("reading", [False, True])
@settings(max_examples=25, deadline=None, derandomize=True)
@given(data=st.data())
def test_distributions_in_a_box_are_all_looked_at(reading: bool, data: st.DataObject) -> None:
    counts = np.array(data.draw(st.lists(st.integers(0, 40), min_size=4, max_size=4))).reshape(2, 2)
    counts[:, 0] += 1
    joint = Joint.from_counts(counts)
    read = joint.with_secret() if reading else joint
    weights = data.draw(channels(read.counts.shape[1]))
    weights = weights[weights.any(axis=1)]
    exact = [
        [[int(w) for w in row[s * 2 : s * 2 + 2]] if reading else [int(w) for w in row] for s in range(2)]
        for row in weights
    ]
    box = distribution_box(read, 0.3)
    found = [ratios_of_distribution(distribution, exact) for distribution in corners(box)]
    worst = {
        kind: None if any(one[kind] is None for one in found) else max(one[kind] for one in found) for kind in found[0]
    }
    for guarantee in ROBUST:
        told = guarantee.level_for(read, weights)
        expected = level(guarantee, worst)
        assert told.value == pytest.approx(expected, rel=1e-12, abs=1e-13)
        assert guarantee.holds_for(read, weights) == (expected <= guarantee.budget)
        spaces, of, by = guarantee.half_spaces(read, weights / 2.0**63)
        for space, y in zip(spaces, of, strict=True):
            assert space @ (weights[y] / 2.0**63) > 0
        assert bool(len(by)) == (told.value > guarantee.budget + 1e-12) or abs(told.value - guarantee.budget) < 1e-9


def ratios_of_distribution(distribution: Distribution, rows: list[list[list[int]]]) -> dict[str, Fraction | None]:
    """`ratios` of a distribution in fractions, as whole numbers of its common denominator."""
    scale = math.lcm(*(value.denominator for row in distribution for value in row))
    return ratios(tuple(tuple(int(value * scale) for value in row) for row in distribution), rows)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.integers(1, 60), st.data(), st.sampled_from([Fraction(1, 3), Fraction(1, 40), Fraction(1, 10**6)]))
def test_limits_are_those_of_clopper_and_pearson_rounded_outwards(n: int, data: st.DataObject, tail: Fraction) -> None:
    k = data.draw(st.integers(0, n))

    def at_least(j: int) -> Fraction:
        return Fraction(sum(comb(n, i) * j**i * (UNIT - j) ** (n - i) for i in range(k, n + 1)), UNIT**n)

    def at_most(j: int) -> Fraction:
        return Fraction(sum(comb(n, i) * j**i * (UNIT - j) ** (n - i) for i in range(k + 1)), UNIT**n)

    low, high = lower_limit(k, n, tail), upper_limit(k, n, tail)
    assert (low == 0) if k == 0 else (at_least(low) <= tail < at_least(low + 1))
    assert (high == UNIT) if k == n else (at_most(high) <= tail < at_most(high - 1))
    assert low * n <= k * UNIT <= high * n


def large(noise: int) -> Joint:
    """A joint distribution with many numbers of records that a secret may have."""
    counts = np.array([[600, 40, 3], [200, 500, 30], [90, 10, 800]])
    lower, upper = np.maximum(counts - noise, 0), counts + noise
    totals = np.stack([counts.sum(axis=1) - 2 * noise, counts.sum(axis=1) + 2 * noise], axis=1)
    plain = Joint.from_counts(counts)
    return Joint(counts, plain.secret, plain.inputs, Bounds(lower, upper, totals, 0.01))


@pytest.mark.parametrize("upward", [True, False])
@pytest.mark.parametrize("order", [[9, 5, 1], [1, 5, 9], [2, 9, 4]])
def test_of_many_numbers_of_records_the_worst_is_found(order: list[int], upward: bool) -> None:
    """Lifts over numbers of records that a secret may have: that of each number alone, and the largest of all."""
    box = count_box.count_box(large(150))
    row = weights_of([order, [10 - weight for weight in order]])[:1]
    for s in range(3):
        alone = []
        for number in range(int(box.least[s]), int(box.most[s]) + 1):
            least, most = box.least.copy(), box.most.copy()
            least[s] = most[s] = number
            alone.append(replace(box, least=least, most=most).exact_lift(row, s, upward))
        assert box.exact_lift(row, s, upward) == max(alone)  # type: ignore[type-var]


@pytest.mark.parametrize("upward", [True, False])
@pytest.mark.parametrize("noise", [0, 3, 20, 150, 300])
def test_many_rows_at_once_are_told_to_exceed_a_limit_where_their_exact_lift_does(noise: int, upward: bool) -> None:
    """On both sides of each exact lift, a millionth away; what may be infinite is above every limit."""
    box, random = count_box.count_box(large(noise)), np.random.default_rng(noise)
    rows = random.integers(0, 10, (60, 3)) * random.integers(0, 2, (60, 3))
    weights = weights_of([*rows.tolist(), (600 - rows.sum(axis=0)).tolist()])[:60]
    secrets = random.integers(0, 3, 60)
    lifts = [box.exact_lift(row[None], int(s), upward) for row, s in zip(weights, secrets, strict=True)]
    floats = (weights / np.float64(DENOMINATOR))[:, None]
    for one, lift in enumerate(lifts):
        largest = 1e6 if lift is None else max(1.0, float(lift))
        # No limit is below 1, where floats need not tell lifts apart.
        for limit in (max(1.000001, largest * 0.999999), largest * 1.000001):
            told = box.may_exceed(floats[[one, one]], secrets[[one, one]], upward, limit)
            assert told.tolist() == [lift is None or lift > limit] * 2
    middle = float(np.median([float(lift) for lift in lifts if lift is not None]))
    together = box.may_exceed(floats, secrets, upward, middle * 1.000001)
    assert together.tolist() == [lift is None or lift > middle * 1.000001 for lift in lifts]
    assert 0 < together.sum() < 60


def test_noise_widens_the_limits_and_holds_every_table() -> None:
    """The box of a distribution known up to noise holds the boxes of all tables that it may be."""
    noisy_one = large(3)
    wide = distribution_box(noisy_one, 0.05)
    assert noisy_one.bounds is not None
    random = np.random.default_rng(4)
    for _ in range(20):
        table = random.integers(noisy_one.bounds.lower, noisy_one.bounds.upper + 1)
        if not noisy_one.bounds.hold(table):
            continue
        narrow = distribution_box(Joint(table, noisy_one.secret, noisy_one.inputs), 0.05)
        assert (wide.lower <= narrow.lower).all()
        assert (wide.upper >= narrow.upper).all()
        assert (wide.prior_lower <= narrow.prior_lower).all()
        assert (wide.prior_upper >= narrow.prior_upper).all()
    weights = weights_of([[3, 2, 1], [1, 2, 3]])
    for guarantee in ROBUST:
        known = guarantee.level_for(noisy_one.as_published, weights).value
        assert known < guarantee.level_for(noisy_one, weights).value


@pytest.mark.parametrize("n", [100, 2_000])
@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_boxes_hold_the_true_distribution_as_often_as_they_say(n: int, alpha: float) -> None:
    """Near-deterministic ones: with 300 samples a true coverage of 1 - α is below this in one of 10^4 runs."""
    random = np.random.default_rng(n)
    distribution = np.array([[0.299, 0.001, 0.0], [0.001, 0.399, 0.0001], [0.0, 0.0009, 0.299]])
    prior, held, told = distribution.sum(axis=1), 0, 0
    while told < 300:
        counts = random.multinomial(n, distribution.ravel() / distribution.sum()).reshape(3, 3)
        if not counts.any(axis=1).all():
            continue
        told += 1
        box = distribution_box(Joint.from_counts(counts), alpha)
        given_ = distribution / prior[:, None] * UNIT
        held += bool(
            ((box.lower <= given_) & (given_ <= box.upper)).all()
            and ((box.prior_lower <= prior * UNIT) & (prior * UNIT <= box.prior_upper)).all()
        )
    assert held >= binom.ppf(1e-4, 300, 1 - alpha)


def test_pml_is_the_upper_side_of_alip() -> None:
    joint = Joint.from_counts([[30, 10, 4], [10, 50, 1]])
    protocol = funnel.fit("grr", joint, funnel.PML(0.4))
    alip = funnel.ALIP(math.inf, 0.4)
    assert funnel.PML(0.4).level(joint, protocol) == alip.level(joint, protocol)
    assert funnel.RPML(0.4).level(joint, protocol) == funnel.RALIP(math.inf, 0.4).level(joint, protocol)
    assert funnel.PML(0.4).holds(joint, protocol)
    assert not funnel.PML(0.39).holds(joint, protocol)


def test_a_secret_that_never_occurs_leaves_everything_open() -> None:
    joint = Joint.from_counts([[30, 10], [0, 0]])
    with pytest.raises(DataError, match=r"no record has S 'S1'"):
        funnel.RLIP(1.0).level_for(joint, weights_of([[2, 1], [1, 2]]))


@pytest.mark.parametrize("kind", [funnel.RLIP, funnel.RPML])
def test_only_rldp_is_over_the_set_of_its_paper(kind: type[funnel.RLIP]) -> None:
    with pytest.raises(SpecError, match="only rldp is made for the χ² set"):
        kind(1.0, 0.05, "chi2")
    with pytest.raises(SpecError, match="'boxes' or 'chi2', not 'balls'"):
        funnel.RLDP(1.0, 0.05, "balls")


def test_what_covers_the_noise_says_so() -> None:
    covering = {text for text in EXAMPLES if funnel.parse_guarantee(text).covers_noise}
    assert covering == set(EXAMPLES) - {"perfect", "mi:0.1", "l1-lift:1.0,1.0", "rldp:1.0,0.05,chi2"}


EXAMPLES = [
    "lip:1.0", "alip:1.3,0.7", "ldp:1.0", "pml:1.0", "rlip:1.0,0.05", "ralip:1.3,inf,0.1", "rldp:1.0,0.05",
    "rldp:1.0,0.05,chi2", "rpml:1.0,0.05", "srlip:1.0", "perfect", "mi:0.1", "l1-lift:1.0,1.0",
]  # fmt: skip


@pytest.mark.parametrize("text", EXAMPLES)
def test_texts_and_tables_of_a_spec_are_read_back(text: str) -> None:
    guarantee = funnel.parse_guarantee(text)
    assert str(guarantee) == text
    stated = GuaranteeSettings.model_validate(text)
    assert stated.canonical == text
    assert GuaranteeSettings.model_validate(stated.model_dump()).canonical == text


def test_the_set_is_a_word() -> None:
    long = {"kind": "rldp", "epsilon": 1.0, "alpha": 0.1, "set": "chi2"}
    assert GuaranteeSettings.model_validate(long).canonical == "rldp:1.0,0.1,chi2"
    assert funnel.parse_guarantee("rldp:1,set=CHI2") == funnel.RLDP(1.0, 0.05, "chi2")
    with pytest.raises(ValueError, match="set must be a word in quotes"):
        GuaranteeSettings.model_validate({"kind": "rldp", "epsilon": 1.0, "set": 2})
    with pytest.raises(SpecError, match="a number after the colon"):
        funnel.parse_guarantee("rldp:1,chi2")


@pytest.mark.parametrize("text", ["rlip:1.0", "ralip:1.0,1.0", "rpml:1.0", "rldp:1.0"])
def test_a_secret_that_nobody_may_have_is_told_without_limit(text: str) -> None:
    known = Joint.from_counts([[3, 0], [0, 4]])
    bounds = Bounds(np.zeros((2, 2)).astype(int), np.full((2, 2), 12), np.array([[0, 14], [0, 14]]), 0.01)
    joint = Joint(known.counts, known.secret, known.inputs, bounds)
    weights = np.diag([DENOMINATOR, DENOMINATOR]).astype(np.uint64)
    guarantee = funnel.parse_guarantee(text)
    assert guarantee.level_for(joint, weights).value == math.inf
    assert not guarantee.holds_for(joint, weights)


def test_values_taken_from_the_sample_have_limits_that_all_miss() -> None:
    """Of a billion values, equally common, whichever a sample has seem at least ten times as common as they are."""
    people, common = 500, Fraction(1, 10**9)
    tail = Fraction(1, 20) / (2 * (2 * 2 * people + 2))
    assert Fraction(lower_limit(1, people, tail), UNIT) > 10 * common
    # No two of the 1,000 people share a value with a probability above 0.999.
    assert math.comb(2 * people, 2) * common < Fraction(1, 1000)
