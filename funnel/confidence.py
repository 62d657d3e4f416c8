"""The confidence set around an estimated joint distribution: every distribution the data cannot rule out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from funnel.errors import SpecError
from funnel.joint import Joint

# Near-deterministic distributions of 25 cells, nominal coverage .95: simulated .945 with cells expected 5 times, .93
# with 1, .88 with .3, .83 with .1.
_FEW = 5


@dataclass(frozen=True)
class ConfidenceSet:
    """``F = {P : Σ (P̂ - P)² / P <= B}`` over the cells (s, x) (RLDP equation (2)).

    Attributes
    ----------
    alpha : float
        Significance: F misses the true distribution with probability about alpha.
    radius : float
        ``B = χ²_{cells-1}^{-1}(1 - alpha) / n``, without unit.
    cells : int
        Number of cells c·a, zero cells included: they may have positive probability in F.
    n : int
        Number of records.
    smallest_expected : float
        Smallest expected count of a cell under the product of the margins.
    few : int
        Number of cells with fewer than 5 records, or with an expected count below 5: there the χ² distribution, and so
        the coverage of F, is doubtful.
    smallest_observed : int
        Smallest count of a cell. Where the secret nearly decides the input every margin is large, and only the counts
        show how rare some cells are.
    """

    alpha: float
    radius: float
    cells: int
    n: int
    smallest_expected: float
    few: int = 0
    smallest_observed: int = 0

    @property
    def doubtful(self) -> bool:
        """Whether counts are too small for the χ² distribution, and so for the confidence, to be relied on."""
        return self.few > 0

    def warning(self, secret: Sequence[str], inputs: Sequence[str]) -> str | None:
        """One sentence where the confidence is doubtful, else None; names the columns and the number of cells."""
        if not self.doubtful:
            return None
        confidence = f"confidence of {1 - self.alpha:.6g}"
        return (
            f"{self.few:,} of the {self.cells:,} combinations of {', '.join([*secret, *inputs])} have fewer than "
            f"{_FEW} records, or would be expected to if {', '.join(secret)} and {', '.join(inputs)} were independent, "
            f"so the {confidence}, which rests on the χ² distribution, is doubtful; group their rare values"
        )


def confidence_radius(cells: int, n: int, alpha: float) -> float:
    """``B = χ²_{cells-1}^{-1}(1 - alpha) / n`` of RLDP (2); 0 for one cell, which leaves no freedom."""
    # Imported here: it takes longer to import than all of this package, and most bounds have no confidence.
    from scipy.special import gammaincinv

    # The quantile of the χ² distribution; scipy.stats, which has it by name, takes longer to import than all of this
    # package.
    return 2 * float(gammaincinv((cells - 1) / 2, 1 - alpha)) / n if cells > 1 else 0.0


def confidence_set(joint: Joint, alpha: float = 0.05) -> ConfidenceSet:
    """The χ² confidence set around the empirical distribution.

    Raises
    ------
    SpecError
        If alpha is not strictly between 0 and 1.
    """
    if not 0 < alpha < 1:
        raise SpecError(f"the significance alpha must lie strictly between 0 and 1, not {alpha}")
    cells = joint.counts.size
    radius = confidence_radius(cells, joint.n, alpha)
    expected = joint.n * np.outer(joint.p_secret, joint.p_input)
    few = int(((expected < _FEW) | (joint.counts < _FEW)).sum())
    return ConfidenceSet(alpha, radius, cells, joint.n, float(expected.min()), few, int(joint.counts.min()))
