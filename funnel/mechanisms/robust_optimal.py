"""The optimum of RLDP as its paper poses it: protocols that read the secret, judged by what they tell of both."""

from __future__ import annotations

from typing import ClassVar

from funnel.errors import SpecError
from funnel.guarantees.base import Guarantee
from funnel.guarantees.rldp import RLDP
from funnel.guarantees.sided import over_set
from funnel.joint import Joint
from funnel.measures import mutual_information
from funnel.mechanisms.family import Fitted, Mechanism
from funnel.mechanisms.instead import has_optimum
from funnel.mechanisms.memory import optimum_memory, table_memory
from funnel.mechanisms.polyopt import PolyOpt
from funnel.mechanisms.robust_reporting import IndependentReporting, RobustConditionalReporting
from funnel.progress import Progress, quiet
from funnel.solver.budget import Budget
from funnel.solver.optimum import optimal

_GAP = 1e-3
# Of what is left of the budget: the optimum first, and where that does not finish each of what is compared with it.
_SHARE = 0.6


class RobustOptimal(Mechanism):
    """The protocol of highest I((S,X);Y) among all that read (S, X) and meet a guarantee over a set of distributions.

    Over boxes, over the counts that noise does not rule out, or over F of the paper: PolyOpt optimises over a polytope
    around F; this over F, by cutting planes with a certified bound. For protocols that read X alone (the robust privacy
    funnel) ``optimal`` is the same.
    """

    name: ClassVar[str] = "robust-optimal"
    summary: ClassVar[str] = "the most informative protocol found on secret and columns together that is robust"
    reads_secret: ClassVar[bool] = True
    optimises: ClassVar[bool] = True

    def fitted(self, joint: Joint, guarantee: Guarantee, budget: Budget, progress: Progress = quiet) -> Fitted:
        """Protocol of `funnel.optimal` with ``counts="secret and inputs"``, to a gap of 1e-3 nats.

        Its bound is one on I((S,X);Y), and so not given as one on I(X;Y).

        Raises
        ------
        SpecError
            If the guarantee is over one distribution alone.
        """
        if not isinstance(guarantee, RLDP) and over_set(guarantee, joint) is None:
            instead = "optimal-with-secret" if has_optimum(guarantee) else "conditional-reporting"
            raise SpecError(f"{self.name} is made for rldp; use {instead} under {guarantee.name}")
        solution = optimal(joint, guarantee, _GAP, budget.part(_SHARE), "auto", progress, True, "secret and inputs")
        finished = solution.finished
        best, most = solution.protocol, solution.utility
        # Cutting planes that were stopped may be far inside; what takes fewer steps may then be better.
        for other in () if finished else (RobustConditionalReporting(), IndependentReporting(), PolyOpt()):
            try:
                protocol = other.fit(joint, guarantee, budget.part(_SHARE))
            except SpecError:
                # PolyOpt where its half-spaces are too many; all of them over boxes.
                continue
            utility = mutual_information(joint, protocol, "secret and inputs")
            if utility > most:
                best, most = protocol, utility
        return Fitted(self.renamed(best), None, finished)

    def memory(self, joint: Joint, guarantee: Guarantee) -> float:
        """A table from (S, X) to itself, or what cutting planes over it take."""
        if not isinstance(guarantee, RLDP) and over_set(guarantee, joint) is None:
            return 0.0
        cells, c = joint.counts.size, len(joint.secret)
        return max(table_memory(cells, cells), optimum_memory(c * (c - 1), cells))
