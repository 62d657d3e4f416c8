"""Asymmetric local information privacy: a budget for secrets that become likelier and one for less likely ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from funnel.guarantees.budgets import TwoSided
from funnel.guarantees.lift_guarantee import LiftGuarantee, log_lifts
from funnel.guarantees.over_distributions import Sides
from funnel.guarantees.robust_guarantee import RobustRatio
from funnel.joint import FloatArray, Joint


@dataclass(frozen=True)
class ALIP(TwoSided, LiftGuarantee):
    """(ε_l, ε_u)-ALIP with respect to S (ALIP definition 3, equation (5)).

    ``e^-ε_l P(y) <= P(y|s) <= e^ε_u P(y)`` for every output y and every secret s that occurs. It implies
    (ε_l + ε_u)-LDP and I(S;Y) <= ε_u (ALIP proposition 1).

    Parameters
    ----------
    lower : float
        ε_l, nats, >= 0; infinite to bound the largest lift only.
    upper : float
        ε_u, nats, >= 0; infinite to bound the smallest lift only.

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts([[30, 10], [10, 50]])
    >>> protocol = funnel.fit("grr", joint, funnel.ALIP(0.5, 0.3))
    >>> funnel.ALIP(0.5, 0.3).holds(joint, protocol), funnel.ALIP(0.1, 0.3).holds(joint, protocol)
    (True, False)
    """

    name: ClassVar[str] = "alip"
    title: ClassVar[str] = "asymmetric local information privacy"
    example: ClassVar[str] = "alip:1.3,0.7"

    @property
    def sides(self) -> Sides:
        """Lifts and inverse lifts, each with its budget."""
        return Sides(up=self.upper, down=self.lower)

    def risks(self, joint: Joint, rows: FloatArray) -> FloatArray:
        """ln Λ + |ln Ψ|: the reading of ALIP algorithm 1 that reproduces the paper (METHOD section 4)."""
        lifts = log_lifts(joint, rows)
        return np.asarray(lifts.max(axis=0) - lifts.min(axis=0))


@dataclass(frozen=True)
class RALIP(RobustRatio, TwoSided):
    """(ε_l, ε_u)-ALIP with respect to S under every distribution in the boxes that the data allow (METHOD section 5).

    Parameters
    ----------
    lower : float
        ε_l, nats, >= 0; infinite to bound the largest lift only.
    upper : float
        ε_u, nats, >= 0; infinite to bound the smallest lift only.
    alpha : float
        Significance of the boxes, strictly between 0 and 1.

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts([[300, 100], [100, 500]])
    >>> protocol = funnel.fit("grr", joint, funnel.ALIP(0.5, 0.5))
    >>> funnel.RALIP(0.5, 0.5).holds(joint, protocol), funnel.RALIP(0.7, 0.7).holds(joint, protocol)
    (False, True)
    """

    name: ClassVar[str] = "ralip"
    of: ClassVar[type[ALIP]] = ALIP
    title: ClassVar[str] = "robust asymmetric local information privacy"
    example: ClassVar[str] = "ralip:1.3,0.7,0.05"
