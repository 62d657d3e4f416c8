"""Worst cases over boxes of counts and of distributions, against every table and every corner of small ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta as beta_distribution

from funnel.errors import DataError, SpecError
from funnel.recount import count_box
from funnel.recount.channel import Channel
from funnel.recount.count_box import UNIT, CountBox, DistributionBox, distribution_box, lower_limit, upper_limit
from funnel.recount.levels import plain_level
from funnel.recount.promise import read_promise
from funnel.recount.ratios import Ratio
from funnel.recount.worst_boxes import (
    Envelope,
    largest_lifts_over_counts,
    largest_lifts_over_distributions,
    largest_odds_over_counts,
    largest_odds_over_distributions,
)

DENOMINATOR = 12


@st.composite
def boxes(draw: st.DrawFn, c: int, a: int) -> CountBox:
    """Small boxes with a table in them; empty cells, empty secrets and totals that bind among them."""
    lower, upper, totals = [], [], []
    for _ in range(c):
        lows = draw(st.lists(st.integers(0, 3), min_size=a, max_size=a))
        rooms = draw(st.lists(st.integers(0, 2), min_size=a, max_size=a))
        lower.append(lows)
        upper.append([low + room for low, room in zip(lows, rooms, strict=True)])
        least = draw(st.integers(sum(lower[-1]), sum(upper[-1])))
        totals.append((least, draw(st.integers(least, sum(upper[-1])))))
    if not any(most for _, most in totals):
        upper[0][0], totals[0] = 1, (1, 1)
    return CountBox.of(lower, upper, totals)


@st.composite
def rows_of_outputs(draw: st.DrawFn, inputs: int) -> list[list[int]]:
    """Weights of two or three outputs, adding up to the denominator for every input."""
    columns = []
    for _ in range(inputs):
        first = draw(st.integers(0, DENOMINATOR))
        second = draw(st.integers(0, DENOMINATOR - first))
        columns.append((first, second, DENOMINATOR - first - second))
    return [list(row) for row in zip(*columns, strict=True)]


def _tables(box: CountBox) -> Iterator[tuple[tuple[int, ...], ...]]:
    choices = []
    for lows, highs, (least, most) in zip(box.lower, box.upper, box.totals, strict=True):
        cells = [range(low, high + 1) for low, high in zip(lows, highs, strict=True)]
        choices.append([row for row in itertools.product(*cells) if least <= sum(row) <= most])
    for table in itertools.product(*choices):
        if any(map(sum, table)):
            yield table


def _ratios(channel: Channel, table: tuple[tuple[int, ...], ...]) -> tuple[Fraction | None, ...]:
    """The largest odds, lift and inverse lift of one table, by their definitions; None is infinite."""
    worst: list[Fraction | None] = [Fraction(1)] * 3
    n, secrets = sum(map(sum, table)), [s for s, row in enumerate(table) if any(row)]
    for y in range(len(channel.weights)):
        given_s = {
            s: Fraction(sum(k * w for k, w in zip(table[s], channel.row(y, s), strict=True)), sum(table[s]))
            for s in secrets
        }
        marginal = sum(given_s[s] * sum(table[s]) for s in secrets) / n
        pairs = [(0, given_s[s], given_s[t]) for s in secrets for t in secrets if s != t]
        pairs += [(1, given_s[s], marginal) for s in secrets] + [(2, marginal, given_s[s]) for s in secrets]
        for which, above, below in pairs:
            if above > 0 and worst[which] is not None:
                worst[which] = None if below == 0 else max(worst[which] or Fraction(0), above / below)
    return tuple(worst)


def _largest(found: list[tuple[Fraction | None, ...]]) -> tuple[Fraction | None, ...]:
    return tuple(
        None if any(value is None for value in side) else max(value for value in side if value is not None)
        for side in zip(*found, strict=True)
    )


@settings(max_examples=150, deadline=None)
@given(st.data(), st.integers(2, 3), st.integers(1, 3), st.booleans())
def test_every_table_in_a_box_and_no_more(data: st.DataObject, c: int, a: int, reads_secret: bool) -> None:
    box = data.draw(boxes(c, a if c == 2 else min(a, 2)))
    width = len(box.lower[0]) * (c if reads_secret else 1)
    weights = data.draw(rows_of_outputs(width))
    tables = list(_tables(box))
    channel = Channel.of(tables[0], weights, DENOMINATOR, reads_secret)
    expected = _largest([_ratios(channel, table) for table in tables])
    odds, lifts = largest_odds_over_counts(channel, box), largest_lifts_over_counts(channel, box)
    assert (odds.value, lifts[0].value, lifts[1].value) == expected


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(2, 3), st.integers(2, 4))
def test_a_box_of_one_table_is_that_table(data: st.DataObject, c: int, a: int) -> None:
    counts = data.draw(st.lists(st.lists(st.integers(0, 9), min_size=a, max_size=a), min_size=c, max_size=c))
    counts[0][0] += 1
    weights = data.draw(rows_of_outputs(a))
    box = CountBox.exactly(counts)
    for text in ("lip:0.4", "alip:0.5,0.2", "alip:inf,0.2", "ldp:0.6", "pml:0.3"):
        one = plain_level(text, counts, weights, DENOMINATOR)
        other = plain_level(text, counts, weights, DENOMINATOR, box=box)
        assert (one.nats, one.holds) == (other.nats, other.holds)


def _corners(limits: tuple[tuple[int, int], ...], total: int) -> Iterator[tuple[int, ...]]:
    """All corners of a box cut by a sum: all but one coordinate at a limit."""
    for free in range(len(limits)):
        others = [pair for k, pair in enumerate(limits) if k != free]
        for chosen in itertools.product(*others):
            rest = total - sum(chosen)
            if limits[free][0] <= rest <= limits[free][1]:
                yield (*chosen[:free], rest, *chosen[free:])


@st.composite
def limits(draw: st.DrawFn, size: int, unit: int) -> tuple[tuple[int, int], ...]:
    """Limits with a distribution within them."""
    cuts = sorted(draw(st.lists(st.integers(0, unit), min_size=size - 1, max_size=size - 1)))
    distribution = [high - low for low, high in zip([0, *cuts], [*cuts, unit], strict=True)]
    return tuple(
        (max(0, p - draw(st.integers(0, unit // 4))), p + draw(st.integers(0, unit // 4))) for p in distribution
    )


@settings(max_examples=100, deadline=None)
@given(st.data(), st.integers(2, 3), st.integers(1, 4), st.booleans())
def test_every_corner_of_a_box_of_distributions_and_no_more(
    data: st.DataObject, c: int, a: int, reads_secret: bool
) -> None:
    box = DistributionBox(tuple(data.draw(limits(a, UNIT)) for _ in range(c)), data.draw(limits(c, UNIT)))
    weights = data.draw(rows_of_outputs(a * (c if reads_secret else 1)))
    channel = Channel.of([[1] * a] * c, weights, DENOMINATOR, reads_secret)
    distributions = [list(_corners(sides, UNIT)) for sides in box.inputs]
    shares = list(_corners(box.secrets, UNIT))
    worst: list[Fraction | None] = [Fraction(1)] * 3

    def note(which: int, above: int, below: int) -> None:
        if above > 0 and worst[which] is not None:
            worst[which] = max(worst[which] or Fraction(0), Fraction(above, below)) if below else None

    for y in range(len(weights)):
        means = [
            {
                sum(p * w for p, w in zip(distribution, channel.row(y, s), strict=True))
                for distribution in distributions[s]
            }
            for s in range(c)
        ]
        for s, t in itertools.permutations(range(c), 2):
            note(0, max(means[s]), min(means[t]))
        for given_s in itertools.product(*[(min(found), max(found)) for found in means]):
            for share in shares:
                marginal = sum(p * m for p, m in zip(share, given_s, strict=True))
                for mean in given_s:
                    note(1, mean * UNIT, marginal)
                    note(2, marginal, mean * UNIT)
    up, down = largest_lifts_over_distributions(channel, box)
    assert (largest_odds_over_distributions(channel, box).value, up.value, down.value) == tuple(worst)


@given(st.data(), st.integers(1, 5))
def test_an_envelope_is_the_largest_sum_for_every_total(data: st.DataObject, size: int) -> None:
    values = data.draw(st.lists(st.integers(-5, 5), min_size=size, max_size=size))
    lower = data.draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    upper = [low + data.draw(st.integers(0, 2)) for low in lower]
    largest: dict[int, int] = {}
    for cells in itertools.product(*[range(low, high + 1) for low, high in zip(lower, upper, strict=True)]):
        found = sum(n * t for n, t in zip(cells, values, strict=True))
        largest[sum(cells)] = max(found, largest.get(sum(cells), found))
    sums = Envelope(values, lower, upper)
    assert {total: sums(total) for total in largest} == largest
    corners = dict(sums.corners(min(largest), max(largest)))
    assert corners.items() <= largest.items()
    for total in sorted(largest)[1:-1]:
        assert total in corners or 2 * largest[total] == largest[total - 1] + largest[total + 1]


@settings(deadline=None)
@given(st.integers(1, 400), st.data(), st.sampled_from([Fraction(1, 40), Fraction(1, 5000), Fraction(1, 10**9)]))
def test_limits_are_those_of_clopper_and_pearson(trials: int, data: st.DataObject, tail: Fraction) -> None:
    successes = data.draw(st.integers(0, trials))
    low, high = lower_limit(successes, trials, tail), upper_limit(successes, trials, tail)
    assert 0 <= low * trials <= successes * UNIT <= high * trials <= UNIT * trials

    def missed(j: int) -> Fraction:
        p = Fraction(j, UNIT)
        return sum(
            (math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(successes, trials + 1)), Fraction(0)
        )

    if successes:
        assert low == pytest.approx(
            UNIT * beta_distribution.ppf(float(tail), successes, trials - successes + 1), abs=2, rel=1e-9
        )
    if successes and trials <= 12:
        assert missed(low) <= tail < missed(low + 1)


@pytest.mark.parametrize("many", [0, 100_000], ids=["by a function of intervals", "term by term"])
@given(st.integers(1, 30), st.data())
def test_an_interval_of_a_tail_holds_the_exact_one(many: int, trials: int, data: st.DataObject) -> None:
    k, edge = data.draw(st.integers(1, trials)), UNIT * data.draw(st.integers(1, trials)) // (trials + 1)
    j = data.draw(st.sampled_from([1, edge, edge + 1, UNIT - 1]) | st.integers(1, UNIT - 1))
    exact = sum(math.comb(trials, i) * j**i * (UNIT - j) ** (trials - i) for i in range(k, trials + 1))
    with pytest.MonkeyPatch.context() as patch, ctx.workprec(64):
        patch.setattr(count_box, "_MANY", many)
        found = count_box._tail(k, trials, j)
    with ctx.workprec(500):
        assert found.contains(arb(fmpq(exact, UNIT**trials)))
        assert found.rad() < 2.0**-40


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_the_distributions_of_a_box_of_tables_hold_those_of_each_table(data: st.DataObject) -> None:
    box = data.draw(boxes(2, 2))
    wide = distribution_box(box, Fraction(1, 10))
    for table in itertools.islice(_tables(box), 40):
        narrow = distribution_box(CountBox.exactly(table), Fraction(1, 10))
        for outer, inner in zip((*wide.inputs, wide.secrets), (*narrow.inputs, narrow.secrets), strict=True):
            for (least, most), (low, high) in zip(outer, inner, strict=True):
                assert least <= low <= high <= most


def test_by_hand() -> None:
    # One secret has 4 or 5 of 9 or 10 records in the first cell, the other none or one of 10.
    box = CountBox.of([[4, 5], [0, 9]], [[5, 5], [1, 10]], [[9, 10], [10, 10]])
    channel = Channel.of([[4, 5], [1, 9]], [[3, 1], [1, 3]], 4)
    # (5·3 + 5·1) / 10 over (0·3 + 10·1) / 10, and (5·3 + 9)... of y1: (1·0 + 3·10)/10 over (5·1 + 5·3)/10.
    assert largest_odds_over_counts(channel, box) == Ratio(Fraction(2))
    up, down = largest_lifts_over_counts(channel, box)
    assert up.value == Fraction(20, 10) / (Fraction(20 + 10, 20))
    # Of y0 and the second secret: (20 + 10)/20 over 10/10; 4 of 9 against 5 of 10 tell less.
    assert down.value == Fraction(3, 2)


def test_robust_promises_are_read_with_their_set_of_distributions() -> None:
    assert read_promise("rldp:1.0").distributions == read_promise("rlip:1,0.05,boxes").distributions == "boxes"
    chi2 = read_promise("rldp:1,0.01,chi2")
    assert (chi2.distributions, chi2.number("alpha"), chi2.budget) == ("chi2", Fraction(1, 100), 1)
    assert read_promise("ralip:inf,0.5").numbers["lower"] is None
    assert read_promise("lip:1").distributions is None
    assert read_promise("pml:0.5").budget == Fraction(1, 2)
    for text in ("rpml:1,0.05,chi2", "rldp:1,0.05,balls", "lip:1,set=boxes", "rlip:1,0", "pml:1,0.05"):
        with pytest.raises(SpecError):
            read_promise(text)


def test_a_robust_level_is_above_the_nominal_one_and_falls_with_the_data() -> None:
    weights = [[3, 1], [1, 3]]
    levels = []
    for times in (10, 100, 10_000):
        counts = [[3 * times, times], [times, 3 * times]]
        for kind, text in (("lip", "rlip:1"), ("ldp", "rldp:1"), ("pml", "rpml:1")):
            nominal = plain_level(f"{kind}:1", counts, weights, 4).nats
            levels.append(plain_level(text, counts, weights, 4).nats - nominal)
    assert all(gap > 0 for gap in levels)
    assert all(later < earlier for earlier, later in itertools.pairwise(levels[::3]))
    assert max(levels[-3:]) < 0.03


def test_counts_outside_their_own_bounds_are_refused() -> None:
    box = CountBox.of([[1, 1], [1, 1]], [[2, 2], [2, 2]], [[2, 4], [2, 4]])
    with pytest.raises(DataError, match="within their own bounds"):
        plain_level("lip:1", [[3, 1], [1, 1]], [[1, 0], [0, 1]], 1, box=box)
    with pytest.raises(DataError, match="no table"):
        CountBox.of([[1, 1]], [[2, 2]], [[5, 6]])
