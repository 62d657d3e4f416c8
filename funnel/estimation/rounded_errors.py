"""Errors of affine estimates from a rounded channel: what drawing adds, how far rounding may move them, and both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from funnel.estimation.affine import AffineEstimates
from funnel.estimation.fit import normal_quantile
from funnel.estimation.linear import variances
from funnel.estimation.told_channel import ToldChannel
from funnel.joint import FloatArray

# From so many standard errors of bias on, one tail of a normal law is all there is.
_ONE_SIDED = 30.0


@dataclass(frozen=True, eq=False)
class RoundedErrors:
    """Of k affine estimates.

    Attributes
    ----------
    errors : ndarray, shape (k,)
        Standard errors.
    off : ndarray, shape (k,)
        By how much each can be off on average at most, since the channel is rounded and some of it is not told.
    """

    errors: FloatArray
    off: FloatArray

    @classmethod
    def of(
        cls, found: AffineEstimates, told: ToldChannel, shares: FloatArray, n: int, aims: FloatArray | None = None
    ) -> RoundedErrors:
        """Of estimates from n records whose true values have some shares (a,).

        With ``aims`` (k, a) errors are also those of a sample: the estimates are of the population it is from.
        """
        weights = np.hstack([found.weights, np.zeros((len(found.weights), 1))])
        # That the true channel is another one may add so much to the variance.
        more = (found.weights**2) @ told.slack / n
        errors = np.sqrt(variances(weights, told.matrix, shares, n, sampling=False) + more)
        if aims is not None:
            mean, square = aims @ shares, aims**2 @ shares
            errors = np.sqrt(errors**2 + np.maximum(0.0, square - mean**2) / n)
        # Records of whose values nothing is told may show any of some outputs.
        shown = np.append(told.beyond, True)
        widest = np.abs(found.constants[:, np.newaxis] + weights[:, shown]).max(axis=1)
        off = np.abs(found.weights) @ told.slack + told.left_out * widest
        return cls(errors, off)

    def half_lengths(self, confidence: float) -> FloatArray:
        """So long that a normal estimate with these errors is within it of what it estimates, if it is off by so much.

        With t = off / error it is the quantile of |N(t, 1)|, whose square has a noncentral χ² law.
        """
        return half_length(self.errors, self.off, confidence)


def half_length(errors: FloatArray, off: FloatArray, confidence: float) -> FloatArray:
    """As `RoundedErrors.half_lengths`, of arrays of one shape."""
    from scipy.special import ndtri
    from scipy.stats import ncx2

    ratio = off / np.maximum(errors, 1e-300)
    near = np.minimum(ratio, _ONE_SIDED)
    of_both = np.sqrt(ncx2.ppf(confidence, 1, np.maximum(near, 1e-9) ** 2))
    return np.where(ratio > _ONE_SIDED, off + float(ndtri(confidence)) * errors, of_both * errors)


def as_standard_errors(half: FloatArray, confidence: float) -> FloatArray:
    """The standard errors of estimates without bias whose intervals are as long."""
    return np.asarray(half / normal_quantile(confidence))
