"""Reached: how far the channels of a version go, for each observer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from funnel.guarantees.base import Level
from funnel.history.observed import Observed
from funnel.joint import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Reached:
    """How far channels go for one observer.

    Attributes
    ----------
    observer : str
    secret_of : str or None
        The earlier version whose secret this is about; None for the secret of the version itself.
    bounded : bool
        Whether the bound on this secret is proven for this observer.
    moved, outside : ndarray, shape (h,)
        The shares of the people with each history who are outside the bound by it alone, and of those with some
        possible output outside it: 0 or 1, unless the observer knows something besides that goes with some of them.
    level : Level
        Of those that are not moved.
    worst : int or None
        The place of the history where it is attained; None if all were moved.
    moved_level : float or None
        The largest level over the outputs of those that were moved, in nats; None if none was.
    """

    observer: str
    secret_of: str | None
    bounded: bool
    moved: FloatArray
    outside: FloatArray
    level: Level
    worst: int | None
    moved_level: float | None

    def joined(self, other: Reached, of_others: bool) -> Reached:
        """With what is found of another secret of the same people in that version: of another row of their unit.

        Or of other people with these histories: those whose same row has other values that an observer knows.
        """
        either = np.add if of_others else np.maximum
        further = max(self, other, key=lambda one: one.level.value)
        known = [one.moved_level for one in (self, other) if one.moved_level is not None]
        return replace(
            further,
            moved=either(self.moved, other.moved),
            outside=either(self.outside, other.outside),
            moved_level=max(known, default=None),
        )


@dataclass(frozen=True)
class ForObserver:
    """How far a version goes for one observer, in the secret of one version.

    Attributes
    ----------
    observer : str
    secret_of : str or None
        The earlier version whose secret this is about, of the people who were in it; None for the secret of the version
        itself.
    bounded : bool
        Whether this secret is bounded for this observer.
    level : float
        Of all histories that are within the bound by themselves, in nats; never above the budget where it is.
    moved : int
        People whose history by itself, as this observer sees people now, is outside the declared bound on this secret;
        of an observer who knows something besides as many as are expected to be, rounded up.
    outside : int
        People for whom some possible output is outside; where the version is bounded, all of them are moved.
    moved_level : float or None
        The largest level over the outputs of those who are moved, in nats; None if nobody is.
    """

    observer: str
    secret_of: str | None
    bounded: bool
    level: float
    moved: int
    outside: int
    moved_level: float | None

    @classmethod
    def of(cls, reached: Reached, observed: Observed, people: IntArray) -> ForObserver:
        """Of histories that so many have, (h,)."""
        moved, outside = (observed.people(float(people @ share)) for share in (reached.moved, reached.outside))
        return cls(
            reached.observer,
            reached.secret_of,
            reached.bounded,
            reached.level.value,
            moved,
            outside,
            reached.moved_level,
        )

    @classmethod
    def of_rows(cls, rows: Sequence[ForObserver]) -> ForObserver:
        """Of all rows of units. Whoever is outside is so before the first: another row of a unit moves nobody."""
        known = [row.moved_level for row in rows if row.moved_level is not None]
        return replace(rows[0], level=max(row.level for row in rows), moved_level=max(known, default=None))
