"""Possible rows: the best channels of histories for which the bound holds under every set of tables noise leaves open.

What the worst tables say of an output is no linear condition on its row, but the largest of many. Each history begins
with the published distribution and the distributions that are worst for the rows aimed at, as conditions side by side;
those that are worst for the rows that were found are added for some rounds, and what is then still beyond gets a
constant row, as little of it as is enough: limits of a sum are no more than the sum of limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from scipy.linalg import block_diag

from funnel.history.allowed import Kept, allowed_by
from funnel.history.conditions import Beliefs, binding_rows, cone_over
from funnel.history.distributions import BoolArray
from funnel.history.history_status import HistoryStatus
from funnel.history.possible import PossibleStep, Told
from funnel.history.possible_distributions import DistributionSet
from funnel.history.programme import Rows, RowSearch
from funnel.history.step import Step
from funnel.history.worst_tables import Worst, told_of, worst_distribution
from funnel.joint import FloatArray, IntArray
from funnel.progress import Progress, quiet
from funnel.solver.budget import Budget

# Distributions added to those of a history in a round, and of all that it has; rounds in which some are added.
_MORE: Final = 4
_MOST: Final = 40
_ROUNDS: Final = 8
# A constant row is worth a distribution more from this share on.
_LITTLE: Final = 1e-4
# What proofs by intervals need besides.
_SURE: Final = 1e-9
# Channels have so many mixtures at most: shares 1, 1/2, … of what their histories need.
_LEVELS: Final = 7


_Decided = tuple[IntArray, PossibleStep, list[Told], Worst]


@dataclass(eq=False)
class _Part:
    """Histories of which the same is left untold, and the search for their rows.

    Attributes
    ----------
    places : ndarray of int64
    untold : list of ndarray of bool, each (a,)
        Inputs of which somebody who knows that a person has one is told nothing: rows are the same for all of them.
    kept : ndarray, shape (a, k)
        Which inputs have the same rows: those in one of these groups, or in groups that have some in common.
    """

    places: IntArray
    untold: list[BoolArray]
    kept: FloatArray
    rounds: int = 0
    search: RowSearch | None = None

    @classmethod
    def of(cls, places: IntArray, untold: list[BoolArray], a: int) -> _Part:
        """Of a inputs."""
        classes = np.arange(a)
        for inside in untold * len(untold):
            classes[np.isin(classes, classes[inside])] = classes[inside].min()
        return cls(places, untold, np.eye(a)[classes][:, np.unique(classes)])

    def merged(self, gains: FloatArray, masses: FloatArray) -> FloatArray:
        """Gains (b, a) as means over inputs that have the same rows, by masses (h, a)."""
        if not self.untold:
            return gains
        weights = np.maximum(masses.sum(axis=0), 1e-300)
        return np.asarray((gains * weights) @ self.kept / (weights @ self.kept))

    def apart(self, found: Rows) -> Rows:
        """Rows for such inputs together as rows for each of them."""
        return replace(found, library=found.library @ self.kept.T) if self.untold else found


class PossibleSearch:
    """`RowSearch` for histories whose bound has to hold under every set of tables.

    Parameters
    ----------
    status : HistoryStatus
        h histories, with what noise leaves open of them.
    possible : DistributionSet
    masses : ndarray, shape (h, a)
    inner : Kept
        The bound at the budget to be kept.
    target : ndarray, shape (b, a)
        What is aimed at.
    """

    def __init__(
        self,
        status: HistoryStatus,
        possible: DistributionSet,
        masses: FloatArray,
        inner: Kept,
        target: FloatArray,
    ) -> None:
        self._status, self._possible, self._inner, self._masses = status, possible, allowed_by(inner), masses
        self._shape = status.joint.counts.shape
        # What is asked for by published counts alone; each belief of these is a condition beside those for worst
        # distributions.
        self._counted = Beliefs.of(status, inner)
        # By what is known besides: half-spaces for the distributions that are worst, by the prior of a history.
        known = next(iter(possible.steps_of(status.nodes[:1])[1].values())).known
        priors = [status.priors, *((one.counted,) * len(status.priors) for one in known)]
        self._cones = [[binding_rows(cone_over(inner, prior)) for prior in of_known] for of_known in priors]
        every = np.arange(len(status.nodes))
        inside = np.ones((len(every), len(self._cones)), dtype=bool)
        rooms: dict[int, FloatArray] = {}
        for here, _, _, found in self._decided(every, np.ones((1, self._shape[1]))):
            for place in range(len(self._cones)):
                within = (found.above < found.below)[:, 1:][:, found.known[1:] == place]
                inside[here, place] = within.all(axis=1)
            rooms |= dict(zip(here.tolist(), found.below - found.above, strict=True))
        # Nothing can be said where the history alone may be outside the bound, and to an observer who knows something
        # for whom it may be: such rows are the same for all inputs with it.
        may, told = inside[:, 0], inside[:, 1:]
        kinds = np.unique(told[may], axis=0)
        self._parts = [
            _Part.of(
                np.flatnonzero(may & (told == kind).all(axis=1)),
                [known[q].inside for q in np.flatnonzero(~kind).tolist()],
                self._shape[1],
            )
            for kind in kinds
        ]
        # Of what is left untold nothing is asked.
        self._room = np.ones((len(every), max(map(len, rooms.values()))))
        for h, room in rooms.items():
            self._room[h, : len(room)] = np.where(room > 0, room, 1.0)
        self._distributions: list[list[list[FloatArray]]] = [[[] for _ in self._cones] for _ in range(len(every))]
        mixed = 0.5 * (target + (target @ status.joint.p_input)[:, None])
        for part in self._parts:
            self._add(part, np.broadcast_to(mixed, (len(part.places), *mixed.shape)), 0.0)

    def best(self, gains: FloatArray, *, budget: float | Budget | None = None, progress: Progress = quiet) -> Rows:
        """The best rows for these gains, as of `RowSearch.best`; values are reached, bounds those of constant rows."""
        b, a = gains.shape
        constants = self._masses @ gains.T
        values, assigned = constants.max(axis=1), constants.argmax(axis=1)
        library = [np.zeros((b, b, a))]
        library[0][np.arange(b), np.arange(b)] = 1.0
        bounds, programmes, size = self._masses @ gains.max(axis=0), 0, b
        followed = np.concatenate([np.zeros(0, dtype=np.int64), *(part.places for part in self._parts)])
        closed = np.setdiff1d(np.arange(len(values)), followed)
        bounds[closed] = values[closed]
        work = Budget.of(budget)
        for number, part in enumerate(self._parts):
            share = work if number == len(self._parts) - 1 else work.part(1 / (len(self._parts) - number))
            while True:
                search = part.search or self._begun(part)
                found = part.apart(search.best(part.merged(gains, self._masses), budget=share, progress=progress))
                programmes += found.programmes
                rows, channel = self._mended(part, found.library, found.assigned)
                worth = np.einsum("ha,ma->hm", self._masses[part.places], (rows * gains).sum(axis=1))
                worth = worth[np.arange(len(part.places)), channel]
                better = worth > values[part.places]
                chosen = part.places[better]
                values[chosen], assigned[chosen] = worth[better], size + channel[better]
                library.append(rows)
                size += len(rows)
                if part.rounds >= _ROUNDS or not self._add(part, found.library[found.assigned], 1 + _LITTLE):
                    break
                part.rounds += 1
                part.search = None
        every = np.concatenate(library)
        used, assigned = np.unique(assigned, return_inverse=True)
        return Rows(every[used], assigned, values, np.maximum(bounds, values), programmes)

    def _begun(self, part: _Part) -> RowSearch:
        """The programme with all distributions that are known now: those of a history one above the other."""
        (c, a), distributions = self._shape, [self._distributions[h] for h in part.places.tolist()]
        slots = [
            known for known in range(len(self._cones)) for _ in range(max(len(own[known]) for own in distributions))
        ]
        counted = self._counted.distributions[part.places]
        worst = np.zeros((len(part.places), len(slots), c, a))
        for place, own in enumerate(distributions):
            for slot, known in enumerate(slots):
                # A history with fewer of these has one of them several times, or none, which asks for nothing.
                if own[known]:
                    worst[place, slot] = own[known][(slot - slots.index(known)) % len(own[known])]
        # Each distribution is one up to a factor.
        size = counted.shape[1] // c + len(slots)
        worst /= np.maximum(worst.sum(axis=(2, 3), keepdims=True), 1e-300) * size
        stacked = np.concatenate([counted / size, worst.reshape(len(part.places), len(slots) * c, a)], axis=1)
        kinds = np.stack([self._counted.cone_of[part.places], self._status.prior_of[part.places]], axis=1)
        distinct, cone_of = np.unique(kinds, axis=0, return_inverse=True)
        cones: list[FloatArray] = [
            block_diag(self._counted.cones[of_counted], *(self._cones[known][prior] for known in slots))
            for of_counted, prior in distinct.tolist()
        ]
        part.search = RowSearch(stacked @ part.kept, self._masses[part.places] @ part.kept, cone_of.reshape(-1), cones)
        return part.search

    def _decided(self, histories: IntArray, rows: FloatArray, untold: Sequence[BoolArray] = ()) -> list[_Decided]:
        """Rows (m, b, a) of some histories, or (b, a) of all of them: by last version which these are, and how far."""
        nodes = self._status.nodes[histories]
        versions, steps = self._possible.steps_of(nodes)
        rows = np.broadcast_to(rows, (len(histories), *rows.shape[-2:]))
        parts = []
        for v in np.unique(versions).tolist():
            here = np.flatnonzero(versions == v)
            told, found = told_of(self._possible, steps[v], nodes[here], rows[here], self._inner)
            if untold:
                few = [False, *(any(one.inside is some for some in untold) for one in steps[v].known)]
                left_out = np.array(few)[found.known]
                above, below = (np.where(left_out, end, one) for end, one in ((0.0, found.above), (1.0, found.below)))
                found = replace(found, above=above, below=below)
            parts.append((here, steps[v], told, found))
        return parts

    def _add(self, part: _Part, rows: FloatArray, least: float) -> int:
        """Take the worst distributions of rows (m, b, a) of all open histories beyond the bound by so much."""
        added, b = 0, rows.shape[1]
        for here, step, told, found in self._decided(part.places, rows, part.untold):
            ratios = found.ratios.reshape(len(here), -1)
            order = np.argsort(-ratios, axis=1, kind="stable")[:, :_MORE]
            for local, places in enumerate(order.tolist()):
                distributions = self._distributions[int(part.places[here[local]])]
                for place in places:
                    y, k = divmod(place, len(found.which))
                    if ratios[local, place] > least and sum(map(len, distributions)) < _MOST:
                        distributions[int(found.known[k])].append(
                            worst_distribution(step, told, found, local * b + y, k)
                        )
                        added += 1
        return added

    def _mended(self, part: _Part, library: FloatArray, assigned: IntArray) -> tuple[FloatArray, IntArray]:
        """Channels with what histories need of a constant row, and which of them each history has."""
        needs = np.zeros((len(part.places), library.shape[1]))
        for here, _, _, found in self._decided(part.places, library[assigned], part.untold):
            beyond = (found.above * (1 + _SURE) - found.below).reshape(len(here), library.shape[1], -1)
            needed = np.maximum(beyond, 0.0) / self._room[part.places[here]][:, None, : beyond.shape[2]]
            needs[here] = needed.max(axis=2)
        rows, channel, size = [], np.zeros(len(part.places), dtype=np.int64), 0
        for one in np.unique(assigned).tolist():
            members = np.flatnonzero(assigned == one)
            most = needs[members].max(axis=0)
            share = np.divide(needs[members], most, out=np.zeros_like(needs[members]), where=most > 0).max(axis=1)
            with np.errstate(divide="ignore"):
                halved = np.clip(np.floor(-np.log2(share)), 0, _LEVELS - 1)
            level = np.where(share > 0, _LEVELS - halved, 0)
            for kind in np.unique(level).tolist():
                mixed = library[one] + (0.0 if kind == 0 else 2.0 ** (kind - _LEVELS)) * most[:, None]
                rows.append(mixed / mixed.sum(axis=0))
                channel[members[level == kind]] = size
                size += 1
        return np.array(rows), channel


def share_that_is_open(step: Step) -> float | None:
    """The share of the people of a step whose history may be outside the bound by itself, under tables left open.

    None where the bound is kept under the published tables alone.
    """
    # Of units it is that before their first row.
    opening = step.opening
    observed, allowed = opening.observed, allowed_by(step.guarantee)
    possible = DistributionSet.of(opening.past, observed, allowed)
    if possible is None:
        return None
    nodes, places = np.unique(observed.nodes, return_inverse=True)
    people = np.bincount(places, observed.spoken)
    versions, steps = possible.steps_of(nodes)
    ones, outside = np.ones((1, len(step.joint.inputs))), 0.0
    # Who is new has no history, which is within every bound.
    for v in np.unique(versions[versions >= 0]).tolist():
        here = np.flatnonzero(versions == v)
        rows = np.broadcast_to(ones, (len(here), *ones.shape))
        told = told_of(possible, steps[v], nodes[here], rows, allowed, np.ones(rows.shape, dtype=np.uint64))
        found = told[1]
        outside += float(people[here][~found.holds].sum())
    return min(1.0, outside / float(observed.records.sum()))
