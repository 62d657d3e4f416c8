"""The parameter at which a level reaches a budget: false position, for levels that are costly and smooth."""

from __future__ import annotations

import math
from collections.abc import Callable

from funnel.solver.budget import Budget

LARGEST_PARAMETER = 64.0
_SMALLEST_START = 2.0**-20
# How far a step may go beyond what is known, and how close to a known end it may come.
_LEAST_GROWTH, _MOST_GROWTH, _END = 1.2, 4.0, 1e-3


def parameter_at(
    level_at: Callable[[float], float],
    target: float,
    close: float,
    start: float,
    steps: int = 60,
    budget: Budget | None = None,
    work: float = 0.0,
) -> float:
    """The parameter whose level lies in ``[target (1 - close), target]``, or as near below it as was found.

    Parameters
    ----------
    level_at : callable
        Parameter >= 0 (nats) to level (nats), increasing from at most ``target`` at 0; may be infinite.
    target, close : float
        Budget (nats), and the relative precision that is enough.
    start : float
        The first guess.
    steps : int
        Levels computed at most.
    budget : Budget, optional
        Ends the search with what was found.
    work : float
        Units of finding a level: none is begun that the budget does not allow.

    Returns
    -------
    float
        At most 64; its level was computed and is at most ``target``, or it is 0.
    """
    if target == 0:
        return 0.0
    aimed = target * (1 - close / 2)
    low, high, below, above, before = 0.0, math.inf, -aimed, math.inf, 0.0
    parameter = min(max(start, _SMALLEST_START), LARGEST_PARAMETER)
    for _ in range(steps):
        if budget is not None and not budget.allows(work):
            break
        missed = level_at(parameter) - aimed
        # A side that stays twice counts for half, or it would stay for ever (the Illinois rule).
        if missed <= target - aimed:
            low, below, above = parameter, missed, above / 2 if before < 0 else above
        else:
            high, above, below = parameter, missed, below / 2 if before > 0 else below
        before = missed
        if abs(missed) <= target - aimed or low == LARGEST_PARAMETER:
            break
        if math.isinf(high):
            growth = 1.05 * target / max(missed + aimed, target / _MOST_GROWTH)
            parameter = min(low * min(_MOST_GROWTH, max(_LEAST_GROWTH, growth)), LARGEST_PARAMETER)
        elif high - low <= close * high:
            break
        else:
            part = 0.5 if math.isinf(above) else -below / (above - below)
            parameter = low + min(max(part, _END), 1 - _END) * (high - low)
    return low
