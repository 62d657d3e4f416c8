"""Invariant post-randomisation: outputs are the inputs, tables are right on average, most records stay unchanged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from funnel.certificate import Weighting
from funnel.errors import SpecError
from funnel.guarantees.base import Guarantee
from funnel.joint import Joint
from funnel.mechanisms.family import Fitted, Mechanism
from funnel.mechanisms.instead import best_for
from funnel.mechanisms.memory import table_memory
from funnel.progress import Progress, quiet
from funnel.protocol import INVARIANT
from funnel.solver.budget import Budget
from funnel.solver.conditions import are_linear
from funnel.solver.optimum import optimal

# Of the records: what more rounds could leave unchanged is of no use to anybody.
_GAP = 1e-4
# Tables of all inputs by all outputs that the search holds at a time.
_TABLES = 8


@dataclass(frozen=True)
class Invariant(Mechanism):
    """The invariant channel with the largest weighted share of records unchanged (METHOD section 17).

    Statisticians know the family as invariant PRAM (Gouweleeuw, Kooiman, Willenborg, de Wolf 1998): under the
    distribution it is made for the published records have the distribution of the true ones.

    Attributes
    ----------
    weights : "root", "share" or "uniform"
        What values count that stay as they are: by the root of their share of the records, by their share, or alike.
    """

    name: ClassVar[str] = INVARIANT
    summary: ClassVar[str] = "publishes the values themselves; tables are right on average, most records are unchanged"
    optimises: ClassVar[bool] = True

    weights: Weighting = "root"

    def fitted(self, joint: Joint, guarantee: Guarantee, budget: Budget, progress: Progress = quiet) -> Fitted:
        """Protocol of `funnel.optimal` with ``utility="unchanged"``, to a gap of 1e-4 of the records.

        Raises
        ------
        SpecError
            If the guarantee is not linear in what one output discloses.
        """
        if not are_linear(guarantee, joint):
            raise SpecError(
                f"{self.name} needs a bound that is linear in what one output discloses, and {guarantee} is not; use "
                f"{best_for(guarantee)} under {guarantee.name}"
            )
        # Parts of classes are no values that anybody counts.
        weights: Weighting = self.weights if joint.parts is None else "share"
        found = optimal(
            joint, guarantee, _GAP, time_limit=budget, progress=progress, utility="unchanged", weights=weights
        )
        # Its bound is one on records unchanged, not on I(X;Y).
        return Fitted(found.protocol, None, found.finished, found.gap, weights)

    def memory(self, joint: Joint, guarantee: Guarantee) -> float:
        """Some tables of all inputs by all outputs."""
        return _TABLES * table_memory(len(joint.inputs), len(joint.inputs))
