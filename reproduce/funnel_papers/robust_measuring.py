"""Measures of a distribution in the experiments of RLDP: mechanisms as published, the same calibrated, the optimum."""

from __future__ import annotations

from collections.abc import Sequence

from funnel.guarantees import RLDP
from funnel.joint import FloatArray, Joint
from funnel.measures.information import information_of, normalised_mutual_information
from funnel.mechanisms import fit, mechanism
from funnel.mechanisms.false_position import parameter_at
from funnel.mechanisms.family import calibrate
from funnel.mechanisms.grr import grr_matrix
from funnel.mechanisms.polyopt import polyopt_channel
from funnel.mechanisms.robust_reporting import RobustReporting
from funnel.rounding import integer_weights, rounded_weights
from funnel.solver.budget import Budget
from funnel.solver.optimum import optimal
from funnel_papers.rows import Numbers, Row, rowed

_GAP = 1e-3
_REPORTING = {"IR": "independent-reporting", "CR": "robust-conditional-reporting"}


class Rough(RLDP):
    """RLDP to which mechanisms are calibrated less closely: a relative 0.001 of the budget, for figures."""

    @property
    def precision(self) -> float:
        """Relative."""
        return 1e-3


class RobustDistribution:
    """One distribution and budget: the share I((S,U);Y) / H(S,U) each mechanism keeps, and its true level.

    Versions "as published" are the paper's own; "calibrated" ones use up the budget by the exact worst case over F.

    Parameters
    ----------
    joint : Joint
        Counts (|S|, |U|).
    epsilon : float
        Nats.
    limit : float
        Seconds of work for PolyOpt and for the optimum.
    """

    def __init__(self, joint: Joint, epsilon: float, limit: float) -> None:
        self.joint, self.guarantee, self.limit = joint, Rough(epsilon, set="chi2"), limit
        self.read = joint.with_secret()
        self.near = self.guarantee.neighbourhood(self.read)

    @property
    def _budget(self) -> Budget:
        """Of one PolyOpt."""
        return Budget.of(self.limit)

    def kept(self, matrix: FloatArray) -> float:
        """Share of a channel (b, c·u)."""
        return information_of((matrix * self.read.p_input).T) / self.read.entropy

    def published(self) -> Numbers:
        """GRR, IR and CR as the paper gives them, and what they use of the budget: true robust level over ε."""
        channels = {"GRR": grr_matrix(len(self.read.inputs), self.guarantee.epsilon)}
        for label, name in _REPORTING.items():
            channels[label], _ = _reporting(name).as_published(self.joint, self.guarantee)
        return self._judged(channels)

    def polyopt(self) -> Numbers:
        """PolyOpt for the nominal ε, and what it uses of the budget."""
        channel = polyopt_channel(self.joint, self.near, self.guarantee.epsilon * (1 - 1e-6), self._budget)
        return self._judged({"PolyOpt": channel})

    def calibrated(self) -> Numbers:
        """GRR, IR and CR, calibrated."""
        epsilon, size = self.guarantee.epsilon, len(self.read.inputs)
        alpha, _ = calibrate(lambda value: grr_matrix(size, value), self.read, self.guarantee, start=1.2 * epsilon)
        found: Numbers = {"GRR, calibrated": self.kept(grr_matrix(size, alpha))}
        for label, name in _REPORTING.items():
            protocol = fit(name, self.joint, self.guarantee)
            share = normalised_mutual_information(self.joint, protocol, "secret and inputs")
            found[f"{label}, calibrated"] = share
        return found

    def polyopt_calibrated(self) -> Numbers:
        """PolyOpt at the nominal ε whose true level is the budget, to a relative 0.005."""
        best = 0.0
        epsilon = self.guarantee.epsilon

        def level_at(nominal: float) -> float:
            nonlocal best
            weights = rounded_weights(self.read, polyopt_channel(self.joint, self.near, nominal, self._budget))
            level = self.guarantee.level_for(self.read, weights).value
            if level <= epsilon:
                best = max(best, self.kept(weights / 2.0**63))
            return level

        parameter_at(level_at, epsilon, 5e-3, 1.03 * epsilon, 5)
        # A nominal ε equal to the budget holds by the paper's theorem 1.
        plain = polyopt_channel(self.joint, self.near, epsilon * (1 - 1e-6), self._budget)
        return {"PolyOpt, calibrated": max(best, self.kept(plain))}

    def optimum(self) -> Numbers:
        """What cutting planes over F itself find, and what no protocol exceeds."""
        best = optimal(self.joint, self.guarantee, _GAP, self.limit, reads_secret=True, counts="secret and inputs")
        return {"cutting planes": best.utility / self.read.entropy, "bound": best.bound / self.read.entropy}

    def _judged(self, channels: dict[str, FloatArray]) -> Numbers:
        found: Numbers = {}
        for label, channel in channels.items():
            level = self.guarantee.level_for(self.read, integer_weights(channel)).value
            found |= {label: self.kept(channel), f"used by {label}": level / self.guarantee.epsilon}
        return found


def robust_part(joint: Joint, xs: Sequence[float], part: str, limit: float, epsilon: float | None = None) -> Row:
    """One part of what is measured of a distribution.

    Parameters
    ----------
    joint : Joint
    xs : sequence of float
        Budgets ε; numbers of records where ``epsilon`` is given.
    part : str
        A method of `RobustDistribution`.
    limit : float
    epsilon : float, optional
    """
    return rowed(xs, lambda x: getattr(RobustDistribution(joint, x if epsilon is None else epsilon, limit), part)())


def _reporting(name: str) -> RobustReporting:
    found = mechanism(name)
    assert isinstance(found, RobustReporting)
    return found
