"""Noise: whole numbers of the discrete Laplace law, drawn by OpenDP."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.errors import EntropyError, SpecError

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Noise:
    """What was added to counts: to each one whole number of the discrete Laplace law, P(k) ∝ e^(-|k| / scale).

    Attributes
    ----------
    epsilon : float
        Differential privacy of the counts (nats): one record more or less changes one count by one.
    delta : float
        Probability that a value of one person alone was named; 0 unless values were learned from the data.
    beta : float
        Probability, at most, that the true counts are outside the bounds made of this.

    Raises
    ------
    SpecError
        If any of them is out of range.
    """

    epsilon: float
    delta: float
    beta: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.epsilon) and self.epsilon > 0):
            raise SpecError(f"the epsilon of noise must be above 0 and finite, not {self.epsilon}")
        if not 0 <= self.delta < 1 or not 0 < self.beta < 1:
            raise SpecError(f"delta and beta of noise are probabilities, not {self.delta} and {self.beta}")

    @cached_property
    def scale(self) -> float:
        """The smallest double at or above 1 / epsilon: what the sampler is given, and takes as an exact fraction."""
        return scale_of(self.epsilon)


def scale_of(epsilon: float, sensitivity: int = 1) -> float:
    """The least double ``s`` with ``s * epsilon >= sensitivity`` exactly: noise of this scale costs at most epsilon."""
    scale = sensitivity / epsilon
    while Fraction(scale) * Fraction(epsilon) < sensitivity:
        scale = math.nextafter(scale, math.inf)
    while Fraction(below := math.nextafter(scale, 0.0)) * Fraction(epsilon) >= sensitivity:
        scale = below
    return scale


def discrete_laplace_variance(scale: float) -> float:
    """Of noise of this scale."""
    ratio = math.exp(-1 / scale)
    return 2 * ratio / (1 - ratio) ** 2


def draw_noise(size: int, epsilon: float, sensitivity: int = 1) -> IntArray:
    """Independent noise for ``size`` counts of which one record changes at most ``sensitivity`` by one, shape (size,).

    The sampler is OpenDP's: exact, of whole numbers, from the operating system's entropy (decision 0037). Its own
    account of the privacy loss is asked and must not exceed epsilon.

    Raises
    ------
    SpecError
        If opendp is not installed.
    EntropyError
        If the sampler fails, or does not vouch for this epsilon.
    """
    try:
        from opendp.domains import atom_domain, vector_domain
        from opendp.measurements import make_laplace
        from opendp.metrics import l1_distance
        from opendp.mod import OpenDPException, enable_features
    except ImportError as error:
        raise SpecError(
            "protecting frequencies by noise needs OpenDP; install it with: pip install 'funnel[noise]'"
        ) from error
    enable_features("contrib")
    try:
        # Any: its methods have no types.
        measurement: Any = make_laplace(
            vector_domain(atom_domain(T="i64")), l1_distance(T="i64"), scale=scale_of(epsilon, sensitivity)
        )
        loss = float(measurement.map(sensitivity))
        drawn = np.array(measurement([0] * size), dtype=np.int64)
    except OpenDPException as error:
        raise EntropyError(f"noise for the frequencies could not be drawn: {error.variant}") from error
    if not loss <= epsilon:
        raise EntropyError(f"the sampler of noise vouches for a loss of {loss!r} nats only, and {epsilon!r} was asked")
    return drawn
