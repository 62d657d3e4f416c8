"""Means: how many records each value of a version is published for on average, with noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from funnel.errors import SpecError
from funnel.frequencies.noise import NoiseSecret, discrete_laplace_variance, draw_noise, scale_of
from funnel.history.corrected import PARTS
from funnel.joint import FloatArray, IntArray, freeze

if TYPE_CHECKING:
    from funnel.frequencies.public_counts import Frequencies


@dataclass(frozen=True, eq=False)
class NoisyMeans:
    """How many records each value is published for on average, given what was published about the people before.

    Attributes
    ----------
    epsilon : float
        Differential privacy of all of them together (nats), for one person more or less.
    counts : ndarray of int64, shape (a,)
        In parts of a record, in the order of the published values; may be negative.
    """

    epsilon: float
    counts: IntArray

    def __post_init__(self) -> None:
        freeze(self, "counts")
        if self.counts.ndim != 1 or not len(self.counts):
            raise SpecError("means are one number for each published value")

    @property
    def scale(self) -> float:
        """Of the noise in every number, in parts of a record: the smallest double at or above `PARTS` / epsilon."""
        return scale_of(self.epsilon, PARTS)


def variances_of_noise(means: NoisyMeans, frequencies: Frequencies) -> FloatArray:
    """What noise adds to the variance of every count that was put right by means and counts, in records; (a,)."""
    if frequencies.noise is None:
        raise SpecError("what is put right by noisy means has noisy counts")
    of_mean = discrete_laplace_variance(means.scale) / PARTS**2
    of_counts = len(frequencies.joint.secret) * discrete_laplace_variance(frequencies.noise.scale)
    # What nobody is expected to have is never published.
    return np.asarray((of_mean + of_counts) * (frequencies.joint.p_input > 0))


def noisy_means(
    exact: IntArray, epsilon: float, frequencies: Frequencies | None = None, secret: NoiseSecret | None = None
) -> NoisyMeans:
    """Add noise to every mean, whether anybody has the value or not.

    Parameters
    ----------
    exact : ndarray of int64, shape (a,)
        In parts of a record; one person more or less changes them by `PARTS` in all at most.
    epsilon : float
        For all of them together.
    frequencies : Frequencies, optional
        The public ones of the version, with noise and changes, which its noise on means is derived from.
    secret : NoiseSecret, optional
        What the noise is derived from; without it, or frequencies, the noise is fresh.

    Raises
    ------
    EntropyError
        If there is no fresh key.

    Notes
    -----
    The register has means up to a rounding alone, so that a key of exact ones could not be found again. Noisy tables
    stand for them, since what follows from the same records, earlier versions and noisy tables is the same.
    """
    key = None if secret is None or frequencies is None else frequencies.key_beside(secret, "means", epsilon)
    return NoisyMeans(epsilon, exact + draw_noise(len(exact), epsilon, PARTS, key))
