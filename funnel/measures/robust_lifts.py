"""How far lifts can be from 1 over the whole confidence set: levels of LIP and ALIP for every law in it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from funnel.guarantees import ALIP, LIP, RLDP, Guarantee
from funnel.guarantees.reading import rows_by_secret, secret_by_input
from funnel.guarantees.robust_lift import WorstLift, worst_lift_over
from funnel.joint import Joint
from funnel.protocol import Protocol


@dataclass(frozen=True, eq=False)
class RobustLifts:
    """The worst lift and the worst inverse lift over F.

    Attributes
    ----------
    upward : WorstLift
        Of ``P(y|s)/P(y)``: how much likelier an output makes a secret.
    downward : WorstLift
        Of ``P(y)/P(y|s)``: how much less likely.

    Examples
    --------
    >>> over = funnel.measures.robust_lifts(joint, protocol)
    >>> over.level >= over.attained > 0
    True
    """

    upward: WorstLift
    downward: WorstLift

    @property
    def worst(self) -> WorstLift:
        """The larger of both."""
        return max(self.upward, self.downward, key=lambda side: (side.bound, side.attained))

    @property
    def level(self) -> float:
        """The smallest ε (nats) for which LIP is proven for every law in F; never below the true one."""
        return _nats(self.worst.bound)

    @property
    def attained(self) -> float:
        """The LIP level (nats) under the worst law found: `level` is above it by what is not known."""
        return math.log(self.worst.attained)

    def level_of(self, guarantee: Guarantee) -> float | None:
        """The level of LIP or ALIP over F; None for guarantees that do not bound lifts one by one."""
        if isinstance(guarantee, LIP):
            return self.level
        if isinstance(guarantee, ALIP):
            return max(
                guarantee.scaled(_nats(self.upward.bound), guarantee.upper),
                guarantee.scaled(_nats(self.downward.bound), guarantee.lower),
            )
        return None


def robust_lifts(joint: Joint, protocol: Protocol, alpha: float = 0.05) -> RobustLifts:
    """The worst lifts of a protocol over the confidence set F of significance alpha, each as bound and attained.

    Both the laws of X given S and the law of S move in F. The bound errs upwards only; what is attained names a law in
    F that attains it.

    Parameters
    ----------
    joint : Joint
        Counts of (S, X), shape (c, a).
    protocol : Protocol
        Reads X, or (S, X).
    alpha : float
        Strictly between 0 and 1.

    Notes
    -----
    Where the search is cut short, or the channel too large for it, the bound is that on the ratio
    ``P(y|s)/P(y|s')``, the level of RLDP.

    Raises
    ------
    DataError
        If a value of the secret never occurs, or the protocol reads other columns.
    SpecError
        If alpha is out of range.

    Examples
    --------
    >>> over = funnel.measures.robust_lifts(joint, protocol)
    >>> over.level > funnel.LIP(0.5).level(joint, protocol).value
    True
    """
    read = joint.read_by(protocol.inputs.columns)
    matrix = protocol.weights_for(read.inputs) / 2.0**63
    rows = rows_by_secret(read, matrix[matrix.any(axis=1)])
    near = RLDP(1.0, alpha, set="chi2").neighbourhood(read)
    reads_secret = secret_by_input(read)[1]
    used = np.flatnonzero(matrix.any(axis=1))

    # P(y) is a mixture of the P(y|s'), so under every law no lift and no inverse exceeds the largest ratio of two.
    most = math.exp(RLDP(1.0, alpha, set="chi2").level(joint, protocol).value) * (1 + 2.0**-48)

    def side(upward: bool) -> WorstLift:
        found = worst_lift_over(rows, near, upward, reads_secret)
        return WorstLift(min(found.bound, most), found.attained, int(used[found.output]), found.secret, found.law)

    return RobustLifts(side(True), side(False))


def _nats(bound: float) -> float:
    if math.isinf(bound):
        return math.inf
    return math.nextafter(math.nextafter(math.log(bound), math.inf), math.inf)
