"""Perfect privacy: no output tells anything at all about the secret."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from funnel.errors import SpecError
from funnel.guarantees.base import Level, PosteriorGuarantee
from funnel.guarantees.ldp import LDP
from funnel.guarantees.lift_guarantee import posterior_range
from funnel.guarantees.lip import LIP
from funnel.joint import FloatArray, Joint
from funnel.protocol import WeightArray


@dataclass(frozen=True)
class PerfectPrivacy(PosteriorGuarantee):
    """S and Y are independent: LIP(0), which is LDP(0) (PF, ε = 0).

    A set of equations rather than of bounds. Integer weights can meet equations exactly, so the optimum under it is
    made of whole numbers from the start (`funnel.solver.lattice`).

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts([[10, 20, 30], [30, 20, 10]])
    >>> best = funnel.optimal(joint, funnel.PerfectPrivacy())
    >>> funnel.PerfectPrivacy().holds(joint, best.protocol), best.utility > 0
    (True, True)
    """

    name: ClassVar[str] = "perfect"
    title: ClassVar[str] = "perfect privacy"
    example: ClassVar[str] = "perfect"
    beyond: ClassVar[str] = LDP.beyond
    budget: ClassVar[float] = 0.0
    lift_limits: ClassVar[tuple[float, float]] = (1.0, 1.0)
    meaning: ClassVar[str] = (
        "To an observer who knows the frequencies, and nothing else about a person, a published record of the person "
        "tells nothing at all about the secret: every belief stays exactly what it was."
    )

    def with_budget(self, budget: float) -> Self:
        """Itself.

        Raises
        ------
        SpecError
            For a budget other than 0: that is LIP.
        """
        if budget != 0:
            raise SpecError(f"perfect privacy has no budget; write 'lip:{budget!r}' for a leakage of {budget!r} nats")
        return self

    def posterior_cone(self, prior: FloatArray) -> FloatArray:
        """Rows of ``π_s/p_s <= 1`` and ``π_s/p_s >= 1`` for a posterior π summing to 1, shape (2c, c)."""
        return LIP(0.0).posterior_cone(prior)

    def level_for(self, joint: Joint, weights: WeightArray) -> Level:
        """The level of LIP: 0 if and only if every ratio is exactly 1."""
        return LIP(0.0).counted_level(joint, weights)

    def output_levels(self, joint: Joint, rows: FloatArray) -> FloatArray:
        """max(ln Λ, |ln Ψ|) of each row; floats see zero only up to rounding."""
        levels = LIP(0.0).counted_levels(joint, rows)
        return np.where(levels < 1e-12, 0.0, levels)

    def posterior_limits(self, prior: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The prior, twice."""
        return posterior_range(prior, 1.0, 1.0)
