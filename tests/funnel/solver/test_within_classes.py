"""The best channel that reads the secret only within classes: against the whole programme with that as equations."""

from __future__ import annotations

import itertools
import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import funnel
from funnel.alphabet import CLASS_COLUMN, Alphabet
from funnel.bounds import Bounds
from funnel.errors import SolverError
from funnel.joint import FloatArray, Joint
from funnel.solver import within_classes as module
from funnel.solver.invariant import counted


@st.composite
def joints(draw: st.DrawFn) -> Joint:
    """A secret of two or three values and two to four classes, some of which lack a secret."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    c, k = draw(st.integers(2, 3)), draw(st.integers(2, 4))
    counts = random.integers(0, 40, (c, k))
    counts[0] += 1
    counts[1:, 1] *= draw(st.integers(0, 1))
    classes = Alphabet((CLASS_COLUMN,), tuple((str(j),) for j in range(k)))
    return Joint.from_counts(counts + np.eye(c, k, dtype=np.int64), inputs=classes).with_secret()


def by_equations(joint: Joint, epsilon: float, worth: FloatArray) -> float:
    """The optimum over all T(y|x), one variable each, where moves are asked by equations not to read the secret."""
    seen = np.flatnonzero(joint.p_input)
    n, distribution, most = len(seen), joint.p_input[seen], math.exp(epsilon)
    symbols = [joint.inputs.symbols[x] for x in seen]
    of_class = [x[-1] for x in symbols]
    at = {(y, x): y * n + x for y in range(n) for x in range(n)}

    def row(*entries: tuple[tuple[int, int], float]) -> FloatArray:
        out = np.zeros(n * n)
        for place, value in entries:
            out[at[place]] += value
        return out

    equal = [row(*(((y, x), 1.0) for y in range(n))) for x in range(n)]
    equal += [row(*(((y, x), distribution[x]) for x in range(n))) for y in range(n)]
    sums = [1.0] * n + list(distribution)
    below, limits = [], []
    for y, x, other in itertools.product(range(n), repeat=3):
        if of_class[x] == of_class[other] != of_class[y] and x < other:
            equal.append(row(((y, x), 1.0), ((y, other), -1.0)))
            sums.append(0.0)
        if of_class[x] == of_class[other] and x != other:
            below.append(row(((y, x), 1.0), ((y, other), -most)))
            limits.append(0.0)
    prior = joint.p_secret
    for y, s in itertools.product(range(n), range(len(prior))):
        mass = [((y, x), joint.counts[s, seen[x]] / joint.n) for x in range(n)]
        for sign, limit in ((1.0, most), (-1.0, -1 / most)):
            below.append(row(*((place, sign * value) for place, value in mass)))
            limits.append(limit * prior[s] * distribution[y])
    gain = row(*(((x, x), worth[x]) for x in range(n)))
    found = linprog(-gain, np.array(below), limits, np.array(equal), sums, bounds=(0, 1), method="highs")
    assert found.status == 0
    return float(-found.fun)


def with_noise(joint: Joint) -> Joint:
    """The same counts, each known to 2."""
    c, a = joint.counts.shape
    counts = joint.counts.reshape(c, c, a // c)[np.arange(c), np.arange(c)]
    totals = np.column_stack([counts.sum(axis=1), counts.sum(axis=1)])
    bounds = Bounds(np.maximum(counts - 2, 0), counts + 2, totals, 0.01).with_secret()
    return Joint(joint.counts, joint.secret, joint.inputs, bounds)


def class_moves(joint: Joint, protocol: funnel.Protocol) -> FloatArray:
    """P(h | s, g) of secrets s and classes g that occur together, NaN elsewhere; shape (k, c, k)."""
    c, a = joint.counts.shape
    moves = protocol.matrix.reshape(c, a // c, c, a // c).sum(axis=0)
    return np.where(joint.p_input.reshape(c, a // c) > 0, moves, np.nan)


@settings(max_examples=25, deadline=None)
@given(joints(), st.sampled_from([0.3, 1.0, 2.0]), st.sampled_from(["root", "share"]))
def test_it_is_the_best_of_its_kind_and_its_bound_is_that(joint: Joint, epsilon: float, weights: str) -> None:
    guarantee = funnel.Attribute(epsilon)
    found = funnel.optimal(joint, guarantee, utility="unchanged", weights=weights, gap=1e-6)  # type: ignore[arg-type]
    best = by_equations(joint, epsilon, counted(joint, weights)[joint.p_input > 0])  # type: ignore[arg-type]
    assert found.utility == pytest.approx(best, abs=2e-6)
    assert best - 1e-7 <= found.bound <= found.utility + 1e-6
    moves = class_moves(joint, found.protocol)
    assert np.nanmax(np.nanmax(moves, axis=1) - np.nanmin(moves, axis=1)) <= 1e-9
    assert found.protocol.inputs == found.protocol.outputs


@settings(max_examples=10, deadline=None)
@given(joints(), st.sampled_from([funnel.RAttribute(0.8, 0.05), funnel.Attribute(0.8)]), st.booleans())
def test_bounds_over_sets_hold_and_no_move_reads_the_secret(
    joint: Joint, guarantee: funnel.Guarantee, is_noisy: bool
) -> None:
    if is_noisy:
        joint = with_noise(joint)
    found = funnel.optimal(joint, guarantee, utility="unchanged", gap=1e-3)
    assert guarantee.holds(joint, found.protocol)
    assert found.gap <= 1e-3
    moves = class_moves(joint, found.protocol)
    assert np.nanmax(np.nanmax(moves, axis=1) - np.nanmin(moves, axis=1)) <= 1e-9


def test_moves_that_read_the_secret_would_keep_more() -> None:
    """The bound is on channels of this kind alone: what else there is keeps more, and tables of columns off."""
    counts = np.array([[300, 150, 40], [20, 100, 250]])
    classes = Alphabet((CLASS_COLUMN,), (("1",), ("2",), ("3",)))
    kept = [
        funnel.optimal(
            Joint.from_counts(counts, inputs=inputs).with_secret(), funnel.Attribute(1.0), utility="unchanged", gap=1e-7
        )
        for inputs in (classes, Alphabet(("column",), classes.symbols))
    ]
    assert kept[0].bound < kept[1].utility


def test_a_programme_that_fails_is_an_error_and_one_that_takes_too_long_the_constant_channel() -> None:
    classes = Alphabet((CLASS_COLUMN,), (("1",), ("2",), ("3",)))
    joint = Joint.from_counts([[300, 150, 40], [20, 100, 250]], inputs=classes).with_secret()
    with mock.patch.object(module, "sparse_programme", return_value=None), pytest.raises(SolverError, match="failed"):
        funnel.optimal(joint, funnel.Attribute(1.0), utility="unchanged")
    short = funnel.optimal(joint, funnel.Attribute(1.0), utility="unchanged", time_limit=1e-6)
    assert short.status == "time limit"
    assert short.utility < short.bound
    assert funnel.Attribute(1.0).holds(joint, short.protocol)
