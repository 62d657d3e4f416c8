"""Filling cells: rows by where greedy filling of one distribution stops, and where their entries are from there."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from funnel.joint import FloatArray

Flags = npt.NDArray[np.bool_]
Kinds = npt.NDArray[np.int64]

# What is known of an entry t: nothing; t <= θ; t >= φ; t <= φ; φ <= t <= θ; t >= θ.
ANY, LOW, HIGH, BELOW, BETWEEN, ABOVE = range(6)
# Ends of what an entry may be: four for each, of which some are not used.
ENDS = 4
# An entry is not cut nearer to an end of its bounds than this share of them.
_END = 0.15
# Ratios of thresholds nearer than this are one, and losses (nats) below this are rounding.
_SAME, _NOTHING = 1e-9, 1e-12


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of p(x|s) for one secret s: what is left open is filled in greedily.

    Attributes
    ----------
    lower, upper : ndarray, shape (n,)
        Probabilities, multiples of 2^-32, of the inputs and, where some are not told apart, of all of these together
        as the last.
    """

    lower: FloatArray
    upper: FloatArray

    @property
    def free(self) -> float:
        """What of the distribution the lower limits leave open."""
        return float(1 - self.lower.sum())

    @property
    def room(self) -> FloatArray:
        """How much of that each input may get."""
        return np.asarray(self.upper - self.lower)

    @property
    def ordered(self) -> bool:
        """Whether the threshold of hi is never below that of lo.

        If φ > θ, there is less room at φ and above, and less below φ, than is free.
        """
        return bool(self.room.sum() >= 2 * self.free > 0)

    def above(self, inputs: int, most: int) -> Flags | None:
        """The largest sets of inputs (k, inputs) that may all be above θ; None if there are more than so many.

        There is less room above θ than is free. What is not told apart counts as above.
        """
        room = self.room
        left = self.free - float(room[inputs:].sum())
        order = np.argsort(-room[:inputs], kind="stable")
        sets: list[list[int]] = []
        # A set is the largest if nothing that was left out fits: of what was, the smallest is enough.
        going: list[tuple[int, list[int], float, float]] = [(0, [], left, np.inf)] if left >= 0 else []
        while going:
            place, chosen, free, smallest = going.pop()
            if place == inputs:
                if smallest > free:
                    sets.append(chosen)
                if len(sets) > most:
                    return None
                continue
            size = float(room[order[place]])
            going.append((place + 1, chosen, free, min(smallest, size)))
            if size <= free:
                going.append((place + 1, [*chosen, int(order[place])], free - size, smallest))
        flags = np.zeros((len(sets), inputs), dtype=bool)
        for row, chosen in zip(flags, sets, strict=True):
            row[chosen] = True
        return flags


@dataclass(frozen=True, eq=False)
class Ends:
    """The ends of what the entries of rows in a cell may be, for one ratio φ/θ.

    Attributes
    ----------
    entries : ndarray, shape (n, 4)
        t/θ. Between two neighbouring ends in use that are used hi, lo and chords are linear.
    used : ndarray of bool, shape (n, 4)
    raised, lowered : ndarray of bool, shape (n, 4)
        Where hi has the upper limit, and where lo has it.
    over, not_under, under, not_over : ndarray of bool, shape (n, 4)
        Which are above θ whatever is between, may be at θ or above, are below φ, may be at φ or below.
    """

    entries: FloatArray
    used: Flags
    raised: Flags
    lowered: Flags
    over: Flags
    not_under: Flags
    under: Flags
    not_over: Flags


@dataclass(frozen=True, eq=False)
class Cell:
    """Rows whose ratio of thresholds and whose entries are within bounds.

    Of a row T, θ is the largest entry with at least as much room at and above it as is free, where filling for hi
    stops, and φ the least one with as much at and below it, where filling for lo stops.

    Attributes
    ----------
    first, last : float
        φ/θ is between.
    kind : ndarray of int64, shape (n,)
        What is known of each entry.
    low, high : ndarray, shape (n,)
        Bounds: of t/φ below φ; of (θ - t)/(θ - φ) between; of t/θ above θ, and high wherever there is no other.
    """

    first: float
    last: float
    kind: Kinds
    low: FloatArray
    high: FloatArray

    @classmethod
    def whole(cls, highest: FloatArray) -> Cell:
        """All rows with entries of at most these (n,) in units of θ."""
        n = len(highest)
        return cls(0.0, 1.0, np.full(n, ANY, dtype=np.int64), np.zeros(n), highest)

    def ends(self, ratio: float) -> Ends:
        """The ends for one ratio φ/θ."""
        kind, low, high = self.kind, self.low, self.high
        below, between, above = kind == BELOW, kind == BETWEEN, kind == ABOVE
        from_zero = (kind == ANY) | (kind == LOW)
        beyond = (kind == ANY) | (kind == HIGH)
        middle = from_zero | beyond
        near, far = np.where(between, low, 0.0), np.where(between, high, 1.0)
        entries = np.zeros((len(kind), ENDS))
        entries[:, 0] = np.where(below, low * ratio, 0.0)
        entries[:, 1] = np.where(below, high * ratio, np.where(far == 1, ratio, 1 - far * (1 - ratio)))
        entries[:, 2] = np.where(above, low, 1 - near * (1 - ratio))
        entries[:, 3] = high
        none, every = np.zeros(len(kind), dtype=bool), np.ones(len(kind), dtype=bool)
        # Where both thresholds are one, what is between is at both.
        same = np.full(len(kind), ratio == 1.0)

        def stacked(*flags: Flags) -> Flags:
            return np.stack(flags, axis=1)

        return Ends(
            entries,
            used=stacked(from_zero | below, middle | below | between, middle | between | above, beyond | above),
            raised=stacked(none, none, above, every),
            lowered=stacked(every, below, none, none),
            over=stacked(none, none, above & (low > 1), every),
            not_under=stacked(
                none, np.where(below, same & (high == 1), (far == 0) | same), above | (near == 0) | same, every
            ),
            under=stacked(every, below & (high < 1), none, none),
            not_over=stacked(
                every, below | (far == 1) | same, np.where(above, same & (low == 1), (near == 1) | same), none
            ),
        )

    def cut(self, entries: FloatArray, ratio: float, losses: FloatArray, mixed: float) -> list[Cell]:
        """Two parts that are the whole cell, or none where nothing is left to be cut.

        Parameters
        ----------
        entries : ndarray, shape (n,)
            Where the entries t/θ should be cut.
        ratio : float
            The φ/θ that goes with them.
        losses : ndarray, shape (n,)
            By how much chords of each entry exceed the utility there, nats: the entry of the largest is cut.
        mixed : float
            How much of both ends of the ratio there is in it, from 0 to 1: the ratio is cut if that is more.
        """
        width = self.last - self.first
        x = int(losses.argmax())
        if width > _SAME and mixed * width**2 / max(self.last, _SAME) > losses[x]:
            middle = (self.first + self.last) / 2
            return [replace(self, last=middle), replace(self, first=middle)]
        if losses[x] <= _NOTHING:
            return []
        entry, low, high = float(entries[x]), float(self.low[x]), float(self.high[x])
        kind = int(self.kind[x])
        if kind == ANY and entry >= ratio:
            return [self._with(x, LOW, 0.0, high), self._with(x, ABOVE, 1.0, high)]
        if kind == ANY:
            return [self._with(x, BELOW, 0.0, 1.0), self._with(x, HIGH, 0.0, high)]
        if kind == LOW:
            return [self._with(x, BELOW, 0.0, 1.0), self._with(x, BETWEEN, 0.0, 1.0)]
        if kind == HIGH:
            return [self._with(x, BETWEEN, 0.0, 1.0), self._with(x, ABOVE, 1.0, high)]
        if kind == BELOW:
            at = entry / max(ratio, _SAME)
        elif kind == BETWEEN:
            at = (1 - entry) / max(1 - ratio, _SAME)
        else:
            at = entry
        span = high - low
        at = min(max(at, low + _END * span), high - _END * span)
        return [self._with(x, kind, low, at), self._with(x, kind, at, high)] if low < at < high else []

    def _with(self, x: int, kind: int, low: float, high: float) -> Cell:
        kinds, lows, highs = self.kind.copy(), self.low.copy(), self.high.copy()
        kinds[x], lows[x], highs[x] = kind, low, high
        return replace(self, kind=kinds, low=lows, high=highs)
