"""Protocols for estimates: designs against brute force over masses, their bound, and what they promise exactly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from funnel import LDP, LIP, Joint, fit, optimal, parse_guarantee, protect
from funnel.alphabet import Alphabet
from funnel.estimation.estimation_utility import certain, utility_of_estimates, wanted_shares
from funnel.estimation.expected_errors import expected_errors
from funnel.measures import Estimation
from funnel.mechanisms import names
from funnel.solver.budget import Budget
from funnel.solver.design import optimal_design
from funnel.solver.designed import best_design
from funnel.solver.problem import Problem
from funnel.solver.vertices import enumerate_vertices

SKEWED = Joint.from_counts([[500, 80, 30, 5], [100, 400, 90, 60]])
THREE = Joint.from_counts([[300, 40, 30, 90], [100, 200, 90, 60], [20, 20, 150, 80]])


def brute(vertices: np.ndarray, distribution: np.ndarray, wanted: np.ndarray) -> float:
    """The least sum of variances over masses of all vertices, by a general solver."""
    scaled = vertices / np.sqrt(distribution)

    def value(mass: np.ndarray) -> float:
        information = scaled.T @ (scaled * mass[:, None]) + 1e-12 * np.eye(len(distribution))
        return float((wanted * np.linalg.solve(information, wanted)).sum())

    start = np.full(len(vertices), 1 / len(vertices))
    found = minimize(
        value,
        start,
        method="SLSQP",
        bounds=[(0, 1)] * len(vertices),
        constraints={"type": "eq", "fun": lambda mass: mass @ vertices - distribution},
        options={"maxiter": 500, "ftol": 1e-10},
    )
    return float(found.fun)


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_a_design_is_that_of_brute_force_and_its_bound_says_so(epsilon: float) -> None:
    guarantee = LIP(epsilon)
    problem = Problem.of(SKEWED, guarantee, False, presolve=False)
    vertices = enumerate_vertices(SKEWED, guarantee)
    wanted = wanted_shares(SKEWED.inputs, SKEWED.p_input)
    found = optimal_design(problem.region, wanted, 1e-4, Budget.of(None), vertices)
    assert found.bound is not None
    assert found.bound <= found.value <= found.bound * (1 + 1e-4)
    assert found.value == pytest.approx(brute(vertices, problem.distribution, wanted), rel=1e-3)
    np.testing.assert_allclose(found.mass @ found.posteriors, problem.distribution, atol=1e-12)
    climbed = optimal_design(problem.region, wanted, 1e-4, Budget.of(None))
    assert climbed.bound is None
    assert climbed.value == pytest.approx(found.value, rel=1e-3)


def test_what_is_wanted_are_variances_of_tables() -> None:
    inputs = Alphabet(("x", "n"), tuple((x, n) for x in "ab" for n in "12"))
    joint = Joint(SKEWED.counts, SKEWED.secret, inputs)
    protocol = fit("grr", joint, LIP(0.5))
    wanted, known = wanted_shares(inputs, joint.p_input), certain(inputs, joint.p_input)
    assert (wanted**2).sum() == pytest.approx(1)
    scaled = protocol.matrix * np.sqrt(joint.p_input) / np.sqrt(protocol.matrix @ joint.p_input)[:, None]
    variance = float((wanted * np.linalg.solve(scaled.T @ scaled, wanted)).sum()) - known
    assert utility_of_estimates(joint, protocol) == pytest.approx((1 - known) / variance)
    found = expected_errors(joint, protocol)
    assert found is not None
    per_table = [(joint.n * table.errors**2 + table.shares * (1 - table.shares)).sum() for table in found.tables]
    assert variance == pytest.approx(sum(per_table) / 3)


@pytest.mark.parametrize("joint", [SKEWED, THREE], ids=["two secrets", "three"])
@pytest.mark.parametrize("guarantee", [LIP(0.5), LDP(0.8)], ids=str)
def test_no_mechanism_is_worth_more(joint: Joint, guarantee: LIP | LDP) -> None:
    best = optimal(joint, guarantee, utility="estimation")
    assert guarantee.holds(joint, best.protocol)
    assert best.utility == pytest.approx(utility_of_estimates(joint, best.protocol))
    assert best.utility <= best.bound <= 1
    for name in set(names()) & {"grr", "subset-merging", "watchdog", "optimal"}:
        worth = utility_of_estimates(joint, fit(name, joint, guarantee))
        assert worth is not None
        # A design ends where nothing within a thousandth is left to find.
        assert worth <= best.utility + 2e-3


@settings(max_examples=15)
@given(st.lists(st.lists(st.integers(0, 40), min_size=3, max_size=5), min_size=2, max_size=2), st.floats(0.05, 2))
def test_every_design_meets_the_guarantee_exactly(counts: list[list[int]], epsilon: float) -> None:
    size = min(map(len, counts))
    table = np.array([row[:size] for row in counts])
    table[:, 0] += 1
    joint, guarantee = Joint.from_counts(table), LIP(epsilon)
    best = optimal(joint, guarantee, utility=Estimation(), time_limit=5)
    assert guarantee.holds(joint, best.protocol)
    assert 0 <= best.utility <= best.bound <= 1 + 1e-12


def test_what_may_be_published_as_it_is_is_worth_everything() -> None:
    joint = Joint.from_counts([[50, 50], [50, 50]])
    assert optimal(joint, LIP(0.1), utility="estimation").utility == pytest.approx(1)


def test_without_a_cone_the_most_informative_is_a_candidate_and_nothing_is_proven() -> None:
    guarantee = LIP(0.0)
    assert best_design(SKEWED, guarantee, 1e-3, Budget.of(5.0), lambda worth, bound: None) is None
    found = optimal(SKEWED, guarantee, utility="estimation", time_limit=5)
    assert (found.bound, found.status == "optimal") == (1.0, found.utility > 0.99)
    assert guarantee.holds(SKEWED, found.protocol)


def test_over_noisy_counts_a_design_holds_for_every_table_that_the_noise_leaves() -> None:
    exact = Joint.from_counts(20 * SKEWED.counts)
    noisy, guarantee = protect(exact, epsilon=1.0), LIP(1.0)
    best = optimal(noisy, guarantee, utility="estimation", time_limit=5)
    assert guarantee.holds(noisy, best.protocol)
    assert best.bound == 1
    # Whatever the noise was: the public counts differ from the exact ones by a few of thousands.
    assert best.utility > 0.3


@pytest.mark.parametrize(
    ("bound", "counts"),
    [
        # One allowed posterior is the prior itself, with nothing across it.
        (
            "rlip:1.0,0.05",
            [
                [0, 4, 0, 3, 1, 1, 2, 1, 0, 4, 1],
                [2, 1, 0, 1, 0, 2, 0, 1, 1, 0, 2],
                [0, 4, 0, 0, 0, 0, 1, 2, 0, 0, 1],
                [0, 0, 0, 1, 4, 0, 2, 1, 3, 2, 0],
            ],
        ),
        # Inputs tell the secret, so that no allowed posterior tells all shares of inputs.
        ("lip:0.1", [[2, 0, 0, 0, 0], [0, 0, 20, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 27, 0]]),
    ],
)
def test_distributions_at_an_end_of_what_is_allowed_have_a_protocol_that_holds(
    bound: str, counts: list[list[int]]
) -> None:
    joint, guarantee = Joint.from_counts(counts), parse_guarantee(bound)
    found = optimal(joint, guarantee, utility="estimation", time_limit=1.0)
    assert guarantee.holds(joint, found.protocol)
