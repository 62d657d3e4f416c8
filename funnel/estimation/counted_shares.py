"""CountedShares: how exact shares are that are counted in the records of an invariant protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from funnel.joint import FloatArray, IntArray

_ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class CountedShares:
    """Plain counts of n records whose outputs are their inputs; as `ShareInformation`, whose tables it makes too.

    Given the true values published records are independent, so the count of a set A of values has the variance
    ``Σ_i P(Y_i in A)(1 - P(Y_i in A))``.

    Attributes
    ----------
    channel : ndarray, shape (a, a)
        P(y|x) of the values that occur, in one order.
    shares : ndarray, shape (a,)
        Of these values, with sum one.
    n : int
        Records.
    """

    # Plain counts solve no equations.
    condition: ClassVar[float] = 1.0

    channel: FloatArray
    shares: FloatArray
    n: int

    def errors(self, cell_of: IntArray, cells: int) -> FloatArray:
        """Standard errors (cells,) that drawing adds to the shares of cells of values."""
        inside = np.zeros((cells, len(self.shares)))
        np.add.at(inside, cell_of, self.channel)
        inside = np.clip(inside, 0.0, 1.0)
        spread = inside * (1.0 - inside)
        # A sum of probabilities that is one misses it by rounding.
        return np.asarray(np.sqrt(np.where(spread < _ROUNDING, 0.0, spread) @ self.shares / self.n))

    def only_in_sum(self, cell_of: IntArray, cells: int) -> tuple[tuple[int, ...], ...]:
        """Every share is counted, none only together with others."""
        return ()
