"""Programme: the best channel for every history there is, out of a library of them that histories share."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from funnel.errors import SolverError
from funnel.history.conditions import Conditions, binding_rows
from funnel.history.history_groups import CHUNK, Group, GroupProgrammes, Members, canonical_order, grouped, split_group
from funnel.history.shared_channel import SharedChannel, valued_again
from funnel.history.tangent import ROUNDS, programme_work
from funnel.joint import FloatArray, IntArray
from funnel.progress import Progress, quiet
from funnel.solver.budget import Budget

# Numbers in a library: 32 MB. Channels beyond are shared.
_LIBRARY = 2**22
# Programmes solved one after the other, each from the basis of the one before.
_CHAIN = 32
# Chains between two looks at what is left of the budget.
_CHAINS = 16
# Share of the programmes for groups of distributions that are close; the others go where the most is missing.
_FIRST = 0.6
# Share of them that is solved to learn what they take, where work is limited.
# Then few rounds of cutting planes must do.
_ROUGH, _FEW = 1 / 16, 3
# Units of work for an entry of a channel that is judged for a member.
_JUDGED = 20.0
# The share of the groups that is cut again in one round.
_ROUND = 0.2
# What is missing at most, relatively to the value, where nothing more is to be gained; the same of all groups together
# that keep their channels under other gains.
_GAP, _STAYS = 1e-7, 1e-5


@dataclass(frozen=True, eq=False)
class Rows:
    """Channels for m histories, and what they come to in the tangent programme.

    Attributes
    ----------
    library : ndarray, shape (n, b, a)
        Distinct channels R(y|x), columns summing to 1.
    assigned : ndarray of int64, shape (m,)
        The channel of the library that each history is drawn from; it meets the conditions of that history.
    values, bounds : ndarray, shape (m,)
        Of each history, ``Σ_x mass(x) Σ_y R(y|x) gain(y, x)``, and an upper bound on what any channel that meets its
        conditions could reach, by weak duality. Nats, times the share of people.
    programmes : int
        How many programmes were solved.
    """

    library: FloatArray
    assigned: IntArray
    values: FloatArray
    bounds: FloatArray
    programmes: int

    @property
    def value(self) -> float:
        """What all histories together reach."""
        return math.fsum(self.values.tolist())

    @property
    def bound(self) -> float:
        """What they cannot exceed together."""
        return math.fsum(self.bounds.tolist())


class RowSearch:
    """The channels of m histories that maximise ``Σ_h Σ_x mass_h(x) Σ_y R(y|x,h) gain(y, x)`` under their conditions.

    The programme separates over histories. As long as there are no more of them than a library may have channels, and
    the budget allows it, each has an exact programme of its own. Beyond, histories with close distributions share one,
    for their mean distribution and with the conditions of members that would be broken; what a member still needs of a
    constant row it gets in closed form, so that every member's own conditions are met. What a member could reach at
    most is known from the multipliers of its group, and groups where the most is missing are cut again.

    Gains may change: groups are made once, and programmes begin where they ended before.

    Parameters
    ----------
    distributions : ndarray, shape (m, c, a)
        P(s, x | h), each summing to 1; of several beliefs, one after the other.
    masses : ndarray, shape (m, a)
        What a history and an input count: the share of people with the history times P(x|h). Not the realised share
        of people with both: a channel must not depend on the inputs of the few people it is for.
    prior_of : ndarray of int, shape (m,)
        Which cone each history has.
    cones : sequence of ndarrays, each of shape (k, c)
        ``M π <= 0`` is what the guarantee asks of a posterior π, at the budget to be kept.
    sizes : sequence of int, optional
        How many of the c secrets are those of each belief in turn; by default there is one. Every row of a cone is
        about one of them.

    Raises
    ------
    SolverError
        If something is not a finite number.

    Notes
    -----
    O(m c a log m) for the groups, O(m k a b) for each time that all members are judged. The answer does not depend on
    the number of threads.
    """

    def __init__(
        self,
        distributions: FloatArray,
        masses: FloatArray,
        prior_of: IntArray,
        cones: Sequence[FloatArray],
        sizes: Sequence[int] | None = None,
    ) -> None:
        self._sizes = sizes
        if not all(np.isfinite(numbers).all() for numbers in (distributions, masses, *cones)):
            raise SolverError(
                "the distributions or conditions of the histories are not finite numbers; please report it"
            )
        order = canonical_order(distributions, masses, prior_of)
        self._back = np.argsort(order)
        self._distributions, self._masses, self._prior_of = distributions[order], masses[order], prior_of[order]
        self._cones = [binding_rows(np.asarray(cone, dtype=np.float64)) for cone in cones]
        self._weights = np.maximum(self._masses.sum(axis=1), 1e-300)
        held, silent = (np.zeros(len(distributions), dtype=np.bool_) for _ in range(2))
        for part, conditions in self._conditions():
            held[part], silent[part] = conditions.held.any(axis=1), conditions.silent
        self._silent = silent
        # Histories with room in all their conditions, and those that are held in one, the heaviest first.
        self._open, held_ones = np.flatnonzero(~silent & ~held), np.flatnonzero(~silent & held)
        self._held = held_ones[np.argsort(-self._weights[held_ones], kind="stable")]
        self._groups: list[Group] = []
        # By the number of channels that was asked for: groups, and how many programmes there could be for them.
        self._known: dict[int | None, tuple[list[Group], int]] = {}

    def best(
        self,
        gains: FloatArray,
        *,
        budget: float | Budget | None = None,
        channels: int | None = None,
        progress: Progress = quiet,
    ) -> Rows:
        """The best rows for these gains.

        Parameters
        ----------
        gains : ndarray, shape (b, a)
        budget : float, Budget or None
            Work that programmes may take; without it, all that the library has room for.
        channels : int, optional
            How many programmes may be solved for channels; by default as many as fit into 32 MB.
        progress : Progress

        Raises
        ------
        SolverError
            If a programme fails, or something is not a finite number.

        Notes
        -----
        With as many channels as in an earlier call, the groups are the same, unless the budget allows more than twice
        as many programmes now. Where channels are shared this takes a third of the work of the first call or less, and
        the upper bound is less tight. What an earlier call has found stays allowed whatever the gains are, and is what
        groups keep that the budget does not reach. So one may search with few channels where gains are still to be
        found (some hundred cost little, whatever the number of histories), and with many at the end.
        """
        if not np.isfinite(gains).all():
            raise SolverError("the gains of the histories are not finite numbers; please report it")
        self._gains, self._budget, self._progress = gains, Budget.of(budget), progress
        # Constant rows are always allowed, so the best of them is where everybody begins.
        constants = self._masses @ gains.T
        self._output = constants.argmax(axis=1)
        self._value = constants[np.arange(len(constants)), self._output]
        self._bound = self._masses @ gains.max(axis=0)
        # Who has nothing left to say has no better row than the best constant one.
        self._bound[self._silent] = self._value[self._silent]
        self._channel = np.full(len(constants), -1, dtype=np.int64)
        self._level = np.zeros(len(constants), dtype=np.int8)
        self._found: list[SharedChannel] = []
        self._solved, self._members = 0, 0
        # Work of a programme, and of a member of a group, so far or as expected.
        self._judging = _JUDGED * gains.size
        self._each = programme_work(gains.shape[0], gains.shape[1], max((len(cone) for cone in self._cones), default=0))
        most = channels or max(1, _LIBRARY // gains.size)
        possible = self._affordable(most)
        self._groups, before = self._known.get(channels, ([], 0))
        if possible > 2 * before:
            self._run(most)
            self._known[channels] = self._groups, possible
        else:
            self._solve(self._changed(), most)
        return self._rows()

    def _changed(self) -> list[Group]:
        """The groups for which other gains may lead to a better channel, once all have what they had.

        By its last prices it is known of each group what it may miss. Groups that miss least, next to nothing of the
        value together, are not solved again.
        """
        known = [group for group in self._groups if group.last is not None]
        if not known:
            return self._groups
        self._found = [group.last for group in known if group.last is not None]
        chosen, levels = (
            np.full(len(self._distributions), -1, dtype=np.int64),
            np.full(len(self._distributions), -1, dtype=np.int8),
        )
        for place, (group, last) in enumerate(zip(known, self._found, strict=True)):
            chosen[group.members], levels[group.members] = place, last.levels
        values, bounds = valued_again(
            self._found, chosen, levels, self._conditions(), self._masses, self._weights, self._gains
        )
        better = values > self._value
        self._channel[better], self._level[better] = chosen[better], levels[better]
        self._value[better] = values[better]
        self._bound = np.minimum(self._bound, bounds)
        sizes = np.array([len(group.members) for group in known])
        of = np.repeat(np.arange(len(known)), sizes)
        members = np.concatenate([group.members for group in known])
        missing = np.bincount(of, (self._bound - self._value)[members])
        order = np.argsort(missing, kind="stable")
        stays = np.cumsum(missing[order]) <= _STAYS * abs(math.fsum(self._value.tolist()))
        same = {id(known[place]) for place in order[stays].tolist()}
        return [group for group in self._groups if id(group) not in same]

    def _run(self, most: int) -> None:
        """Solve up to so many programmes where they help most."""
        first = self._affordable(most)
        self._groups = []
        speaking = len(self._open) + len(self._held)
        if first == 0 or speaking == 0:
            return
        if first < 2 * speaking and math.isfinite(self._budget.remaining):
            # What programmes take is known when some were solved, and by then everybody has a channel.
            self._groups = [Group(part) for part in self._divided(max(1, int(_ROUGH * first)))]
            self._solve(self._groups, most, _FEW)
            # Everybody has to be judged again.
            first = self._affordable(most, speaking)
            if first <= len(self._groups):
                return
        alone = first >= speaking
        self._groups = [Group(part) for part in self._divided(first)]
        self._solve(self._groups, most)
        while not alone:
            left = min(most, self._solved + self._affordable(most)) - self._solved
            missing = np.array([self._missing(group) for group in self._groups])
            order = np.argsort(-missing, kind="stable")[: max(1, int(_ROUND * len(self._groups)))]
            least = _GAP * abs(math.fsum(self._value.tolist())) / len(self._groups)
            chosen = [int(g) for g in order if missing[g] > least and len(self._groups[g].members) > 1][: left // 2]
            if not chosen:
                return
            # Each half stands where its group stood, so that neighbours stay alike.
            halved = {
                g: [Group(half) for half in split_group(self._distributions, self._weights, self._groups[g].members)]
                for g in chosen
            }
            self._groups = [part for g, group in enumerate(self._groups) for part in halved.get(g, [group])]
            self._solve([half for g in sorted(halved) for half in halved[g]], most)

    def _divided(self, number: int) -> list[Members]:
        """Histories in groups: every one alone if so many programmes allow it, else with some programmes left."""
        alone = number >= len(self._open) + len(self._held)
        # A channel in which all outputs stand still for one distribution does so for no other.
        single = len(self._held) if alone else min(len(self._held), number // 2)
        rest = (self._alike(self._open, number - single) + self._alike(self._held[single:], 1))[: number - single]
        wanted = len(self._open) if alone else max(len(rest), int(_FIRST * (number - single)))
        return [np.array([one]) for one in self._held[:single]] + grouped(
            self._distributions, self._weights, rest, wanted
        )

    def _rows(self) -> Rows:
        """The library of what histories draw from, and which each draws from."""
        outputs, inputs = self._gains.shape
        kind = np.where(self._channel < 0, self._output, 0)
        keys = np.stack([self._channel, self._level.astype(np.int64), kind], axis=1)
        distinct, at, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        rank = np.empty(len(distinct), dtype=np.int64)
        rank[np.argsort(at, kind="stable")] = np.arange(len(distinct))
        library = np.zeros((len(distinct), outputs, inputs))
        for place, (channel, level, output) in zip(rank.tolist(), distinct.tolist(), strict=True):
            if channel < 0:
                library[place, output] = 1.0
            else:
                library[place] = self._found[channel].at_level(level)
        back = self._back
        return Rows(library, rank[inverse.ravel()][back], self._value[back], self._bound[back], self._solved)

    def _affordable(self, most: int, members: int = 0) -> int:
        """How many more programmes the budget allows, by what they took so far, when so many members are judged too."""
        left = 0.0 if self._budget.expired else max(0.0, self._budget.remaining - self._judging * members)
        return min(most - self._solved, int(min(left / self._each, 2.0**40)))

    def _alike(self, members: Members, number: int) -> list[Members]:
        """Histories by their cone and their likeliest input, or by their cone alone where that makes too many groups.

        At most the given number: the heaviest.
        """
        likeliest = self._distributions[members].sum(axis=1).argmax(axis=1)
        for keys in (np.stack([self._prior_of[members], likeliest], axis=1), self._prior_of[members][:, None]):
            _, inverse = np.unique(keys, axis=0, return_inverse=True)
            order = np.argsort(inverse.ravel(), kind="stable")
            parts = np.split(members[order], np.flatnonzero(np.diff(inverse.ravel()[order])) + 1)
            if len(parts) <= number:
                break
        parts = [part for part in parts if len(part)]
        return sorted(parts, key=lambda part: -float(self._weights[part].sum()))[: max(0, number)]

    def _conditions(self) -> Iterator[tuple[slice, Conditions]]:
        """The conditions of all histories in pieces of one cone, in their order."""
        step = max(1, CHUNK // max(1, 4 * math.prod(self._distributions.shape[1:])))
        changes = np.flatnonzero(np.diff(self._prior_of)) + 1
        for begin, end in zip([0, *changes.tolist()], [*changes.tolist(), len(self._distributions)], strict=True):
            for start in range(begin, end, step):
                part = slice(start, min(end, start + step))
                yield part, Conditions.of(self._distributions[part], self._cones[self._prior_of[start]], self._sizes)

    def _missing(self, group: Group) -> float:
        return float((self._bound[group.members] - self._value[group.members]).sum())

    def _solve(self, groups: list[Group], most: int, rounds: int = ROUNDS) -> None:
        """A channel for each group, judged for all its members; as far as the budget goes."""
        chains = [groups[start : start + _CHAIN] for start in range(0, len(groups), _CHAIN)]
        done, total = 0, len(groups)
        programmes = GroupProgrammes(
            self._distributions, self._masses, self._weights, self._prior_of, self._cones, self._sizes, self._gains
        )
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            while chains:
                allowed = self._affordable(most)
                if allowed == 0:
                    return
                size = min(max(1, allowed // _CHAIN), _CHAINS) if self._solved else 1
                now, chains = chains[:size], chains[size:]
                solve = partial(programmes.solve, rounds=rounds, work=self._budget.remaining)
                for chain, found in zip(now, pool.map(solve, now), strict=True):
                    for group, shared in zip(chain, found, strict=True):
                        self._keep(group, shared)
                    done += len(chain)
                self._progress("best rows for histories", done, total)

    def _keep(self, group: Group, shared: SharedChannel) -> None:
        """Note a channel, for those of the members that it is better for, and charge for what the programme took."""
        better = (shared.levels >= 0) & (shared.values > self._value[group.members])
        chosen = group.members[better]
        self._channel[chosen], self._level[chosen] = len(self._found), shared.levels[better]
        self._value[chosen] = shared.values[better]
        self._found.append(shared)
        self._bound[group.members] = np.minimum(self._bound[group.members], shared.bounds)
        group.last = shared
        self._solved += 1
        self._budget.spend(shared.work + shared.judging)
        self._each += (shared.work - self._each) / self._solved
        self._members += len(group.members)
        self._judging += (shared.judging - self._judging * len(group.members)) / self._members
