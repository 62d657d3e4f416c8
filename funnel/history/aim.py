"""Aim: what the rows of all histories together are to reach, most information or most records unchanged.

Rows are found for gains g(y, x) of their entries (`funnel.history.programme`). Information is convex in the effective
channel W, so its tangents are such gains, taken again where they have led. A share of unchanged records is linear: its
gains are known, but W has to be balanced, ``Σ_x p_x W(y|x) = p_y``, so that the table of a version is right on average
(METHOD section 17). Estimates have an aim of their own (`funnel.history.score_aims`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from funnel.history.history_status import HistoryStatus
from funnel.history.observed import Observed
from funnel.history.past import Past
from funnel.joint import FloatArray, IntArray

# What a zero of a channel counts as in the logarithm of its gains (METHOD section 9).
_ZERO = 5e-4
# Parts of the histories that are averaged by themselves, at most: programmes grow with them.
_PARTS = 64


@dataclass(frozen=True, eq=False, kw_only=True)
class Aim(ABC):
    """What rows are chosen for, and what W has to keep for it.

    Parameters
    ----------
    shares : ndarray, shape (a,)
        How common inputs are among the people that rows are chosen for: gains are per unit of these.
    scale : float
        What all there is to gain comes to.
    balanced : ndarray of shape (a,) or None
        The distribution of the inputs that W has to keep, where it has to keep one.
    parts : ndarray of int64, shape (h,), or None
        Which histories are averaged alike, as numbers from 0 without gaps; None where all are.
    """

    shares: FloatArray
    scale: float = 1.0
    balanced: FloatArray | None = None
    parts: IntArray | None = None

    @property
    @abstractmethod
    def silent(self) -> FloatArray:
        """A channel (b, a) that tells nothing and keeps what W has to keep."""

    @abstractmethod
    def starts(self) -> Sequence[FloatArray]:
        """Gains (b, a) to begin from, the best first."""

    def outputs(self, size: int) -> IntArray:
        """The places of the outputs that gains are for, (b,), among all that the version has."""
        return np.arange(size)

    @abstractmethod
    def gains(self, channel: FloatArray) -> FloatArray | None:
        """Gains (b, a) at a channel; None where these are the same everywhere."""

    @abstractmethod
    def reached(self, channel: FloatArray) -> float:
        """How much of it an effective channel (b, a) reaches."""

    def part(self, before: FloatArray, tried: FloatArray) -> float:
        """How far to go from an effective channel (b, a) to one that is best for gains there, in [0, 1].

        All the way where the aim is convex, which is at least its tangent.
        """
        return 1.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Labelled(Aim):
    """An aim whose outputs are those of a target, with labels that are sets of values.

    Parameters
    ----------
    target : ndarray, shape (b, a)
        The channel at which the first tangent is taken.
    """

    target: FloatArray

    @property
    def silent(self) -> FloatArray:
        """Everybody says the same."""
        silent = np.zeros_like(self.target)
        silent[int((self.target @ self.shares).argmax())] = 1.0
        return silent

    @abstractmethod
    def gains(self, channel: FloatArray) -> FloatArray:
        """The tangent at a channel."""

    def starts(self) -> list[FloatArray]:
        """Tangents at the target, at the same with the likely made likelier, and at one output an input.

        What is climbed has several tops.
        """
        from scipy.optimize import linear_sum_assignment

        target, p = self.target, self.shares
        sharp = target**2 / (target**2).sum(axis=0)
        alone = np.zeros_like(target)
        alone[target.argmax(axis=0), np.arange(len(p))] = 1.0
        outputs, inputs = linear_sum_assignment(-target * p)
        alone[:, inputs] = 0.0
        alone[outputs, inputs] = 1.0
        starts = [target]
        for start in (sharp, alone):
            if not any(np.allclose(start, known, rtol=0, atol=1e-3) for known in starts):
                starts.append(start)
        return [self.gains(start) for start in starts]


@dataclass(frozen=True, eq=False, kw_only=True)
class Informing(Labelled):
    """I(X;W), in nats, of H(X)."""

    def gains(self, channel: FloatArray) -> FloatArray:
        """The tangent there."""
        return gains_at(channel, self.shares)

    def reached(self, channel: FloatArray) -> float:
        """I(X;W) in nats."""
        distribution = channel * self.shares
        independent = distribution.sum(axis=1, keepdims=True) * self.shares
        seen = distribution > 0
        return float((distribution[seen] * np.log(distribution[seen] / independent[seen])).sum())


@dataclass(frozen=True, eq=False, kw_only=True)
class Unchanged(Aim):
    """The weighted share of records that stay as they are, in balance; outputs are the inputs that occur.

    Inputs need not be quite as common among the people that rows are chosen for as in the version, whose distribution W
    keeps. Parts are by what was published last: balance is met sooner the more are averaged by themselves.

    Parameters
    ----------
    worth : ndarray, shape (a,)
        What every input counts that stays; sums to 1.
    """

    worth: FloatArray
    balanced: FloatArray

    @classmethod
    def of(cls, past: Past, status: HistoryStatus, observed: Observed, worth: FloatArray) -> Unchanged:
        """For the people of a version, whose histories stand so."""
        parts = past.last_answers(status.nodes, _PARTS)
        n = np.bincount(observed.inputs, weights=observed.chosen_for, minlength=len(observed.joint.inputs))
        return cls(shares=n / n.sum(), balanced=observed.joint.p_input, parts=parts, worth=worth)

    @property
    def silent(self) -> FloatArray:
        """Everybody draws from the distribution of the version, which keeps it."""
        return np.repeat(self.balanced[self.balanced > 0, None], len(self.balanced), axis=1)

    def starts(self) -> list[FloatArray]:
        """What staying is worth, per unit of people with the input."""
        per_person = np.divide(self.worth, self.shares, out=np.zeros_like(self.worth), where=self.shares > 0)
        return [np.diag(per_person)[self.balanced > 0]]

    def outputs(self, size: int) -> IntArray:
        """The inputs that have a probability: nothing else is published."""
        return np.flatnonzero(self.balanced > 0)

    def gains(self, channel: FloatArray) -> None:
        """The same everywhere."""

    def reached(self, channel: FloatArray) -> float:
        """The weighted share of records that stay."""
        occurring = self.balanced > 0
        return float((self.worth[occurring] * channel[:, occurring].diagonal()).sum())


def gains_at(channel: FloatArray, p: FloatArray) -> FloatArray:
    """ln(W(y|x)/w(y)), (b, a): the tangent of the information at a channel, for inputs with probabilities (a,)."""
    outputs = channel @ p
    return np.asarray(np.log(np.maximum(channel, _ZERO) / np.maximum(outputs, _ZERO)[:, None]))
