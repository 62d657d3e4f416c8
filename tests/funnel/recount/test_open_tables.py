"""What noise leaves open of histories, limited twice: shares and sums by brute force, and both computations alike."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from funnel.bounds import Bounds
from funnel.frequencies.limits import moves_limit
from funnel.frequencies.moves import Moves, NoisyMoves
from funnel.frequencies.noise import Noise
from funnel.guarantees import parse_guarantee
from funnel.history.allowed import allowed_by
from funnel.history.changes import MoveLimits
from funnel.history.open_shares import shares_in_population, shares_under_noise
from funnel.history.possible import PossibleStep, Reach
from funnel.history.worst_tables import worst, worst_after
from funnel.joint import Joint
from funnel.recount.count_box import ONE, extreme, largest_sum, sampled_shares, shares_of
from funnel.recount.left_open import OpenTables
from funnel.recount.noisy_moves import NoisyChanges, Since
from funnel.recount.open_tables import _Begun, _Reach, _Step, _tail_of_changes
from funnel.recount.promise import read_promise
from funnel.recount.ratios import sides_of
from tests.funnel.history.test_possible import alphabets

NUMBERS = st.integers(0, 30)


@given(st.lists(st.tuples(NUMBERS, NUMBERS, st.integers(-30, 30)), min_size=1, max_size=5), st.integers(0, 100))
@settings(max_examples=120, deadline=None)
def test_weights_of_either_sign_have_a_price_too(cells: list[tuple[int, int, int]], wide: int) -> None:
    limits = [(min(low, high), max(low, high)) for low, high, _ in cells]
    weights = [weight for _, _, weight in cells]
    ends = [sum(one) for one in zip(*limits, strict=True)]
    least = ends[0] + (ends[1] - ends[0]) * (wide % 7) // 7
    most = min(ends[1], least + wide)
    best = linprog(
        -np.array(weights),
        A_ub=np.array([[1] * len(weights), [-1] * len(weights)]),
        b_ub=[most, -least],
        bounds=limits,
    )
    assert largest_sum(weights, limits, (least, most)) == pytest.approx(-best.fun, abs=1e-6)


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=5), st.integers(0, 100), st.integers(0, 60))
@settings(max_examples=120, deadline=None)
def test_the_price_that_is_tried_proves_the_optimum(cells: list[tuple[int, int, int]], least: int, wide: int) -> None:
    limits = [(min(low, high), max(low, high)) for low, high, _ in cells]
    weights = [weight for _, _, weight in cells]
    least = min(max(least, sum(low for low, _ in limits)), sum(high for _, high in limits))
    most = least + wide
    for sign in (1, -1):
        best = linprog(
            -sign * np.array(weights),
            A_ub=np.array([np.ones(len(cells)), -np.ones(len(cells))]),
            b_ub=[most, -least],
            bounds=limits,
        )
        assert extreme(weights, limits, (least, most), sign) == pytest.approx(-sign * best.fun, abs=1e-6)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=4))
@settings(max_examples=60, deadline=None)
def test_shares_are_those_of_some_corner(pairs: list[tuple[int, int]]) -> None:
    counts = [(min(pair), max(pair)) for pair in pairs]
    corners = [one for one in product(*counts) if sum(one)]
    found = shares_of(counts)
    if any(not sum(one) for one in product(*counts)):
        assert found == [(0, ONE)] * len(counts)
        return
    for place, (low, high) in enumerate(found):
        shares = [Fraction(one[place], sum(one)) for one in corners]
        assert 0 <= min(shares) - Fraction(low, ONE) < Fraction(2, ONE)
        assert 0 <= Fraction(high, ONE) - max(shares) < Fraction(2, ONE)


def test_shares_with_a_known_sum_are_no_wider_than_without() -> None:
    counts = [(5, 20), (0, 9), (3, 3)]
    free, known = shares_of(counts), shares_of(counts, (8, 12))
    assert all(a <= c <= d <= b for (a, b), (c, d) in zip(free, known, strict=True))
    # All others are seven at most, and three at least.
    assert known[0] == (ONE * 5 // 12, -(-ONE * 20 // 23))
    assert free[0][0] == ONE * 5 // 17


@pytest.mark.parametrize("alpha", [None, Fraction(1, 20)], ids=["noise", "population"])
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_both_computations_limit_the_same(alpha: Fraction | None, data: st.DataObject) -> None:
    c, a = data.draw(st.integers(2, 3)), data.draw(st.integers(2, 4))

    def table(shape: tuple[int, ...], least: int = 0, most: int = 400) -> np.ndarray:
        size = int(np.prod(shape))
        return np.array(data.draw(st.lists(st.integers(least, most), min_size=size, max_size=size))).reshape(shape)

    noisy = table((c, a), -5)
    noisy[:, 0] = np.maximum(noisy[:, 0], 60)
    moves = Moves("w", table((c, c), -5), table((c, 1), -5), table((c, 1), -5))
    noise = Noise(1.0, 0.0, 0.01)
    opened = OpenTables(
        Fraction(noise.beta),
        tuple(map(tuple, noisy.tolist())),
        noise.epsilon,
        NoisyChanges(
            0.5,
            4.0,
            (Since("w", *(tuple(map(tuple, one.tolist())) for one in (moves.secrets, moves.stayed, moves.left))),),
        ),
    )
    changes = NoisyMoves(0.5, (moves,))
    tables = opened.tables
    assert tables.most == moves_limit(changes.counts, changes.scale, noise.beta)
    box = tables.counts
    limited = Bounds(*(np.array(getattr(box, name)) for name in ("lower", "upper", "totals")), noise.beta)
    joint = Joint(np.maximum(noisy, 0), *alphabets(c, a), limited)
    limits: MoveLimits = moves.limits(tables.most)
    # The second version of a register, since the first one.
    shares = shares_under_noise(joint, limits) if alpha is None else shares_in_population(joint, limits, 2, alpha)
    first = PossibleStep(joint, shares, joint)

    begun = _Begun(tables, 1, alpha)
    limited_shares = shares_of if alpha is None else partial(sampled_shares, tail=_tail_of_changes(alpha, 1, c, c))
    second = _Step.since(tables.since["w"], tables.most, limited_shares, begun.inputs, range(a))
    scale = 1 if alpha is None else ONE
    for one, other in (("cells", begun.cells), ("totals", begun.sums)):
        limits_found = np.moveaxis(getattr(shares, one), 0, -1)
        assert limits_found == pytest.approx(np.array(other, dtype=object).astype(float) / scale, rel=1e-12)
    low, high = np.sort(np.stack([table((c, a)), table((c, a), 1)]), axis=0)
    high = np.maximum(high, 1)
    row = table((a,), 0, 9) + np.eye(a, dtype=int)[0]
    reach = Reach(
        low[None] / 1.0, high[None] / 1.0, low.sum(axis=1)[None] / 1.0, high.sum(axis=1)[None] / 1.0, np.ones(1, bool)
    )
    told = first.told(reach, row[None] / 1.0)
    cells = [list(zip(lows, highs, strict=True)) for lows, highs in zip(low.tolist(), high.tolist(), strict=True)]
    sums = [(sum(lows), sum(highs)) for lows, highs in zip(low.tolist(), high.tolist(), strict=True)]
    twice = second.told(_Reach(cells, sums), row.tolist())
    for s, (least, most) in enumerate(twice):
        assert told.least[0, s] == pytest.approx(least / ONE**3, rel=1e-9, abs=1e-6)
        assert told.most[0, s] == pytest.approx(most / ONE**3, rel=1e-9, abs=1e-6)
    for bound in ("lip:1.5", "ldp:3.0", "alip:1.0,2.0", "lip:0.4", "pml:0.5"):
        found = worst_after(first, reach, row[None] / 1.0, told, allowed_by(parse_guarantee(bound)))
        ratio = found.ratios[0].max()
        assert ratio <= worst(told, first.prior, allowed_by(parse_guarantee(bound))).ratios[0].max() * (1 + 1e-9)
        if abs(ratio - 1) > 1e-6:
            assert second.holds(_Reach(cells, sums), row.tolist(), sides_of(read_promise(bound))) is bool(ratio < 1)
