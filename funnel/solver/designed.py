"""The protocol for estimates: an optimal design over the cone of a guarantee, in proven integer weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from funnel.errors import FunnelError, SolverError
from funnel.estimation import certain, wanted_shares
from funnel.guarantees.base import ConeGuarantee, Guarantee
from funnel.guarantees.rldp import RLDP
from funnel.guarantees.sided import over_set
from funnel.joint import FloatArray, Joint
from funnel.protocol import WeightArray
from funnel.rounding import proven_weights
from funnel.solver.budget import Budget
from funnel.solver.choice import chosen_method
from funnel.solver.design import optimal_design
from funnel.solver.problem import Problem
from funnel.solver.vertices import enumerate_vertices

# So far inside of the bound that rounding to integers does not leave it, relatively.
_INSIDE = 1e-9
# A design is a mixture of about three outputs for each input, whose information is a square matrix: beyond this many
# inputs a round takes minutes.
_LARGEST = 400


@dataclass(frozen=True, eq=False)
class Designed:
    """Weights that meet a guarantee, and what any protocol could be worth.

    Attributes
    ----------
    weights : ndarray of uint64, shape (b, a)
    bound : float
        No protocol that reads X and meets the guarantee is worth more, as a share of the records; 1 where nothing is
        proven.
    finished : bool
    """

    weights: WeightArray
    bound: float
    finished: bool


def best_design(
    joint: Joint, guarantee: Guarantee, gap: float, budget: Budget, trace: Callable[[float, float], None]
) -> Designed | None:
    """The protocol that reads X whose records are worth most for estimates (`funnel.estimation.estimation_worth`).

    Parameters
    ----------
    joint : Joint
    guarantee : Guarantee
    gap : float
        Requested, as a share of the records.
    budget : Budget
    trace : callable
        Told the worth and its bound after each round.

    Returns
    -------
    Designed or None
        None where the guarantee is no cone, or asks for equalities, or there are too many inputs: then there is no
        better way than to compare what was made for information.

    Raises
    ------
    SolverError
        If the budget ends before there is any protocol.
    """
    law = joint.p_input[joint.p_input > 0]
    if (
        isinstance(guarantee, RLDP)
        or over_set(guarantee, joint) is not None
        or not isinstance(guarantee, ConeGuarantee)
    ):
        return None
    if guarantee.is_perfect or not 1 < len(law) <= _LARGEST:
        return None
    problem = Problem.of(joint, guarantee.tightened(_INSIDE), False, presolve=False)
    wanted, known = wanted_shares(joint.inputs, joint.p_input), certain(joint.inputs, joint.p_input)

    def worth(value: float | None) -> float:
        return 1.0 if value is None or value <= 1 else (1 - known) / (value - known)

    vertices = _vertices(joint, guarantee, budget)
    try:
        found = optimal_design(
            problem.region, wanted, gap, budget, vertices, lambda value, bound: trace(worth(value), worth(bound))
        )
    except (SolverError, np.linalg.LinAlgError):
        # A region without room on all sides of p, or as good as none.
        return None
    matrix = np.zeros((len(found.mass), len(joint.p_input)))
    matrix[:, joint.p_input > 0] = found.posteriors * found.mass[:, np.newaxis] / law
    matrix[:, joint.p_input == 0] = found.mass[:, np.newaxis]
    weights = proven_weights(joint, guarantee, matrix / matrix.sum(axis=0))
    return Designed(weights, worth(found.bound), found.finished)


def _vertices(joint: Joint, guarantee: ConeGuarantee, budget: Budget) -> FloatArray | None:
    """All vertices of the cone as it is, where they are few enough to be listed."""
    problem = Problem.of(joint, guarantee, False, presolve=False)
    if chosen_method("auto", problem.merged.joint, guarantee, problem.region, budget) != "vertices":
        return None
    try:
        return enumerate_vertices(problem.merged.joint, guarantee, budget, problem.rows, few=True)
    except FunnelError:
        return None
