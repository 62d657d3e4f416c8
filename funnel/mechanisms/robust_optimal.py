"""The optimum of RLDP as its paper poses it: protocols that read the secret, judged by what they tell of both."""

from __future__ import annotations

from typing import ClassVar

from funnel.errors import SpecError
from funnel.guarantees.base import Guarantee
from funnel.guarantees.rldp import RLDP
from funnel.joint import Joint
from funnel.measures import mutual_information
from funnel.mechanisms.base import Fitted, Mechanism
from funnel.mechanisms.independent_reporting import IndependentReporting
from funnel.mechanisms.polyopt import PolyOpt
from funnel.mechanisms.robust_conditional_reporting import RobustConditionalReporting
from funnel.progress import Progress
from funnel.protocol import Protocol
from funnel.solver import optimal

_GAP = 1e-3


class RobustOptimal(Mechanism):
    """The protocol of highest I((S,X);Y) among all that read (S, X) and are RLDP over F itself.

    PolyOpt of the paper optimises over a polytope around F; this over F, by cutting planes with a certified bound. For
    protocols that read X alone (the robust privacy funnel) ``optimal`` under RLDP is the same.
    """

    name: ClassVar[str] = "robust-optimal"
    summary: ClassVar[str] = "the most informative protocol on secret and columns together that is robust"
    reads_secret: ClassVar[bool] = True

    def fit(self, joint: Joint, guarantee: Guarantee, time_limit: float | None = None) -> Protocol:
        """Protocol of `funnel.optimal` with ``counts="secret and inputs"``, to a gap of 1e-3 nats."""
        return self.fitted(joint, guarantee, time_limit).protocol

    def fitted(
        self, joint: Joint, guarantee: Guarantee, time_limit: float | None = None, progress: Progress | None = None
    ) -> Fitted:
        """Protocol; its bound is one on I((S,X);Y) and so not given as one on I(X;Y).

        Raises
        ------
        SpecError
            If the guarantee is not RLDP.
        """
        if not isinstance(guarantee, RLDP):
            raise SpecError(f"{self.name} is made for rldp; use optimal-with-secret under {guarantee.name}")
        solution = optimal(joint, guarantee, _GAP, time_limit, "auto", progress, True, "secret and inputs")
        finished = solution.finished
        best, most = solution.protocol, solution.utility
        # Cutting planes that were stopped may be far inside; what takes fewer steps may then be better.
        for other in () if finished else (PolyOpt(), RobustConditionalReporting(), IndependentReporting()):
            try:
                protocol = other.fit(joint, guarantee, time_limit)
            except SpecError:
                # PolyOpt where its half-spaces are too many.
                continue
            utility = mutual_information(joint, protocol, "secret and inputs")
            if utility > most:
                best, most = protocol, utility
        return Fitted(self.renamed(best), None, finished)
