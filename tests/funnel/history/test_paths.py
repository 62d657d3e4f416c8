"""Paths: exact sums, one word that draws all versions, and a joint level that brute force agrees with."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import exp, inf, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel import LDP, LIP, Joint
from funnel.errors import SpecError
from funnel.history.schedule import Paths
from funnel.protocol import DENOMINATOR, WeightArray, exact_sums
from funnel.rounding import integer_weights
from tests.strategies import joints


@st.composite
def channels(draw: st.DrawFn, a: int) -> WeightArray:
    b = draw(st.integers(1, 3))
    cells = st.one_of(st.just(0.0), st.floats(1e-6, 1), st.just(1.0))
    matrix = np.array(draw(st.lists(st.lists(cells, min_size=a, max_size=a), min_size=b, max_size=b)))
    matrix[0] += matrix.sum(axis=0) == 0
    return integer_weights(matrix / matrix.sum(axis=0))


@st.composite
def three_versions(draw: st.DrawFn) -> tuple[Paths, Paths, Paths]:
    joint = draw(joints(max_secrets=3, max_inputs=3))
    a = len(joint.inputs)
    first = Paths.of(joint, draw(channels(a)))
    second = first.extended([draw(channels(a)) for _ in first.histories])
    return first, second, second.extended([draw(channels(a)) for _ in second.histories])


@given(three_versions())
@settings(max_examples=60, deadline=None)
def test_the_weights_of_a_paths_continuations_add_up_to_its_own(versions: tuple[Paths, Paths, Paths]) -> None:
    for before, after in pairwise(versions):
        assert exact_sums(after.weights) == [DENOMINATOR] * len(after.joint.inputs)
        for history, row in zip(before.histories, before.weights, strict=True):
            below = [place for place, longer in enumerate(after.histories) if longer[:-1] == history]
            assert exact_sums(after.weights[below]) == [int(weight) for weight in row]


@given(three_versions(), st.integers(0, DENOMINATOR - 1))
@settings(max_examples=60, deadline=None)
def test_one_word_draws_each_version_as_a_continuation_of_the_one_before(
    versions: tuple[Paths, Paths, Paths], word: int
) -> None:
    for x in range(len(versions[0].joint.inputs)):
        drawn = [paths.histories[_drawn(paths.weights[:, x], word)] for paths in versions]
        assert drawn[2][:2] == drawn[1]
        assert drawn[1][:1] == drawn[0]


def _drawn(weights: WeightArray, word: int) -> int:
    total = 0
    for place, weight in enumerate(weights.tolist()):
        total += weight
        if word < total:
            return place
    raise AssertionError("weights sum to less than the words")


@given(three_versions())
@settings(max_examples=60, deadline=None)
def test_the_joint_level_is_that_of_every_path_by_the_definition(versions: tuple[Paths, Paths, Paths]) -> None:
    paths = versions[2]
    worst = Fraction(1)
    infinite = False
    counts = paths.joint.counts
    sizes = [int(row.sum()) for row in counts]
    for weights in paths.weights.tolist():
        mass = [sum(int(n) * w for n, w in zip(row, weights, strict=True)) for row in counts]
        whole = Fraction(sum(mass), paths.joint.n)
        if not whole:
            continue
        for part, size in zip(mass, sizes, strict=True):
            if size and part:
                worst = max(worst, Fraction(part, size) / whole, whole / Fraction(part, size))
            infinite |= bool(size) and not part
    level = LIP(1.0).level_for(paths.joint, paths.weights).value
    assert level == inf if infinite else level == pytest.approx(log(worst), rel=1e-12, abs=1e-14)
    assert paths.holds(LIP(0.7)) == (not infinite and log(worst) <= 0.7)


def test_independent_draws_reach_the_level_of_the_product_of_their_channels() -> None:
    joint = Joint.from_counts([[30, 10], [10, 50]])
    first = funnel.fit("grr", joint, LDP(0.5)).weights
    twice = Paths.of(joint, first).extended([first, first])
    again = Paths.of(joint, first).extended([np.full((1, 2), DENOMINATOR, dtype=np.uint64)] * 2)
    # A constant says nothing more; a fresh draw does.
    bound = LDP(0.5)
    assert bound.level_for(joint, again.weights).value == bound.level_for(joint, first).value
    q = first.astype(float) / DENOMINATOR
    given_secret = joint.input_given_secret
    product = np.einsum("yx,zx,sx->yzs", q, q, given_secret).reshape(-1, 2)
    assert exp(bound.level_for(joint, twice.weights).value) == pytest.approx(
        max(product[:, 0] / product[:, 1]), rel=1e-9
    )


def test_the_protocol_of_the_last_version_is_that_of_its_weights() -> None:
    joint = Joint.from_counts([[3, 1], [1, 5]])
    half = np.array([[2**62, 0], [2**62, 2**63]], dtype=np.uint64)
    paths = Paths.of(joint, half).extended([half, half])
    assert paths.histories == ((0, 0), (0, 1), (1, 0), (1, 1))
    assert (paths.last.weights == half).all()


def test_channels_that_are_none_are_refused() -> None:
    half = np.full((2, 2), 2**62, dtype=np.uint64)
    paths = Paths.of(Joint.from_counts([[3, 1], [1, 5]]), half)
    with pytest.raises(SpecError, match=r"sum to exactly 2\^63"):
        paths.extended([half, half - np.uint64(1)])
