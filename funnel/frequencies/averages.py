"""Averages: how many records, or how many more, each value is published for on average, with noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from funnel.errors import SpecError
from funnel.frequencies.noise import NoiseSecret, discrete_laplace_variance, draw_noise, scale_of
from funnel.history.corrected import PARTS
from funnel.joint import FloatArray, IntArray, freeze

if TYPE_CHECKING:
    from funnel.frequencies.public_counts import Frequencies


@dataclass(frozen=True, eq=False)
class NoisyAverages:
    """Means: how many records each value is published for on average, given what was published about the people before.

    Or departures: how many more records have each published value than the effective channel leads to expect.

    Attributes
    ----------
    epsilon : float
        Differential privacy of all of them together (nats), for one person more or less.
    counts : ndarray of int64, shape (b,)
        In parts of a record, in the order of the published values; of either sign.
    length : int
        What one person adds to all of them together at most, in parts of a record: to means one record.

    Raises
    ------
    SpecError
        If there are none, or one person may add nothing.
    """

    epsilon: float
    counts: IntArray
    length: int = PARTS

    def __post_init__(self) -> None:
        freeze(self, "counts")
        if self.counts.ndim != 1 or not len(self.counts) or self.length < 1:
            raise SpecError("averages are one number for each published value, and people may add something to them")

    @property
    def scale(self) -> float:
        """Of the noise in every number, in parts of a record: the smallest double at or above length / epsilon."""
        return scale_of(self.epsilon, self.length)


def variances_of_noise(means: NoisyAverages, frequencies: Frequencies) -> FloatArray:
    """What noise adds to the variance of every count that was put right by means and counts, in records; (a,)."""
    if frequencies.noise is None:
        raise SpecError("what is put right by noisy means has noisy counts")
    of_mean = discrete_laplace_variance(means.scale) / PARTS**2
    of_counts = len(frequencies.joint.secret) * discrete_laplace_variance(frequencies.noise.scale)
    # What nobody is expected to have is never published.
    return np.asarray((of_mean + of_counts) * (frequencies.joint.p_input > 0))


def noisy_averages(
    kind: Literal["means", "departures"],
    exact: IntArray,
    length: int,
    epsilon: float,
    frequencies: Frequencies | None = None,
    secret: NoiseSecret | None = None,
) -> NoisyAverages:
    """Add noise to every average, whether anybody adds to it or not.

    Parameters
    ----------
    kind : "means" or "departures"
    exact : ndarray of int64, shape (b,)
        From `funnel.history.corrected.means` or `funnel.history.departures`, in parts of a record; one person more or
        less changes them by ``length`` in all at most.
    length : int
    epsilon : float
        For all of them together.
    frequencies : Frequencies, optional
        The public ones of the version, with all other tables, which this noise is derived from.
    secret : NoiseSecret, optional
        What the noise is derived from; without it, or frequencies, the noise is fresh.

    Raises
    ------
    EntropyError
        If there is no fresh key.

    Notes
    -----
    The register has averages up to a rounding alone, so that a key of exact ones could not be found again. Noisy tables
    stand for them, since what follows from the same records, earlier versions and noisy tables is the same.
    """
    key = None if secret is None or frequencies is None else frequencies.key_beside(secret, kind, epsilon)
    return NoisyAverages(epsilon, exact + draw_noise(len(exact), epsilon, length, key), length)
