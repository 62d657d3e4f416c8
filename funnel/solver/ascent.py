"""Joint ascent: a good protocol of two outputs for each symbol, all improved together by linear programmes."""

from __future__ import annotations

import numpy as np

from funnel.joint import FloatArray
from funnel.solver.budget import Budget
from funnel.solver.goal import negative_entropy
from funnel.solver.lp import sparse_programme
from funnel.solver.region import Region

# Programmes, and outputs for each symbol counted.
_STEPS, _EACH = 12, 2
_WORTHWHILE = 1e-6
# Zeros get the slope at this share: the true one is infinite, and would keep every zero for ever.
_FLOOR = 5e-4
# Variables of one programme; beyond, it takes longer than what it saves.
_LARGEST = 40_000


def ascend(region: Region, budget: Budget) -> FloatArray:
    """Posteriors of a mixture of p_X, each meant for one symbol of what the utility counts; shape (k, a), maybe none.

    The utility Σ_y P(y) g(v_y) is convex in the masses P(x, y), so maximising its tangent over all channels at once
    never lowers it. The first tangent asks for the truth as often as the guarantee allows.

    Parameters
    ----------
    region : Region
    budget : Budget
        Ends the ascent where it is.

    Returns
    -------
    ndarray, shape (k, a)
        A start for column generation: no bound comes with it, and a programme that fails ends the ascent.
    """
    import scipy.sparse as sp

    d, a = region.counted, region.inputs
    outputs = d * _EACH
    if outputs * a > _LARGEST:
        return np.zeros((0, a))
    image = np.eye(a) if region.image is None else region.image
    # In the masses m = P(y) v the two bounds of a condition are G m <= 0 and least Σm - G m <= 0.
    conditions = sp.vstack(
        [
            sp.kron(sp.eye(outputs), sp.csr_matrix(region.rows)),
            sp.kron(sp.eye(outputs), sp.csr_matrix(region.least[:, None] - region.rows)),
        ]
    ).tocsr()
    totals = sp.hstack([sp.eye(a)] * outputs)
    slopes = np.log(np.maximum(np.tile(np.eye(d), (_EACH, 1)), _FLOOR))
    best, found = -np.inf, np.zeros((0, a))
    for _ in range(_STEPS):
        mixed = sparse_programme((slopes @ image).ravel(), conditions, totals, region.law, budget)
        if mixed is None:
            break
        masses = np.maximum(mixed.values.reshape(outputs, a), 0.0)
        weight = masses.sum(axis=1)
        used = weight > 1e-12
        posteriors = masses[used] / weight[used, None]
        value = float(negative_entropy(region.counts(posteriors)) @ weight[used])
        if value < best + _WORTHWHILE:
            break
        best, found = value, posteriors
        counted = np.full((outputs, d), 1.0 / d)
        counted[used] = region.counts(posteriors)
        slopes = np.log(np.maximum(counted, _FLOOR))
    return found
