"""Departures with noise: by how much published values are more common than the effective channel leads to expect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from funnel.errors import SpecError
from funnel.frequencies.noise import NoiseSecret, draw_noise, scale_of
from funnel.joint import IntArray, freeze

if TYPE_CHECKING:
    from funnel.frequencies.public_counts import Frequencies


@dataclass(frozen=True, eq=False)
class NoisyDepartures:
    """How many more records have each published value on average than the effective channel leads to expect.

    Attributes
    ----------
    epsilon : float
        Differential privacy of all of them together (nats), for one person more or less.
    length : int
        What one person adds to all of them together at most, in parts of a record.
    counts : ndarray of int64, shape (b,)
        In parts of a record, in the order of the published values; of either sign.

    Raises
    ------
    SpecError
        If there are none, or one person may add nothing.
    """

    epsilon: float
    length: int
    counts: IntArray

    def __post_init__(self) -> None:
        freeze(self, "counts")
        if self.counts.ndim != 1 or not len(self.counts) or self.length < 1:
            raise SpecError("departures are one number for each published value, and people may add something to them")

    @property
    def scale(self) -> float:
        """Of the noise in every number, in parts of a record: the smallest double at or above length / epsilon."""
        return scale_of(self.epsilon, self.length)


def noisy_departures(
    exact: IntArray,
    length: int,
    epsilon: float,
    frequencies: Frequencies | None = None,
    secret: NoiseSecret | None = None,
) -> NoisyDepartures:
    """Add noise to every departure, whether anybody adds to it or not.

    Parameters
    ----------
    exact : ndarray of int64, shape (b,)
        From `funnel.history.departures`; one person more or less changes them by ``length`` in all at most.
    length : int
    epsilon : float
        For all of them together.
    frequencies : Frequencies, optional
        The public ones of the version, with all other tables, which this noise is derived from, as that of means is.
    secret : NoiseSecret, optional
        What the noise is derived from; without it, or frequencies, the noise is fresh.

    Raises
    ------
    EntropyError
        If there is no fresh key.
    """
    key = None if secret is None or frequencies is None else frequencies.key_beside(secret, "departures", epsilon)
    return NoisyDepartures(epsilon, length, exact + draw_noise(len(exact), epsilon, length, key))
