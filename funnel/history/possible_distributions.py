"""Possible distributions: limits of what all histories say before a version, by all that was published so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from funnel.errors import SpecError
from funnel.guarantees.robust_guarantee import RobustRatio
from funnel.history.allowed import Allowed, Kept
from funnel.history.move_limits import MoveLimits
from funnel.history.observed import Observed
from funnel.history.open_shares import float_below, shares_in_population, shares_under_noise, significance_of_counts
from funnel.history.past import Chapter, Past
from funnel.history.possible import PossibleStep, Reach
from funnel.joint import IntArray, Joint
from funnel.protocol import WORD_BITS


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
    """

    def __init__(
        self, past: Past, joint: Joint, limits: Mapping[int, MoveLimits], alpha: Fraction | None = None
    ) -> None:
        self._past, self._alpha = past, alpha
        self._known: dict[int, Reach] = {}
        self._steps = {-1: self._step(len(past), joint, None)}
        for v, one in limits.items():
            self._steps[v] = self._step(len(past), joint, one, past.chapters[v].joint)
        self._earlier: dict[tuple[int, int], PossibleStep] = {}

    @classmethod
    def of(cls, past: Past, observed: Observed, allowed: Allowed) -> DistributionSet | None:
        """What is open before a version about some people; None where the bound is for the published tables alone."""
        limits = observed.limits
        if limits is None and allowed.significance is None:
            return None
        if limits is None:
            limits = {
                v: MoveLimits.exactly(one, past.chapters[v].joint, observed.joint)
                for v, one in observed.changes.items()
            }
        return cls(past, observed.joint, limits, allowed.significance)

    def for_new_people(self, guarantee: Kept) -> Kept:
        """A guarantee as it is decided for people without a history: at the significance of the counts."""
        if self._alpha is None or not isinstance(guarantee, RobustRatio):
            return guarantee
        return replace(guarantee, alpha=float_below(significance_of_counts(len(self._past) + 1, self._alpha)))

    def _step(
        self, version: int, joint: Joint, limits: MoveLimits | None, earlier: Joint | None = None
    ) -> PossibleStep:
        if self._alpha is None:
            return PossibleStep(joint, shares_under_noise(joint, limits), earlier)
        return PossibleStep(joint, shares_in_population(joint, limits, version + 1, self._alpha), earlier)

    def steps_of(self, nodes: IntArray) -> tuple[IntArray, dict[int, PossibleStep]]:
        """The last version of each history, -1 of new people, and the step from each of these."""
        versions = self._past.versions_of(nodes)
        missing = set(np.unique(versions).tolist()) - set(self._steps)
        if missing:
            raise SpecError("limits of the moves since some versions are missing")
        return versions, self._steps

    def reach(self, nodes: IntArray, version: int) -> Reach | None:
        """Limits of histories whose last version is this one, after it; None of new people."""
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
                parts.append((here, step.after(self.reach(chapter.parents[here], v), rows[here])))
            order = np.argsort(np.concatenate([here for here, _ in parts]), kind="stable")
            self._known[version] = Reach(
                *(
                    np.concatenate([getattr(one, name) for _, one in parts])[order]
                    for name in ("lower", "upper", "least", "most", "sound")
                )
            )
        return self._known[version]

    def _between(self, v: int, t: int) -> PossibleStep:
        if (v, t) not in self._earlier:
            chapter = self._past.chapters[t]
            if v < 0:
                self._earlier[v, t] = self._step(t, chapter.joint, None)
            else:
                earlier = self._past.chapters[v].joint
                self._earlier[v, t] = self._step(t, chapter.joint, self._limits(chapter, v, earlier), earlier)
        return self._earlier[v, t]

    def _limits(self, chapter: Chapter, v: int, earlier: Joint) -> MoveLimits:
        """Of the moves between two published versions: what noise left open, or exact ones where there was none."""
        if chapter.limits is not None and v in chapter.limits:
            return chapter.limits[v]
        if self._alpha is None or chapter.by_class is None:
            raise SpecError(
                f"version {chapter.version!r} was not published with limits of the moves since those before it, so "
                "no bound over all true tables can be kept; leave robust out of [history], or begin a register"
            )
        return MoveLimits.exactly(chapter.changes[v], earlier, chapter.joint)
