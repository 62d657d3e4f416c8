"""Narrowing: what multipliers of a cell's programme prove to be of no use is cut off before the cell is cut in two."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from funnel.joint import FloatArray
from funnel.solver.filling_cells import ABOVE, ANY, BELOW, BETWEEN, HIGH, LOW, Cell, Flags

# What stays is wider by this share, and the bound of what goes is lower by so many nats: far more than rounding.
_HAIR, _SPARE = 1e-6, 1e-9
# The first and the last segment of ends that a kind has, and the kind that is left of some segments.
_SEGMENTS = {ANY: (0, 2), LOW: (0, 1), HIGH: (1, 2), BELOW: (0, 0), BETWEEN: (1, 1), ABOVE: (2, 2)}
_KINDS = {one: kind for kind, one in _SEGMENTS.items()}


@dataclass(frozen=True, eq=False)
class Left:
    """What multipliers leave of a cell: its Lagrangian, which bounds ``g - λ·v``.

    At a unit m and an end i of the ratio it is at most ``constant + ln m + m R_i``. Here R_i is a sum over entries of
    what is linear in the place of an entry between neighbouring ends, the same places at both ends of the ratio, and
    between these R is convex.

    Attributes
    ----------
    entries : ndarray, shape (2, n, 4)
        What each end of an entry adds to R; minus infinity where the end is not used.
    slopes : ndarray, shape (2,)
        R at the best end of every entry, with an allowance for rounding.
    constant : float
    least : float
        The least unit.
    """

    entries: FloatArray
    slopes: FloatArray
    constant: float
    least: float

    def _enough(self, aim: float) -> float:
        """The R up to which no unit has more than an aim."""
        excess = aim - _SPARE - self.constant
        free = -float(np.exp(-1.0 - excess))
        # The unit that is best for a slope R is -1/R, or the least one.
        return free if free * self.least >= -1 else (excess - float(np.log(self.least))) / self.least

    def of(self, cell: Cell, aim: float) -> Cell:
        """The part of a cell outside which no posterior has more than an aim (nats)."""
        slack = self.slopes - self._enough(aim)
        if not (slack > 0).any():
            return cell
        # Of each entry, what may be lost against its best end.
        floor = self.entries.max(axis=2) - slack[:, None]
        alive = (self.entries > floor[:, :, None]) & (slack > 0)[:, None, None]
        either = (alive[:, :, :-1] | alive[:, :, 1:]).any(axis=0)
        kind, low, high = cell.kind.copy(), cell.low.copy(), cell.high.copy()
        for x in range(len(kind)):
            first, last = _SEGMENTS[int(kind[x])]
            open_ones = [place for place in range(first, last + 1) if either[x, place]]
            if not open_ones:
                # Rounding: the bound of the cell is above the aim, so something of it is left.
                continue
            if (first, last) != (open_ones[0], open_ones[-1]):
                first, last = open_ones[0], open_ones[-1]
                if kind[x] in (ANY, LOW, HIGH) and first == last and first < 2:
                    high[x] = 1.0
                kind[x], low[x] = _KINDS[first, last], float(first == last == 2)
            start, end = self._stretch(x, last, floor, alive)
            span = high[x] - (1.0 if last == 2 and first < 2 else low[x])
            base = high[x] - span
            if last == 2:
                high[x] = min(high[x], base + end * span)
                low[x] = max(low[x], base + start * span) if first == 2 else low[x]
            elif first == last == 0:
                low[x], high[x] = base + start * span, base + end * span
            elif first == last:
                # Places between are counted from the upper threshold down.
                low[x], high[x] = base + (1 - end) * span, base + (1 - start) * span
        return self._between(replace(cell, kind=kind, low=low, high=high), slack)

    def _stretch(self, x: int, segment: int, floor: FloatArray, alive: Flags) -> tuple[float, float]:
        """Where between both ends of a segment, as shares of it, an entry is not below its floor."""
        start, end = 1.0, 0.0
        for i in range(2):
            one, two = (float(value) for value in self.entries[i, x, segment : segment + 2])
            first, second = alive[i, x, segment : segment + 2].tolist()
            if not (first or second):
                continue
            at = 0.0 if one == two else (one - float(floor[i, x])) / (one - two)
            start = min(start, 0.0 if first else at - _HAIR)
            end = max(end, 1.0 if second else at + _HAIR)
        return (max(start, 0.0), min(end, 1.0)) if start < end else (0.0, 1.0)

    def _between(self, cell: Cell, slack: FloatArray) -> Cell:
        """The same for the ratio."""
        one, two = slack.tolist()
        if one > 0 and two > 0:
            return cell
        share, width = max(one, two) / abs(one - two) + _HAIR, cell.last - cell.first
        if share >= 1:
            return cell
        if one > 0:
            return replace(cell, last=cell.first + share * width)
        return replace(cell, first=cell.last - share * width)
