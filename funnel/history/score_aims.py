"""Score aims: what estimates, or a number, gain by the rows of all histories together.

Values x have scores c(x), a few numbers each with mean 0, and an output y says their mean e(y) among those who get it.
What is reached is a function of ``Σ_y P(y) e(y) e(y)ᵀ``, which is convex in the effective channel W. With scores as
they are at a channel its tangent there has the gains ``2 e(y)·c(x) - |e(y)|²``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from funnel.estimation.estimation_utility import certain, wanted_shares
from funnel.history.aim import Aim, Informing, Labelled
from funnel.joint import FloatArray, Joint
from funnel.measures.utilities import Estimation, Utility, Variance

# What is added to the information on every contrast of shares, so that one that no answer tells has a finite variance.
_RIDGE = 1e-9
# Steps of a search for the best channel between two, each of which leaves 0.62 of the interval.
_STEPS = 24
_GOLDEN = (math.sqrt(5) - 1) / 2
# The probability of an output that is taken for unused.
_UNUSED = 1e-12
# What is left of the target where it is nearly a constant.
_BLURRED = 0.2


@dataclass(frozen=True, eq=False, kw_only=True)
class _Scored(Labelled):
    """An aim by scores, as a share of all there is."""

    def starts(self) -> list[FloatArray]:
        """Also the tangent where the target is nearly a constant: most histories may not come near it."""
        nearly = _BLURRED * self.target + (1 - _BLURRED) * (self.target @ self.shares)[:, None]
        return [*super().starts(), self.gains(nearly)]


@dataclass(frozen=True, eq=False, kw_only=True)
class Explaining(_Scored):
    """Var E[N|Y] / Var N of a number: its scores are the numbers themselves, so it is convex in W.

    Parameters
    ----------
    numbers : ndarray, shape (a,)
    """

    numbers: FloatArray

    @property
    def _scores(self) -> FloatArray:
        centred = self.numbers - self.numbers @ self.shares
        spread = float(self.shares @ centred**2)
        return (centred / np.sqrt(spread) if spread > 0 else np.zeros_like(centred))[:, None]

    def gains(self, channel: FloatArray) -> FloatArray:
        """The tangent there."""
        return gains_of_scores(channel, self.shares, self._scores, self.target)

    def reached(self, channel: FloatArray) -> float:
        """The share of the variance that outputs explain."""
        means = score_means(channel, self.shares, self._scores, channel)
        return float(((channel @ self.shares)[:, None] * means**2).sum())


@dataclass(frozen=True, eq=False, kw_only=True)
class Estimating(_Scored):
    """What records are worth for estimates of shares, as a share of the records; see `funnel.measures.Estimation`.

    With the information ``J = Σ_y P(y) w_y w_yᵀ`` that answers have about shares, ``w_y = P(X|y) / √p``, an estimate
    has the variances ``tr(L J⁻¹)``. Their gradient in J is ``-J⁻¹ L J⁻¹``, so scores are ``J⁻¹ wanted / √p``. Worth is
    neither convex nor concave in W, which is why the best channel on the way to another one is looked for: no step
    makes it smaller.

    Parameters
    ----------
    wanted : ndarray, shape (values with p > 0, r)
        ``L = wanted wantedᵀ``, of trace 1 (`funnel.estimation.estimation_utility.wanted_shares`).
    certain : float
        What of ``tr(L J⁻¹)`` is no variance.
    """

    wanted: FloatArray
    certain: float

    def gains(self, channel: FloatArray) -> FloatArray:
        """The tangent of the logarithm of the worth."""
        pulled, variance = self._variance(channel)
        occurring = self.shares > 0
        scores = np.zeros((len(self.shares), self.wanted.shape[1]))
        scores[occurring] = pulled / np.sqrt(self.shares[occurring])[:, None] / np.sqrt(variance)
        # What is the same for all outputs of a value changes no choice; values that nobody has count as the mean.
        scores[occurring] -= self.shares @ scores
        return gains_of_scores(channel, self.shares, scores, self.target)

    def reached(self, channel: FloatArray) -> float:
        """The worth: variances of estimates from all records as they are, over those from their answers."""
        if self.certain >= 1 - _RIDGE:
            return 1.0
        return min(1.0, (1 - self.certain) / self._variance(channel)[1])

    def part(self, before: FloatArray, tried: FloatArray) -> float:
        """Where the worth is largest between the two, by golden sections; of all that is looked at the best."""

        def worth(part: float) -> float:
            return self.reached(before + part * (tried - before))

        low, high = 0.0, 1.0
        left, right = 1 - _GOLDEN, _GOLDEN
        known = {0.0: worth(0.0), 1.0: worth(1.0), left: worth(left), right: worth(right)}
        for _ in range(_STEPS):
            if known[left] >= known[right]:
                high, right = right, left
                left = high - _GOLDEN * (high - low)
                known[left] = worth(left)
            else:
                low, left = left, right
                right = low + _GOLDEN * (high - low)
                known[right] = worth(right)
        return max(known, key=lambda part: known[part])

    def _variance(self, channel: FloatArray) -> tuple[FloatArray, float]:
        """``J⁻¹ wanted`` and the sum of the variances of what is wanted, for one record."""
        occurring = self.shares > 0
        distribution = channel[:, occurring] * self.shares[occurring]
        outputs = distribution.sum(axis=1)
        told = distribution[outputs > 0] / np.sqrt(outputs[outputs > 0])[:, None] / np.sqrt(self.shares[occurring])
        information = told.T @ told + _RIDGE * np.eye(told.shape[1])
        pulled = np.linalg.solve(information, self.wanted)
        return pulled, max(float((pulled * self.wanted).sum()) - self.certain, _RIDGE)


def aim_for(utility: Utility, joint: Joint, target: FloatArray) -> Aim:
    """What rows are to reach by a utility, where outputs are those of a target (b, a)."""
    p = joint.p_input
    if isinstance(utility, Estimation):
        wanted, known = wanted_shares(joint.inputs, p), certain(joint.inputs, p)
        return Estimating(shares=p, target=target, wanted=wanted, certain=known)
    if isinstance(utility, Variance):
        return Explaining(shares=p, target=target, numbers=utility.of_inputs(joint.inputs, p))
    return Informing(shares=p, scale=joint.entropy, target=target)


def score_means(channel: FloatArray, p: FloatArray, scores: FloatArray, unused: FloatArray) -> FloatArray:
    """The mean scores (b, r) among those who get an output; where nobody does, those of another channel (b, a)."""
    distribution = np.where((channel @ p > _UNUSED)[:, None], channel, unused) * p
    outputs = distribution.sum(axis=1, keepdims=True)
    return np.asarray(
        np.divide(distribution @ scores, outputs, out=np.zeros((len(distribution), scores.shape[1])), where=outputs > 0)
    )


def gains_of_scores(channel: FloatArray, p: FloatArray, scores: FloatArray, unused: FloatArray) -> FloatArray:
    """``2 e(y)·c(x) - |e(y)|²``, (b, a), for scores (a, r): a tangent whatever e(y) is where nobody gets y."""
    means = score_means(channel, p, scores, unused)
    return np.asarray(2 * means @ scores.T - (means**2).sum(axis=1)[:, None])
