"""How much outputs change beliefs: logarithms of lifts."""

from __future__ import annotations

import numpy as np

from funnel.joint import FloatArray


def log_lift(lift: FloatArray) -> FloatArray:
    """ln of lifts: minus infinity where an output excludes a secret, nan where the lift is."""
    return np.log(lift, out=np.full(lift.shape, -np.inf), where=lift != 0)
