"""Combined: shares of true values from released records and from noisy counts of these values, as one estimate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from funnel.errors import SpecError
from funnel.estimation.fit import Fit, normal_quantile
from funnel.estimation.linear import Aimed
from funnel.estimation.rare import RareValues
from funnel.joint import FloatArray, IntArray

# Of eigenvalues of the variance of outputs: smaller ones are rounding.
_NOTHING = 1e-10
# Rounds of fitting: the second one has the variance of the answers at better shares than noise alone tells.
_ROUNDS = 2


@dataclass(frozen=True, eq=False)
class NoisyShares:
    """Shares of the true values among these records, each with independent noise around zero.

    Attributes
    ----------
    shares : ndarray, shape (a,)
        Of the protocol's inputs, in their order; some may be below zero.
    variances : ndarray, shape (a,)
        Of the noise; all above zero.
    excess : ndarray, shape (a,)
        Excess kurtosis of the noise: 0 for a normal distribution, 3 for a Laplace distribution.
    """

    shares: FloatArray
    variances: FloatArray
    excess: FloatArray

    @classmethod
    def of_counts(cls, counts: FloatArray, cells: IntArray, scale: float, records: int) -> Self:
        """Of sums of counts, each with discrete Laplace noise of one scale: P(k) in proportion to exp(-|k| / scale).

        Parameters
        ----------
        counts : ndarray, shape (a,)
            The noisy sums.
        cells : ndarray of int, shape (a,)
            Of how many counts each is.
        scale : float
        records : int
        """
        ratio = math.exp(-1 / scale)
        # A difference of two geometric numbers.
        variance, excess = 2 * ratio / (1 - ratio) ** 2, 3 + (1 - ratio) ** 2 / (2 * ratio)
        return cls(counts / records, cells * variance / records**2, excess / cells)

    def __post_init__(self) -> None:
        if not self.shares.shape == self.variances.shape == self.excess.shape or not (self.variances > 0).all():
            raise SpecError("noisy shares have one variance above zero for each value of the protocol")


class CombinedFit:
    """Estimates from counts of outputs of a channel and from noisy shares of its inputs.

    With noisy shares z of covariance V, outputs f of records of shares p have the mean ``Q p``, and given these records
    the covariance ``S = Σ_x p_x (diag(Q_x) - Q_x Q_xᵀ) / n``, and that of departures. The estimate is
    ``z + K (f - Q z)`` with ``K = V Qᵀ (Q V Qᵀ + S)⁻¹``: unbiased for every K, and with this one the best that is
    linear in both (generalised least squares). Sums of shares are estimated by the sums, so that margins are those of
    the crossed table.
    """

    def __init__(self, values: RareValues, beside: NoisyShares) -> None:
        if len(values.places):
            raise SpecError("beside noisy counts nothing else is known of rare values; leave at_most out")
        if beside.shares.shape != (values.channel.shape[1],):
            raise SpecError(f"noisy shares are of {values.channel.shape[1]:,} values, those of the protocol")
        self._values, self._channel, self._beside = values, values.channel, beside

    def aimed(self, counts: IntArray, aims: FloatArray, sampling: bool) -> Aimed:
        """Linear functions of the shares of all values, told by ``aims (k, a)``; all of them are told."""
        made, n = self._solved(counts), int(counts.sum())
        of_noise, of_answers = aims @ made.kept, aims @ made.gain
        covariance = (of_noise * self._beside.variances) @ of_noise.T + of_answers @ made.answers @ of_answers.T
        if sampling:
            means = aims @ made.shares
            covariance = covariance + ((aims * made.shares) @ aims.T - np.outer(means, means)) / n
        rare = np.zeros((len(aims), 0))
        told = np.ones(len(aims), dtype=np.bool_)
        return Aimed(
            aims @ made.shares, aims @ made.unbiased, covariance, rare, rare[0], told, of_answers, self._values.rounded
        )

    def reach(self, counts: IntArray, aims: FloatArray, variances: FloatArray, confidence: float) -> FloatArray:
        """How many standard errors intervals of these functions reach to each side, shape (k,).

        More than those of a normal distribution, as far as errors are of the noise, whose tails are heavier: by the
        first term of Cornish and Fisher (1938), of the fourth cumulant.
        """
        of_noise = aims @ self._solved(counts).kept
        fourth = (of_noise**4) @ (self._beside.excess * self._beside.variances**2)
        excess = np.divide(fourth, variances**2, out=np.zeros_like(fourth), where=variances > 0)
        z = normal_quantile(confidence)
        return np.asarray(z + (z**3 - 3 * z) / 24 * excess)

    def _solved(self, counts: IntArray) -> _Solved:
        channel, noisy, n = self._channel, self._beside, int(counts.sum())
        seen = self._values.shares_of(counts)
        spread = (channel * noisy.variances) @ channel.T
        shares = nearest_distribution(noisy.shares, noisy.variances)
        for _ in range(_ROUNDS):
            answers = self._variance_of_answers(shares, n)
            inverse = np.linalg.pinv(spread + answers, rcond=_NOTHING, hermitian=True)
            gain = (noisy.variances[:, np.newaxis] * channel.T) @ inverse
            unbiased = noisy.shares + gain @ (seen - channel @ noisy.shares)
            kept = np.eye(len(shares)) - gain @ channel
            own = (kept**2) @ noisy.variances + ((gain @ answers) * gain).sum(axis=1)
            shares = nearest_distribution(unbiased, np.maximum(own, 0.0))
        return _Solved(shares, unbiased, kept, gain, self._variance_of_answers(shares, n))

    def _variance_of_answers(self, shares: FloatArray, n: int) -> FloatArray:
        """The covariance (b, b) of shares of outputs, given the records, and of what is not known of departures."""
        drawn = (np.diag(self._channel @ shares) - (self._channel * shares) @ self._channel.T) / n
        return np.asarray(drawn + self._values.departed_covariance(np.eye(len(drawn))))


@dataclass(frozen=True, eq=False)
class _Solved:
    """A distribution (a,), unbiased shares (a,), ``I - K Q`` (a, a), K (a, b), and the covariance of outputs (b, b)."""

    shares: FloatArray
    unbiased: FloatArray
    kept: FloatArray
    gain: FloatArray
    answers: FloatArray


def fit_of(values: RareValues, method: str, beside: NoisyShares | None) -> Fit | CombinedFit:
    """What estimates functions of the shares of all values, with noisy shares beside the records or without."""
    if beside is not None:
        return CombinedFit(values, beside)
    return Fit(values, np.arange(values.channel.shape[1]), values.channel.shape[1], method)


def nearest_distribution(values: FloatArray, variances: FloatArray) -> FloatArray:
    """The distribution p (a,) that is nearest to values, in ``Σ (p - values)² / variances``; O(a log a).

    It is ``max(0, values - level * variances)`` for the level at which that sums to one. Values without variance keep
    theirs.
    """
    variances = np.maximum(variances, 1e-9 * max(float(variances.max()), 1e-300))
    if (values >= 0).all() and abs(values.sum() - 1) < 1e-15:
        return values
    order = np.argsort(-values / variances, kind="stable")
    level = (np.cumsum(values[order]) - 1) / np.cumsum(variances[order])
    last = int(np.flatnonzero(values[order] - level * variances[order] > 0)[-1])
    found = np.maximum(values - level[last] * variances, 0.0)
    return np.asarray(found / found.sum())
