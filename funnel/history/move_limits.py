"""Move limits: what noise leaves open of how people changed since an earlier version."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from funnel.errors import SpecError
from funnel.history.changes import Changes, counted_moves
from funnel.joint import IntArray, Joint, freeze


@dataclass(frozen=True, eq=False)
class MoveLimits:
    """What the true counts of the moves since a version are between, for people whose last version it is.

    Attributes
    ----------
    secrets : ndarray of int64, shape (2, c_v, c_t)
        Least and largest numbers of people by their secret then and now.
    stayed, left : ndarray of int64, shape (2, c_v)
        By secret then: whose published input is the same now, and whose is not.

    Raises
    ------
    SpecError
        If the tables do not fit one another, or limits are below zero or cross.
    """

    secrets: IntArray
    stayed: IntArray
    left: IntArray

    def __post_init__(self) -> None:
        freeze(self, "secrets", "stayed", "left")
        for name in ("secrets", "stayed", "left"):
            table = getattr(self, name)
            if len(table) != 2 or (table[0] > table[1]).any() or (table < 0).any():
                raise SpecError(f"limits of the moves by {name} cross, or are below zero")
        if self.secrets.ndim != 3 or not self.stayed.shape == self.left.shape == self.secrets.shape[:2]:
            raise SpecError("limits of moves do not fit one another")

    @classmethod
    def exactly(cls, changes: Changes, earlier: Joint, joint: Joint) -> MoveLimits:
        """Of counts without noise: both limits are how many people in both versions there are."""
        secrets, stayed, left = counted_moves(changes, earlier, joint)
        return cls(*(np.stack([one, one]) for one in (secrets, stayed.sum(axis=1), left.sum(axis=1))))

    @classmethod
    def of_rows(cls, stayed: IntArray, left: IntArray) -> MoveLimits:
        """Of exact counts (c, a) from first rows of units to second ones: the secret stays."""
        stay, leave = stayed.sum(axis=1), left.sum(axis=1)
        return cls(*(np.stack([one, one]) for one in (np.diag(stay + leave), stay, leave)))

    def hold(self, secrets: IntArray, stayed: IntArray, left: IntArray) -> bool:
        """Whether true tables are within these limits."""
        pairs = ((self.secrets, secrets), (self.stayed, stayed), (self.left, left))
        return all(bool(((least <= true) & (true <= most)).all()) for (least, most), true in pairs)
