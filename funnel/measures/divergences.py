"""Average distances between the posterior and the prior of the secret: total variation and χ²-divergence."""

from __future__ import annotations

import numpy as np

from funnel.joint import FloatArray, Joint
from funnel.measures.distributions import secret_output_distribution
from funnel.measures.lifts import chi_squared_lift, l1_lift
from funnel.protocol import Protocol


def total_variation(joint: Joint, protocol: Protocol) -> float:
    """``T(S;Y) = ½ E_Y Σ_s |P(s|y) − P(s)|``, between 0 and 1 (ALIP section 2, after (31)).

    Under (εl, εu)-ALIP at most ``(L−1)(1−ψ)/(L−ψ)`` with ``L = e^εu, ψ = e^−εl`` (METHOD section 6.3). The bound
    ``½(e^εu − 1)`` of ALIP proposition 1.2 holds only where ``1 − e^−εl ≤ e^εu − 1``.

    Examples
    --------
    >>> round(funnel.measures.total_variation(joint, protocol), 4)
    0.1455
    """
    return _average(joint, protocol, l1_lift(joint, protocol)) / 2


def chi_squared_divergence(joint: Joint, protocol: Protocol) -> float:
    """``χ²(S;Y) = E_Y Σ_s (P(s|y) − P(s))² / P(s)`` (ALIP section 2, after (32)).

    Under (εl, εu)-ALIP at most ``(e^εu − 1)(1 − e^−εl)`` (METHOD section 6.3). The bound ``(e^εu − 1)²`` of ALIP
    proposition 1.2 holds only where ``1 − e^−εl ≤ e^εu − 1``.

    Examples
    --------
    >>> round(funnel.measures.chi_squared_divergence(joint, protocol), 4)
    0.0982
    """
    return _average(joint, protocol, chi_squared_lift(joint, protocol))


def _average(joint: Joint, protocol: Protocol, per_output: FloatArray) -> float:
    marginal = secret_output_distribution(joint, protocol).sum(axis=0)
    occurs = marginal > 0
    return float(np.dot(marginal[occurs], per_output[occurs]))
