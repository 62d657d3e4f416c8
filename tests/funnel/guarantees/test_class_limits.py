"""Bounds in the population between parts of classes: by every corner of the limits, and by limits worked out again."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from funnel.alphabet import Alphabet
from funnel.class_parts import ClassParts
from funnel.errors import InfeasibleGuarantee, SpecError
from funnel.guarantees import LIP, RLIP, parse_guarantee
from funnel.guarantees.binomial_limits import UNIT
from funnel.guarantees.class_limits import ClassLimits
from funnel.joint import Joint
from funnel.progress import quiet
from funnel.protocol import DENOMINATOR
from funnel.rounding import integer_weights
from funnel.solver.part_programme import best_moves

ALPHA = 0.05


def parts_of(random: np.random.Generator, secrets: int = 2, classes: int = 3, parts: int = 5) -> Joint:
    """Records of parts of classes, of which about a half are held out."""
    class_of = np.sort(np.append(np.arange(classes), random.integers(classes, size=parts - classes)))
    given = random.dirichlet(np.ones(secrets) * 2, size=classes)
    counts = np.stack([random.multinomial(random.integers(150, 900), given[of]) for of in class_of], axis=1)
    held_out = random.binomial(counts, 0.5)
    of_class = np.zeros((secrets, classes), dtype=np.int64)
    np.add.at(of_class.T, class_of, held_out.T)
    people = random.binomial(counts.sum(axis=0), 0.3)[np.newaxis]
    alphabet = Alphabet(("record_class",), tuple((f"{of}.{k}",) for k, of in enumerate(class_of)))
    named = Alphabet(("record_class",), tuple((str(k),) for k in range(classes)))
    secret = Alphabet(("s",), tuple((str(k),) for k in range(secrets)))
    return Joint(counts, secret, alphabet, parts=ClassParts(named, class_of, people, ((("c", "v"),),), of_class))


def by_corners(joint: Joint, weights: np.ndarray, limits: ClassLimits) -> float:
    """The largest |log| of a belief after a record over the one before, over all corners of the limits."""
    sizes = joint.counts.sum(axis=0)
    flows = weights.astype(object) * sizes.astype(object)
    worst = 0.0
    for row in flows[flows.any(axis=1)]:
        after = [int(row[limits.class_of == h].sum()) for h in range(len(limits.of_class))]
        for low, high in zip(limits.lower.tolist(), limits.upper.tolist(), strict=True):
            for shares in product(*zip(low, high, strict=True)):
                over = sum(a * q for a, q in zip(after, shares, strict=True)) * int(sizes.sum())
                under = sum(int(n) * q for n, q in zip(limits.of_class, shares, strict=True)) * sum(after)
                if over and under:
                    worst = max(worst, abs(math.log(Fraction(over, under))))
                elif over or under:
                    return math.inf
    return worst


def channel(random: np.random.Generator, size: int) -> np.ndarray:
    matrix = random.dirichlet(np.ones(size) * 0.4, size=size).T + np.eye(size) * random.uniform(0, 3)
    return integer_weights(matrix / matrix.sum(axis=0))


@pytest.mark.parametrize("seed", range(30))
def test_a_level_is_the_worst_of_all_corners(seed: int) -> None:
    random = np.random.default_rng(seed)
    joint = parts_of(random, secrets=2 + seed % 2, classes=2 + seed % 3)
    limits, weights = ClassLimits.of(joint, ALPHA), channel(random, 5)
    level = RLIP(1.0, ALPHA).level_for(joint, weights)
    assert level.value == pytest.approx(by_corners(joint, weights, limits), rel=1e-12)
    for budget in (level.value * 1.0001, level.value * 0.9999):
        holds = RLIP(budget, ALPHA).holds_for(joint, weights)
        assert holds is (budget > level.value)
        assert holds is not bool(limits.broken(weights, budget))
    # The shares by all counts are within the limits, so that what holds in the population holds for these.
    assert LIP(1.0).level_for(joint, weights).value <= level.value


def test_limits_are_those_of_clopper_and_pearson_and_hold_the_counts_of_all() -> None:
    joint = parts_of(np.random.default_rng(1))
    limits, parts = ClassLimits.of(joint, ALPHA), joint.parts
    assert parts is not None
    assert parts.held_out is not None
    tail = ALPHA / (2 * parts.held_out.size)
    of_class = joint.by_class.counts / joint.by_class.counts.sum(axis=0)
    for (s, h), count in np.ndenumerate(parts.held_out):
        n, low, high = parts.held_out[:, h].sum(), limits.lower[s, h] / UNIT, limits.upper[s, h] / UNIT
        assert low <= of_class[s, h] <= high
        if low < of_class[s, h] - 1e-6:
            assert binom.sf(count - 1, n, low) == pytest.approx(tail, rel=1e-4)
        if high > of_class[s, h] + 1e-6:
            assert binom.cdf(count, n, high) == pytest.approx(tail, rel=1e-4)
    # Fewer are held out: more is left open, and of a class without any all is.
    fewer = replace(joint, parts=replace(parts, held_out=parts.held_out // 4))
    wider = ClassLimits.of(fewer, ALPHA)
    assert (wider.upper - wider.lower > limits.upper - limits.lower).all()
    none = replace(joint, parts=replace(parts, held_out=parts.held_out * np.array([0, 1, 1])))
    assert (ClassLimits.of(none, ALPHA).lower[:, 0] == 0).all()
    assert (ClassLimits.of(none, ALPHA).upper[:, 0] == UNIT).all()


@pytest.mark.parametrize("seed", range(12))
def test_the_programme_is_within_the_bound_and_nothing_with_all_corners_leaves_more(seed: int) -> None:
    """Beside the whole programme: balance, and a row for every corner of the limits, solved at once by scipy."""
    from scipy.optimize import linprog

    random = np.random.default_rng(100 + seed)
    joint = parts_of(random, secrets=2, classes=2 + seed % 2, parts=4)
    guarantee = parse_guarantee(f"rlip:{random.uniform(0.2, 1.2):.3f},{ALPHA}")
    limits = ClassLimits.of(joint, ALPHA)
    sizes, size = joint.counts.sum(axis=0).astype(float), 4
    prior, budget = limits.of_class / sizes.sum(), guarantee.budget
    rows = []
    for low, high in zip(limits.lower / UNIT, limits.upper / UNIT, strict=True):
        for shares in product(*zip(low, high, strict=True)):
            before, tells = float(prior @ shares), np.array(shares)[limits.class_of]
            for y in range(size):
                for one in (tells - math.exp(budget) * before, math.exp(-budget) * before - tells):
                    row = np.zeros((size, size))
                    row[y] = one
                    rows.append(row.ravel())
    every = np.eye(size)
    equations = [np.kron(np.ones(size), every[h]) for h in range(size)] + [
        np.kron(every[k], np.ones(size)) for k in range(size)
    ]
    found = linprog(
        -every.ravel(), np.array(rows), np.zeros(len(rows)), np.array(equations), np.concatenate([sizes, sizes])
    )
    if found.status == 2:
        with pytest.raises(InfeasibleGuarantee):
            best_moves(joint, guarantee, quiet)
        return
    moves = best_moves(joint, guarantee, quiet)
    assert guarantee.holds_for(joint, moves.weights)
    assert moves.unchanged <= moves.bound <= moves.unchanged + 1e-5
    assert moves.unchanged == pytest.approx(-found.fun / sizes.sum(), abs=1e-5)
    assert (moves.weights.sum(axis=0) == DENOMINATOR).all()


def test_nothing_is_promised_of_the_population_without_held_out_records() -> None:
    joint = parts_of(np.random.default_rng(2))
    assert joint.parts is not None
    without = replace(joint, parts=replace(joint.parts, held_out=None))
    for act in (
        lambda: RLIP(1.0).level_for(without, channel(np.random.default_rng(3), 5)),
        lambda: best_moves(without, RLIP(1.0), quiet),
    ):
        with pytest.raises(SpecError, match="write held_out"):
            act()
    with pytest.raises(SpecError, match="do not fit the counts"):
        replace(joint, parts=replace(joint.parts, held_out=joint.by_class.counts + 1))
