"""Independent Reporting: randomised response on the secret and, less strictly, on the input, told together."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from funnel.guarantees.worst_case import Neighbourhood
from funnel.joint import FloatArray
from funnel.mechanisms.grr import grr_matrix
from funnel.mechanisms.robust_bounds import diameter
from funnel.mechanisms.robust_reporting import RobustReporting


def independent_reporting_matrix(near: Neighbourhood, secret: float, inputs: float) -> FloatArray:
    """``(GRR_ε1(s), GRR_δ2(u))`` with ``δ2 = ln(1 + 2(e^ε2 - 1)/d)``, shape (c·u, c·u) (RLDP protocol 1, theorem 3).

    By theorem 3 it is (ε1 + ε2, F)-RLDP; its true level is lower.

    Parameters
    ----------
    near : Neighbourhood
    secret, inputs : float
        ε1 and ε2, nats.
    """
    c, u = near.law.shape
    delta = np.log1p(2 * np.expm1(inputs) / diameter(near))
    return np.asarray(np.kron(grr_matrix(c, secret), grr_matrix(u, float(delta))), dtype=np.float64)


class IndependentReporting(RobustReporting):
    """Independent Reporting of RLDP, its two budgets searched and calibrated to the true worst case."""

    name: ClassVar[str] = "independent-reporting"
    summary: ClassVar[str] = "randomised response on the secret and on the published columns, told together"

    def matrix(self, near: Neighbourhood, secret: float, inputs: float) -> FloatArray:
        """`independent_reporting_matrix`."""
        return independent_reporting_matrix(near, secret, inputs)
