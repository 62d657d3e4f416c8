"""Groups of histories whose distributions are close: what shares a channel where not everybody can have one."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt

from funnel.history.conditions import Conditions
from funnel.history.shared_channel import SharedChannel, alone_channels, upper_bounds
from funnel.history.tangent import Start, Tangent
from funnel.joint import FloatArray, IntArray

Members = npt.NDArray[np.intp]

# Rounds of the power method: the direction of a cut need not be exact.
_ROUNDS = 4
# Distributions whose square roots are closer than this are the same distribution, computed in another order.
_SAME = 1e-13


def canonical_order(distributions: FloatArray, masses: FloatArray, prior_of: IntArray) -> Members:
    """An order of histories whatever order they come in: by cone, distribution and mass, bit by bit."""
    table = np.column_stack([prior_of, *(_bits(values) for values in (distributions, masses))])
    keys = np.ascontiguousarray(table).view(np.dtype((np.void, table.itemsize * table.shape[1])))[:, 0]
    return np.argsort(keys, kind="stable")


def _bits(values: FloatArray) -> IntArray:
    # Adding zero makes a negative one positive.
    return np.asarray(
        (np.ascontiguousarray(values).reshape(len(values), math.prod(values.shape[1:])) + 0.0).view(np.int64)
    )


def split_group(distributions: FloatArray, weights: FloatArray, members: Members) -> tuple[Members, Members]:
    """A group cut in two where its distributions differ most: at the mean of the main direction of their roots.

    Neither half is empty. O(members c a).

    Parameters
    ----------
    distributions : ndarray, shape (m, c, a)
    weights : ndarray, shape (m,)
        Shares of people, > 0.
    members : ndarray of int, shape (k,), k >= 2
    """
    points, share = _points(distributions, weights, members)
    centre = share @ points
    points -= centre
    spread = np.sqrt(share)[:, None] * points
    direction = spread[np.argmax((spread**2).sum(axis=1))]
    for _ in range(_ROUNDS):
        turned = spread.T @ (spread @ direction)
        length = float(np.linalg.norm(turned))
        if length == 0:
            break
        direction = turned / length
    above = points @ direction > 0
    if above.all() or not above.any():
        above = np.arange(len(members)) < len(members) // 2
    return members[above], members[~above]


def spread(distributions: FloatArray, weights: FloatArray, members: Members) -> float:
    """How far the distributions of a group are from their mean, times the share of people."""
    points, share = _points(distributions, weights, members)
    points -= share @ points
    return float(weights[members].sum() * (share @ (points**2).sum(axis=1)))


def grouped(distributions: FloatArray, weights: FloatArray, start: list[Members], number: int) -> list[Members]:
    """Groups cut in two, the widest first, until there are so many or all distributions of a group are the same.

    What was cut from one group stays side by side, so that neighbours are alike. O(m c a log number).
    """
    queue = [(-spread(distributions, weights, members), place) for place, members in enumerate(start)]
    heapq.heapify(queue)
    groups = list(start)
    following = [*range(1, len(start)), -1]
    while queue and len(groups) < number:
        width, place = heapq.heappop(queue)
        if len(groups[place]) < 2 or -width <= _SAME**2 * weights[groups[place]].sum():
            continue
        groups[place], other = split_group(distributions, weights, groups[place])
        following.append(following[place])
        following[place] = len(groups)
        groups.append(other)
        for changed in (place, len(groups) - 1):
            heapq.heappush(queue, (-spread(distributions, weights, groups[changed]), changed))
    ordered, place = [], 0 if groups else -1
    while place >= 0:
        ordered.append(groups[place])
        place = following[place]
    return ordered


def _points(distributions: FloatArray, weights: FloatArray, members: Members) -> tuple[FloatArray, FloatArray]:
    """Square roots of distributions, which weigh rare cells too, (k, c a), and the share of each in the group, (k,)."""
    points = np.sqrt(distributions[members].reshape(len(members), -1))
    mass = weights[members]
    return points, mass / mass.sum()


# Numbers worked on at once.
CHUNK = 2**18


@dataclass(eq=False)
class Group:
    """Histories that share a programme, where it ended, and what it led to."""

    members: Members
    start: Start | None = None
    last: SharedChannel | None = None

    @property
    def is_alone(self) -> bool:
        """Whether it is of one history."""
        return len(self.members) == 1


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

    def solve(self, groups: Sequence[Group], rounds: int, work: float) -> list[SharedChannel]:
        """The channels of some groups, each begun where it ended before, or else where the one before it ended.

        Rounds of cutting planes are begun as long as all programmes did less work than there may be.
        """
        found: list[SharedChannel] = []
        tangents: dict[int, Tangent] = {}
        for (kind, is_alone), some in groupby(groups, lambda one: (int(self.prior_of[one.members[0]]), one.is_alone)):
            cone = self.cones[kind]
            tangent = tangents.get(len(cone))
            if tangent is None:
                tangent = tangents[len(cone)] = Tangent(len(self.gains), self.gains.shape[1], len(cone))
            if is_alone:
                found += self._alone(tangent, cone, list(some))
            else:
                found += [self._shared(tangent, cone, group, rounds, work) for group in some]
        return found

    def _alone(self, tangent: Tangent, cone: FloatArray, groups: Sequence[Group]) -> list[SharedChannel]:
        """A channel for each of some groups of one history."""
        members = np.concatenate([group.members for group in groups])
        weights, masses = self.weights[members], self.masses[members]
        conditions = Conditions.of(self.distributions[members], cone, self.sizes)
        ended = tangent.solve(conditions, self.gains * masses[:, None, :], [group.start for group in groups])
        for group, start in zip(groups, ended.starts, strict=True):
            group.start = start
        prices = ended.prices / np.where(masses.any(axis=1), weights, np.inf)[:, None, None]
        bounds = upper_bounds(prices, conditions, masses, weights, self.gains)
        needs, judging = conditions.needs(ended.channels), self._judging(1, prices)
        return alone_channels(ended, needs, bounds, prices, judging, masses, self.gains)

    def _shared(self, tangent: Tangent, cone: FloatArray, group: Group, rounds: int, limit: float) -> SharedChannel:
        """A channel for the mean distribution, with conditions of members that it breaks, judged for all members."""
        members, before, judged = group.members, tangent.work, tangent.judged
        weights = self.weights[members]
        distribution = np.tensordot(weights / weights.sum(), self.distributions[members], axes=1)
        mean = Conditions.of(distribution[None], cone, self.sizes)
        ended = tangent.solve(mean, (self.gains * self.masses[members].sum(axis=0))[None], [group.start])
        channel, prices = ended.channels[0], ended.prices[0]
        step = max(1, CHUNK // self.gains.size)
        parts = [members[start : start + step] for start in range(0, len(members), step)]
        conditions = [Conditions.of(self.distributions[part], cone, self.sizes) for part in parts]
        if not mean.held.any():
            channel = tangent.bind(channel, conditions, mean, rounds, limit)
        group.start = tangent.start()
        prices /= weights.sum() if self.masses[members].any() else np.inf
        needs = [each.needs(channel) for each in conditions]
        bounds = [
            upper_bounds(prices, each, self.masses[part], self.weights[part], self.gains)
            for part, each in zip(parts, conditions, strict=True)
        ]
        judging = tangent.judged - judged + self._judging(len(members), prices)
        work, all_needs, all_bounds = tangent.work - before, np.concatenate(needs), np.concatenate(bounds)
        found = SharedChannel.for_needs(channel, all_needs, all_bounds, prices, work, judging)
        return found.valued(self.masses[members], self.gains)

    def _judging(self, members: int, prices: FloatArray) -> float:
        """Units of work to judge a channel for so many members."""
        return 5.0 * members * float(self.gains.size * (prices.shape[-1] + 1))
