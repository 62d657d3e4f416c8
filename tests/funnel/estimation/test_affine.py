"""Affine estimates of least cost: those of the equations as they stand, whatever columns of a channel say the same."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.audit.grouped import estimates as again
from funnel.estimation import affine
from funnel.joint import FloatArray

N = 20_000


def dependent(seed: int, a: int, b: int, twins: int, mixed: bool, whole: bool) -> FloatArray:
    """A channel (b, a) with columns that depend on others, told to steps; with ``whole`` nothing is left to others."""
    random = np.random.default_rng(seed)
    rows = np.round(random.dirichlet(np.full(b + 1, 0.4), size=a), 3)
    rows[:, -1] = 1 - rows[:, :-1].sum(axis=1)
    if mixed and a > 2:
        rows[1] = (rows[0] + rows[2]) / 2
    for place in range(min(twins, a - 1)):
        rows[a - 1 - place] = rows[0]
    if whole:
        rows[:, 0] += rows[:, -1]
    return np.asarray(rows[:, :-1].T)


def by_all_equations(
    channel: FloatArray, cost: FloatArray, pull: FloatArray, aim: FloatArray, centre: float, mean: float
) -> FloatArray:
    """Weights and a constant by the equations of all columns, dependent or not, as one system of least squares."""
    b, a = channel.shape
    form = np.zeros((b + 1, b + 1))
    form[:b, :b] = np.diag(cost + pull[:b])
    form[:b, b] = form[b, :b] = pull[:b]
    form[b, b] = pull.sum() - centre
    equations = np.vstack([channel, np.ones(a)])
    system = np.block([[form, equations], [equations.T, np.zeros((a, a))]])
    found = scipy.linalg.lstsq(system, np.concatenate([np.zeros(b), [-centre * mean], aim]), cond=1e-13)[0]
    return np.asarray(found[: b + 1])


tables = st.tuples(
    st.integers(0, 2**32 - 1),
    st.integers(1, 6),
    st.integers(1, 9),
    st.integers(0, 2),
    st.booleans(),
    st.booleans(),
)


@settings(max_examples=100)
@given(tables, st.booleans())
def test_makers_and_judges_take_the_least_of_all_that_meet_all_equations(
    table: tuple[int, int, int, int, bool, bool], pulled: bool
) -> None:
    seed, a, b = table[:3]
    channel, random = dependent(*table), np.random.default_rng(seed + 1)
    costs = 10.0 ** random.uniform(-2, 1, size=(a + 1, b))
    pull = np.where(random.random((a + 1, b + 1)) < 0.5, random.random((a + 1, b + 1)), 0.0) * pulled
    # Less than what keeps the whole convex.
    centre = 0.1 * costs.min(axis=1)
    shares = random.dirichlet(np.ones(a))
    aims = np.vstack([np.eye(a), np.ones(a)])
    mean = aims @ shares
    weights, constants = affine._Equations.of(channel, aims).least(np.arange(a + 1), costs, pull, centre, mean)
    judged = again._Met(channel, aims).least(costs, pull, centre, mean)
    met = 0
    for row, aim in enumerate(aims):
        exact = by_all_equations(channel, costs[row], pull[row], aim, float(centre[row]), float(mean[row]))
        off = np.abs(channel.T @ exact[:b] + exact[b] - aim).max()
        if off > 1e-9:
            # No estimate is without bias: neither of both says there is one.
            for found in (np.append(weights[row], constants[row]), judged[row]):
                assert np.abs(channel.T @ found[:b] + found[b] - aim).max() > 1e-6
            continue
        met += 1
        size = max(1.0, float(np.abs(exact).max()))
        assert np.append(weights[row], constants[row]) == pytest.approx(exact, abs=1e-6 * size)
        assert judged[row] == pytest.approx(exact, abs=1e-6 * size)
    # That all shares together are one can always be told.
    assert met >= 1


@settings(max_examples=25)
@given(tables, st.sampled_from([0.0, 0.01]))
def test_what_can_be_told_and_how_long_intervals_are_is_the_same_by_both(
    table: tuple[int, int, int, int, bool, bool], left_out: float
) -> None:
    seed, a, b = table[:3]
    channel, random = dependent(*table), np.random.default_rng(seed + 2)
    shares = random.dirichlet(np.full(a, 2.0))
    slack, beyond = np.full(b, 1e-4), random.random(b) < 0.3
    found = affine.shortest(channel, shares, slack, np.eye(a), N, left_out, beyond)
    half = again._half_lengths(channel, shares, slack, np.eye(a), N, left_out, beyond)
    assert found.told.tolist() == np.isfinite(half).tolist()
    # Columns that are alike are never told apart.
    alike = (np.abs(channel[:, :, None] - channel[:, None, :]).max(axis=0, initial=0.0) < 1e-12).sum(axis=1) > 1
    assert not found.told[alike].any()
    met = found.weights @ channel + found.constants[:, None]
    assert np.abs(met - np.eye(a))[found.told].max(initial=0.0) <= 1e-6 * max(1.0, float(np.abs(found.weights).max()))


@pytest.mark.parametrize("of", ["maker", "judge"])
def test_where_no_text_is_told_a_value_that_all_have_is_known_and_no_other(of: str) -> None:
    nothing, slack = np.zeros((0, 2)), np.zeros(0)
    aims = np.vstack([np.eye(2), np.ones(2)])
    if of == "maker":
        told = affine.shortest(nothing, np.full(2, 0.5), slack, aims, N).told
    else:
        told = np.isfinite(again._half_lengths(nothing, np.full(2, 0.5), slack, aims, N, 0.0, np.zeros(0, np.bool_)))
    assert told.tolist() == [False, False, True]
