"""Rows: the best channel for every history there is, out of a library of them that histories share."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from funnel.history.conditions import Conditions, binding_rows
from funnel.history.grouping import Members, grouped, halves
from funnel.history.tangent import Tangent, programme_work
from funnel.joint import FloatArray, IntArray
from funnel.progress import Progress, quiet
from funnel.solver.budget import Budget

# Numbers in a library: 64 MB. Channels beyond are shared.
_LIBRARY = 2**23
# Numbers worked on at once.
_CHUNK = 2**18
# Programmes solved one after the other, each from the basis of the one before.
_CHAIN = 32
# Share of the programmes for groups of laws that are close; the others go where the most is missing.
_FIRST = 0.6
# The share of the groups that is cut again in one round.
_ROUND = 0.2
# A library has up to so many mixtures of a channel: shares 1, 1/2, … 1/64 of what its members need at most.
_LEVELS = 7
# What is missing at most, relatively to the value, where nothing more is to be gained.
_GAP = 1e-7


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


def best_rows(
    laws: FloatArray,
    masses: FloatArray,
    prior_of: IntArray,
    cones: Sequence[FloatArray],
    gains: FloatArray,
    *,
    budget: float | Budget | None = None,
    channels: int | None = None,
    progress: Progress = quiet,
) -> Rows:
    """The channels of m histories that maximise ``Σ_h Σ_x mass_h(x) Σ_y R(y|x,h) gain(y, x)`` under their conditions.

    The programme separates over histories. As long as there are no more of them than a library may have channels, and
    the budget allows it, each has an exact programme of its own. Beyond, histories with close laws share one, for
    their mean law; each member is mixed with as much of a constant row as its own conditions need, in closed form.
    What a member could reach at most is known from the multipliers of its group, and groups where the most is missing
    are cut again.

    Parameters
    ----------
    laws : ndarray, shape (m, c, a)
        P(s, x | h), each summing to 1.
    masses : ndarray, shape (m, a)
        What a history and an input count: the share of people with the history times P(x|h). Not the realised share
        of people with both: a channel must not depend on the inputs of the few people it is for.
    prior_of : ndarray of int, shape (m,)
        Which cone each history has.
    cones : sequence of ndarrays, each of shape (k, c)
        ``M π <= 0`` is what the guarantee asks of a posterior π, at the budget to be kept.
    gains : ndarray, shape (b, a)
    budget : float, Budget or None
        Work that programmes may take; without it, all that the library has room for.
    channels : int, optional
        How many programmes may be solved for channels; by default as many as fit into 64 MB.
    progress : Progress

    Raises
    ------
    SolverError
        If a programme fails.

    Notes
    -----
    O(m c a log m) for the groups, O(m k a b) for each time that all members are judged. The answer does not depend on
    the number of threads.
    """
    search = _Search(laws, masses, prior_of, cones, gains, Budget.of(budget), progress)
    most = channels or max(1, _LIBRARY // gains.size)
    search.run(most)
    return search.rows()


@dataclass(frozen=True, eq=False)
class _Shared:
    """A channel, the constant row its members need at most, and what its multipliers say.

    Attributes
    ----------
    channel : ndarray, shape (b, a)
    constant : ndarray, shape (b,)
        Shares of the outputs that, added to the channel, make all members meet their conditions that can.
    levels : ndarray of int, shape (k,)
        What each member takes of the constant: 0 nothing, 1 to 7: 1/64, 1/32, … all of it; -1: it cannot use the
        channel.
    values, bounds : ndarray, shape (k,)
    """

    channel: FloatArray
    constant: FloatArray
    levels: npt.NDArray[np.int8]
    values: FloatArray
    bounds: FloatArray
    work: float = 0.0


class _Search:
    """The state of `best_rows`: groups, channels found, and the best of them for every history so far."""

    def __init__(
        self,
        laws: FloatArray,
        masses: FloatArray,
        prior_of: IntArray,
        cones: Sequence[FloatArray],
        gains: FloatArray,
        budget: Budget,
        progress: Progress,
    ) -> None:
        self._laws, self._masses, self._prior_of, self._gains = laws, masses, prior_of, gains
        self._cones = [binding_rows(np.asarray(cone, dtype=np.float64)) for cone in cones]
        self._budget, self._progress = budget, progress
        self._weights = np.maximum(masses.sum(axis=1), 1e-300)
        # Constant rows are always allowed, so the best of them is where everybody begins.
        constants = masses @ gains.T
        self._output = constants.argmax(axis=1)
        self._value = constants[np.arange(len(masses)), self._output]
        self._bound = masses @ gains.max(axis=0)
        self._channel = np.full(len(laws), -1, dtype=np.int64)
        self._level = np.zeros(len(laws), dtype=np.int8)
        self._found: list[tuple[FloatArray, FloatArray]] = []
        self._solved = 0
        self._each = programme_work(*gains.shape, max((len(cone) for cone in self._cones), default=0))
        self._pool = ThreadPoolExecutor(os.cpu_count() or 1)

    def run(self, most: int) -> None:
        """Solve up to so many programmes where they help most."""
        groups: list[Members] = []
        first = self._affordable(most)
        if first == 0 or len(self._laws) == 0:
            return
        start = self._start(first)
        alone = first >= len(self._laws)
        wanted = len(self._laws) if alone else max(len(start), int(_FIRST * first))
        groups = grouped(self._laws, self._weights, start, wanted)
        self._solve(groups, most)
        while not alone:
            left = min(most, self._solved + self._affordable(most)) - self._solved
            missing = np.array([self._missing(group) for group in groups])
            order = np.argsort(-missing, kind="stable")[: max(1, int(_ROUND * len(groups)))]
            least = _GAP * abs(math.fsum(self._value.tolist())) / len(groups)
            chosen = [int(g) for g in order if missing[g] > least and len(groups[g]) > 1][: left // 2]
            if not chosen:
                return
            cut = [half for g in chosen for half in halves(self._laws, self._weights, groups[g])]
            kept = set(chosen)
            groups = [group for g, group in enumerate(groups) if g not in kept] + cut
            self._solve(cut, most)

    def rows(self) -> Rows:
        """The library of what histories draw from, in the order of the first history that does."""
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
                library[place] = _mixed(*self._found[channel], level)
        return Rows(library, rank[inverse.ravel()], self._value, self._bound, self._solved)

    def _affordable(self, most: int) -> int:
        """How many more programmes the budget allows, by what they took so far."""
        left = max(0.0, self._budget.remaining) if not self._budget.expired else 0.0
        return min(most - self._solved, int(min(left / self._each, 2.0**40)))

    def _start(self, number: int) -> list[Members]:
        """Histories by their cone, whether they are held, and their likeliest input; the held ones alone if they can.

        A channel in which all outputs stand still for one law does so for no other.
        """
        held = np.concatenate([conditions.held.any(axis=1) for _, conditions in self._conditions()])
        likeliest = self._laws.sum(axis=1).argmax(axis=1)
        keys = np.stack([held.astype(np.int64), self._prior_of, likeliest], axis=1)
        _, inverse = np.unique(keys, axis=0, return_inverse=True)
        order = np.argsort(inverse.ravel(), kind="stable")
        edges = np.flatnonzero(np.diff(inverse.ravel()[order])) + 1
        start = [np.asarray(part) for part in np.split(order, edges)]
        if len(start) <= number:
            return start
        _, inverse = np.unique(keys[:, :2], axis=0, return_inverse=True)
        return [np.flatnonzero(inverse.ravel() == group) for group in range(int(inverse.max()) + 1)][:number]

    def _conditions(self) -> Iterator[tuple[slice, Conditions]]:
        """The conditions of all histories in pieces of one cone, in their order."""
        step = max(1, _CHUNK // max(1, self._laws[0].size * 4))
        changes = np.flatnonzero(np.diff(self._prior_of)) + 1
        for begin, end in zip([0, *changes.tolist()], [*changes.tolist(), len(self._laws)], strict=True):
            for start in range(begin, end, step):
                part = slice(start, min(end, start + step))
                yield part, Conditions.of(self._laws[part], self._cones[self._prior_of[start]])

    def _missing(self, group: Members) -> float:
        return float((self._bound[group] - self._value[group]).sum())

    def _solve(self, groups: list[Members], most: int) -> None:
        """A channel for each group, judged for all its members; as far as the budget goes."""
        chains = [groups[start : start + _CHAIN] for start in range(0, len(groups), _CHAIN)]
        done, total = 0, len(groups)
        while chains:
            allowed = max(1, self._affordable(most) // _CHAIN) if self._solved else 1
            if self._budget.expired:
                return
            now, chains = chains[: min(allowed, 64)], chains[min(allowed, 64) :]
            for chain, found in zip(now, self._pool.map(self._chain, now), strict=True):
                for members, shared in zip(chain, found, strict=True):
                    self._keep(members, shared)
                done += len(chain)
            self._progress("best rows for histories", done, total)

    def _keep(self, members: Members, shared: _Shared) -> None:
        """Note a channel for those of the members that it is better for."""
        better = (shared.levels >= 0) & (shared.values > self._value[members])
        chosen = members[better]
        self._channel[chosen] = len(self._found)
        self._level[chosen] = shared.levels[better]
        self._value[chosen] = shared.values[better]
        self._bound[members] = np.minimum(self._bound[members], shared.bounds)
        self._found.append((shared.channel, shared.constant))
        self._solved += 1
        self._budget.spend(shared.work)
        self._each += (shared.work - self._each) / self._solved

    def _chain(self, groups: list[Members]) -> list[_Shared]:
        """The channels of some groups, one after the other."""
        outputs, inputs = self._gains.shape
        found, tangents = [], {}
        for members in groups:
            cone = self._cones[self._prior_of[members[0]]]
            tangent = tangents.get(len(cone))
            if tangent is None:
                tangent = tangents[len(cone)] = Tangent(outputs, inputs, len(cone))
            weights = self._weights[members]
            law = np.tensordot(weights / weights.sum(), self._laws[members], axes=1)
            mean = Conditions.of(law[None], cone)
            before = tangent.work
            channel, prices = tangent.solve(mean, 0, self._gains * self._masses[members].sum(axis=0))
            prices = prices / weights.sum()
            found.append(self._judged(members, channel, prices, cone, tangent.work - before))
        return found

    def _judged(
        self, members: Members, channel: FloatArray, prices: FloatArray, cone: FloatArray, work: float
    ) -> _Shared:
        """What a channel and multipliers for a unit of mass mean for the members of a group."""
        step = max(1, _CHUNK // self._gains.size)
        parts = [members[start : start + step] for start in range(0, len(members), step)]
        needs, bounds = [], []
        for part in parts:
            conditions = Conditions.of(self._laws[part], cone)
            needs.append(conditions.needs(channel))
            weights = self._weights[part]
            paid = np.matmul(prices, conditions.rows)
            paid *= weights[:, None, None]
            best = (self._masses[part][:, None, :] * self._gains - paid).max(axis=1).sum(axis=1)
            bounds.append(best + weights * (conditions.thin @ prices.max(axis=0, initial=0.0)))
        need = np.concatenate(needs)
        usable = np.isfinite(need).all(axis=1)
        constant = need[usable].max(axis=0, initial=0.0)
        share = np.divide(need, constant, out=np.zeros_like(need), where=constant > 0).max(axis=1)
        levels = np.zeros(len(members), dtype=np.int8)
        with np.errstate(divide="ignore"):
            halved = np.floor(-np.log2(share[usable]))
        levels[usable] = np.where(share[usable] > 0, _LEVELS - np.clip(halved, 0, _LEVELS - 1), 0)
        levels[~usable] = -1
        taken = np.where(levels > 0, 2.0 ** (np.maximum(levels, 1) - _LEVELS), 0.0)
        masses = self._masses[members]
        own, of_constant = masses @ (channel * self._gains).sum(axis=0), masses @ (constant @ self._gains)
        values = (own + taken * of_constant) / (1.0 + taken * constant.sum())
        judging = 4.0 * len(members) * self._gains.size * (len(cone) + 1)
        return _Shared(channel, constant, levels, values, np.concatenate(bounds), work + judging)


def _mixed(channel: FloatArray, constant: FloatArray, level: int) -> FloatArray:
    """A channel with so much of a constant row as the level says."""
    if level == 0:
        return channel
    share = 2.0 ** (level - _LEVELS) * constant
    return np.asarray((channel + share[:, None]) / (1.0 + share.sum()))
