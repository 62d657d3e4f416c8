"""Standard errors of estimated shares, computed a second time: by least squares, one table at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# Where a second computation would take longer than all the rest of the judgement, and the first is not made either.
_MOST_WORK = 1e9
# As documented: directions with less than this part of the largest singular value tell nothing; of the square of the
# length of a cell as much may lie outside of what is told; and a smaller part of the share of a cell than the last, as
# what drawing adds to the variance of one record, is none.
_CUT, _MISSED, _NOTHING_ADDED = 1e-5, 1e-5, 1e-13

Floats = NDArray[np.float64]


class Estimating:
    """What n records drawn from a channel tell of shares.

    Parameters
    ----------
    law : sequence of (a sequence of b numbers)
        P(y|x) of every true value x that occurs, in proportion.
    shares : sequence of a numbers
        Of these values, in proportion.
    n : int
        Records.

    Notes
    -----
    An estimate of ``mᵀp`` is ``wᵀ`` (shares of outputs) with ``Qᵀ w = m``; the one of least variance under multinomial
    outputs has the least ``Σ q w²``, up to what all shares together add.
    """

    def __init__(self, law: Sequence[Sequence[float]], shares: Sequence[float], n: int) -> None:
        channel: Floats = np.array(law, dtype=np.float64).T
        channel /= channel.sum(axis=0)
        self.shares: Floats = np.array(shares, dtype=np.float64) / np.sum(shares)
        outputs = channel @ self.shares
        channel, outputs = channel[outputs > 0], outputs[outputs > 0]
        self._scaled: Floats = (channel / np.sqrt(outputs)[:, None] * np.sqrt(self.shares)).T
        self._n = n

    @property
    def too_much(self) -> bool:
        """Whether nothing is told of so many values and outputs."""
        a, b = self._scaled.shape
        return bool(float(a) * b * min(a, b) > _MOST_WORK)

    @property
    def least(self) -> float:
        """The largest error that may be told as none: a smaller one cannot be told from the rounding of variances."""
        return float(np.sqrt(_NOTHING_ADDED / self._n))

    def errors(self, cells: Sequence[Sequence[int]]) -> list[float | None]:
        """Of the shares of cells, each a list of values: what drawing adds; None where it cannot be told."""
        found, missed = self._solved(cells)
        told: list[float | None] = []
        for place, members in enumerate(cells):
            share = float(self.shares[members].sum())
            variance = float(found[:, place] @ found[:, place]) - share**2
            added = variance - share * (1 - share)
            if missed[place] > _MISSED * share:
                told.append(None)
            else:
                told.append(float(np.sqrt(added / self._n)) if added >= _NOTHING_ADDED * share else 0.0)
        return told

    def can_be_estimated(self, members: Sequence[int], others: int) -> bool:
        """Whether the share of all these values together can be told.

        The share of all values can be, so that of these lies as far outside of what is told as that of all others. Of a
        cell that can be told a part of at most ``_MISSED`` does, and the parts of m cells add up to at most m times
        their sum (Cauchy and Schwarz).

        Parameters
        ----------
        members : sequence of int
        others : int
            m, how many cells can be told alone.
        """
        _, (missed,) = self._solved([members])
        share = float(self.shares[list(members)].sum())
        return bool(missed <= _MISSED * max(share, others * (1 - share)))

    def _solved(self, cells: Sequence[Sequence[int]]) -> tuple[Floats, Floats]:
        """Weights (b, cells) for outputs, in units of the roots of their shares, and what they miss of each cell."""
        aims = np.zeros((len(self.shares), len(cells)))
        for place, members in enumerate(cells):
            aims[list(members), place] = np.sqrt(self.shares[list(members)])
        found, *_ = np.linalg.lstsq(self._scaled, aims, rcond=_CUT)
        missed: Floats = ((self._scaled @ found - aims) ** 2).sum(axis=0, dtype=np.float64)
        return np.asarray(found, dtype=np.float64), missed
