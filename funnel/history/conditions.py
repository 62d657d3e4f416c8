"""Conditions: what may still be said to people with a history, as a cone on the rows of their channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from funnel.history.allowed import Kept, bound_given
from funnel.history.history_status import HistoryStatus
from funnel.joint import FloatArray, IntArray

# Where a constant row is closer to a condition than this, relatively, the condition is met by status still: no
# solver could tell the room that is left from rounding.
_THIN = 1e-9
# How exactly, relatively, a row has to stand still where it must.
STILL = 1e-10
# What sums of products may be off by, relatively.
_ROUNDING = 1e-13
# The same for one entry of a row, which is a sum over the secrets.
_NOTHING = 1e-14


@dataclass(frozen=True, eq=False)
class Conditions:
    """``rows T <= 0`` for every row T of the channel of a history, and ``rows T = 0`` where it is held.

    "No worse than the history alone": a row M_j of the cone of the guarantee asks of an output with posterior π that
    ``M_j π <= max(0, M_j P(S|h))``. For the row T of the channel that makes the output this is
    ``(M_j P_h - max(0, M_j P_h 1) p_h) T <= 0`` with p_h the distribution of the input: a cone, in which constant rows
    lie. Where the history alone is outside, posteriors average to the right side, so all outputs meet it with equality.

    Attributes
    ----------
    rows : ndarray, shape (m, k, a)
        For m histories.
    slack : ndarray, shape (m, k)
        ``-rows 1``: the room that a constant row leaves, >= 0; 0 where held.
    held : ndarray of bool, shape (m, k)
    thin : ndarray, shape (m, k)
        Room that was given away, >= 0, where a condition is held although the history alone is just inside.
    size : ndarray, shape (m, k, a)
        What the rows are made of without signs: the scale of their rounding.
    given : ndarray, shape (m, a)
        P(x|h), added up over the beliefs.
    """

    rows: FloatArray
    slack: FloatArray
    held: npt.NDArray[np.bool_]
    thin: FloatArray
    size: FloatArray
    given: FloatArray

    @classmethod
    def of(cls, distributions: FloatArray, cone: FloatArray, sizes: Sequence[int] | None = None) -> Conditions:
        """The conditions of histories with distributions (m, c, a), each summing to 1, under a cone (k, c); O(m k c a).

        Of several beliefs, by observer and by whose secret it is, the c secrets are those of each in turn, ``sizes`` of
        them: every row of the cone is about one belief. A belief that a history has none of is 0, and has no row.
        """
        starts = np.cumsum([0, *(() if sizes is None else sizes[:-1])])
        of_each = np.add.reduceat(distributions, starts, axis=1)
        whose = np.add.reduceat(np.abs(cone), starts, axis=1).argmax(axis=1)
        rows = np.matmul(cone, distributions)
        size = np.matmul(np.abs(cone), distributions)
        alone = rows.sum(axis=2)
        held = alone > -_THIN * size.sum(axis=2)
        level = np.where(held, alone, 0.0)
        rows -= level[:, :, None] * of_each[:, whose]
        # A price of a row that is nothing but rounding would be worth anything.
        rows[np.abs(rows) <= _NOTHING * size] = 0.0
        return cls(
            rows,
            np.where(held, 0.0, np.maximum(-rows.sum(axis=2), 0.0)),
            held,
            np.where(held, np.maximum(-alone, 0.0), 0.0),
            size,
            of_each.sum(axis=1),
        )

    def __len__(self) -> int:
        return len(self.rows)

    def of_some(self, which: npt.NDArray[np.intp]) -> Conditions:
        """Those of some histories."""
        return Conditions(*(part[which] for part in vars(self).values()))

    @property
    def silent(self) -> npt.NDArray[np.bool_]:
        """Which histories have nothing left to say: all rows that meet the conditions are constant; shape (m,).

        The distribution of the input is a vertex of the region (METHOD section 9): where all outputs have to stand
        still, as many conditions that are independent on the inputs that are possible as leave one dimension.
        """
        possible = self.given > 0
        number = possible.sum(axis=1)
        silent = number <= 1
        doubtful = np.flatnonzero(~silent & (number <= self.held.sum(axis=1) + 1))
        if len(doubtful):
            # Columns divided by what they are made of: whether they depend is not a matter of how common an input is.
            scale = np.where(possible, self.given, 1.0)[doubtful, None, :]
            rank = np.linalg.matrix_rank(self.rows[doubtful] * self.held[doubtful, :, None] / scale, rtol=1e-9)
            silent[doubtful] = rank >= number[doubtful] - 1
        return np.asarray(silent)

    def needs(self, channel: FloatArray) -> FloatArray:
        """How much of a constant row each output (b,) of a channel (b, a) needs to meet the conditions; shape (m, b).

        Of one channel for all histories, or of one for each, (m, b, a).

        With shares c_y >= need_y added to the outputs, ``channel + c`` (divided by 1 + Σc) meets them. Infinite where
        an output that has to stand still does not.
        """
        beyond, scale = _products(self.rows, channel), _products(self.size, channel)
        # What is beyond by rounding alone is not.
        over = np.where(beyond > _ROUNDING * scale, beyond, 0.0)
        room = self.slack[:, :, None]
        needed = np.divide(over, room, out=np.zeros_like(over), where=room > 0)
        needed[self.held[:, :, None] & (np.abs(beyond) > STILL * scale)] = np.inf
        return np.asarray(needed.max(axis=1, initial=0.0))


def _products(rows: FloatArray, channel: FloatArray) -> FloatArray:
    """Rows (m, k, a) of every history times those of its channel, (m, k, b)."""
    m, k, a = rows.shape
    if channel.ndim == 3:
        return np.asarray(np.matmul(rows, channel.swapaxes(1, 2)))
    return np.asarray((rows.reshape(m * k, a) @ channel.T).reshape(m, k, len(channel)))


def binding_rows(cone: FloatArray) -> FloatArray:
    """The rows of a cone on posteriors (k, c) that can bind; for two secrets one in either direction, shape (k', c).

    The posterior of two secrets is one number u, and a row is ``±(u - end) <= 0``: the tightest end in a direction
    implies the others, also where the history alone is outside some of them.
    """
    cone = cone[np.abs(cone).max(axis=1, initial=0.0) > 0]
    if cone.shape[1] != 2 or len(cone) == 0:
        return cone
    slope = cone[:, 0] - cone[:, 1]
    chosen = []
    for sign in (1.0, -1.0):
        towards = np.flatnonzero(sign * slope > 0)
        if len(towards):
            ends = -cone[towards, 1] / slope[towards]
            chosen.append(int(towards[np.argmin(sign * ends)]))
    return cone[chosen]


@dataclass(frozen=True, eq=False)
class Beliefs:
    """The beliefs in which h histories are bounded, stacked.

    Attributes
    ----------
    distributions : ndarray, shape (h, c, a)
        P(s, x | h) of one belief after the other; 0 of a version that the people of a history were not in.
    cone_of : ndarray of int64, shape (h,)
        Which cone each history has.
    cones : tuple of ndarrays, each of shape (k, c)
        Every row is about one belief.
    sizes : tuple of int
        How many of the c secrets each belief has.
    """

    distributions: FloatArray
    cone_of: IntArray
    cones: tuple[FloatArray, ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, status: HistoryStatus, inner: Kept) -> Beliefs:
        """Those of all observers and secrets that are bounded, under a guarantee."""
        every = status.everybody
        sizes = tuple(one.distributions.values.shape[1] for one in every)
        starts = np.cumsum([0, *sizes])
        distributions = np.zeros((len(status.nodes), int(starts[-1]), status.distributions.values.shape[2]))
        kinds = np.full((len(status.nodes), len(every)), -1, dtype=np.int64)
        for place, one in enumerate(every):
            here, own = one.among(status.nodes)
            distributions[here, starts[place] : starts[place + 1]] = one.distributions.values[own]
            kinds[here, place] = one.prior_of[own]
        known = [
            {
                group: binding_rows(cone_over(bound_given(inner, one.knows_all), one.priors[group]))
                for group in np.unique(one.prior_of).tolist()
            }
            for one in every
        ]
        distinct, cone_of = np.unique(kinds, axis=0, return_inverse=True)
        cones = []
        for kind in distinct.tolist():
            parts = [(place, known[place][prior]) for place, prior in enumerate(kind) if prior >= 0]
            cone = np.zeros((sum(len(part) for _, part in parts), int(starts[-1])))
            row = 0
            for place, part in parts:
                cone[row : row + len(part), starts[place] : starts[place + 1]] = part
                row += len(part)
            cones.append(cone)
        return cls(distributions, np.asarray(cone_of.reshape(-1), dtype=np.int64), tuple(cones), sizes)


def cone_over(inner: Kept, prior: np.ndarray) -> FloatArray:
    """M over all secrets, (k, c): those that nobody in both versions has get no condition."""
    seen = prior > 0
    rows = bound_given(inner).posterior_cone((prior[seen] / prior.sum()).astype(np.float64))
    cone = np.zeros((len(rows), len(prior)))
    cone[:, seen] = rows
    return cone
