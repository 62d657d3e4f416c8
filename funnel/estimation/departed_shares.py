"""Departed shares: by how much outputs are more common than a channel gives them, known up to noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from funnel.errors import SpecError
from funnel.joint import FloatArray


@dataclass(frozen=True, eq=False)
class DepartedShares:
    """What is taken off the shares of outputs before true values are estimated from them.

    Outputs f of records of shares p have the mean ``Q p + d``. What is known of d has independent noise of one variance
    v; d adds up to nothing, and is therefore known about its mean: with the covariance ``v (I - 1 1ᵀ / b)``.

    Attributes
    ----------
    shares : ndarray, shape (b,)
        d, adding up to nothing.
    covariance : ndarray, shape (b, b)
        Of what is known of it.
    """

    shares: FloatArray
    covariance: FloatArray

    @classmethod
    def of_counts(cls, counts: FloatArray, variance: float, records: float) -> Self:
        """Of numbers with noise of a variance, among so many records in the same unit."""
        b = len(counts)
        around = np.eye(b) - 1 / b
        return cls(around @ counts / records, around * variance / records**2)

    def __post_init__(self) -> None:
        if self.covariance.shape != (len(self.shares), len(self.shares)):
            raise SpecError("departures have a share for every output, and a covariance")
