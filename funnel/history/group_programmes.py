"""Group programmes: the channels of groups of histories that are alike, one programme after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

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
        for cone, side_by_side in self._batches(groups):
            tangent = tangents.get(len(cone))
            if tangent is None:
                tangent = tangents[len(cone)] = Tangent(len(self.gains), self.gains.shape[1], len(cone))
            if len(side_by_side[0].members) == 1:
                found += self._alone(tangent, cone, side_by_side)
            else:
                found.append(self._shared(tangent, cone, side_by_side[0], rounds))
        return found

    def _batches(self, groups: Sequence[Group]) -> Iterator[tuple[FloatArray, list[Group]]]:
        """Histories that are alone and have one cone, together; every other group by itself."""

        def kind(group: Group) -> tuple[int, int]:
            return int(self.prior_of[group.members[0]]), -1 if len(group.members) == 1 else id(group)

        for (prior, _), batch in groupby(groups, key=kind):
            yield self.cones[prior], list(batch)

    def _alone(self, tangent: Tangent, cone: FloatArray, groups: list[Group]) -> list[SharedChannel]:
        members = np.concatenate([group.members for group in groups])
        conditions = Conditions.of(self.distributions[members], cone, self.sizes)
        masses, weights = self.masses[members], self.weights[members]
        worth = self.gains * masses[:, None, :]
        solved = tangent.solve(conditions, worth, [group.start for group in groups])
        for group, start in zip(groups, solved.starts, strict=True):
            group.start = start
        prices = solved.prices / np.where(masses.any(axis=1), weights, np.inf)[:, None, None]
        needs = conditions.needs(solved.channels)
        bounds = upper_bounds(prices, conditions, masses, weights, self.gains)
        judging = 5.0 * self.gains.size * (prices.shape[2] + 1)
        return SharedChannel.alone(solved.channels, needs, bounds, prices, solved.work, judging, worth)

    def _shared(self, tangent: Tangent, cone: FloatArray, group: Group, rounds: int) -> SharedChannel:
        """A channel for the mean distribution, with conditions of members that it breaks, judged for all members."""
        members = group.members
        weights = self.weights[members]
        distribution = np.tensordot(weights / weights.sum(), self.distributions[members], axes=1)
        mean = Conditions.of(distribution[None], cone, self.sizes)
        solved = tangent.solve(mean, (self.gains * self.masses[members].sum(axis=0))[None], [group.start])
        channel, before, judged = solved.channels[0], tangent.work, tangent.judged
        step = max(1, CHUNK // self.gains.size)
        parts = [members[start : start + step] for start in range(0, len(members), step)]
        conditions = [Conditions.of(self.distributions[part], cone, self.sizes) for part in parts]
        group.start = solved.starts[0]
        if not mean.held.any():
            channel = tangent.bind(channel, conditions, mean, rounds)
            group.start = tangent.start()
        prices = solved.prices[0] / (weights.sum() if self.masses[members].any() else np.inf)
        needs = [each.needs(channel) for each in conditions]
        bounds = [
            upper_bounds(prices, each, self.masses[part], self.weights[part], self.gains)
            for part, each in zip(parts, conditions, strict=True)
        ]
        work = float(solved.work[0]) + tangent.work - before
        judging = tangent.judged - judged + 5.0 * len(members) * self.gains.size * (prices.shape[1] + 1)
        found = SharedChannel.for_needs(channel, np.concatenate(needs), np.concatenate(bounds), prices, work, judging)
        return found.valued(self.masses[members], self.gains)
