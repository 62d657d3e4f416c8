"""Group programmes: the channels of groups of histories that are alike, one programme after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from funnel.history.conditions import Conditions
from funnel.history.history_groups import Members
from funnel.history.shared_channel import SharedChannel, upper_bounds
from funnel.history.tangent import Start, Tangent
from funnel.joint import FloatArray, IntArray

# Numbers worked on at once.
CHUNK = 2**18


@dataclass(eq=False)
class Group:
    """Histories that share a programme, where it ended, and what it led to."""

    members: Members
    start: Start | None = None
    last: SharedChannel | None = None


@dataclass(frozen=True, eq=False)
class GroupProgrammes:
    """What programmes are about: distributions (m, c, a), masses (m, a), shares (m,), cones, and gains (b, a)."""

    distributions: FloatArray
    masses: FloatArray
    weights: FloatArray
    prior_of: IntArray
    cones: Sequence[FloatArray]
    sizes: Sequence[int] | None
    gains: FloatArray

    def solve(self, groups: Sequence[Group], rounds: int) -> list[SharedChannel]:
        """The channels of some groups, each begun where it ended before, or else where the one before it ended."""
        found: list[SharedChannel] = []
        tangents: dict[int, Tangent] = {}
        for group in groups:
            cone = self.cones[self.prior_of[group.members[0]]]
            tangent = tangents.get(len(cone))
            if tangent is None:
                tangent = tangents[len(cone)] = Tangent(len(self.gains), self.gains.shape[1], len(cone))
            found.append(self._shared(tangent, cone, group, rounds))
        return found

    def _shared(self, tangent: Tangent, cone: FloatArray, group: Group, rounds: int) -> SharedChannel:
        """A channel for the mean distribution, with conditions of members that it breaks, judged for all members."""
        members, before, judged = group.members, tangent.work, tangent.judged
        weights = self.weights[members]
        distribution = np.tensordot(weights / weights.sum(), self.distributions[members], axes=1)
        mean = Conditions.of(distribution[None], cone, self.sizes)
        channel, prices = tangent.solve(mean, self.gains * self.masses[members].sum(axis=0), group.start)
        step = max(1, CHUNK // self.gains.size)
        parts = [members[start : start + step] for start in range(0, len(members), step)]
        conditions = [mean]
        if len(members) > 1:
            conditions = [Conditions.of(self.distributions[part], cone, self.sizes) for part in parts]
            if not mean.held.any():
                channel = tangent.bind(channel, conditions, mean, rounds)
        group.start = tangent.start()
        prices /= weights.sum() if self.masses[members].any() else np.inf
        needs = [each.needs(channel) for each in conditions]
        bounds = [
            upper_bounds(prices, each, self.masses[part], self.weights[part], self.gains)
            for part, each in zip(parts, conditions, strict=True)
        ]
        judging = tangent.judged - judged + 5.0 * len(members) * self.gains.size * (prices.shape[1] + 1)
        work, all_needs, all_bounds = tangent.work - before, np.concatenate(needs), np.concatenate(bounds)
        found = SharedChannel.for_needs(channel, all_needs, all_bounds, prices, work, judging)
        return found.valued(self.masses[members], self.gains)
