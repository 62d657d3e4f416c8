"""Terms of a version: its bound, its name, what it aims at, and by which utility."""

from __future__ import annotations

from dataclasses import dataclass

from funnel.guarantees.base import Guarantee
from funnel.history.following import follow
from funnel.history.kept_rows import KeptRows
from funnel.history.observed import Observed
from funnel.history.past import Past
from funnel.history.step import Step
from funnel.history.whole import Whole
from funnel.joint import FloatArray
from funnel.measures.utilities import INFORMATION, Utility
from funnel.progress import Progress, quiet
from funnel.protocol import Protocol
from funnel.solver.budget import Budget


@dataclass(frozen=True, eq=False)
class VersionTerms:
    """What a release, a plan and a panel say of the next version, whoever its people are.

    Parameters
    ----------
    guarantee, version, target, reserve, utility, worth, right, budget, progress, kept
        As `funnel.history.following.follow` has them; the target of units is one for all rows, read as rows of
        different people.
    """

    guarantee: Guarantee
    version: str
    target: Protocol | None = None
    reserve: float = 1.0
    utility: Utility = INFORMATION
    worth: FloatArray | None = None
    right: bool = False
    budget: float | Budget | None = None
    progress: Progress = quiet
    kept: KeptRows | None = None

    @property
    def aim(self) -> Protocol:
        """The target, which has been chosen."""
        if self.target is None:
            raise ValueError("a version is decided for a target")
        return self.target

    def decide(self, past: Past, observed: Observed, *, read_alone: bool = True, whole: Whole | None = None) -> Step:
        """Decide the version for some people.

        An analyst who downloads this version alone, with its frequencies and its protocol, is an observer too.
        """
        return follow(
            past,
            observed,
            self.guarantee,
            self.version,
            target=self.target,
            worth=self.worth,
            reserve=self.reserve,
            read_alone=read_alone,
            right=self.right,
            whole=whole,
            utility=self.utility,
            budget=self.budget,
            progress=self.progress,
            kept=self.kept,
        )
