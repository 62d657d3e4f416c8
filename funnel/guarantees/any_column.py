"""Any column: what observers conclude from whole records who know nothing else of a person, or any columns at once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from funnel.alphabet import CLASS_COLUMN
from funnel.class_parts import Known
from funnel.errors import SpecError
from funnel.guarantees.base import Witness
from funnel.guarantees.exact import exp_below
from funnel.guarantees.reading import reads_secret
from funnel.joint import FloatArray, IntArray, Joint
from funnel.protocol import WeightArray

BoolArray = npt.NDArray[np.bool_]
# Python integers.
Whole = npt.NDArray[np.object_]
# Sums of positive numbers in floats are much closer to the exact ones than that, relatively: so ratios that are further
# from a limit, or from the largest, are on the side of it where floats are. The others are compared exactly.
_CLOSE = 1e-9


@dataclass(frozen=True, eq=False)
class Condition:
    """That a belief is within one side of a bound: of those who know some values and see a record of a part.

    Attributes
    ----------
    output, known, secret : int
        Numbers of the published part, after the secret where that is published, of what the observer knows, and of the
        value of the secret.
    upward : bool
        Whether the belief must not be too large, else not too small.
    agrees : bool
        Whether the record has the values that the observer knows, so that it may be the person's own.
    """

    output: int
    known: int
    secret: int
    upward: bool
    agrees: bool


@dataclass(frozen=True, eq=False)
class AnyColumn:
    """Observers of no column, and of all values of some, where donors are drawn evenly from parts of classes.

    An observer believes that a person has the secret as often as people of their class have it, and sees a published
    record. A record of a part is that of the person, with the probability that the part stays, or a donor's: of each
    other part that goes there all people are as likely to come to it, those with the known values among them. Where the
    secret is published too, each of these has the probability of the published one.

    Parameters
    ----------
    counts : ndarray of int64, shape (c, g)
        People with each secret in each class, which beliefs follow from.
    class_of : ndarray of int64, shape (k,)
        The class that every part belongs to.
    people : ndarray of int64, shape (v, k)
        Of every part those who have what an observer may know; the first row is everybody.
    known : tuple of Known
        Of every other row.
    publishes : bool
        Whether the secret is read and published.
    """

    counts: IntArray
    class_of: IntArray
    people: IntArray
    known: tuple[Known, ...]
    publishes: bool = False

    @classmethod
    def of(cls, joint: Joint, knowing: bool = True) -> Self:
        """Of counts of secrets and parts of classes; of observers of no column alone, unless they know some.

        Who knows all columns of a person knows the part, and nothing that a published secret would not add to.

        Raises
        ------
        SpecError
            If the inputs of the counts are no parts of classes.
        """
        parts = joint.parts
        if parts is None:
            raise SpecError("what observers of some columns conclude is known of parts of classes of records alone")
        publishes, size = reads_secret(joint), len(parts.class_of)
        everybody = joint.counts.sum(axis=0).reshape(-1, size).sum(axis=0)
        people, known = [everybody[np.newaxis]], []
        if knowing:
            people, known = [*people, parts.people], [*parts.known]
        if knowing and publishes:
            people.append(np.diag(everybody))
            known += [((joint.inputs.columns[-1], symbol[-1]),) for symbol in joint.inputs.symbols[:size]]
        return cls(joint.by_class.counts, parts.class_of, np.vstack(people), tuple(known), publishes)

    @property
    def sizes(self) -> IntArray:
        """People of every part, shape (k,)."""
        sizes: IntArray = self.people[0]
        return sizes

    @cached_property
    def given(self) -> FloatArray:
        """P(secret | part), which is that of its class, shape (c, k)."""
        return np.asarray((self.counts / self.counts.sum(axis=0))[:, self.class_of])

    @cached_property
    def before(self) -> FloatArray:
        """P(secret | what is known), shape (c, v)."""
        return np.asarray(self.given @ self.people.T / self.people.sum(axis=1))

    @property
    def distinct(self) -> AnyColumn:
        """The same observers without those who conclude what others do, and without those who learn nothing.

        All people with some values may be of one class, which is what their observers believe before and after, where
        no secret is published.
        """
        _, first = np.unique(self.people[1:], axis=0, return_index=True)
        of_class = np.zeros((len(self.people), len(self.counts.T)), dtype=np.int64)
        np.add.at(of_class.T, self.class_of, self.people.T)
        several = (of_class > 0).sum(axis=1) > (0 if self.publishes else 1)
        some = [number for number in np.sort(first).tolist() if several[number + 1]]
        kept = np.array([0, *(number + 1 for number in some)])
        return replace(self, people=self.people[kept], known=tuple(self.known[number] for number in some))

    def worst(self, weights: WeightArray) -> Witness:
        """Where a belief changes most, exactly.

        Parameters
        ----------
        weights : ndarray of uint64, shape (k, k), or (c·k, c·k) where the secret is published
            P(published part | true part) in units of 2^-63.

        Raises
        ------
        SpecError
            If there are other outputs than parts.
        """
        changes = self._changes(weights)
        if not changes.any():
            raise SpecError("nobody is published under these weights, so no observer concludes anything")
        found: Witness | None = None
        for ratios in self._ratios(weights, changes >= changes.max() * (1 - _CLOSE)):
            found = ratios.worst(found, self.known)
        if found is None:
            raise SpecError("what observers conclude cannot be decided in whole numbers")
        return found

    def concluded(self, channel: FloatArray, budget: float) -> dict[tuple[str, ...], tuple[float, float]]:
        """What observers of some columns conclude at most, nats, and the share of people beyond a budget; by columns.

        Parameters
        ----------
        channel : ndarray, shape (k, k), or (c·k, c·k) where the secret is published
            P(published part | true part); in floats, as the answer is.
        budget : float
            Nats.
        """
        with np.errstate(divide="ignore"):
            apart, alike = np.log(np.maximum(1.0, self._changes(channel, _CLOSE)[:, :, 1:]))
        come, own = self._seen(channel)
        having = self.people[1:].T
        agree = np.tile(having / self.sizes[:, np.newaxis], (len(channel) // len(self.sizes), 1))
        arrive = come.sum(axis=0)[:, 1:]
        beyond = budget * (1 + _CLOSE) + _CLOSE
        outside = np.where(apart > beyond, arrive * (1 - agree), 0.0).sum(axis=0)
        outside += np.where(alike > beyond, (arrive + own.sum(axis=0)[:, np.newaxis]) * agree, 0.0).sum(axis=0)
        found: dict[tuple[str, ...], tuple[float, float]] = {}
        levels, shares = np.maximum(apart, alike).max(axis=0), outside / float(self.sizes.sum())
        for one, level, share in zip(self.known, levels.tolist(), shares.tolist(), strict=True):
            columns = tuple(column for column, _ in one)
            if columns != (CLASS_COLUMN,):
                most, so_far = found.get(columns, (0.0, 0.0))
                found[columns] = max(most, level), so_far + share
        return found

    def broken(self, weights: WeightArray, alone: float, knowing: float) -> list[Condition]:
        """The conditions that integer weights break, decided exactly."""
        limits = [exp_below(alone), *(exp_below(knowing) for _ in self.known)]
        near = self._changes(weights) > np.array(limits, dtype=np.float64) * (1 - _CLOSE)
        return [one for ratios in self._ratios(weights, near) for one in ratios.beyond(limits)]

    def _stacked(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Rows (o, a) by the secret that they read, (o, c, k); (o, 1, k) where they read none."""
        size = len(self.sizes)
        reads = len(self.counts) * size if self.publishes else size
        if rows.shape != (reads, reads):
            raise SpecError("donors are drawn between parts of classes, and these weights are of other outputs")
        return rows.reshape(reads, -1, size)

    def _seen(self, weights: WeightArray | FloatArray) -> tuple[FloatArray, FloatArray]:
        """People with a secret and what is known who come to an output, (c, o, v), and who stay there, (c, o)."""
        rows = self._stacked(weights).astype(np.float64)
        output, part = np.arange(len(rows)), np.arange(len(rows)) % len(self.sizes)
        stays = rows[output, :, part].T * self.given[:, part] * self.sizes[part]
        rows[output, :, part] = 0.0
        moves = np.broadcast_to(rows, (len(rows), len(self.given), len(self.sizes)))
        return np.stack([(moves[:, s] * given) @ self.people.T for s, given in enumerate(self.given)]), stays

    def _changes(self, weights: WeightArray | FloatArray, least: float = 0.0) -> FloatArray:
        """The largest factor by which a belief changes, shape (2, o, v), in floats; 0 where nobody sees such a record.

        By every output, for records that do not agree with what is known and for those that do, if more people see such
        a record than the least ones, on average.
        """
        come, stays = self._seen(weights)
        arrive, own = come.sum(axis=0), stays.sum(axis=0)
        times = len(own) // len(self.sizes)
        people, sizes = (np.tile(one, (times, 1)) for one in (self.people.T, self.sizes[:, np.newaxis]))
        apart = (people < sizes) & (arrive > least)
        alike = (people > 0) & (arrive + own[:, np.newaxis] * people / sizes > least)
        found = np.zeros((2, *people.shape))
        for place, (there, mine) in enumerate(((apart, 0.0 * stays), (alike, stays))):
            whole = arrive + mine.sum(axis=0)[:, np.newaxis]
            for amounts, one, before in zip(come, mine, self.before, strict=True):
                with np.errstate(divide="ignore", invalid="ignore"):
                    ratio = (amounts + one[:, np.newaxis]) / (whole * before)
                    either = np.maximum(ratio, 1 / ratio)
                found[place] = np.maximum(found[place], np.where(there & (before > 0), either, 0.0))
        return found

    def _ratios(self, weights: WeightArray, chosen: BoolArray) -> Iterator[_Ratios]:
        """Beliefs after a record over those before, exactly, of those that are chosen (2, o, v).

        Of every output, for records that do not agree and for those that do.
        """
        sizes = [int(size) for size in self.counts.sum(axis=0)]
        unit = math.lcm(*sizes)
        # Secrets of a person of each part in units.
        by_class = self.counts.astype(object) * np.array([unit // size for size in sizes], dtype=object)
        tells, rows = by_class[:, self.class_of], self._stacked(weights)
        for agrees, outputs in enumerate(chosen):
            for output in np.flatnonzero(outputs.any(axis=1)).tolist():
                knows, part = np.flatnonzero(outputs[output]), output % len(self.sizes)
                people, row = self.people[knows].astype(object), tells * rows[output].astype(object)
                own, row[:, part] = row[:, part] * int(self.sizes[part]), 0
                some = np.flatnonzero(row.any(axis=0))
                after = row[:, some] @ people[:, some].T
                if agrees:
                    after = after + own[:, np.newaxis]
                yield _Ratios(output, bool(agrees), knows, tells @ people.T, after)


@dataclass(frozen=True, eq=False)
class _Ratios:
    """Beliefs (c, v) before and after a record of an output, in whole numbers, of observers (v,) who see such ones."""

    output: int
    agrees: bool
    knows: IntArray
    before: Whole
    after: Whole

    def _terms(self) -> tuple[Whole, Whole, BoolArray]:
        """Numerators and denominators (c, v) of P(s | seen) / P(s | known), and where there are such."""
        seen: BoolArray = (self.before > 0).astype(bool)
        return self.after * self.before.sum(axis=0), self.before * self.after.sum(axis=0), seen

    def worst(self, so_far: Witness | None, known: tuple[Known, ...]) -> Witness | None:
        """The witness of the largest ratio, or smallest, if it is worse than one found before."""
        over, under, seen = self._terms()
        found = so_far
        for upward, (top, bottom) in enumerate(((under, over), (over, under))):
            for s, v in zip(*np.nonzero(seen), strict=True):
                number = int(self.knows[v])
                given = known[number - 1] if number else ()
                if not bottom[s, v]:
                    return Witness(self.output, int(s), None, None, False, given)
                if found is not None and (
                    found.ratio is None or top[s, v] / bottom[s, v] < float(found.ratio) * (1 - _CLOSE)
                ):
                    continue
                ratio = Fraction(top[s, v], bottom[s, v])
                if found is None or found.ratio is None or ratio > found.ratio:
                    found = Witness(self.output, int(s), None, max(ratio, Fraction(1)), bool(upward), given)
        return found

    def beyond(self, limits: list[Fraction]) -> Iterator[Condition]:
        """Which conditions are broken, given e^ε of every observer, rounded down."""
        over, under, seen = self._terms()
        of = np.array([limits[number].numerator for number in self.knows], dtype=object)
        by = np.array([limits[number].denominator for number in self.knows], dtype=object)
        for upward, (top, bottom) in enumerate(((under, over), (over, under))):
            for s, v in zip(*np.nonzero(seen & (top * by > bottom * of).astype(bool)), strict=True):
                yield Condition(self.output, int(self.knows[v]), int(s), bool(upward), self.agrees)
