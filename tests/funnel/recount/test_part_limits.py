"""Bounds for a population between parts of classes, against every corner and many points of what is within limits."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.stats import beta

from funnel.alphabet import Alphabet
from funnel.class_parts import ClassParts
from funnel.errors import DataError, SpecError
from funnel.guarantees.class_limits import ClassLimits
from funnel.joint import Joint
from funnel.protocol import DENOMINATOR as DENOMINATOR_OF_RELEASES
from funnel.recount.channel import Channel, SparseRow
from funnel.recount.count_box import UNIT
from funnel.recount.levels import level_of
from funnel.recount.part_beliefs import KnownValues, beliefs
from funnel.recount.part_limits import class_limits, worst_in_population
from funnel.recount.run_results import results_remembered
from funnel.rounding import integer_weights
from tests.sabotage.patching import Patch, patched

ALPHA = Fraction(1, 20)
DENOMINATOR = 60


def drawn(seed: int, times: int = 1) -> KnownValues:
    """Some records in parts of two to four classes, some of them held out, and a protocol between the parts."""
    random = np.random.default_rng(seed)
    c, g = int(random.integers(2, 4)), int(random.integers(2, 5))
    parts = [(f"{h}.{number}",) for h in range(g) for number in range(1, 2 + int(random.integers(2)))]
    parts = [parts[k] for k in random.permutation(len(parts))]
    counts = random.integers(0, 9, (c, len(parts))) * random.integers(0, 2, (c, len(parts)))
    counts[random.integers(c)] += 1 + random.integers(40)
    counts *= times
    weights = np.array([random.multinomial(DENOMINATOR, random.dirichlet(np.full(4, 0.3))) for _ in parts]).T
    held_out: list[dict[str, int]] = []
    # Of some nobody is held out, and of others many of one secret, so that their share is not that of all records.
    rates = 0.0 if seed % 7 == 0 else 0.5 if seed % 3 else random.random((c, 1))
    for row in random.binomial(counts, rates):
        of: dict[str, int] = {str(h): 0 for h in random.permutation(g)}
        for (part,), number in zip(parts, row.tolist(), strict=True):
            of[part.split(".")[0]] += number
        held_out.append(of)
    rows = [SparseRow({x: w for x, w in enumerate(row) if w}, len(parts)) for row in weights.tolist()]
    outputs = tuple((f"y{y}",) for y in range(len(rows)))
    rows = rows if seed % 2 else weights.tolist()
    return KnownValues(counts.tolist(), tuple(parts), outputs, rows, DENOMINATOR, {}, held_out=held_out)


def by_class(known: KnownValues) -> list[dict[str, int]]:
    """All records of every secret and class."""
    found: list[dict[str, int]] = []
    for row in known.counts:
        found.append({})
        for (part,), number in zip(known.inputs, row, strict=True):
            found[-1][part.split(".")[0]] = found[-1].get(part.split(".")[0], 0) + number
    return found


def change(known: KnownValues, y: int, shares: dict[str, Fraction]) -> tuple[Fraction, Fraction]:
    """Beliefs in a secret after and before an output, by the share of the secret in every class, part by part."""
    people = np.array(known.counts).sum(axis=0).tolist()
    row = list(known.weights[y])
    own = [shares[part.split(".")[0]] for (part,) in known.inputs]
    come = [n * w for n, w in zip(people, row, strict=True)]
    after = sum((n * q for n, q in zip(come, own, strict=True)), Fraction(0)) / sum(come)
    return after, sum((n * q for n, q in zip(people, own, strict=True)), Fraction(0)) / sum(people)


def largest(known: KnownValues, steps: int) -> float | Fraction:
    """The largest change of a belief, or its inverse, over a grid of the shares within their limits, with corners."""
    limits = class_limits(by_class(known), known.held_out, ALPHA)
    names, worst = [*by_class(known)[0]], Fraction(1)
    for y, of_secret in product(range(len(known.weights)), limits):
        if not any(known.weights[y]):
            continue
        grids = [
            sorted({low + (high - low) * Fraction(step, steps) for step in range(steps + 1)}) for low, high in of_secret
        ]
        for point in product(*grids):
            after, before = change(known, y, {name: Fraction(q, UNIT) for name, q in zip(names, point, strict=True)})
            if not before:
                continue
            if not after:
                return math.inf
            worst = max(worst, after / before, before / after)
    return worst


@pytest.mark.parametrize("seed", range(60))
def test_the_largest_change_is_that_of_a_corner_and_no_point_within_limits_exceeds_it(seed: int) -> None:
    known = drawn(seed)
    found, expected = worst_in_population(known, ALPHA).value, largest(known, 1)
    assert (math.inf if found is None else found) == expected
    assert largest(known, 3) == expected


def test_some_of_these_are_infinite_and_others_not() -> None:
    found = [worst_in_population(drawn(seed), ALPHA).value for seed in range(60)]
    assert 5 < sum(one is None for one in found) < 55


@pytest.mark.parametrize("seed", range(20))
def test_limits_are_those_of_clopper_and_pearson_and_have_the_share_of_all(seed: int) -> None:
    known = drawn(seed)
    counts, held_out = by_class(known), known.held_out
    assert held_out is not None
    tail = float(ALPHA) / (2 * len(counts) * len(counts[0]))
    for of, mine, row in zip(counts, held_out, class_limits(counts, held_out, ALPHA), strict=True):
        for name, (low, high) in zip(of, row, strict=True):
            trials, people = sum(one[name] for one in held_out), sum(one[name] for one in counts)
            least = beta.ppf(tail, mine[name], trials - mine[name] + 1) if mine[name] else 0.0
            most = beta.ppf(1 - tail, mine[name] + 1, trials - mine[name]) if mine[name] < trials else 1.0
            share = Fraction(of[name], people)
            assert Fraction(low, UNIT) <= share <= Fraction(high, UNIT)
            assert low == pytest.approx(min(least, share) * UNIT, abs=2)
            assert high == pytest.approx(max(most, share) * UNIT, abs=2)


def test_limits_are_widened_to_the_share_of_all_records() -> None:
    """Two of two thousand have the secret, and none of the thousand that are held out."""
    counts = [{"1": 1000, "2": 500}, {"1": 1000, "2": 500}]
    ((low, high), _), ((other, most), _) = class_limits(counts, [{"1": 900, "2": 0}, {"1": 100, "2": 0}], ALPHA)
    assert low == UNIT // 2 < high
    assert other < most == UNIT // 2
    # Of a class without a record that is held out nothing is known.
    assert class_limits(counts, [{"1": 900, "2": 0}, {"1": 100, "2": 0}], ALPHA)[0][1] == (0, UNIT)


def test_a_share_that_is_no_multiple_is_within_limits() -> None:
    counts = [{"1": 1}, {"1": 2}]
    for alpha in (ALPHA, Fraction(999, 1000)):
        for (low, high), share in zip(
            (row[0] for row in class_limits(counts, [{"1": 1}, {"1": 0}], alpha)), (1, 2), strict=True
        ):
            assert Fraction(low, UNIT) <= Fraction(share, 3) <= Fraction(high, UNIT)


def channel_of(known: KnownValues) -> Channel:
    secret = tuple((str(s),) for s in range(len(known.counts)))
    return Channel.of(beliefs(known.counts, known.inputs, secret), known.weights, known.denominator)


@pytest.mark.parametrize("seed", range(1, 12))
def test_it_is_decided_exactly_and_is_more_than_the_bound_for_the_counts(seed: int) -> None:
    known = drawn(seed, 100)
    channel, worst = channel_of(known), worst_in_population(known, ALPHA)
    level = level_of("rlip:1.0,0.05", channel, known.inputs, known=known)
    assert level.nats == worst.nats
    assert level.holds == (worst.nats <= 1.0)
    assert level.nats >= level_of("lip:1.0", channel, known.inputs, known=known).nats
    if worst.value is not None:
        near = [f"rlip:{factor * math.log(worst.value):.15f},0.05" for factor in (0.999999, 1.000001)]
        assert [level_of(one, channel, known.inputs, known=known).holds for one in near] == [False, True]


def test_more_certainty_and_fewer_records_make_it_larger() -> None:
    known = drawn(4, 100)
    assert known.held_out is not None
    levels = [worst_in_population(known, alpha).nats for alpha in (Fraction(1, 2), ALPHA, Fraction(1, 10**6))]
    assert all(one < other < math.inf for one, other in pairwise(levels))
    fewer = replace(known, held_out=[dict.fromkeys(of, 0) for of in known.held_out])
    assert worst_in_population(fewer, ALPHA).value is None


def test_both_bounds_hold_together_or_not() -> None:
    known = drawn(1, 100)
    apart = [level_of(one, channel_of(known), known.inputs, known=known) for one in ("rlip:1.0,0.05", "srlip:3.0")]
    both = level_of("rlip:1.0,0.05 & srlip:3.0", channel_of(known), known.inputs, known=known)
    assert both.nats == pytest.approx(max(3 * apart[0].nats, apart[1].nats), rel=1e-12)


def test_levels_of_other_records_that_are_held_out_are_not_taken_for_these() -> None:
    known = drawn(1, 100)
    assert known.held_out is not None
    other = replace(known, held_out=[dict.fromkeys(of, 0) for of in known.held_out])
    with results_remembered():
        one, two = (level_of("rlip:1.0,0.05", channel_of(some), some.inputs, known=some) for some in (known, other))
    assert one.nats < two.nats


def test_what_is_not_decided_is_refused() -> None:
    known = drawn(3)
    assert known.held_out is not None
    for text in ("ralip:1.0,1.0,0.05", "rldp:1.0,0.05", "rpml:1.0,0.05", "rsrlip:1.0,0.05", "rattribute:1.0,0.05"):
        with pytest.raises(SpecError, match="is not decided between parts of classes"):
            level_of(text, channel_of(known), known.inputs, known=known)
    with pytest.raises(SpecError, match="where the secret is published"):
        worst_in_population(replace(known, weights=[list(row) * 2 for row in known.weights]), ALPHA)
    first = known.held_out[0]
    for held_out in (
        None,
        known.held_out[1:],
        [{name: number for name, number in list(of.items())[1:]} for of in known.held_out],
        [{**of, "9": 0} for of in known.held_out],
        [dict.fromkeys(first, 10_000), *known.held_out[1:]],
        [dict.fromkeys(first, -1), *known.held_out[1:]],
    ):
        with pytest.raises(DataError, match="held out"):
            worst_in_population(replace(known, held_out=held_out), ALPHA)


def made(known: KnownValues, alpha: Fraction, weights: np.ndarray) -> tuple[list[list[tuple[int, int]]], float | None]:
    """Limits and the largest change as those who make a release find them."""
    names = [*by_class(known)[0]]
    held_out = np.array([[of[name] for name in names] for of in known.held_out or ()])
    class_of = np.array([names.index(part.split(".")[0]) for (part,) in known.inputs])
    people = np.zeros((1, len(known.inputs)), dtype=np.int64)
    classes = Alphabet(("record_class",), tuple((name,) for name in names))
    parts = ClassParts(classes, class_of, people, ((("place", "here"),),), held_out)
    joint = Joint.from_counts(np.array(known.counts), inputs=Alphabet(("record_class",), known.inputs))
    found = ClassLimits.of(replace(joint, parts=parts), float(alpha))
    limits = [
        list(zip(low, high, strict=True)) for low, high in zip(found.lower.tolist(), found.upper.tolist(), strict=True)
    ]
    return limits, found.worst(weights).ratio


def agrees(known: KnownValues, alpha: Fraction, seed: int) -> bool:
    """Whether those who make a release and those who judge it find the same."""
    a = len(known.inputs)
    random = np.random.default_rng(seed)
    weights = integer_weights(random.dirichlet(np.full(a, 0.7), a).T)
    asked = replace(known, weights=weights.tolist(), denominator=DENOMINATOR_OF_RELEASES)
    limits = class_limits(by_class(known), known.held_out, alpha)
    return made(known, alpha, weights) == (limits, worst_in_population(asked, alpha).value)


@pytest.mark.parametrize("seed", range(40))
def test_those_who_make_a_release_find_the_same(seed: int) -> None:
    for times in (1, 30):
        assert agrees(drawn(seed, times), ALPHA, seed)


LINES = {
    "a level for each limit": ("tail = Fraction(alpha) / (2 * counted.size)", "tail = Fraction(alpha) / 2"),
    "limits of one class": (
        "tail = Fraction(alpha) / (2 * counted.size)",
        "tail = Fraction(alpha) / (2 * len(counted))",
    ),
    "lower limits as they are": ("np.minimum(lower, of_class * UNIT // people)", "lower"),
    "upper limits as they are": ("np.maximum(upper, -(-of_class * UNIT // people))", "upper"),
    "of all records": ("counted, of_class = parts.held_out,", "counted, of_class = joint.by_class.counts,"),
    "beliefs that rise alone": ("for upward in (True, False):", "for upward in (True,):"),
    "beliefs that fall alone": ("for upward in (True, False):", "for upward in (False,):"),
    "the wrong side of the threshold": (", reverse=upward)", ", reverse=not upward)"),
    "parts of the class after theirs": ("            parts.class_of,", "            np.roll(parts.class_of, 1),"),
    "parts of one size": ("            joint.counts.sum(axis=0),", "            joint.counts.sum(axis=0) * 0 + 7,"),
    "classes of nobody for certain": ("if n else (0, UNIT)", "if n else (0, 0)"),
}


@pytest.mark.parametrize("line", LINES)
def test_a_changed_line_of_those_who_make_it_is_noticed(line: str) -> None:
    with patched(Patch("funnel.guarantees.class_limits", *LINES[line])):
        assert not all(agrees(drawn(seed, times), ALPHA, seed) for seed in range(40) for times in (1, 30))
