"""The rows of histories against programmes solved by scipy one by one: optimal, within bounds, within the conditions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from funnel import ALIP, LDP, LIP, PerfectPrivacy, SolverError
from funnel.history import programme, tangent
from funnel.history.conditions import Conditions, binding_rows
from funnel.history.programme import Rows, best_rows
from funnel.solver.budget import Budget

GUARANTEES = [LIP(0.3), LIP(1.0), ALIP(0.4, 0.9), LDP(0.7), LDP(0.0), PerfectPrivacy()]


def by_hand(law: np.ndarray, mass: np.ndarray, cone: np.ndarray, gains: np.ndarray) -> float:
    """The best value of one history: the conditions as they are written, for a solver that knows nothing of them."""
    outputs, inputs = gains.shape
    given_inputs, posteriors = law.sum(axis=0), cone @ law
    limits = posteriors - np.maximum(posteriors.sum(axis=1), 0)[:, None] * given_inputs
    answer = linprog(
        -(gains * mass).ravel(),
        A_ub=np.kron(np.eye(outputs), limits),
        b_ub=np.zeros(outputs * len(cone)),
        A_eq=np.kron(np.ones(outputs), np.eye(inputs)),
        b_eq=np.ones(inputs),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert answer.status == 0, answer.message
    return float(-answer.fun)


def violation(law: np.ndarray, cone: np.ndarray, channel: np.ndarray) -> float:
    """How far any output is beyond any condition, relatively to the numbers that are compared."""
    posteriors, sizes = cone @ law, np.abs(cone) @ law
    made = channel @ law.sum(axis=0)
    beyond = channel @ posteriors.T - np.outer(made, np.maximum(posteriors.sum(axis=1), 0))
    scale = channel @ sizes.T
    return float((beyond[made > 0] / np.maximum(scale[made > 0], 1e-300)).max(initial=0.0))


def case(seed: int, members: int, c: int, a: int, b: int, apart: float, zeros: float = 0.0) -> dict[str, Any]:
    """Histories with laws around a common one: priors, masses and gains; some of them moved where they are apart."""
    rng = np.random.default_rng(seed)
    common = rng.dirichlet(np.ones(c * a)).reshape(c, a)
    noise = rng.dirichlet(np.full(c * a, 0.5), size=members).reshape(members, c, a)
    laws = (1 - apart) * common + apart * noise
    laws *= rng.random(laws.shape) >= zeros
    laws += (laws.sum(axis=(1, 2)) == 0)[:, None, None]
    laws /= laws.sum(axis=(1, 2), keepdims=True)
    shares = rng.dirichlet(np.ones(members))
    return {
        "laws": laws,
        "masses": shares[:, None] * laws.sum(axis=1),
        "prior_of": np.zeros(members, dtype=np.int64),
        "gains": np.log(np.maximum(rng.dirichlet(np.full(b, 0.3), size=a).T, 5e-4)),
        "prior": common.sum(axis=1),
    }


def solved(given_case: dict[str, Any], guarantee: Any, **options: Any) -> tuple[Rows, np.ndarray]:
    cone = guarantee.posterior_cone(given_case["prior"])
    arguments = (given_case[name] for name in ("laws", "masses", "prior_of"))
    return best_rows(*arguments, [cone], given_case["gains"], **options), cone


def check(rows: Rows, given_case: dict[str, Any], cone: np.ndarray) -> np.ndarray:
    """What holds for any answer; returns the best value of every history, computed by hand."""
    assert (rows.library >= 0).all()
    assert rows.library.sum(axis=1) == pytest.approx(1, abs=1e-13)
    assert sorted(set(rows.assigned.tolist())) == list(range(len(rows.library)))
    best = []
    for h, (law, mass) in enumerate(zip(given_case["laws"], given_case["masses"], strict=True)):
        channel = rows.library[rows.assigned[h]]
        assert violation(law, cone, channel) <= 1.001e-10
        assert (channel * given_case["gains"] * mass).sum() == pytest.approx(rows.values[h], abs=1e-12)
        best.append(by_hand(law, mass, cone, given_case["gains"]))
    assert (rows.values <= rows.bounds + 1e-12).all()
    assert (np.array(best) <= rows.bounds + 1e-8).all()
    assert rows.value == pytest.approx(rows.values.sum())
    assert rows.bound == pytest.approx(rows.bounds.sum())
    return np.array(best)


cases = st.builds(
    case,
    seed=st.integers(0, 2**32 - 1),
    members=st.integers(1, 7),
    c=st.integers(1, 4),
    a=st.integers(1, 5),
    b=st.integers(1, 5),
    apart=st.sampled_from([0.0, 0.05, 0.3, 1.0]),
    zeros=st.sampled_from([0.0, 0.0, 0.4]),
)


@settings(max_examples=150)
@given(cases, st.sampled_from(GUARANTEES))
def test_alone_every_history_has_its_optimum(given_case: dict[str, Any], guarantee: Any) -> None:
    rows, cone = solved(given_case, guarantee)
    best = check(rows, given_case, cone)
    assert rows.values == pytest.approx(best, abs=1e-8)
    assert rows.bounds == pytest.approx(best, abs=1e-8)


@settings(max_examples=100)
@given(cases, st.sampled_from(GUARANTEES), st.integers(1, 6))
def test_shared_channels_keep_the_conditions_of_every_member(
    given_case: dict[str, Any], guarantee: Any, channels: int
) -> None:
    rows, cone = solved(given_case, guarantee, channels=channels)
    best = check(rows, given_case, cone)
    assert (rows.values <= best + 1e-8).all()
    assert rows.programmes <= channels
    constants = given_case["masses"] @ given_case["gains"].T
    assert (rows.values >= constants.max(axis=1) - 1e-12).all()
