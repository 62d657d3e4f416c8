"""Movers and stayers: an observer who knows that some people never change, fitted to all versions so far.

With probability π(z) of their first cell z people keep it for ever; others move as movers do (Blumen, Kogan and
McCarthy 1955; Goodman 1961). Who ever changed is a mover. Of those who never did, EM says how many are stayers: of the
people of cell z in the versions v_1 < … < v_k the share

    r = π / (π + (1 - π) Π_i K(z | z, v_i → v_{i+1})),

where π(z) is the share of stayers among all whose first cell is z, and K counts the changes of all but the stayers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt

from funnel.errors import SpecError
from funnel.history.changes import Changes
from funnel.joint import MAX_ROWS, FloatArray, IntArray, Joint

SCALE: Final = 1 << 20
"""What a person counts for: stayers are counted in such parts of one."""

CLASSES: Final = ("stayer", "mover")
_ENTRY_SCALE: Final = 1 << 10
_MOST_VERSIONS: Final = 60
# EM stops where no share of stayers changes by more, and after so many rounds anyway.
_STILL, _ROUNDS = 1e-10, 5_000


@dataclass(frozen=True, eq=False)
class Trajectories:
    """People in two versions at least, by their first cell and by whether they ever changed.

    Attributes
    ----------
    cells : ndarray of int64, shape (k,)
        The cell ``s * a + x`` in the first version that they are in.
    versions : ndarray of int64, shape (k,)
        The versions that they are in: the sum of ``2**t`` over their ordinals.
    changed : ndarray of bool, shape (k,)
        Whether their secret or published values were ever others than at first.
    records : ndarray of int64, shape (k,)
        How many there are.
    """

    cells: IntArray
    versions: IntArray
    changed: npt.NDArray[np.bool_]
    records: IntArray

    @classmethod
    def counted(cls, laws: Sequence[Joint], cells: Sequence[IntArray]) -> Trajectories:
        """From the cells of everybody in every version, each (people,), -1 of those who are not in it.

        Raises
        ------
        SpecError
            If versions publish different columns, or there are more than sixty of them.
        """
        here = np.array(cells, dtype=np.int64)
        present = here >= 0
        kept = present.sum(axis=0) >= 2
        here, present = here[:, kept], present[:, kept]
        names = _names(laws)
        named = np.where(present, [own[cell] for own, cell in zip(names, here, strict=True)], -1)
        first = present.argmax(axis=0)
        everybody = np.arange(here.shape[1])
        changed = (present & (named != named[first, everybody])).any(axis=0)
        versions = (present * (1 << np.arange(len(laws)))[:, None]).sum(axis=0)
        rows = np.stack([versions, here[first, everybody], changed.astype(np.int64)])
        kinds, records = np.unique(rows, axis=1, return_counts=True)
        return cls(kinds[1], kinds[0], kinds[2].astype(bool), records)

    @property
    def first(self) -> IntArray:
        """The ordinal of the first version of each row; (k,)."""
        return np.asarray(np.round(np.log2(self.versions & -self.versions)), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class MoverStayer:
    """How many people are stayers, as an observer who knows all versions so far believes.

    Attributes
    ----------
    people : Trajectories
    stayers : ndarray of int64, shape (k,)
        Of every row of these, in parts of `SCALE` of a person; 0 where they changed.
    """

    people: Trajectories
    stayers: IntArray

    @classmethod
    def fitted(
        cls, people: Trajectories, laws: Sequence[Joint], changes: Mapping[tuple[int, int], Changes]
    ) -> MoverStayer:
        """By EM, from a half of those who never changed.

        Parameters
        ----------
        people : Trajectories
        laws : sequence of Joint
            Of all versions.
        changes : mapping of (int, int) to Changes
            From one version to a later one, by ordinals: of all pairs that are somebody's successive versions.

        Notes
        -----
        O(rounds · k · pairs of versions).
        """
        fit = _Fit(people, laws, changes)
        never = np.where(people.changed, 0.0, people.records)
        found = 0.5 * never
        shares = fit.shares(found)
        for _ in range(_ROUNDS):
            found = never * fit.likely(found, shares)
            now = fit.shares(found)
            if np.abs(now - shares).max(initial=0.0) <= _STILL:
                break
            shares = now
        return cls(people, np.asarray(np.round(found * SCALE), dtype=np.int64))

    def law(self, joint: Joint, laws: Sequence[Joint]) -> Joint:
        """What is known of a person in their first version, over cells of secret and (class, input): (c, 2a).

        Of a value that nobody in two versions had first, as many are stayers as of all.

        Parameters
        ----------
        joint : Joint
            Of that version.
        laws : sequence of Joint
            Of all versions.
        """
        fit = _Fit(self.people, laws, {})
        stayers, everybody = fit.by_name(self.stayers), fit.by_name(self.people.records)
        known = {
            name: (int(some), SCALE * int(all_of_it))
            for name, (some, all_of_it) in enumerate(zip(stayers, everybody, strict=True))
            if all_of_it
        }
        pooled = (int(stayers.sum()), SCALE * int(everybody.sum())) if known else (0, 1)
        names = _names([*laws, joint])[-1]
        scale = max(1, min(_ENTRY_SCALE, (MAX_ROWS - 1) // joint.n))
        counts = joint.counts.reshape(-1)
        staying = np.zeros_like(counts)
        for cell in np.flatnonzero(counts).tolist():
            some, of = known.get(int(names[cell]), pooled)
            staying[cell] = scale * int(counts[cell]) * some // of
        table = np.stack([staying, scale * counts - staying]).reshape(2, *joint.counts.shape)
        symbols = [(kind, *symbol) for kind in CLASSES for symbol in joint.inputs.symbols]
        alphabet = replace(joint.inputs, columns=("class", *joint.inputs.columns), symbols=tuple(symbols))
        return Joint.from_counts(np.concatenate(list(table), axis=1), joint.secret, alphabet)

    def changes(self, pair: tuple[int, int], changes: Changes, laws: Sequence[Joint]) -> Changes:
        """How cells of (class, value) change: stayers never do, and all others are movers.

        Parameters
        ----------
        pair : (int, int)
            The ordinals of an earlier version and a later one.
        changes : Changes
            Of all people in both.
        laws : sequence of Joint
            Of all versions.
        """
        earlier, later = laws[pair[0]], laws[pair[1]]
        fit = _Fit(self.people, laws, {pair: changes})
        staying = fit.staying(pair, self.stayers)
        same = fit.same(pair)[changes.before] == changes.after
        stayers = np.where(same, staying[changes.before], 0)
        movers = changes.records * SCALE - stayers
        before = [_of_class(changes.before, kind, len(earlier.inputs)) for kind in range(2)]
        after = [_of_class(changes.after, kind, len(later.inputs)) for kind in range(2)]
        records = np.concatenate([stayers, movers])
        some = np.flatnonzero(records)
        was, now = np.concatenate(before)[some], np.concatenate(after)[some]
        order = np.lexsort((now, was))
        return Changes(was[order], now[order], records[some][order])


class _Fit:
    """The places of trajectories in versions and changes, for one step of EM."""

    def __init__(self, people: Trajectories, laws: Sequence[Joint], changes: Mapping[tuple[int, int], Changes]) -> None:
        self._people, self._laws = people, laws
        self._names = _names(laws)
        self._size = 1 + max((int(own.max()) for own in self._names), default=0)
        self._cells = {t: _cells(own, self._size) for t, own in enumerate(self._names)}
        self._name: IntArray = np.zeros(len(people.cells), dtype=np.int64)
        for t, own in enumerate(self._names):
            here = people.first == t
            self._name[here] = own[people.cells[here]]
        present = (people.versions[None] >> np.arange(len(laws))[:, None]) & 1 == 1
        self._rows: dict[tuple[int, int], IntArray] = {}
        # The rows for which a pair of versions is one of successive ones.
        self._next: dict[tuple[int, int], IntArray] = {}
        for v, t in combinations(range(len(laws)), 2):
            both = present[v] & present[t] & ~people.changed
            self._rows[v, t] = np.flatnonzero(both)
            self._next[v, t] = np.flatnonzero(both & ~present[v + 1 : t].any(axis=0))
        self._left = {}
        self._stayed = {}
        for pair, one in changes.items():
            size = laws[pair[0]].counts.size
            same = self.same(pair)[one.before] == one.after
            self._left[pair] = np.bincount(one.before, one.records, size)
            self._stayed[pair] = np.bincount(one.before[same], one.records[same], size)

    def by_name(self, records: npt.NDArray[np.generic]) -> IntArray:
        """Whole numbers of the rows added up by first cell, whatever version that was in; (names,)."""
        found: IntArray = np.zeros(self._size, dtype=np.int64)
        np.add.at(found, self._name, records)
        return found

    def shares(self, stayers: FloatArray) -> FloatArray:
        """π of every first cell, by its name; (names,)."""
        everybody = np.bincount(self._name, self._people.records, self._size)
        found = np.bincount(self._name, stayers, self._size)
        return np.divide(found, everybody, out=np.zeros(self._size), where=everybody > 0)

    def same(self, pair: tuple[int, int]) -> IntArray:
        """The cell of a later version that is the same as each of an earlier one; -1 where there is none."""
        return np.asarray(self._cells[pair[1]][self._names[pair[0]]])

    def staying(self, pair: tuple[int, int], stayers: IntArray) -> IntArray:
        """How many stayers are in two versions, by the cell of the earlier one; whole numbers."""
        rows = self._rows[pair]
        found: IntArray = np.zeros(self._laws[pair[0]].counts.size, dtype=np.int64)
        np.add.at(found, self._cells[pair[0]][self._name[rows]], stayers[rows])
        return found

    def likely(self, stayers: FloatArray, shares: FloatArray) -> FloatArray:
        """How likely those of each row are to be stayers, had they never changed; (k,)."""
        moving = 1.0 - shares[self._name]
        for pair, rows in self._next.items():
            if not len(rows):
                continue
            size = len(self._left[pair])
            both = self._rows[pair]
            staying = np.bincount(self._cells[pair[0]][self._name[both]], stayers[both], size)
            left, stayed = self._left[pair] - staying, self._stayed[pair] - staying
            kept = np.divide(np.maximum(stayed, 0.0), left, out=np.zeros(size), where=left > 0)
            moving[rows] *= kept[self._cells[pair[0]][self._name[rows]]]
        own = shares[self._name]
        return np.divide(own, own + moving, out=np.zeros_like(own), where=own + moving > 0)


def applies(laws: Sequence[Joint]) -> bool:
    """Whether versions publish the same columns, and are not more than sixty."""
    return len({(law.secret.columns, law.inputs.columns) for law in laws}) <= 1 and len(laws) <= _MOST_VERSIONS


def _names(laws: Sequence[Joint]) -> list[IntArray]:
    """A number for the values of each cell of each version, the same in all versions; each (c·a,)."""
    if not applies(laws):
        raise SpecError(
            f"movers and stayers need at most {_MOST_VERSIONS} versions that all publish the same columns; "
            'set observers = ["transitions"]'
        )
    known: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = {}
    return [
        np.array([known.setdefault((s, x), len(known)) for s in law.secret.symbols for x in law.inputs.symbols])
        for law in laws
    ]


def _cells(names: IntArray, size: int) -> IntArray:
    """The cell of every name, -1 where a version has none; (size,)."""
    cells = np.full(size, -1, dtype=np.int64)
    cells[names] = np.arange(len(names))
    return cells


def _of_class(cells: IntArray, kind: int, inputs: int) -> IntArray:
    """Cells ``s * a + x`` as cells ``s * 2a + class * a + x``."""
    return np.asarray(cells // inputs * (len(CLASSES) * inputs) + kind * inputs + cells % inputs)
