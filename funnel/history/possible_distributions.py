"""Possible distributions: limits of what all histories say before a version, by all that was published so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from funnel.errors import SpecError
from funnel.guarantees.binomial_limits import UNIT
from funnel.guarantees.by_event import LIPOver
from funnel.guarantees.distribution_box import DistributionBox
from funnel.guarantees.known_columns import Event
from funnel.guarantees.robust_guarantee import RobustRatio
from funnel.guarantees.rsrlip import RSRLIP
from funnel.history.allowed import Allowed, Kept
from funnel.history.changes import MoveLimits
from funnel.history.observed import Observed
from funnel.history.open_shares import (
    OpenShares,
    float_below,
    shares_in_population,
    shares_of_rows,
    shares_under_noise,
    significance_of_counts,
)
from funnel.history.past import Chapter, Past
from funnel.history.possible import Known, PossibleStep, Reach
from funnel.joint import IntArray, Joint
from funnel.protocol import WORD_BITS


@dataclass(frozen=True, eq=False)
class _Coming:
    """The version that comes, after all chapters that there are; fields as of these."""

    joint: Joint
    limits: Mapping[int, MoveLimits]
    row: int
    of_units: bool


class DistributionSet:
    """Limits of all histories before a version, under every set of tables that noise, or a sample, leaves open.

    Parameters
    ----------
    past : Past
        Whose chapters have limits of moves, or exact changes.
    joint : Joint
        Of the version; with bounds where its counts have noise.
    limits : mapping of int to MoveLimits
        To it, by ordinal.
    alpha : Fraction, optional
        Of a bound in the population that all versions are samples of, for all of them together; by default the bound is
        for the people there are.
    row : int
        Which row of its unit the version that comes is about; from 2 on, limits are from the row before.
    of_units : bool
        Whether people may have several rows in it.
    for_known : bool
        Whether the bound is for observers too who know some of the published columns. Their limits of a version share
        what it has of alpha for its counts (`funnel.RSRLIP`).
    """

    def __init__(
        self,
        past: Past,
        joint: Joint,
        limits: Mapping[int, MoveLimits],
        alpha: Fraction | None = None,
        row: int = 1,
        of_units: bool = False,
        for_known: bool = False,
    ) -> None:
        self._past, self._alpha, self._for_known = past, alpha, for_known
        self._chapters: tuple[Chapter | _Coming, ...] = (*past.chapters, _Coming(joint, limits, row, of_units))
        self._known: dict[int, Reach] = {}
        self._between_known: dict[tuple[int, int], PossibleStep] = {}
        self._steps: dict[int, PossibleStep] = {}
        self._number = self._versions(len(self._chapters))

    @classmethod
    def of(cls, past: Past, observed: Observed, allowed: Allowed) -> DistributionSet | None:
        """What is open before a version about some people; None where the bound is for the published tables alone."""
        limits = observed.limits
        if limits is None and allowed.significance is None:
            return None
        if limits is None and observed.of_units:
            raise SpecError("how the rows of units follow one another has no limits; count first and second rows")
        if limits is None:
            limits = {
                v: MoveLimits.exactly(one, past.chapters[v].joint, observed.joint)
                for v, one in observed.changes.items()
            }
        return cls(
            past, observed.joint, limits, allowed.significance, observed.row, observed.of_units, allowed.for_known
        )

    def for_new_people(self, guarantee: Kept) -> Kept:
        """A guarantee as it is decided for people without a history: at the significance of the counts."""
        if self._alpha is None or not isinstance(guarantee, RobustRatio | RSRLIP):
            return guarantee
        return replace(guarantee, alpha=float_below(significance_of_counts(self._number, self._alpha)))

    def _parts(self, joint: Joint, number: int) -> list[tuple[Event, DistributionBox]]:
        """What observers may know in a version, first nothing, and the limits of each; none where they know nothing."""
        if not self._for_known or self._alpha is None:
            return []
        alpha = float_below(significance_of_counts(number, self._alpha))
        parts = RSRLIP(0.0, alpha).parts(joint)
        return [
            (event, part.held)
            for event, part in parts
            if isinstance(part, LIPOver) and isinstance(part.held, DistributionBox)
        ]

    def _known_in(self, joint: Joint) -> list[Known]:
        """What observers may know of the version that comes."""
        return [
            Known(event.inside, np.stack([box.prior_lower, box.prior_upper]) / UNIT, event.joint.counts.sum(axis=1))
            for event, box in self._parts(joint, self._number)[1:]
        ]

    def _versions(self, chapters: int) -> int:
        """How many versions so many chapters are: all rows of a unit are of one."""
        return sum(chapter.row == 1 for chapter in self._chapters[:chapters])

    def steps_of(self, nodes: IntArray) -> tuple[IntArray, dict[int, PossibleStep]]:
        """The version that each history came from, -1 of new people, and the step for those of each of these.

        Whatever row comes, secrets are as common as among those who came from that version.
        """
        coming, row = len(self._past), self._chapters[-1].row
        head = coming - row + 1
        versions = self._past.versions_of(self._past.before_rows(nodes, row - 1))
        for v in np.unique(versions).tolist():
            if v not in self._steps:
                step = self._between(v, head)
                if row > 1:
                    # Of all units these are limits of shares that add up to one.
                    step = self._between(coming - 1, coming).with_prior(step.totals if step.is_first else step.prior)
                self._steps[v] = step.for_known(self._known_in(self._chapters[head].joint))
        return versions, self._steps

    def reach(self, nodes: IntArray) -> Reach | None:
        """Limits of histories that all end with the same version, after it; None of new people."""
        version = int(self._past.versions_of(nodes[:1])[0])
        if version < 0:
            return None
        return self._after(version).at(nodes - self._past.chapters[version].first)

    def _after(self, version: int) -> Reach:
        """Of all histories of a chapter, in their order."""
        if version not in self._known:
            chapter = self._past.chapters[version]
            rows = np.ldexp(
                chapter.library[chapter.channels_of(chapter.parents), chapter.outputs].astype(np.float64), -WORD_BITS
            )
            before = self._past.versions_of(chapter.parents)
            parts: list[tuple[IntArray, Reach]] = []
            for v in np.unique(before).tolist():
                here = np.flatnonzero(before == v)
                step = self._between(v, version)
                parts.append((here, step.after(self.reach(chapter.parents[here]), rows[here])))
            order = np.argsort(np.concatenate([here for here, _ in parts]), kind="stable")
            self._known[version] = Reach(
                *(
                    np.concatenate([getattr(one, name) for _, one in parts])[order]
                    for name in ("lower", "upper", "least", "most", "sound")
                )
            )
        return self._known[version]

    def _between(self, v: int, t: int) -> PossibleStep:
        """How people come from a chapter, or are new, -1, to another one: to the next row of their unit, or a version.

        Secrets are as common in a row as among units that are new.
        """
        if (v, t) not in self._between_known:
            to, number = self._chapters[t], self._versions(t + 1)
            joint = self._chapters[t - to.row + 1].joint
            earlier = None if v < 0 else joint if to.row > 1 else self._chapters[v].joint
            limits = None if earlier is None else self._limits(v, t, earlier)
            self._between_known[v, t] = PossibleStep(joint, self._shares(to, joint, limits, number), earlier)
        return self._between_known[v, t]

    def _shares(self, to: Chapter | _Coming, joint: Joint, limits: MoveLimits | None, number: int) -> OpenShares:
        if self._alpha is None and to.row > 1:
            raise SpecError("rows of a unit are bounded for a population, and not yet for all that noise alone leaves")
        if self._alpha is None:
            return shares_under_noise(joint, limits)
        box = next((box for _, box in self._parts(joint, number)), None)
        if limits is not None and to.row > 1:
            return shares_of_rows(joint, limits, number, self._alpha, box)
        return shares_in_population(joint, limits, number, self._alpha, to.of_units, box)

    def _limits(self, v: int, t: int, earlier: Joint) -> MoveLimits:
        """Of the moves between two versions: what noise left open, or exact ones where there was none."""
        to = self._chapters[t]
        if to.limits is not None and v in to.limits:
            return to.limits[v]
        if isinstance(to, _Coming):
            raise SpecError("limits of the moves since some versions are missing")
        if self._alpha is None or to.by_class is None:
            raise SpecError(
                f"version {to.version!r} was not published with limits of the moves since those before it, so "
                "no bound over all true tables can be kept; leave robust out of [history], or begin a register"
            )
        return MoveLimits.exactly(to.changes[v], earlier, to.joint)
