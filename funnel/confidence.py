"""The confidence set around an estimated joint law: every law the data cannot rule out."""

from __future__ import annotations

from dataclasses import dataclass

from scipy.stats import chi2

from funnel.errors import SpecError
from funnel.joint import Joint

_FEW = 5.0


@dataclass(frozen=True)
class ConfidenceSet:
    """``F = {P : Σ (P̂ - P)² / P <= B}`` over the cells (s, x) (RLDP equation (2)).

    Attributes
    ----------
    alpha : float
        Significance: F misses the true law with probability about alpha.
    radius : float
        ``B = χ²_{cells-1}^{-1}(1 - alpha) / n``, without unit.
    cells : int
        Number of cells c·a, zero cells included: they may have positive probability in F.
    n : int
        Number of records.
    smallest_expected : float
        Smallest expected count of a cell under the product of the margins; below about 5 the χ² law, and so the
        coverage of F, is doubtful.
    """

    alpha: float
    radius: float
    cells: int
    n: int
    smallest_expected: float

    @property
    def doubtful(self) -> bool:
        """Whether expected counts are too small for the χ² law, and so for the confidence, to be relied on."""
        return self.smallest_expected < _FEW


def confidence_radius(cells: int, n: int, alpha: float) -> float:
    """``B = χ²_{cells-1}^{-1}(1 - alpha) / n`` of RLDP (2); 0 for one cell, which leaves no freedom."""
    return float(chi2.ppf(1 - alpha, cells - 1)) / n if cells > 1 else 0.0


def confidence_set(joint: Joint, alpha: float = 0.05) -> ConfidenceSet:
    """The χ² confidence set around the empirical law.

    Raises
    ------
    SpecError
        If alpha is not strictly between 0 and 1.
    """
    if not 0 < alpha < 1:
        raise SpecError(f"the significance alpha must lie strictly between 0 and 1, not {alpha}")
    cells = joint.counts.size
    radius = confidence_radius(cells, joint.n, alpha)
    expected = joint.n * joint.p_secret.min() * joint.p_input.min()
    return ConfidenceSet(alpha, radius, cells, joint.n, float(expected))
