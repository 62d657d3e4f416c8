"""Beliefs: everything that is bounded of what observers conclude from a history, as one linear programme has it.

A belief is that of one observer in the secret of one version, for one value of the columns that the observer knows
besides, if any. Each has a law P(s, x | h) and a cone of its own; those
of a history stand one after the other, and a row of its channel has to meet the cones of all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from funnel.history.allowed import Kept, bound_given
from funnel.history.conditions import binding_rows
from funnel.history.history_status import Standing
from funnel.joint import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Beliefs:
    """The beliefs in which h histories are bounded, stacked.

    Attributes
    ----------
    laws : ndarray, shape (h, c, a)
        P(s, x | h) of one belief after the other; 0 of a version that the people of a history were not in.
    cone_of : ndarray of int64, shape (h,)
        Which cone each history has.
    cones : tuple of ndarrays, each of shape (k, c)
        Every row is about one belief.
    sizes : tuple of int
        How many of the c secrets each belief has.
    """

    laws: FloatArray
    cone_of: IntArray
    cones: tuple[FloatArray, ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, standing: Standing, inner: Kept) -> Beliefs:
        """Those of all observers and secrets that are bounded, under a guarantee."""
        every = standing.everybody
        sizes = tuple(one.laws.values.shape[1] for one in every)
        starts = np.cumsum([0, *sizes])
        laws = np.zeros((len(standing.nodes), int(starts[-1]), standing.laws.values.shape[2]))
        kinds = np.full((len(standing.nodes), len(every)), -1, dtype=np.int64)
        for place, one in enumerate(every):
            here, own = one.among(standing.nodes)
            laws[here, starts[place] : starts[place + 1]] = one.laws.values[own]
            kinds[here, place] = one.prior_of[own]
        known = [
            {
                group: binding_rows(cone_over(bound_given(inner, one.knows_all), one.priors[group]))
                for group in np.unique(one.prior_of).tolist()
            }
            for one in every
        ]
        distinct, cone_of = np.unique(kinds, axis=0, return_inverse=True)
        cones = []
        for kind in distinct.tolist():
            parts = [(place, known[place][prior]) for place, prior in enumerate(kind) if prior >= 0]
            cone = np.zeros((sum(len(part) for _, part in parts), int(starts[-1])))
            row = 0
            for place, part in parts:
                cone[row : row + len(part), starts[place] : starts[place + 1]] = part
                row += len(part)
            cones.append(cone)
        return cls(laws, np.asarray(cone_of.reshape(-1), dtype=np.int64), tuple(cones), sizes)


def cone_over(inner: Kept, prior: np.ndarray) -> FloatArray:
    """M over all secrets, (k, c): those that nobody in both versions has get no condition."""
    seen = prior > 0
    rows = bound_given(inner).posterior_cone((prior[seen] / prior.sum()).astype(np.float64))
    cone = np.zeros((len(rows), len(prior)))
    cone[:, seen] = rows
    return cone
