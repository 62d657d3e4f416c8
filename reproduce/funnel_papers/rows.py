"""Rows: what is measured of a distribution, as one number of every label for every x."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

Row = dict[str, list[float | None]]
Numbers = dict[str, float | None]


def rowed(xs: Sequence[float], one: Callable[[float], Numbers]) -> Row:
    """Rows of a measure that is taken x by x; shares rounded to six digits."""
    found: Row = {}
    for i, x in enumerate(xs):
        for label, value in one(x).items():
            line = found.setdefault(label, [None] * len(xs))
            line[i] = None if value is None or not math.isfinite(value) else round(value, 6)
    return found
