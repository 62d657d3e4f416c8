"""Library: few channels for many prefixes, each proven for every prefix that draws from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from funnel.groups.aims import INFORMATION, Aim
from funnel.groups.local import best_channel, joined
from funnel.groups.pooling import ClassRules, rows_of
from funnel.groups.protocol import BITS, UNIT
from funnel.history.grouping import grouped
from funnel.joint import FloatArray, IntArray
from funnel.solver.budget import Budget

# What a prefix may lose by a shared channel, as a share of H(X|h).
TOLERANCE = 0.02
# Shared channels are made for so much less of the budget, so that they hold for other laws than their own.
SHRUNK = (0.97, 0.9)
# Numbers of groups of prefixes that channels are made for, and those under rules, where many have to share.
_GROUPS = (1, 4, 24)
_COARSER = (1, 2, 4, 8, 16, 32, 64)
# An output that fewer people are expected to have is joined to another.
_RARE = 1.0
# Conditions are met by so much more than doubles can be wrong, relatively.
_MARGIN = 1e-9
# Numbers worked on at once.
_CHUNK = 2**22


@dataclass(frozen=True, eq=False)
class Channel:
    """A channel over some of the inputs of a stage.

    Attributes
    ----------
    inputs : ndarray of bool, shape (a,)
        Those that it is made for.
    weights : ndarray of int64, shape (b, a)
        Columns sum to 2^44 for these inputs, and are 0 for others.
    """

    inputs: npt.NDArray[np.bool_]
    weights: IntArray

    @property
    def rows(self) -> FloatArray:
        """The weights over 2^44, (b, a): doubles without rounding."""
        return np.ldexp(self.weights.astype(np.float64), -BITS)

    @classmethod
    def silent(cls, inputs: npt.NDArray[np.bool_]) -> Channel:
        """One output for all inputs that are possible, which says no more than that they are."""
        return cls(inputs, np.where(inputs, UNIT, 0)[None])

    @classmethod
    def for_law(
        cls,
        law: FloatArray,
        cone: FloatArray,
        budget: Budget,
        rules: ClassRules | None = None,
        aim: Aim = INFORMATION,
    ) -> Channel | None:
        """The best for a law (c, a) that counts people; None where nothing may be said.

        Under rules it is a function of sums over pools of inputs, and made for all inputs.
        """
        if rules is not None:
            pool = rules.pools(law)
            if pool is None:
                return None
            pooled: FloatArray = np.stack([np.bincount(pool, weights=row) for row in law]).astype(np.float64)
            made = cls.for_law(pooled, cone, budget, aim=aim.pooled(pool))
            return None if made is None else cls(np.ones(law.shape[1], dtype=np.bool_), made.weights[:, pool])
        seen = law.sum(axis=0) > 0
        there = aim.taken(seen)
        found = best_channel(law[:, seen], cone, budget, there)
        if found is None:
            return None
        people = law[:, seen].sum(axis=0)
        kept = joined(found, people / people.sum(), min(0.5, _RARE / people.sum()), there)
        if len(kept) < 2:
            return None
        weights = np.zeros((len(kept), law.shape[1]), dtype=np.int64)
        weights[:, seen] = whole_numbers(kept)
        return cls(seen, weights)

    def worth(self, laws: FloatArray, cone: FloatArray, aim: Aim = INFORMATION) -> FloatArray:
        """What it tells people of laws (m, c, a) together, times people, (m,); -inf where it is not allowed."""
        m, c, a = laws.shape
        worth = np.full(m, -np.inf)
        inside = ~(laws[:, :, ~self.inputs].any(axis=(1, 2)))
        places = np.flatnonzero(inside)
        rows, aim = self.rows[:, self.inputs], aim.taken(self.inputs)
        for some in np.array_split(places, max(1, len(places) * c * max(len(rows), a) // _CHUNK)):
            if not len(some):
                continue
            law = laws[some][:, :, self.inputs]
            outputs = law @ rows.T
            excess = np.matmul(cone, outputs)
            allowed = (excess <= -_MARGIN * np.matmul(np.abs(cone), outputs)).all(axis=(1, 2))
            worth[some] = np.where(allowed, aim.told(rows, law.sum(axis=1)), -np.inf)
        return worth


def whole_numbers(rows: FloatArray) -> IntArray:
    """A channel (b, a) as weights whose columns sum to 2^44."""
    weights = np.floor(np.ldexp(rows, BITS)).astype(np.int64)
    # What a column lacks goes to its largest entry.
    weights[weights.argmax(axis=0), np.arange(weights.shape[1])] += UNIT - weights.sum(axis=0)
    return weights


def information(rows: FloatArray, people: FloatArray) -> float:
    """What a channel (b, a) tells people with these inputs, (m, a), together, nats times people."""
    return float(INFORMATION.told(rows, people).sum())


def shared_channels(
    laws: FloatArray,
    cones: tuple[FloatArray, ...],
    budget: Budget,
    tolerance: float = TOLERANCE,
    rules: ClassRules | None = None,
    aim: Aim = INFORMATION,
) -> tuple[list[Channel], IntArray]:
    """Channels for prefixes with many people, as few as lose next to nothing, and the channel of each prefix.

    Candidates are the best channel of every prefix, and those of groups of prefixes with close laws, made for a little
    less than may be said. Each is judged for every prefix by itself. Then those are chosen that most people can draw
    from and lose at most ``tolerance`` of what there is to tell: greedy set cover, which is within a factor 1 + ln m of
    the fewest.

    Parameters
    ----------
    laws : ndarray, shape (m, c, a)
        People by secret and input that are expected to have each prefix.
    cones : tuple of ndarray, each (k, c)
        The conditions that must hold, those that channels are made for, and those that shared channels are made for.
    budget : Budget
    tolerance : float
    rules : ClassRules, optional
        That the table of those who draw from a channel has to keep: channels of which it does not are given up, those
        of fewest people first, and their prefixes draw from the best that is left for them.
    aim : Aim
        What channels are made to tell. Under rules inputs that share a row of a channel count alike.

    Returns
    -------
    list of Channel, and ndarray of int64, shape (m,)
        -1 for prefixes of which nothing may be said.
    """
    m = len(laws)
    people = laws.sum(axis=(1, 2))
    assigned = np.full(m, -1, dtype=np.int64)
    if m == 0:
        return [], assigned
    candidates: list[Channel] = []
    best = np.zeros(m)
    worths: list[FloatArray] = []

    def consider(channel: Channel | None) -> FloatArray | None:
        if channel is None:
            return None
        worth = channel.worth(laws, cones[0], counted(channel, aim, rules))
        if not (worth > 0).any():
            return None
        candidates.append(channel)
        worths.append(worth)
        np.maximum(best, worth, out=best)
        return worth

    shares = people / people.sum()
    for groups in dict.fromkeys(min(m, number) for number in (_GROUPS if rules is None else _COARSER)):
        for members in grouped(laws / people[:, None, None], shares, [np.arange(m)], groups) if m > 1 else []:
            for cone in cones[2:]:
                consider(Channel.for_law(laws[members].sum(axis=0), cone, budget.part(1 / (4 * m)), rules, aim))
    room = tolerance * aim.whole(laws.sum(axis=1))
    # What a prefix could have at most is known for its own channel only: those that share have to be compared with it.
    for h in np.argsort(-people, kind="stable").tolist():
        consider(Channel.for_law(laws[h], cones[1], budget.part(2 / m), rules, aim))
    if not candidates:
        return [], assigned
    table = np.array(worths)
    covers = (table > 0) & (table >= best - room)
    chosen: list[int] = []
    left = covers.any(axis=0)
    while left.any():
        gains = covers[:, left] @ people[left]
        place = int(gains.argmax())
        chosen.append(place)
        left &= ~covers[place]
    if rules is not None:
        chosen = _kept(chosen, table, candidates, laws, people, rules)
        if not chosen:
            return [], assigned
    of_prefix = table[chosen].argmax(axis=0)
    speaking = table[chosen].max(axis=0) > 0
    assigned[speaking] = of_prefix[speaking]
    return [candidates[place] for place in chosen], assigned


def counted(channel: Channel, aim: Aim, rules: ClassRules | None) -> Aim:
    """What a channel is judged by: under rules no more of inputs that share a row than that one of them is there."""
    return aim if rules is None else aim.blurred(rows_of(channel.weights))


def keeps(channel: Channel, laws: FloatArray, rules: ClassRules) -> bool:
    """Whether the table of some prefixes (m, c, a) together keeps the rules, by the rows of a channel."""
    return rules.holds(laws.sum(axis=0), rows_of(channel.weights))


def _kept(
    chosen: list[int],
    table: FloatArray,
    candidates: list[Channel],
    laws: FloatArray,
    people: FloatArray,
    rules: ClassRules,
) -> list[int]:
    """Of the chosen channels those that are left when all keep the rules for whoever draws from them."""
    known: dict[tuple[int, bytes], bool] = {}

    def passes(place: int, members: IntArray) -> bool:
        key = place, members.tobytes()
        if key not in known:
            known[key] = keeps(candidates[place], laws[members], rules)
        return known[key]

    while chosen:
        worth = table[chosen]
        of_prefix = np.where(worth.max(axis=0) > 0, worth.argmax(axis=0), -1)
        members = [np.flatnonzero(of_prefix == k) for k in range(len(chosen))]
        breaking = [k for k, some in enumerate(members) if len(some) and not passes(chosen[k], some)]
        if not breaking:
            return [place for place, some in zip(chosen, members, strict=True) if len(some)]
        least = min(breaking, key=lambda k: people[members[k]].sum())
        chosen = chosen[:least] + chosen[least + 1 :]
    return chosen
