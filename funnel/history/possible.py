"""Possible: what histories say under every set of tables that noise leaves open, as limits that hold for all of them.

A table of counts is published with noise, so the true one is only known to be within limits, but for a probability of
β. Everything an observer concludes from true tables is made of sums and products of numbers >= 0: the distribution of
the first version of a person, ``u(s, x)``; how the secret changed, D; the share ρ of those with a secret who kept their
published input; and the distribution A of the input given the secret now. With each of them between limits, for a row T
of a channel

    P(s, h, y) = Σ_s' D(s|s') Σ_x' u(s', x') (ρ(s') T(x') + (1 - ρ(s')) Σ_x A(x|s) T(x))

is at most what the largest of each gives, found greedily: A and u fill their cells in the order of what these count.
Limits of ``u`` after an output are those of its cells, and of its sums by secret. What is known of one number twice is
forgotten in between, so limits are wide where there are few people, and never too narrow (decision 0060).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Final

import numpy as np

from funnel.errors import SpecError
from funnel.history.changes import same_inputs
from funnel.history.distributions import BoolArray
from funnel.history.open_shares import (
    HAIR,
    OpenShares,
)
from funnel.joint import FloatArray, IntArray, Joint

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
    """Limits of P(s, h, y) for some rows, each up to a factor of its own; and distributions near them.

    Attributes
    ----------
    least, most : ndarray, shape (n, c)
    least_distribution, most_distribution : ndarray, shape (n, c, a)
        For each secret now, numbers G(x) >= 0 with ``Σ_x G(x) T(x)`` the limit, but for a hair.
    """

    least: FloatArray
    most: FloatArray
    least_distribution: FloatArray
    most_distribution: FloatArray


@dataclass(frozen=True, eq=False)
class Known:
    """What an observer may know of a person in the version that comes.

    Attributes
    ----------
    inside : ndarray of bool, shape (a,)
        That the input is one of these.
    prior : ndarray, shape (2, c)
        Limits of how common secrets are among people with one.
    counted : ndarray, shape (c,)
        The same by published counts.
    """

    inside: BoolArray
    prior: FloatArray
    counted: IntArray


class PossibleStep:
    """How people go from an earlier version to one, under every set of tables; or who is new in it.

    Parameters
    ----------
    joint : Joint
        Published counts of the version.
    shares : OpenShares
        What is left open of it.
    earlier : Joint or None
        Of the earlier version; None for new people.

    Attributes
    ----------
    prior : ndarray, shape (2, c)
        Limits of how common secrets are, among the people in both.
    known : tuple of Known
        What observers may know besides.

    Raises
    ------
    SpecError
        If limits do not fit, or there are too many cells.
    """

    prior: FloatArray
    known: tuple[Known, ...] = ()

    def __init__(self, joint: Joint, shares: OpenShares, earlier: Joint | None = None) -> None:
        if max(joint.counts.shape[1], 1 if earlier is None else earlier.counts.shape[1]) > _MOST_CELLS:
            raise SpecError(
                f"the bound over all true tables is laid out for {_MOST_CELLS:,} published values at most; publish "
                "fewer columns, or group their values"
            )
        self.cells, self.totals, self.inputs, self.prior = shares.cells, shares.totals, shares.inputs, shares.prior
        self.is_first = earlier is None
        if earlier is None:
            return
        if shares.secrets.shape[1:] != (len(earlier.secret), len(joint.secret)):
            raise SpecError("limits of moves are not between the values of these two versions")
        self.into = same_inputs(earlier.inputs, joint.inputs)
        self.same = self.into >= 0
        self.secrets, self.stays = shares.secrets, shares.stays

    def for_known(self, known: Sequence[Known]) -> PossibleStep:
        """The same with what observers may know besides."""
        found = copy(self)
        found.known = tuple(known)
        return found

    def with_prior(self, prior: FloatArray) -> PossibleStep:
        """The same for people among whom secrets are as common as other limits (2, c) say."""
        found = copy(self)
        found.prior = prior
        return found

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
        (least, least_distribution), (most, most_distribution) = ends
        return Told(least * (1 - HAIR), most * (1 + HAIR), least_distribution, most_distribution)

    def _end(self, reach: Reach, rows: FloatArray, top: bool) -> tuple[FloatArray, FloatArray]:
        """The least or largest values (n, c), and functionals (n, c, a) that attain them."""
        n, c = len(rows), self.cells.shape[1]
        side = int(top)
        ones = np.ones((1, c))
        alike = np.broadcast_to(rows[:, None, :], (n, c, rows.shape[1]))
        lower, upper = self.inputs
        going, where = _filled(alike, lower, upper, ones, ones, top)
        same, kept = self.same, self._kept(rows)
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
        distribution = leaving.sum(axis=2)[:, :, None] * where
        distribution[:, :, self.into[same]] += staying[:, :, same]
        return np.einsum("ncp,cp->nc", best, secrets), distribution

    def _kept(self, rows: FloatArray) -> FloatArray:
        """Entries of rows (n, a) at the inputs then: 0 at those that are no longer there."""
        found = np.zeros((len(rows), len(self.into)))
        found[:, self.same] = rows[:, self.into[self.same]]
        return found

    def largest(self, reach: Reach, rows: FloatArray, weights: FloatArray) -> FloatArray:
        """Never below the largest ``Σ_s a_s N_s`` of rows (n, a), for weights a (c,) of either sign; (n,).

        For each secret then, u and the share of those who stay are in their limits, at an end of the latter; secrets
        now are as common as a is positive, or as rare as they can be.
        """
        step = max(1, _ENTRIES // reach.lower[0].size)
        parts = [
            self._largest(reach.at(np.arange(start, min(start + step, len(rows)))), rows[start : start + step], weights)
            for start in range(0, len(rows), step)
        ]
        return np.concatenate(parts)

    def _largest(self, reach: Reach, rows: FloatArray, weights: FloatArray) -> FloatArray:
        n, c = len(rows), len(weights)
        ones = np.ones((1, c))
        alike = np.broadcast_to(rows[:, None, :], (n, c, rows.shape[1]))
        ends = [_filled(alike, self.inputs[0], self.inputs[1], ones, ones, top)[0] for top in (False, True)]
        going = np.where(weights > 0, ends[1], ends[0])
        secrets = weights * np.where(weights > 0, self.secrets[1], self.secrets[0])
        same, kept = self.same, self._kept(rows)
        leaving = going @ secrets.T
        # Weights are differences: what rounding makes of them is relative to their parts.
        sized = (np.abs(weights) + np.abs(weights).max() + 2) * self.secrets[1]
        size = ends[1] @ sized.T
        best: FloatArray | None = None
        for end in (0, 1):
            stays = self.stays[end][:, None] * same
            each = stays * kept[:, None, :] * secrets.sum(axis=1)[:, None] + (1 - stays) * leaving[:, :, None]
            sizes = stays * kept[:, None, :] * sized.sum(axis=1)[:, None] + (1 - stays) * size[:, :, None]
            table = _filled_signed(each, reach.lower, reach.upper, reach.least, reach.most)
            found = (table * each).sum(axis=2)
            found += 4 * HAIR * reach.most * sizes.max(axis=2)
            best = found if best is None else np.maximum(best, found)
        assert best is not None
        return np.asarray(best.sum(axis=1))

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
        lower, upper = lower * rows[:, None, :] * (1 - HAIR), upper * rows[:, None, :] * (1 + HAIR)
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


_FIELDS = ("least", "most", "least_distribution", "most_distribution")


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
    off = HAIR * high.sum(axis=-1) * weights.max(axis=-1)
    return np.asarray(value + off if top else np.maximum(value - off, 0.0)), table


def _filled_signed(
    weights: FloatArray, lower: FloatArray, upper: FloatArray, least: FloatArray, most: FloatArray
) -> FloatArray:
    """The n with the largest ``Σ n w`` for ``lower <= n <= upper`` with a sum within limits, w of either sign.

    Cells are filled in decreasing order of their weights: as long as these are positive, but up to the least sum.
    """
    order = np.argsort(-weights, axis=-1, kind="stable")
    low, high, each = (np.take_along_axis(one, order, axis=-1) for one in (lower, upper, weights))
    free, sums = np.maximum(high - low, 0.0), low.sum(axis=-1)
    wanted = np.where(each > 0, free, 0.0).sum(axis=-1)
    filled = np.clip(wanted, np.maximum(least - sums, 0.0), np.maximum(most - sums, 0.0))[..., None]
    table = np.empty(weights.shape)
    np.put_along_axis(table, order, low + np.clip(filled - (np.cumsum(free, axis=-1) - free), 0.0, free), axis=-1)
    return table
