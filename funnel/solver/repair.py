"""Repair: a split of p_X moved a hair inside its cone, so that rounding to integers cannot break the bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.joint import FloatArray
from funnel.solver.budget import Budget
from funnel.solver.goal import ENTROPY, Goal
from funnel.solver.lp import sparse_programme
from funnel.solver.split import Split

# Entries of a programme, beyond which it takes minutes.
_LARGEST = 20_000_000


def repaired(
    split: Split,
    distribution: FloatArray,
    tighter_rows: FloatArray,
    image: FloatArray | None = None,
    budget: Budget | None = None,
    of: npt.NDArray[np.integer[Any]] | None = None,
    goal: Goal = ENTROPY,
) -> Split | None:
    """The same split moved into a slightly tighter polytope by one linear programme, zeros kept.

    For corners in which more conditions meet than they need, which `polish` loses.
    All outputs are moved together, to the protocol of highest tangent utility whose zeros are those of the split.
    Variables are the changes of entries, by which what is rare weighs like what is frequent against the solver's
    tolerance.

    Parameters
    ----------
    split : Split
        k posteriors over a inputs.
    distribution : ndarray, shape (a,)
        p_X.
    tighter_rows : ndarray, shape (m, a)
        The cone for a slightly smaller budget, in posterior coordinates.
    image : ndarray, shape (d, a), optional
        What the utility counts of a posterior.
    budget : Budget, optional
        Limits the programme.
    of : ndarray of int, shape (m,), optional
        The output that each condition is for; without, all are for every output.
    goal : Goal
        What the utility is of.

    Returns
    -------
    Split or None
        None where no protocol with these zeros is in the tighter polytope, or the programme is too large.
    """
    budget = Budget.of(budget)
    import scipy.sparse as sp

    output, symbol = np.nonzero(split.posteriors > 0)
    number = len(output)
    masses = split.posteriors * split.mass[:, None]
    size = np.abs(tighter_rows) @ masses.T
    asked = size.T > 0 if of is None else (size.T > 0) & (of == np.arange(len(masses))[:, None])
    place, condition = np.nonzero(asked)
    # Entries of an output are next to each other: those of every condition, one condition after the other.
    numbers = np.bincount(output, minlength=len(masses))
    sizes = numbers[place]
    if sizes.sum() > _LARGEST:
        return None
    row = np.repeat(np.arange(len(place)), sizes)
    first = (np.cumsum(numbers) - numbers)[place]
    column = np.arange(len(row)) + np.repeat(first - (np.cumsum(sizes) - sizes), sizes)
    here, there = output[column], symbol[column]
    entries = tighter_rows[condition[row], there] * masses[here, there] / size[condition[row], here]
    conditions = sp.csr_matrix((entries, (row, column)), shape=(len(place), number))
    shares = sp.csr_matrix((masses[output, symbol] / distribution[symbol], (symbol, np.arange(number))))
    counted = split.posteriors if image is None else split.posteriors @ image.T
    slopes = goal.slopes(counted)
    gain = masses[output, symbol] * (slopes if image is None else slopes @ image)[output, symbol]
    moves = sparse_programme(gain, conditions, shares, np.ones(len(distribution)), budget)
    if moves is None:
        return None
    moved = np.zeros_like(masses)
    moved[output, symbol] = masses[output, symbol] * moves.values
    mass = moved.sum(axis=1)
    used = mass > 0
    posteriors = moved[used] / mass[used, None]
    gains = goal.gains(posteriors if image is None else posteriors @ image.T)
    return Split(posteriors, mass[used], float(gains @ mass[used]), split.bound)
