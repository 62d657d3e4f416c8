"""Linear source: estimates of any linear function of true shares, whichever way records were published."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from funnel.alphabet import Alphabet
from funnel.estimation.combined import NoisyShares, fit_of
from funnel.estimation.fit import require_few
from funnel.estimation.linear import Aimed
from funnel.estimation.plain_counts import PlainCounts
from funnel.estimation.rare import AtMost, RareValues
from funnel.joint import FloatArray, IntArray
from funnel.protocol import Protocol


@dataclass(frozen=True, eq=False)
class LinearSource:
    """What a release tells of the shares of true values, for statistics that are functions of these.

    Attributes
    ----------
    values : Alphabet
        The a values.
    fitted : ndarray, shape (a,)
        Shares of them, none below zero.
    unbiased : ndarray, shape (a,)
        Unbiased estimates of them, some perhaps below zero.
    aimed : callable
        Of weights (k, a): the linear functions of the shares with their covariance.
    ratio : callable or None
        Of weights (k, a): r of each, where records are counted as usual.
    records : int
    method : str
    """

    values: Alphabet
    fitted: FloatArray
    unbiased: FloatArray
    aimed: Callable[[FloatArray], Aimed]
    ratio: Callable[[FloatArray], FloatArray] | None
    records: int
    method: str

    @classmethod
    def of_plain(cls, plain: PlainCounts, sampling: bool) -> LinearSource:
        """Of records that are counted as usual."""
        return cls(
            plain.values,
            plain.shares,
            plain.shares,
            lambda weights: plain.aimed(weights, sampling),
            plain.ratio,
            plain.n,
            "count",
        )

    @classmethod
    def of_outputs(
        cls,
        counts: IntArray,
        protocol: Protocol,
        sampling: bool,
        beside: NoisyShares | None = None,
        at_most: AtMost | None = None,
        rounded: float = 0.0,
    ) -> LinearSource:
        """Of counts (b,) of outputs that stand for sets of values; other parameters as of `funnel.estimate`.

        Raises
        ------
        SpecError
            If there are too many values.
        SolverError
            If the likeliest shares are not found.
        """
        require_few(protocol)
        fit = fit_of(RareValues.of(protocol, at_most, rounded), "em", beside)
        shares = fit.aimed(counts, np.eye(len(protocol.inputs)), sampling)
        return cls(
            protocol.inputs,
            np.maximum(shares.fitted, 0.0),
            shares.unbiased,
            lambda weights: fit.aimed(counts, weights, sampling),
            None,
            int(counts.sum()),
            "estimating equations" if beside is None else "estimating equations, with the noisy counts",
        )
