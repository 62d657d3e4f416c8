"""Experiments of the Privacy Funnel papers: LDP in few dimensions, GRR against Conditional Reporting."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import funnel
from funnel import LDP, LIP, Joint, measures
from funnel.mechanisms.conditional_reporting import conditional_reporting_matrix
from funnel.mechanisms.family import calibrate
from funnel.mechanisms.grr import grr_matrix
from funnel_papers.theorem_2 import best_vertex


@pytest.mark.parametrize("seed", range(4))
def test_ldp_by_the_cone_is_ldp_by_the_polytope_of_channels(seed: int) -> None:
    """PF theorem 2 lists the vertices of all channels; theorem 3's way reaches the same optimum."""
    joint = Joint.from_counts(np.random.default_rng(seed).integers(1, 1000, size=(2, 3)))
    assert funnel.optimal(joint, LDP(0.5)).utility == pytest.approx(best_vertex(joint, 0.5)[0], abs=1e-6)


def jeffreys_distributions(number: int) -> list[Joint]:
    random = np.random.default_rng(1)
    distributions = random.dirichlet(np.full(15, 0.5), size=number).reshape(number, 3, 5)
    return [Joint.from_counts(np.rint(distribution * 1e6)) for distribution in distributions]


def test_parameters_and_utilities_of_grr_and_conditional_reporting_go_together() -> None:
    """PF section VII: α_GRR - α_CR against the difference of utilities; the paper finds a correlation of about .98."""
    parameters, utilities = [], []
    for joint in jeffreys_distributions(40):
        read = joint.with_secret()
        one, _ = calibrate(lambda alpha: grr_matrix(5, alpha), joint, LIP(1.0))
        two, _ = calibrate(lambda alpha, joint=joint: conditional_reporting_matrix(joint, alpha), read, LIP(1.0))
        parameters.append(one - two)
        grr, reporting = (funnel.fit(name, joint, LIP(1.0)) for name in ("grr", "conditional-reporting"))
        utilities.append(measures.mutual_information(joint, grr) - measures.mutual_information(joint, reporting))
    assert np.corrcoef(parameters, utilities)[0, 1] > 0.9


def test_unary_encoding_tends_to_half_of_what_there_is() -> None:
    """PF section VII: OUE has ½ H(X) as its limit, since it drops the true symbol half of the time."""
    joint = Joint.from_counts([[900, 500, 300], [200, 700, 400]])
    protocol = funnel.fit("oue", joint, LIP(40.0))
    assert measures.mutual_information(joint, protocol) == pytest.approx(joint.entropy / 2, rel=1e-6)


def test_the_optimum_is_a_mixture_of_posteriors() -> None:
    """PF theorem 3 by brute force for two secrets: all pairs of inputs at an end of the interval, one programme."""
    joint = Joint.from_counts([[50, 20, 5], [10, 30, 40]])
    prior, lifts = joint.p_input, joint.secret_given_input[0] / joint.p_secret[0]
    other = joint.secret_given_input[1] / joint.p_secret[1]
    factor = np.exp(0.4)
    candidates = []
    for x in range(3):
        for z in range(3):
            for share in np.linspace(0, 1, 20001) if x < z else ():
                lift = np.array([share * lifts[x] + (1 - share) * lifts[z], share * other[x] + (1 - share) * other[z]])
                if (lift <= factor).all() and (lift >= 1 / factor).all():
                    posterior = np.zeros(3)
                    posterior[x], posterior[z] = share, 1 - share
                    candidates.append(posterior)
    points = np.array(candidates)
    gains = np.where(points > 0, points * np.log(np.maximum(points, 1e-300)), 0).sum(axis=1)
    result = linprog(-gains, A_eq=points.T, b_eq=prior, method="highs")
    assert funnel.optimal(joint, LIP(0.4)).utility == pytest.approx(joint.entropy - result.fun, abs=1e-4)
