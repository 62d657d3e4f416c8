"""Conditional Reporting of RLDP: randomise the secret, then report the input, or a draw that fits, again randomised."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from funnel.guarantees.worst_case import Neighbourhood
from funnel.joint import FloatArray
from funnel.mechanisms.grr import grr_matrix
from funnel.mechanisms.robust_bounds import distances
from funnel.mechanisms.robust_reporting import RobustReporting


def robust_conditional_reporting_matrix(near: Neighbourhood, secret: float, inputs: float) -> FloatArray:
    """Channel (c·u, c·u) of ``s̃ = GRR_ε1(s)``; ``(s̃, R^s̃(u))`` if s̃ = s, else ``(s̃, R^s̃(ũ))``, ũ from P̂_{U|s̃}.

    ``R^s`` is GRR with ``δ_s = ln(1 + 2(e^ε2 - 1)/d_s)`` (RLDP protocol 2, theorem 5; an e is missing in print).

    Parameters
    ----------
    near : Neighbourhood
    secret, inputs : float
        ε1 and ε2, nats.
    """
    c, u = near.law.shape
    first = grr_matrix(c, secret)
    deltas = np.log1p(2 * np.expm1(inputs) / np.maximum(distances(near), 1e-12))
    channel = np.zeros((c, u, c, u))
    for told in range(c):
        second = grr_matrix(u, float(min(deltas[told], 64.0)))
        drawn = second @ near.law[told]
        for s in range(c):
            channel[told, :, s, :] = first[told, s] * (second if told == s else drawn[:, None])
    return channel.reshape(c * u, c * u)


class RobustConditionalReporting(RobustReporting):
    """Conditional Reporting of RLDP, its two budgets searched and calibrated to the true worst case."""

    name: ClassVar[str] = "robust-conditional-reporting"
    summary: ClassVar[str] = "randomise the secret, then the published columns, where the secret was told as it is"

    def matrix(self, near: Neighbourhood, secret: float, inputs: float) -> FloatArray:
        """`robust_conditional_reporting_matrix`."""
        return robust_conditional_reporting_matrix(near, secret, inputs)
