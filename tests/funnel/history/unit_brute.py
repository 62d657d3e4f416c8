"""Units with several rows: a reader who adds up every way that their rows could have been, in fractions."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise
from typing import TypeVar

import numpy as np

from funnel.history.step import Step
from funnel.joint import IntArray

T = TypeVar("T")
Cell = tuple[int, int]
# For every unit its rows in the order in which they are drawn.
Version = dict[int, list[Cell]]
Channels = list[dict[int, Fraction]]


class UnitReader:
    """Knows first rows, changes from a row to the next, changes from a version to the next, and all channels.

    Within a version the secret of a unit stays. What follows a cell that no row follows is a first row of the same
    secret; after a version, what follows one that nobody in both had is a first row of those whose secret occurs.
    """

    def __init__(self, versions: list[Version]) -> None:
        self.versions = versions

    def first(self, t: int) -> dict[Cell, Fraction]:
        return shares(Counter(rows[0] for rows in self.versions[t].values()))

    def next_row(self, t: int, cell: Cell) -> dict[Cell, Fraction]:
        pairs = Counter(
            after for rows in self.versions[t].values() for before, after in pairwise(rows) if before == cell
        )
        if not pairs:
            pairs = Counter(rows[0] for rows in self.versions[t].values() if rows[0][0] == cell[0])
        return shares(pairs)

    def next_version(self, v: int, t: int, cell: Cell) -> dict[Cell, Fraction]:
        both = [(self.versions[v][u][-1], self.versions[t][u][0]) for u in self.versions[v] if u in self.versions[t]]
        found = Counter(after for before, after in both if before == cell)
        if not found:
            secrets = {after[0] for _, after in both}
            found = Counter(rows[0] for rows in self.versions[t].values() if rows[0][0] in secrets)
        return shares(found)

    def secrets(self, v: int | None, t: int) -> dict[int, Fraction]:
        """How common secrets are among units, or among those that are in an earlier version too."""
        units = [u for u in self.versions[t] if v is None or u in self.versions[v]]
        return shares(Counter(self.versions[t][u][0][0] for u in units))


def shares(counted: Counter[T]) -> dict[T, Fraction]:
    total = sum(counted.values())
    return {what: Fraction(count, total) for what, count in counted.items()}


def moved(distribution: dict[Cell, Fraction], kernel: dict[Cell, dict[Cell, Fraction]]) -> dict[Cell, Fraction]:
    found: dict[Cell, Fraction] = {}
    for before, share in distribution.items():
        for after, part in kernel[before].items():
            found[after] = found.get(after, Fraction()) + share * part
    return found


def by_secret(distribution: dict[Cell, Fraction]) -> dict[int, Fraction]:
    """P(s), as shares."""
    found: dict[int, Fraction] = {}
    for (s, _), share in distribution.items():
        found[s] = found.get(s, Fraction()) + share
    total = sum(found.values())
    return {s: share / total for s, share in found.items()}


def drawn(random: np.random.Generator, step: Step, xs: IntArray, had: IntArray) -> IntArray:
    """Outputs of rows with these inputs and histories, (k,)."""
    rows = step.library[step.channels_of(had), :, xs].astype(float)
    return np.array([random.choice(len(row), p=row / row.sum()) for row in rows], dtype=np.int64)
