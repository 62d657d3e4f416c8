"""The chart over versions: what each one keeps, and what it alone would have kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25)
# More labels than this, and they would touch on a phone.
_MOST_STEPS = 4
# Differences smaller than this are nothing to look at: the axis is no shorter.
_SHORTEST = 0.04


@dataclass(frozen=True)
class VersionLine:
    """One version: places of what it keeps and of what it alone would have kept, and of the line between them."""

    label: str
    kept: float
    alone: float | None

    @property
    def start(self) -> float:
        """The lower of both."""
        return self.kept if self.alone is None else min(self.kept, self.alone)

    @property
    def width(self) -> float:
        """From one to the other."""
        return 0.0 if self.alone is None else round(abs(self.kept - self.alone), 1)


@dataclass(frozen=True)
class VersionChart:
    """A chart as the template draws it: all places in per cent of its width; a shortened axis, so no bars."""

    lines: tuple[VersionLine, ...]
    ticks: tuple[tuple[float, str], ...]
    description: str


def version_chart(versions: Sequence[tuple[str, float, float | None]]) -> VersionChart:
    """The chart of some versions, each with the share of H(X) that it keeps, and that it alone would have if known."""
    shares = [share for _, *both in versions for share in both if share is not None]
    least, most, step = _axis(min(shares, default=0.0), max(shares, default=1.0))
    lines = tuple(
        VersionLine(name, _place(kept, least, most), None if alone is None else _place(alone, least, most))
        for name, kept, alone in versions
    )
    marks = [least + i * step for i in range(round((most - least) / step) + 1)]
    return VersionChart(
        lines,
        tuple((_place(mark, least, most), f"{100 * mark:.0f}\u00a0%") for mark in marks),
        f"Chart of {len(lines):,} versions: the share that each keeps, and that it alone would have kept. "
        "The table below gives the numbers.",
    )


def _axis(least: float, most: float) -> tuple[float, float, float]:
    """Ends of the axis and the distance of its labels: the closest round ones with all shares between them."""
    least = max(0.0, min(least, most - _SHORTEST))
    for step in _STEPS:
        low, high = math.floor(least / step + 1e-9), math.ceil(most / step - 1e-9)
        if high - low <= _MOST_STEPS:
            return low * step, max(high, low + 1) * step, step
    return 0.0, 1.0, 0.25


def _place(share: float, least: float, most: float) -> float:
    return round(100 * min(1.0, max(0.0, (share - least) / (most - least))), 1)
