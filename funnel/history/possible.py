"""Possible: what histories say under every set of tables that noise leaves open, as limits that hold for all of them.

A table of counts is published with noise, so the true one is only known to be within limits, but for a probability of
β. Everything an observer concludes from true tables is made of sums and products of numbers >= 0: the law of the first
version of a person, ``u(s, x)``; how the secret changed, D; the share ρ of those with a secret who kept their published
input; and the law A of the input given the secret now. With each of them between limits, for a row T of a channel

    P(s, h, y) = Σ_s' D(s|s') Σ_x' u(s', x') (ρ(s') T(x') + (1 - ρ(s')) Σ_x A(x|s) T(x))

is at most what the largest of each gives, found greedily: A and u fill their cells in the order of what these count.
Limits of ``u`` after an output are those of its cells, and of its sums by secret. What is known of one number twice is
forgotten in between, so limits are wide where there are few people, and never too narrow (decision 0060).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from funnel.errors import SpecError
from funnel.history.allowed import Allowed
from funnel.history.changes import same_inputs
from funnel.history.distributions import BoolArray
from funnel.history.move_limits import MoveLimits
from funnel.history.past import Past
from funnel.joint import FloatArray, IntArray, Joint
from funnel.protocol import WORD_BITS

# Every limit is moved outwards by that much, relatively: more than the roundings of what it is made of.
_HAIR: Final = 2.0**-40
_MOST_CELLS: Final = 1 << 10
# Products of smaller limits could underflow.
_SMALLEST: Final = 2.0**-500
# Entries (output, secret, secret, input) worked on at once.
_ENTRIES: Final = 1 << 20


@dataclass(frozen=True, eq=False)
class Reach:
    """Limits of ``u(s, x)`` of some histories, each up to a factor of its own.

    Attributes
    ----------
    lower, upper : ndarray, shape (k, c, a)
    least, most : ndarray, shape (k, c)
        Of the sums over x.
    sound : ndarray of bool, shape (k,)
        Where no number came near the smallest that doubles can hold.
    """

    lower: FloatArray
    upper: FloatArray
    least: FloatArray
    most: FloatArray
    sound: BoolArray

    def at(self, places: IntArray) -> Reach:
        """Those at some places."""
        return Reach(self.lower[places], self.upper[places], self.least[places], self.most[places], self.sound[places])


@dataclass(frozen=True, eq=False)
class Told:
    """Limits of P(s, h, y) for some rows, each up to a factor of its own; and the laws that attain them nearly.

    Attributes
    ----------
    least, most : ndarray, shape (n, c)
    least_law, most_law : ndarray, shape (n, c, a)
        For each secret now, numbers G(x) >= 0 with ``Σ_x G(x) T(x)`` the limit, but for a hair.
    """

    least: FloatArray
    most: FloatArray
    least_law: FloatArray
    most_law: FloatArray


class PossibleStep:
    """How people go from an earlier version to one, under every set of tables; or who is new in it.

    Parameters
    ----------
    joint : Joint
        Published counts of the version, with their bounds.
    earlier : Joint or None
        Of the earlier version; None for new people.
    limits : MoveLimits or None
        Of the moves since then.

    Attributes
    ----------
    prior : ndarray, shape (2, c)
        Limits of how common secrets are, among the people in both.

    Raises
    ------
    SpecError
        If the counts have no bounds, limits do not fit, or there are too many cells.
    """

    prior: FloatArray

    def __init__(self, joint: Joint, earlier: Joint | None = None, limits: MoveLimits | None = None) -> None:
        if joint.bounds is None:
            raise SpecError("counts without bounds leave nothing open; ask for the bound over true tables with noise")
        if max(joint.counts.shape[1], 1 if earlier is None else earlier.counts.shape[1]) > _MOST_CELLS:
            raise SpecError(
                f"the bound over all true tables is laid out for {_MOST_CELLS:,} published values at most; publish "
                "fewer columns, or group their values"
            )
        self.cells = np.stack([joint.bounds.lower, joint.bounds.upper]).astype(np.float64)
        self.totals = joint.bounds.totals.T.astype(np.float64)
        self.is_first = earlier is None or limits is None
        if earlier is None or limits is None:
            self.prior = _shares(*self.totals)
            return
        if limits.secrets.shape[1:] != (len(earlier.secret), len(joint.secret)):
            raise SpecError("limits of moves are not between the values of these two versions")
        self.into = same_inputs(earlier.inputs, joint.inputs)
        least, most = limits.secrets.astype(np.float64)
        self.secrets = np.stack([_shares(low, high) for low, high in zip(least, most, strict=True)], axis=1)
        pairs = np.stack([limits.stayed, limits.left], axis=2).astype(np.float64)
        self.stays = np.stack([_shares(low, high)[:, 0] for low, high in zip(*pairs, strict=True)], axis=1)
        self.inputs = np.stack(
            [_shares(*self.cells[:, s], *self.totals[:, s]) for s in range(len(joint.secret))], axis=1
        )
        self.prior = _shares(least.sum(axis=0), most.sum(axis=0))

    def told(self, reach: Reach | None, rows: FloatArray) -> Told:
        """Limits for rows (n, a) of histories of the earlier version, one each; of new people without one."""
        parts = []
        step = max(1, _ENTRIES // (self.cells[0].size * (1 if reach is None else reach.lower.shape[1])))
        for start in range(0, len(rows), step):
            some = np.arange(start, min(start + step, len(rows)))
            parts.append(self._probabilities(None if reach is None else reach.at(some), rows[some]))
        return Told(*(np.concatenate([getattr(part, name) for part in parts]) for name in _FIELDS))

    def _probabilities(self, reach: Reach | None, rows: FloatArray) -> Told:
        if self.is_first:
            weights = np.broadcast_to(rows[:, None, :], (len(rows), *self.cells.shape[1:]))
            (lower, upper), (fewest, many) = self.cells, self.totals
            ends = [_filled(weights, lower, upper, fewest, many, top) for top in (False, True)]
        else:
            assert reach is not None
            ends = [self._end(reach, rows, top) for top in (False, True)]
        (least, least_law), (most, most_law) = ends
        return Told(least * (1 - _HAIR), most * (1 + _HAIR), least_law, most_law)

    def _end(self, reach: Reach, rows: FloatArray, top: bool) -> tuple[FloatArray, FloatArray]:
        """The least or largest values (n, c), and functionals (n, c, a) that attain them."""
        n, c = len(rows), self.cells.shape[1]
        side = int(top)
        ones = np.ones((1, c))
        alike = np.broadcast_to(rows[:, None, :], (n, c, rows.shape[1]))
        lower, upper = self.inputs
        going, where = _filled(alike, lower, upper, ones, ones, top)
        kept = np.zeros((n, len(self.into)))
        same = self.into >= 0
        kept[:, same] = rows[:, self.into[same]]
        best = tables = None
        for end in (0, 1):
            stays = self.stays[end][:, None] * same
            weights = stays * kept[:, None, None, :] + (1 - stays) * going[:, :, None, None]
            found, filled = _filled(
                weights,
                reach.lower[:, None],
                reach.upper[:, None],
                reach.least[:, None],
                reach.most[:, None],
                top,
            )
            of_end = np.stack([filled * stays, filled * (1 - stays)])
            if best is None or tables is None:
                best, tables = found, of_end
                continue
            better = found > best if top else found < best
            best = np.where(better, found, best)
            tables = np.where(better[None, ..., None], of_end, tables)
        assert best is not None
        assert tables is not None
        secrets = self.secrets[side].T
        staying, leaving = np.einsum("incpx,cp->incx", tables, secrets)
        law = leaving.sum(axis=2)[:, :, None] * where
        law[:, :, self.into[same]] += staying[:, :, same]
        return np.einsum("ncp,cp->nc", best, secrets), law

    def after(self, reach: Reach | None, rows: FloatArray) -> Reach:
        """The limits of histories once an output is known, whose row (n, a) it is."""
        a = rows.shape[1]
        told = self.told(reach, rows)
        if self.is_first:
            lower, upper = (np.repeat(one[None], len(rows), axis=0) for one in self.cells)
        else:
            assert reach is not None
            each = [self.told(reach, np.broadcast_to(unit, rows.shape)) for unit in np.eye(a)]
            lower, upper = (np.stack([getattr(one, name) for one in each], axis=2) for name in ("least", "most"))
        lower, upper = lower * rows[:, None, :] * (1 - _HAIR), upper * rows[:, None, :] * (1 + _HAIR)
        scale = np.maximum(upper.max(axis=(1, 2)), _SMALLEST)
        smallest = np.min(upper / scale[:, None, None], axis=(1, 2), initial=1.0, where=upper > 0)
        sound = (smallest >= _SMALLEST) & (upper.max(axis=(1, 2)) > 0)
        if reach is not None:
            sound &= reach.sound
        # Powers of two, so that dividing rounds nothing.
        scale = 2.0 ** np.ceil(np.log2(scale))
        return Reach(
            lower / scale[:, None, None],
            upper / scale[:, None, None],
            np.maximum(told.least, 0.0) / scale[:, None],
            told.most / scale[:, None],
            sound,
        )


_FIELDS = ("least", "most", "least_law", "most_law")


def _shares(lower: FloatArray, upper: FloatArray, least: float | None = None, most: float | None = None) -> FloatArray:
    """Limits (2, k) of ``n_i / Σ n`` of numbers with ``lower <= n <= upper``, (k,), and a sum within limits.

    Where all of them may be zero anything is possible.
    """
    fewest, others = lower.sum() - lower, upper.sum() - upper
    if least is not None and most is not None:
        fewest, others = np.maximum(fewest, least - upper), np.minimum(others, np.maximum(most - lower, 0.0))
        if least > 0 and not lower.any():
            return np.stack([np.zeros(len(lower)), _over(upper, np.maximum(fewest, 0.0))])
    if not lower.any():
        return np.stack([np.zeros(len(lower)), np.ones(len(lower))])
    return np.stack([np.maximum(_over(lower, others, 0.0) * (1 - _HAIR), 0.0), _over(upper, fewest)])


def _over(part: FloatArray, rest: FloatArray, empty: float = 1.0) -> FloatArray:
    """``part / (part + rest)``, at most 1, moved up by a hair; ``empty`` of nothing."""
    whole = part + rest
    shares = np.divide(part, whole, out=np.full(part.shape, empty), where=whole > 0)
    return np.asarray(np.minimum(shares * (1 + _HAIR), 1.0) if empty else shares)


def _filled(
    weights: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    least: FloatArray,
    most: FloatArray,
    top: bool,
) -> tuple[FloatArray, FloatArray]:
    """The largest or least ``Σ n w`` for ``lower <= n <= upper`` with a sum within limits, w >= 0; and the n.

    Cells are filled in the order of their weights, from the largest up to the largest sum, or from the least up to the
    least sum. What differences of sums may be off by is added, or taken away.
    """
    order = np.argsort(-weights if top else weights, axis=-1, kind="stable")
    low, high = (np.take_along_axis(np.broadcast_to(one, weights.shape), order, axis=-1) for one in (lower, upper))
    room = np.maximum((most if top else least) - low.sum(axis=-1), 0.0)[..., None]
    free = np.maximum(high - low, 0.0)
    filled = low + np.clip(room - (np.cumsum(free, axis=-1) - free), 0.0, free)
    table = np.empty(weights.shape)
    np.put_along_axis(table, order, filled, axis=-1)
    value = (table * weights).sum(axis=-1)
    off = _HAIR * high.sum(axis=-1) * weights.max(axis=-1)
    return np.asarray(value + off if top else np.maximum(value - off, 0.0)), table


class DistributionSet:
    """Limits of all histories before a version, under every set of tables that noise leaves open.

    Parameters
    ----------
    past : Past
        Whose chapters have limits of moves.
    joint : Joint
        Of the version, with bounds.
    limits : mapping of int to MoveLimits
        To it, by ordinal.
    """

    def __init__(self, past: Past, joint: Joint, limits: Mapping[int, MoveLimits]) -> None:
        self._past = past
        self._known: dict[int, Reach] = {}
        self._steps = {-1: PossibleStep(joint)}
        for v, one in limits.items():
            self._steps[v] = PossibleStep(joint, past.chapters[v].joint, one)
        self._earlier: dict[tuple[int, int], PossibleStep] = {}

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
            if v >= 0 and (chapter.limits is None or v not in chapter.limits):
                raise SpecError(
                    f"version {chapter.version!r} was not published with limits of the moves since those before it, so "
                    "no bound over all true tables can be kept; leave robust out of [history], or begin a register"
                )
            self._earlier[v, t] = (
                PossibleStep(chapter.joint)
                if v < 0 or chapter.limits is None
                else PossibleStep(chapter.joint, self._past.chapters[v].joint, chapter.limits[v])
            )
        return self._earlier[v, t]


@dataclass(frozen=True, eq=False)
class Worst:
    """What a bound compares under the worst tables: within it where ``above <= below``, for n outputs and k conditions.

    Attributes
    ----------
    above, below : ndarray, shape (n, k)
        Neither is linear in the row of an output, but ``above - below`` of a sum is no more than the sum of both.
    which : ndarray of int64, shape (k, 3)
        For each condition its kind (0: a lift, 1: an inverse lift, 2: two lifts), the secret, and the other one or -1.
    """

    above: FloatArray
    below: FloatArray
    which: IntArray

    @property
    def holds(self) -> BoolArray:
        """Whether an output is within the bound for certain; (n,)."""
        return np.asarray((self.above * (1 + _HAIR) <= self.below).all(axis=1))

    @property
    def ratios(self) -> FloatArray:
        """``above / below``, (n, k): infinite where a value may be ruled out, 0 of outputs that never occur."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num(self.above / self.below, nan=0.0, posinf=np.inf)


def worst(told: Told, prior: FloatArray, allowed: Allowed) -> Worst:
    """How far outputs go under the worst tables.

    Parameters
    ----------
    told : Told
        Of n outputs, c secrets.
    prior : ndarray, shape (2, c)
    allowed : Allowed
    """
    least, most = told.least, told.most
    possible = np.flatnonzero(prior[1] > 0).tolist()
    above, below, which = [np.zeros(len(least))], [np.zeros(len(least))], [(0, 0, -1)]
    for s in possible:
        others = [t for t in possible if t != s]
        if allowed.up is not None:
            above.append(most[:, s])
            below.append(float(allowed.up) * prior[0, s] * (most[:, s] + least[:, others].sum(axis=1)))
            which.append((0, s, -1))
        if allowed.down is not None:
            above.append(prior[1, s] * (least[:, s] + most[:, others].sum(axis=1)))
            below.append(float(allowed.down) * least[:, s])
            which.append((1, s, -1))
        for t in others if allowed.apart is not None else ():
            above.append(most[:, s] * prior[1, t])
            below.append(float(allowed.apart or 1) * least[:, t] * prior[0, s])
            which.append((2, s, t))
    return Worst(np.stack(above, axis=1), np.stack(below, axis=1), np.array(which, dtype=np.int64))


def worst_distribution(told: Told, place: int, condition: IntArray) -> FloatArray:
    """The law (c, a), up to a factor, that is nearly the worst for an output and a condition."""
    kind, s, t = condition.tolist()
    low, high = told.least_law[place], told.most_law[place]
    law: FloatArray = (high if kind == 1 else low).copy()
    law[s] = low[s] if kind == 1 else high[s]
    if kind == 2:
        law[t] = low[t]
    return law
