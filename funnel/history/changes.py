"""Changes: people who are in two versions, counted by what they were and what they are; and what noise leaves open."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from funnel.alphabet import Alphabet
from funnel.errors import DataError, SpecError
from funnel.joint import IntArray, Joint, freeze


@dataclass(frozen=True, eq=False)
class Changes:
    """How many people went from each cell of an earlier version to each cell of a later one.

    A cell of a version is ``s * a + x``, by the places of secret and input in that version's own alphabets.

    Parameters
    ----------
    before, after : ndarray of int64, shape (k,)
        Distinct pairs of cells, sorted by ``before`` and then by ``after``.
    records : ndarray of int64, shape (k,)
        People who made this change, > 0.

    Raises
    ------
    DataError
        If lengths differ, pairs are not distinct and sorted, or a count is not positive.
    """

    before: IntArray
    after: IntArray
    records: IntArray

    def __post_init__(self) -> None:
        freeze(self, "before", "after", "records")
        if not (self.before.shape == self.after.shape == self.records.shape) or self.before.ndim != 1:
            raise DataError("counts of changes need three columns of the same length")
        order = (np.diff(self.before) > 0) | ((np.diff(self.before) == 0) & (np.diff(self.after) > 0))
        if not order.all() or (self.records <= 0).any() or (self.before < 0).any() or (self.after < 0).any():
            raise DataError("counts of changes must be of distinct pairs of cells, in their order, and above zero")

    @classmethod
    def counted(cls, before: IntArray, after: IntArray) -> Changes:
        """The changes of people whose cells in both versions are given, each (people,)."""
        pairs, records = np.unique(np.stack([before, after]), axis=1, return_counts=True)
        return cls(pairs[0], pairs[1], records)

    @property
    def n(self) -> int:
        """People in both versions."""
        return int(self.records.sum())

    def keep_secrets(self, inputs: int) -> bool:
        """Whether nobody's secret is another afterwards, in cells of so many inputs each."""
        return bool((self.before // inputs == self.after // inputs).all())


def counted_moves(changes: Changes, earlier: Joint, joint: Joint) -> tuple[IntArray, IntArray, IntArray]:
    """People by secret then and now, (c_v, c); and by secret and input then, (c_v, a_v): who kept it, and who did not.

    Parameters
    ----------
    changes : Changes
    earlier, joint : Joint
        Distributions of both versions; their alphabets are what counts.
    """
    (was_secret, was), (secret, now) = (
        np.divmod(cells, len(one.inputs)) for cells, one in ((changes.before, earlier), (changes.after, joint))
    )
    same = same_inputs(earlier.inputs, joint.inputs)[was] == now
    secrets = np.zeros((len(earlier.secret), len(joint.secret)), dtype=np.int64)
    stayed, left = (np.zeros(earlier.counts.shape, dtype=np.int64) for _ in range(2))
    np.add.at(secrets, (was_secret, secret), changes.records)
    np.add.at(stayed, (was_secret[same], was[same]), changes.records[same])
    np.add.at(left, (was_secret[~same], was[~same]), changes.records[~same])
    return secrets, stayed, left


def same_inputs(earlier: Alphabet, later: Alphabet) -> IntArray:
    """Where each input of an earlier version is among those of a later one, by its labels; -1 where it is not."""
    if earlier.columns != later.columns:
        return np.full(len(earlier), -1, dtype=np.int64)
    places = {symbol: place for place, symbol in enumerate(later.symbols)}
    return np.array([places.get(symbol, -1) for symbol in earlier.symbols], dtype=np.int64)


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
