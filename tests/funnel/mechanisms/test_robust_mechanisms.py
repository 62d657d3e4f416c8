"""Mechanisms of RLDP: as the paper gives them, calibrated to the true worst case, and below the optimum over F."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import funnel
from funnel import LIP, RLDP, Joint, SpecError, measures
from funnel.guarantees.chi2_ball import extreme_distribution, tilt
from funnel.guarantees.rldp import neighbourhood_of
from funnel.guarantees.worst_case import Neighbourhood, PairRatios, pair_ratios
from funnel.measures.information import information_of
from funnel.mechanisms import mechanism
from funnel.mechanisms.grr import grr_matrix
from funnel.mechanisms.polyopt import polyopt_channel
from funnel.mechanisms.robust_reporting import (
    IndependentReporting,
    RobustConditionalReporting,
    diameter,
    distances,
    least_conditionals,
    spread,
)
from funnel.rounding import integer_weights, rounded_weights
from funnel.solver.budget import UNITS_A_SECOND, Budget

COUNTS = np.array([[90, 320, 20], [212, 37, 61], [94, 19, 147]])


@pytest.fixture(scope="module")
def joint() -> Joint:
    return Joint.from_counts(COUNTS)


def told(joint: Joint, protocol: funnel.Protocol) -> float:
    return measures.mutual_information(joint, protocol, "secret and inputs")


def test_least_conditionals_are_minima_over_the_set(joint: Joint) -> None:
    """RLDP (5) against the χ² ball itself."""
    near = neighbourhood_of(joint.counts, 0.05, joint)
    least = least_conditionals(near)
    for s in range(3):
        divergence = np.array([1 + spread(near)[s]])
        for u in range(3):
            unit = -np.eye(3)[[u]]
            bound = -float(tilt(unit, near.distribution[[s]], divergence).above(divergence)[0])
            assert least[s, u] == pytest.approx(bound, abs=1e-6)


def test_distances_bound_those_over_the_set(joint: Joint) -> None:
    """RLDP (11) and (12): no distribution found in F is further away in the l1 norm."""
    near = neighbourhood_of(joint.counts, 0.05, joint)
    bounds = distances(near)
    for s in range(3):
        for signs in np.ndindex(2, 2, 2):
            distribution = extreme_distribution(
                2.0 * np.array(signs) - 1, near.distribution[s], float(1 + spread(near)[s])
            )
            assert np.abs(distribution - near.distribution[s]).sum() <= bounds[s] + 1e-9
    apart = max(np.abs(near.distribution[s] - near.distribution[t]).sum() for s in range(3) for t in range(3))
    assert apart <= diameter(near) <= 2


def test_utilities_are_those_of_the_papers_formulas(joint: Joint) -> None:
    """RLDP (13) and (15), read with ε1."""
    read = joint.with_secret()
    near = neighbourhood_of(joint.counts, 0.05, joint)
    first, prior = grr_matrix(3, 0.7), near.prior
    said = first @ np.diag(prior)
    secret = information_of(said.T)
    independent = IndependentReporting().matrix(near, 0.7, 0.4)
    second = grr_matrix(3, float(np.log1p(2 * np.expm1(0.4) / diameter(near))))
    rest = 0.0
    for r in range(3):
        distribution = (said[r] / said[r].sum()) @ near.distribution
        rest += said[r].sum() * information_of((second * distribution).T)
    assert information_of((independent * read.p_input).T) == pytest.approx(secret + rest, abs=1e-12)
    conditional = RobustConditionalReporting().matrix(near, 0.7, 0.4)
    deltas = np.log1p(2 * np.expm1(0.4) / distances(near))
    inner = sum(
        prior[s] * information_of((grr_matrix(3, float(deltas[s])) * near.distribution[s]).T) for s in range(3)
    )  # fmt: skip
    expected = secret + np.exp(0.7) / (np.exp(0.7) + 2) * inner
    assert information_of((conditional * read.p_input).T) == pytest.approx(expected, abs=1e-12)


def test_calibrated_mechanisms_are_robust_and_below_the_optimum(joint: Joint) -> None:
    epsilon = 2.0
    guarantee = RLDP(epsilon, set="chi2")
    read = joint.with_secret()
    best = funnel.optimal(joint, guarantee, 2e-2, 60.0, reads_secret=True, counts="secret and inputs")
    assert guarantee.holds(joint, best.protocol)
    for name in ("independent-reporting", "robust-conditional-reporting"):
        published, _ = mechanism(name).as_published(joint, guarantee)  # type: ignore[attr-defined]
        # The paper's conditions suffice: its own version holds, up to rounding, and calibration never loses to it.
        assert guarantee.level_for(read, integer_weights(published)).value <= epsilon * (1 + 1e-6)
        protocol = funnel.fit(name, joint, guarantee)
        assert guarantee.holds(joint, protocol)
        assert information_of((published * read.p_input).T) <= told(joint, protocol) + 1e-6
        assert told(joint, protocol) <= best.bound + 1e-9
    near = guarantee.neighbourhood(read)
    nominal = polyopt_channel(joint, near, epsilon)
    assert guarantee.level_for(read, rounded_weights(read, nominal)).value <= epsilon * (1 + 1e-6)
    calibrated = funnel.fit("polyopt", joint, guarantee)
    assert guarantee.holds(joint, calibrated)
    assert information_of((nominal * read.p_input).T) <= told(joint, calibrated) + 2e-3
    assert told(joint, calibrated) <= best.bound + 1e-9


def test_a_large_budget_publishes_the_secret_too() -> None:
    """Where X may be published as it is, the secret may often be as well, and both count."""
    joint = Joint.from_counts([[300, 100], [120, 280]])
    guarantee = RLDP(6.0, set="chi2")
    best = funnel.optimal(joint, guarantee, 2e-2, 20.0, reads_secret=True, counts="secret and inputs")
    assert best.utility > joint.entropy
    assert told(joint, funnel.fit("independent-reporting", joint, guarantee)) <= best.bound + 1e-9


def test_the_robust_optimum_tends_to_the_plain_one() -> None:
    """As n grows F shrinks to the estimate, and RLDP to LDP with respect to S."""
    base = np.array([[5, 3, 2], [2, 3, 5]])
    plain = funnel.optimal(Joint.from_counts(base), funnel.LDP(0.5)).utility
    utilities = []
    for factor in (10, 1000, 1_000_000):
        solution = funnel.optimal(Joint.from_counts(base * factor), RLDP(0.5, set="chi2"), gap=1e-3, time_limit=60)
        assert solution.utility <= solution.bound
        utilities.append(solution.utility)
    assert utilities[0] < utilities[1] < utilities[2] <= plain + 1e-9
    assert utilities[2] == pytest.approx(plain, abs=5e-3)


def test_the_robust_funnel_reads_the_input_alone(joint: Joint) -> None:
    guarantee = RLDP(1.0, set="chi2")
    solution = funnel.optimal(joint, guarantee, gap=5e-3, time_limit=60)
    assert solution.protocol.inputs == joint.inputs
    assert guarantee.holds(joint, solution.protocol)
    assert solution.status == "optimal"
    # The nominal optimum keeps more, and breaks the robust bound.
    nominal = funnel.optimal(joint, funnel.LDP(1.0))
    assert nominal.utility > solution.bound
    assert not guarantee.holds(joint, nominal.protocol)
    aware = funnel.optimal(joint, guarantee, gap=2e-2, time_limit=60, reads_secret=True)
    assert aware.bound >= solution.utility


@pytest.mark.parametrize("name", ["polyopt", "robust-optimal", "independent-reporting", "robust-conditional-reporting"])
def test_other_guarantees_are_refused(joint: Joint, name: str) -> None:
    with pytest.raises(SpecError, match="made for rldp"):
        funnel.fit(name, joint, LIP(1.0))


def test_an_average_over_the_polytope_is_what_its_corners_say() -> None:
    """PolyOpt's cone: the largest mean over {R >= P^min} is at a corner, as a linear programme finds it."""
    joint = Joint.from_counts(COUNTS)
    near = neighbourhood_of(joint.counts, 0.05, joint)
    least = least_conditionals(near)
    row = np.array([0.2, 0.9, 0.5])
    for s in range(3):
        found = linprog(-row, A_eq=np.ones((1, 3)), b_eq=[1], bounds=[(low, 1) for low in least[s]])
        corners = [least[s] + (1 - least[s].sum()) * np.eye(3)[u] for u in range(3)]
        assert -found.fun == pytest.approx(max(corner @ row for corner in corners))


def test_an_optimum_out_of_time_falls_back_on_what_is_better(joint: Joint) -> None:
    guarantee = RLDP(0.5, set="chi2")
    fitted = mechanism("robust-optimal").fitted(joint, guarantee, Budget.of(0.5))
    assert not fitted.finished
    assert fitted.protocol.mechanism == "robust-optimal"
    assert guarantee.holds(joint, fitted.protocol)
    reporting = funnel.fit("robust-conditional-reporting", joint, guarantee)
    assert told(joint, fitted.protocol) >= told(joint, reporting) - 1e-9


WIDE = Joint.from_counts(np.random.default_rng(7).integers(1, 40, size=(5, 160)))


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Entries of the channels whose ratios over F were sought."""
    entries: list[int] = []

    def counted(rows: np.ndarray, near: Neighbourhood) -> PairRatios:
        entries.append(rows.size)
        return pair_ratios(rows, near)

    for module in ("guarantees.worst_case", "mechanisms.robust_reporting", "solver.robust_ascent", "guarantees.rldp"):
        monkeypatch.setattr(f"funnel.{module}.pair_ratios", counted)
    return entries


@pytest.mark.parametrize("name", ["independent-reporting", "robust-conditional-reporting", "identity"])
def test_what_cannot_be_decided_within_the_limit_is_not_begun(name: str, decided: list[int]) -> None:
    with pytest.raises(SpecError, match=r"takes about .* more than the time limit leaves"):
        funnel.fit(name, WIDE, RLDP(1.0, set="chi2"), time_limit=0.5)
    assert decided == []


@pytest.mark.parametrize("name", ["optimal", "robust-optimal"])
def test_a_limit_binds_the_search_over_the_confidence_set(name: str, decided: list[int]) -> None:
    funnel.fit(name, WIDE, RLDP(1.0, set="chi2"), time_limit=0.5)
    # As charged, so that the work begun is at most what a limit of half a second buys, and a second in any case.
    assert 0 < sum(decided) * 18_000 <= 1.5 * UNITS_A_SECOND


def test_an_estimate_that_breaks_the_bound_is_refused_without_a_search(decided: list[int]) -> None:
    weights = integer_weights(np.eye(160))
    assert not RLDP(1.0, set="chi2").holds_for(WIDE, weights)
    assert decided == []
