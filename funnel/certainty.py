"""What it costs, and buys, that a bound holds for all that the data leave open and not for the counts alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from funnel.errors import FunnelError
from funnel.guarantees import Guarantee
from funnel.guarantees.robust_guarantee import Robust
from funnel.guarantees.sided import over_set
from funnel.joint import Joint
from funnel.measures.utilities import INFORMATION, Utility
from funnel.mechanisms.instead import best_for
from funnel.planning import AUTO, MechanismChoice, PlanRow, contenders
from funnel.progress import Progress, quiet
from funnel.wording import confidence

# Shares closer than this are told as the same.
_SAME = 5e-5


@dataclass(frozen=True)
class Certainty:
    """The best protocol under a bound over a set of distributions, beside the best for the counts alone.

    Attributes
    ----------
    guarantee, nominal : str
        The bound over the set, and the one for the counts as they are.
    why : str
        What the set is there for: ``"sample"``, ``"noise"`` or ``"sample and noise"``.
    kept, nominal_kept : float
        Shares of H(X) that the best usable protocols keep, or of the variance that they explain.
    nominal_level : float
        What the nominal one's protocol reaches over the set, nats; may be infinite.
    missed : tuple of float
        Probabilities, at most, that the truth is not in the set: α of the sample, β of the noise, as far as there are.
    utility : Utility
        What the shares are of.
    """

    guarantee: str
    nominal: str
    why: str
    kept: float
    nominal_kept: float
    nominal_level: float
    missed: tuple[float, ...]
    utility: Utility = INFORMATION

    @property
    def cost(self) -> float:
        """Share that the certainty costs."""
        return max(0.0, self.nominal_kept - self.kept)

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready values; an infinite level becomes None."""
        return {
            **{name: getattr(self, name) for name in ("guarantee", "nominal", "why", "kept", "nominal_kept")},
            "nominal_level": self.nominal_level if math.isfinite(self.nominal_level) else None,
            "confidence": max(0.0, 1 - math.fsum(self.missed)),
        }

    @property
    def sentence(self) -> str:
        """What the difference buys."""
        what = {
            "sample": "the distributions that the sample does not rule out",
            "noise": "the tables of counts that the noise does not rule out",
            "sample and noise": "the distributions that sample and noise do not rule out",
        }[self.why]
        if math.isinf(self.nominal_level):
            reached = f"tells some secret for certain under one of {what} ({confidence(*self.missed)} confidence)"
        else:
            reached = (
                f"reaches {self.nominal_level:.3g} under the worst of {what} ({confidence(*self.missed)} confidence)"
            )
        useful = self.utility
        costs = f"{self.cost:.1%} of {useful.everything}" if self.cost > _SAME else "nothing that shows"
        return (
            f"For the frequencies as they are, {self.nominal} would {useful.keep} {self.nominal_kept:.1%} of "
            f"{useful.everything} instead of "
            f"{self.kept:.1%}, but that protocol {reached}. That {self.guarantee} holds under all of them costs "
            f"{costs}."
        )


def certainty(
    joint: Joint,
    guarantee: Guarantee,
    rows: Sequence[PlanRow],
    choice: MechanismChoice | None = None,
    progress: Progress = quiet,
    utility: Utility = INFORMATION,
) -> Certainty | None:
    """Fit the protocol for the counts alone, and judge it over the set; None for a bound that has no set.

    Parameters
    ----------
    joint : Joint
        Counts of (S, X), with bounds where they are known up to noise.
    guarantee : Guarantee
    rows : sequence of PlanRow
        The plan under the guarantee.
    choice : MechanismChoice, optional
        Its mechanism is looked at under both bounds; with "auto" the best of each.
    progress : callable
    utility : Utility
        What the plan compares mechanisms by.

    Notes
    -----
    As long as the nominal optimum takes. None as well where the plan has no usable row, or the nominal bound cannot be
    fitted: then there is nothing to compare.
    """
    over = over_set(guarantee, joint)
    choice = choice or MechanismChoice()
    named = choice.name
    usable = [row for row in rows if row.reason is None and named in (AUTO, row.mechanism)]
    kept = [row.share for row in usable if row.share is not None]
    if over is None or not kept:
        return None
    nominal = guarantee.nominal if isinstance(guarantee, Robust) else guarantee
    name, counted = best_for(nominal) if named == AUTO else named, joint.as_published
    try:
        fitted = contenders(counted, nominal, replace(choice, name=name), progress, utility=utility)
    except FunnelError:
        return None
    best = max((row for row in fitted if row.reason is None), key=lambda row: row.share or 0.0, default=None)
    if best is None or best.protocol is None or best.share is None:
        return None
    sample, noise = isinstance(guarantee, Robust), joint.bounds is not None
    why = "sample and noise" if sample and noise else "sample" if sample else "noise"
    missed: tuple[float, ...] = (guarantee.alpha,) if isinstance(guarantee, Robust) else ()
    if joint.bounds is not None:
        missed += (joint.bounds.beta,)
    level = over.level(joint, best.protocol).value
    return Certainty(str(guarantee), str(nominal), why, max(kept), best.share, level, missed, utility)
