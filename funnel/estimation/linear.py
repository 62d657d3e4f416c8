"""Linear estimates of the shares of cells: their weights, standard errors, and which cells they can tell."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.estimation.share_information import ShareInformation
from funnel.joint import FloatArray, IntArray

# Of singular values, and of parts of a length of one: smaller ones are rounding.
_UNSEEN = 1e-5


@dataclass(frozen=True, eq=False)
class LinearEstimate:
    """Weights for shares of outputs, such that cells of true values are told without bias.

    Attributes
    ----------
    weights : ndarray, shape (cells, b)
        ``weights @ Q`` is one for the values of a cell and zero for others, where the cell can be told.
    told : ndarray of bool, shape (cells,)
    sums : tuple of tuple of int
        Groups of cells that are told only together.
    """

    weights: FloatArray
    told: npt.NDArray[np.bool_]
    sums: tuple[tuple[int, ...], ...]

    @classmethod
    def of(
        cls, channel: FloatArray, outputs: FloatArray, reference: FloatArray, cell_of: IntArray, cells: int
    ) -> LinearEstimate | None:
        """Least squares weighted by a distribution of the outputs; None where there are too many values.

        Parameters
        ----------
        channel : ndarray, shape (b, a)
        outputs : ndarray, shape (b,)
            A distribution: the estimate is efficient if it is that of the outputs.
        reference : ndarray, shape (a,)
            Shares, all above zero, in units of whose roots is decided what can be told.
        cell_of : ndarray of int, shape (a,)
        cells : int
        """
        information = ShareInformation.of(channel, reference, 1)
        if information is None:
            return None
        inverse, _ = _inverse(channel, outputs, reference)
        weights = np.zeros((cells, len(channel)))
        np.add.at(weights, cell_of, np.sqrt(reference)[:, np.newaxis] * inverse)
        told = ~np.isnan(information.errors(cell_of, cells))
        return cls(weights, told, information.only_in_sum(cell_of, cells))


@dataclass(frozen=True, eq=False)
class Aimed:
    """Linear functions of the shares of values, estimated together.

    Attributes
    ----------
    fitted : ndarray, shape (k,)
        At the fit.
    unbiased : ndarray, shape (k,)
    covariance : ndarray, shape (k, k)
        Of the unbiased ones.
    slopes : ndarray, shape (k, rare)
        How they change, less the truth, with the shares that rare values have.
    taken : ndarray, shape (rare,)
        By how much these can be off.
    told : ndarray of bool, shape (k,)
    weights : ndarray, shape (k, b)
        Of shares of outputs, of which the unbiased ones are sums.
    rounded : float
        By how much a probability of the channel can be off.
    """

    fitted: FloatArray
    unbiased: FloatArray
    covariance: FloatArray
    slopes: FloatArray
    taken: FloatArray
    told: npt.NDArray[np.bool_]
    weights: FloatArray
    rounded: float

    def part(self, here: slice) -> Aimed:
        """Some of these functions."""
        names = ("fitted", "unbiased", "slopes", "told", "weights")
        cut: dict[str, Any] = {name: getattr(self, name)[here] for name in names}
        return replace(self, covariance=self.covariance[here, here], **cut)

    def error(self, weights: FloatArray) -> float:
        """The standard error of a weighted sum of them; weights (k,)."""
        return float(np.sqrt(max(0.0, float(weights @ self.covariance @ weights))))

    def off(self, weights: FloatArray) -> float:
        """By how much a weighted sum can be off: rare values have other shares than taken, and channels are rounded."""
        rare = float(np.abs(weights @ self.slopes) @ self.taken)
        return rare + float(rounding_off(weights @ self.weights, self.rounded))


def rounding_off(weights: FloatArray, rounded: float) -> FloatArray:
    """By how much linear estimates can be off because their channel is: weights (..., b) to (...).

    With another channel ``W + D`` the expectation of ``w f`` moves by ``w D p``. No entry of D is beyond ``rounded``,
    and its columns add up to nothing, so that any number may be taken off all weights first: their median leaves least.
    """
    around = np.abs(weights - np.median(weights, axis=-1, keepdims=True))
    return np.asarray(rounded * around.sum(axis=-1))


def aimed_weights(
    channel: FloatArray, outputs: FloatArray, reference: FloatArray, aims: FloatArray
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Weights (k, b) for shares of outputs that tell ``aims (k, a) @ p`` without bias, and where they do (k,).

    Parameters as of `LinearEstimate.of`.
    """
    inverse, directions = _inverse(channel, outputs, reference)
    scaled = aims * np.sqrt(reference)
    size = (scaled**2).sum(axis=1)
    told = size - ((scaled @ directions.T) ** 2).sum(axis=1) <= _UNSEEN * size
    return scaled @ inverse, told


def _inverse(channel: FloatArray, outputs: FloatArray, reference: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The generalised inverse (a, b) of a channel, in units of the roots of a reference, and what it tells (k, a).

    Zero for outputs that never come.
    """
    seen = outputs > 0
    scaled = channel[seen] * np.sqrt(reference) / np.sqrt(outputs[seen])[:, np.newaxis]
    left, size, right = np.linalg.svd(scaled, full_matrices=False)
    kept = size > _UNSEEN * size[0]
    inverse = np.zeros(channel.shape[::-1])
    inverse[:, seen] = (right[kept].T / size[kept]) @ left[:, kept].T / np.sqrt(outputs[seen])
    return inverse, right[kept]


def covariance(weights: FloatArray, channel: FloatArray, shares: FloatArray, n: int, sampling: bool) -> FloatArray:
    """The covariance (k, k) of linear estimates, whose diagonal is `variances`; parameters as there."""
    outputs = channel @ shares
    square = (weights * outputs) @ weights.T
    means = weights @ channel
    whole = weights @ outputs
    certain = np.outer(whole, whole) if sampling else (means * shares) @ means.T
    return np.asarray((square - certain) / n)


def variances(weights: FloatArray, channel: FloatArray, shares: FloatArray, n: int, sampling: bool) -> FloatArray:
    """Variances (k,) of linear estimates ``weights (k, b)`` of shares of outputs of n records.

    Parameters
    ----------
    weights : ndarray, shape (k, b)
    channel : ndarray, shape (b, a)
    shares : ndarray, shape (a,)
        Of the true values.
    n : int
    sampling : bool
        Whether the records are themselves a sample of what the estimate is about; else only their answers are random,
        and the records with each true value are as many as they are.
    """
    outputs = channel @ shares
    square = (weights**2) @ outputs
    means = weights @ channel
    certain = (weights @ outputs) ** 2 if sampling else (means**2) @ shares
    return np.asarray(np.maximum(0.0, square - certain) / n)
