"""Aim: what the rows of all histories together are to reach, most information or most records unchanged.

Rows are found for gains g(y, x) of their entries (`funnel.history.programme`). Information is convex in the effective
channel W, so its tangents are such gains, taken again where they have led. A share of unchanged records is linear: its
gains are known, but W has to be balanced, ``Σ_x p_x W(y|x) = p_y``, so that the table of a version is right on average
(METHOD section 17). Estimates have an aim of their own (`funnel.history.score_aims`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from funnel.history.history_status import HistoryStatus
from funnel.history.observed import Observed
from funnel.history.past import Past
from funnel.joint import FloatArray, IntArray

# What a zero of a channel counts as in the logarithm of its gains (METHOD section 9).
_ZERO = 5e-4
# Parts of the histories that are averaged by themselves, at most: programmes grow with them.
_PARTS = 64


class Aim(Protocol):
    """What rows are chosen for, and what W has to keep for it.

    Attributes
    ----------
    shares : ndarray, shape (a,)
        How common inputs are among the people that rows are chosen for: gains are per unit of these.
    scale : float
        What all there is to gain comes to.
    balanced : ndarray of shape (a,) or None
        The distribution of the inputs that W has to keep, where it has to keep one.
    silent : ndarray, shape (b, a)
        A channel that tells nothing and keeps what W has to keep.
    parts : ndarray of int64, shape (h,), or None
        Which histories are averaged alike, as numbers from 0 without gaps; None where all are.
    """

    @property
    def shares(self) -> FloatArray: ...
    @property
    def scale(self) -> float: ...
    @property
    def balanced(self) -> FloatArray | None: ...
    @property
    def silent(self) -> FloatArray: ...
    @property
    def parts(self) -> IntArray | None: ...

    def starts(self) -> Sequence[FloatArray]:
        """Gains (b, a) to begin from, the best first."""
        ...

    def outputs(self, size: int) -> IntArray:
        """The places of the outputs that gains are for, (b,), among all that the version has."""
        ...

    def gains(self, channel: FloatArray) -> FloatArray | None:
        """Gains (b, a) at a channel; None where these are the same everywhere."""
        ...

    def reached(self, channel: FloatArray) -> float:
        """How much of it an effective channel (b, a) reaches."""
        ...

    def part(self, before: FloatArray, tried: FloatArray) -> float:
        """How far to go from an effective channel (b, a) to one that is best for gains there, in [0, 1]."""
        ...


@dataclass(frozen=True, eq=False)
class Labelled:
    """An aim whose outputs are those of a target, with labels that are sets of values.

    Parameters
    ----------
    target : ndarray, shape (b, a)
        The channel at which the first tangent is taken.
    p : ndarray, shape (a,)
    """

    target: FloatArray
    p: FloatArray

    @property
    def shares(self) -> FloatArray:
        """P(X)."""
        return self.p

    @property
    def balanced(self) -> None:
        """Nothing: labels of outputs are sets of values."""

    @property
    def parts(self) -> None:
        """All are averaged alike."""

    @property
    def silent(self) -> FloatArray:
        """Everybody says the same."""
        silent = np.zeros_like(self.target)
        silent[int((self.target @ self.p).argmax())] = 1.0
        return silent

    def outputs(self, size: int) -> IntArray:
        """All."""
        return np.arange(size)

    def starts(self) -> list[FloatArray]:
        """Tangents at the target, at the same with the likely made likelier, and at one output an input.

        What is climbed has several tops.
        """
        from scipy.optimize import linear_sum_assignment

        target, p = self.target, self.p
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

    def gains(self, channel: FloatArray) -> FloatArray:
        """The tangent at a channel."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Informing(Labelled):
    """I(X;W), in nats.

    Parameters
    ----------
    target : ndarray, shape (b, a)
    p : ndarray, shape (a,)
    entropy : float
        H(X), nats.
    """

    entropy: float

    @property
    def scale(self) -> float:
        """H(X)."""
        return self.entropy

    def gains(self, channel: FloatArray) -> FloatArray:
        """The tangent there."""
        return gains_at(channel, self.p)

    def reached(self, channel: FloatArray) -> float:
        """I(X;W) in nats."""
        distribution = channel * self.p
        independent = distribution.sum(axis=1, keepdims=True) * self.p
        seen = distribution > 0
        return float((distribution[seen] * np.log(distribution[seen] / independent[seen])).sum())

    def part(self, before: FloatArray, tried: FloatArray) -> float:
        """All the way: what is convex is at least its tangent."""
        return 1.0


@dataclass(frozen=True, eq=False)
class Unchanged:
    """The weighted share of records that stay as they are, in balance; outputs are the inputs that occur.

    Parameters
    ----------
    worth : ndarray, shape (a,)
        What every input counts that stays; sums to 1.
    p : ndarray, shape (a,)
        The distribution of the version, which W keeps.
    among : ndarray, shape (a,)
        How common inputs are among the people that rows are chosen for, which need not be quite p.
    parts : ndarray of int64, shape (h,), or None
        By what was published last: balance is met sooner the more parts are averaged by themselves.
    """

    worth: FloatArray
    p: FloatArray
    among: FloatArray
    parts: IntArray | None

    @classmethod
    def of(cls, past: Past, status: HistoryStatus, observed: Observed, worth: FloatArray) -> Unchanged:
        """For the people of a version, whose histories stand so."""
        parts = past.last_answers(status.nodes, _PARTS)
        n = np.bincount(observed.inputs, weights=observed.chosen_for, minlength=len(observed.joint.inputs))
        return cls(worth, observed.joint.p_input, n / n.sum(), parts)

    @property
    def shares(self) -> FloatArray:
        """Among the people that rows are chosen for."""
        return self.among

    @property
    def scale(self) -> float:
        """All records."""
        return 1.0

    @property
    def balanced(self) -> FloatArray:
        """The distribution of the version."""
        return self.p

    @property
    def silent(self) -> FloatArray:
        """Everybody draws from the distribution of the version, which keeps it."""
        return np.repeat(self.p[self.p > 0, None], len(self.p), axis=1)

    def starts(self) -> list[FloatArray]:
        """What staying is worth, per unit of people with the input."""
        per_person = np.divide(self.worth, self.among, out=np.zeros_like(self.worth), where=self.among > 0)
        return [np.diag(per_person)[self.p > 0]]

    def outputs(self, size: int) -> IntArray:
        """The inputs that have a probability: nothing else is published."""
        return np.flatnonzero(self.p > 0)

    def gains(self, channel: FloatArray) -> None:
        """The same everywhere."""

    def reached(self, channel: FloatArray) -> float:
        """The weighted share of records that stay."""
        return float((self.worth[self.p > 0] * channel[:, self.p > 0].diagonal()).sum())

    def part(self, before: FloatArray, tried: FloatArray) -> float:
        """All the way."""
        return 1.0


def gains_at(channel: FloatArray, p: FloatArray) -> FloatArray:
    """ln(W(y|x)/w(y)), (b, a): the tangent of the information at a channel, for inputs with probabilities (a,)."""
    outputs = channel @ p
    return np.asarray(np.log(np.maximum(channel, _ZERO) / np.maximum(outputs, _ZERO)[:, None]))
