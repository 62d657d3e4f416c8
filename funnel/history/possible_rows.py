"""Possible rows: the best channels of histories for which the bound holds under every set of tables noise leaves open.

What the worst tables say of an output is no linear condition on its row, but the largest of many. Each history begins
with the published law and the laws that are worst for the rows aimed at, as conditions side by side; those that are
worst for the rows that were found are added for some rounds, and what is then still beyond gets a constant row, as
little of it as is enough: limits of a sum are no more than the sum of limits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from scipy.linalg import block_diag

from funnel.history.allowed import Kept, allowed_by
from funnel.history.beliefs import Beliefs, cone_over
from funnel.history.conditions import binding_rows
from funnel.history.distributions import BoolArray
from funnel.history.history_status import Standing
from funnel.history.possible import PossibleStep, Told
from funnel.history.possible_distributions import DistributionSet
from funnel.history.programme import Rows, RowSearch
from funnel.history.step import Step
from funnel.history.worst_tables import Worst, told_of, worst_distribution
from funnel.joint import FloatArray, IntArray
from funnel.progress import Progress, quiet
from funnel.solver.budget import Budget

# Laws added to those of a history in a round, and of all that it has; rounds in which some are added.
_MORE: Final = 4
_MOST: Final = 40
_ROUNDS: Final = 8
# A constant row is worth a law more from this share on.
_LITTLE: Final = 1e-4
# What may be known of a person is left untold where so many of the people have histories that cannot be bounded for it.
_FEW: Final = 0.1
# What proofs by intervals need besides.
_SURE: Final = 1e-9
# Channels have so many mixtures at most: shares 1, 1/2, … of what their histories need.
_LEVELS: Final = 7


_Decided = tuple[IntArray, PossibleStep, list[Told], Worst]


class PossibleSearch:
    """`RowSearch` for histories whose bound has to hold under every set of tables.

    Parameters
    ----------
    standing : Standing
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
        standing: Standing,
        possible: DistributionSet,
        masses: FloatArray,
        inner: Kept,
        target: FloatArray,
    ) -> None:
        self._standing, self._possible, self._inner, self._masses = standing, possible, allowed_by(inner), masses
        self._shape = standing.joint.counts.shape
        # What is asked for by published counts alone; each belief of these is a condition beside those for worst laws.
        self._counted = Beliefs.of(standing, inner)
        # By what is known besides: half-spaces for the laws that are worst, by the prior of a history.
        known = next(iter(possible.steps_of(standing.nodes[:1])[1].values())).known
        priors = [standing.priors, *((one.counted,) * len(standing.priors) for one in known)]
        self._cones = [[binding_rows(cone_over(inner, prior)) for prior in of_known] for of_known in priors]
        self._few: list[BoolArray] = []
        every = np.arange(len(standing.nodes))
        inside = np.ones((len(every), len(self._cones)), dtype=bool)
        rooms: dict[int, FloatArray] = {}
        for here, _, _, found in self._decided(every, np.ones((1, self._shape[1]))):
            for place in range(len(self._cones)):
                within = (found.above < found.below)[:, 1:][:, found.known[1:] == place]
                inside[here, place] = within.all(axis=1)
            rooms |= dict(zip(here.tolist(), found.below - found.above, strict=True))
        # To whoever knows what too few have rows tell nothing: they are the same for all inputs with it.
        missed = masses.sum(axis=1) @ ~inside / masses.sum()
        self._few = [one.inside for one, share in zip(known, missed[1:].tolist(), strict=True) if share > _FEW]
        self._classes = _joined(self._few, self._shape[1])
        inside[:, 1:] |= missed[1:] > _FEW
        # Nothing can be said where the history alone may be outside the bound.
        self.open: IntArray = np.flatnonzero(inside.all(axis=1))
        conditions = max((len(rooms[h]) for h in self.open.tolist()), default=1)
        self._room = np.ones((len(self.open), conditions))
        for place, h in enumerate(self.open.tolist()):
            # Of what is left untold nothing is asked.
            self._room[place, 1 : len(rooms[h])] = np.where(rooms[h] > 0, rooms[h], 1.0)[1:]
        self._laws: list[list[list[FloatArray]]] = [[[] for _ in self._cones] for _ in range(len(every))]
        self._rounds = 0
        self._search: RowSearch | None = None
        mixed = 0.5 * (target + (target @ standing.joint.p_input)[:, None])
        self._add(np.broadcast_to(mixed, (len(self.open), *mixed.shape)), 0.0)

    def best(self, gains: FloatArray, *, budget: float | Budget | None = None, progress: Progress = quiet) -> Rows:
        """The best rows for these gains, as of `RowSearch.best`; values are reached, bounds those of constant rows."""
        b, a = gains.shape
        constants = self._masses @ gains.T
        values, assigned = constants.max(axis=1), constants.argmax(axis=1)
        library = [np.zeros((b, b, a))]
        library[0][np.arange(b), np.arange(b)] = 1.0
        bounds, programmes, size = self._masses @ gains.max(axis=0), 0, b
        closed = np.setdiff1d(np.arange(len(values)), self.open)
        bounds[closed] = values[closed]
        work = Budget.of(budget)
        while len(self.open):
            search = self._search or self._begun()
            found = self._apart(search.best(self._merged(gains), budget=work, progress=progress))
            programmes += found.programmes
            rows, channel = self._mended(found.library, found.assigned)
            worth = np.einsum("ha,ma->hm", self._masses[self.open], (rows * gains).sum(axis=1))
            worth = worth[np.arange(len(self.open)), channel]
            better = worth > values[self.open]
            chosen = self.open[better]
            values[chosen], assigned[chosen] = worth[better], size + channel[better]
            library.append(rows)
            size += len(rows)
            if self._rounds >= _ROUNDS or not self._add(found.library[found.assigned], 1 + _LITTLE):
                break
            self._rounds += 1
            self._search = None
        every = np.concatenate(library)
        used, assigned = np.unique(assigned, return_inverse=True)
        return Rows(every[used], assigned, values, np.maximum(bounds, values), programmes)

    def _begun(self) -> RowSearch:
        """The programme with all laws that are known now: those of a history one above the other."""
        (c, a), laws = self._shape, [self._laws[h] for h in self.open.tolist()]
        slots = [known for known in range(len(self._cones)) for _ in range(max(len(own[known]) for own in laws))]
        counted = self._counted.laws[self.open]
        worst = np.zeros((len(self.open), len(slots), c, a))
        for place, own in enumerate(laws):
            for slot, known in enumerate(slots):
                # A history with fewer of these has one of them several times, or none, which asks for nothing.
                if own[known]:
                    worst[place, slot] = own[known][(slot - slots.index(known)) % len(own[known])]
        # Each law is one up to a factor.
        size = counted.shape[1] // c + len(slots)
        worst /= np.maximum(worst.sum(axis=(2, 3), keepdims=True), 1e-300) * size
        stacked = np.concatenate([counted / size, worst.reshape(len(self.open), len(slots) * c, a)], axis=1)
        kinds = np.stack([self._counted.cone_of[self.open], self._standing.prior_of[self.open]], axis=1)
        distinct, cone_of = np.unique(kinds, axis=0, return_inverse=True)
        cones: list[FloatArray] = [
            block_diag(self._counted.cones[of_counted], *(self._cones[known][prior] for known in slots))
            for of_counted, prior in distinct.tolist()
        ]
        kept = np.eye(int(self._classes.max()) + 1)[self._classes]
        self._search = RowSearch(stacked @ kept, self._masses[self.open] @ kept, cone_of.reshape(-1), cones)
        return self._search

    def _merged(self, gains: FloatArray) -> FloatArray:
        """Gains (b, a) as means over inputs that have the same rows."""
        kept = np.eye(int(self._classes.max()) + 1)[self._classes]
        masses = np.maximum(self._masses.sum(axis=0), 1e-300)
        return np.asarray((gains * masses) @ kept / (masses @ kept))

    def _apart(self, found: Rows) -> Rows:
        """Rows for such inputs together as rows for each of them."""
        return replace(found, library=found.library[:, :, self._classes])

    def _decided(self, histories: IntArray, rows: FloatArray) -> list[_Decided]:
        """Rows (m, b, a) of some histories, or (b, a) of all of them: by last version which these are, and how far."""
        nodes = self._standing.nodes[histories]
        versions, steps = self._possible.steps_of(nodes)
        rows = np.broadcast_to(rows, (len(histories), *rows.shape[-2:]))
        parts = []
        for v in np.unique(versions).tolist():
            here = np.flatnonzero(versions == v)
            told, found = told_of(self._possible, steps[v], nodes[here], rows[here], self._inner)
            if self._few:
                few = [0, *(any(one.inside is some for some in self._few) for one in steps[v].known)]
                left_out = np.array(few, dtype=bool)[found.known]
                above, below = (np.where(left_out, end, one) for end, one in ((0.0, found.above), (1.0, found.below)))
                found = replace(found, above=above, below=below)
            parts.append((here, steps[v], told, found))
        return parts

    def _add(self, rows: FloatArray, least: float) -> int:
        """Take the worst laws of rows (m, b, a) of all open histories, where they are beyond the bound by so much."""
        added, b = 0, rows.shape[1]
        for here, step, told, found in self._decided(self.open, rows):
            ratios = found.ratios.reshape(len(here), -1)
            order = np.argsort(-ratios, axis=1, kind="stable")[:, :_MORE]
            for local, places in enumerate(order.tolist()):
                laws = self._laws[int(self.open[here[local]])]
                for place in places:
                    y, k = divmod(place, len(found.which))
                    if ratios[local, place] > least and sum(map(len, laws)) < _MOST:
                        laws[int(found.known[k])].append(worst_distribution(step, told, found, local * b + y, k))
                        added += 1
        return added

    def _mended(self, library: FloatArray, assigned: IntArray) -> tuple[FloatArray, IntArray]:
        """Channels with what histories need of a constant row, and which of them each history has."""
        needs = np.zeros((len(self.open), library.shape[1]))
        for here, _, _, found in self._decided(self.open, library[assigned]):
            beyond = (found.above * (1 + _SURE) - found.below).reshape(len(here), library.shape[1], -1)
            needed = np.maximum(beyond, 0.0) / self._room[here][:, None, : beyond.shape[2]]
            needs[here] = needed.max(axis=2)
        rows, channel, size = [], np.zeros(len(self.open), dtype=np.int64), 0
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


def _joined(groups: list[BoolArray], a: int) -> IntArray:
    """Which inputs are in one group, or in groups that have some in common: the same number for these; (a,)."""
    classes = np.arange(a)
    for inside in groups:
        for _ in groups:
            classes[np.isin(classes, classes[inside])] = classes[inside].min()
    return np.asarray(np.unique(classes, return_inverse=True)[1].reshape(-1), dtype=np.int64)


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
