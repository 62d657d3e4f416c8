"""Binning: cut points that are found for a column of numbers, where the spec says ``bins = "auto"``.

Where noise protects the frequencies they are a function of the declared range
(`funnel.settings.numbers.NumberSettings`), and this room has no part in it: nothing of the source may.
"""

from __future__ import annotations

from funnel.binning.cut_points import chosen_edges
from funnel.binning.partitions import MOST_CELLS, WEIGHTS, Cells, partitions

__all__ = ["MOST_CELLS", "WEIGHTS", "Cells", "chosen_edges", "partitions"]
