"""A forest of one tree: every release trains two for its internal report, and few tests look at what they learn."""

from __future__ import annotations

from funnel.findings import learned

ALL = learned._TREES
FEW = 1


def plant(trees: int) -> None:
    """From now on a forest in this process has so many trees."""
    learned._TREES = trees
