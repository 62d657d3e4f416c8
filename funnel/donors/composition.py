"""Composition: what records of a class are like, and how far tables of the secret and a column are off on average."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from funnel.alphabet import Alphabet
from funnel.class_parts import ClassParts
from funnel.donors.column_sets import ColumnSets, parts_known
from funnel.donors.record_classes import RecordClasses
from funnel.errors import SpecError
from funnel.guarantees.any_column import AnyColumn
from funnel.joint import FloatArray, IntArray, Joint
from funnel.protocol import DENOMINATOR, Protocol

# A secret, None where it is not published, and a class.
Place = tuple[int | None, int]
# What has less than this share of a record is taken for nothing, and a change by exactly the bound is within it.
_HARDLY, _HAIR = 1e-9, 1e-9


@dataclass(frozen=True)
class Concluded:
    """What observers of a record conclude who know other columns, one or several.

    Attributes
    ----------
    columns : tuple of str
        Which they know.
    level : float
        The largest change of a belief in a secret with these, nats.
    outside : float
        The share of people whose record changes one by more than the budget.
    """

    columns: tuple[str, ...]
    level: float
    outside: float


@dataclass(frozen=True, eq=False)
class Composition:
    """How many records of a secret and a class have a value of a column.

    Attributes
    ----------
    secret : Alphabet
    classes : RecordClasses
    cells : tuple of (column, value)
    counts : ndarray of int64, shape (c, classes, cells)
    people : ndarray of int64, shape (c, classes)
        With each secret in each class.
    parts : ClassParts or None
        Of classes that are cut: which class each is a part of, and the people there with what observers may know.
    """

    secret: Alphabet
    classes: RecordClasses
    cells: tuple[tuple[str, str], ...]
    counts: IntArray
    people: IntArray
    parts: ClassParts | None

    @classmethod
    def of(cls, joint: Joint, classes: RecordClasses) -> Composition:
        """From counts (c, a) of secrets and whole records."""
        of_record = classes.of_records(joint.inputs)
        cells, tables = [], []
        for j, column in enumerate(joint.inputs.columns):
            texts = joint.inputs.texts[j]
            shape = (len(classes.names), len(texts))
            of = of_record * len(texts) + joint.inputs.codes[:, j]
            tables.append(np.array([np.bincount(of, row, math.prod(shape)).reshape(shape) for row in joint.counts]))
            cells += [(column, text) for text in texts]
        people = classes.counted(joint).counts
        counts = np.concatenate(tables, axis=2).astype(np.int64)
        parts = parts_known(joint, classes, ColumnSets.of(joint.inputs, classes.at_once)) if classes.at_once else None
        return cls(joint.secret, classes, tuple(cells), counts, people, parts)

    def held_out_from(self, choosing: Joint) -> Composition:
        """The same, with the counts of secrets and classes among records that did not choose the classes.

        Parameters
        ----------
        choosing : Joint
            Counts of the others, by whole records.
        """
        if self.parts is None:
            raise SpecError("records are held out where classes are cut into parts")
        counted = self.parts.counted(self.people)
        of_class = self.parts.counted(self.classes.counted(choosing).counts)
        for symbol, row in zip(choosing.secret.symbols, of_class, strict=True):
            counted[self.secret.index(symbol)] -= row
        return replace(self, parts=replace(self.parts, held_out=counted))

    @property
    def joint(self) -> Joint:
        """Counts of the secret and of classes; of parts of these where donors are drawn evenly."""
        return replace(Joint(self.people, self.secret, self.classes.alphabet), parts=self.parts)

    def followed_errors(self, protocol: Protocol, own: float) -> FloatArray:
        """Standard errors of the counts of every cell, (cells,), where a share of the records are people's own.

        Of the records that keep their class the same share are own ones, whichever class it is, and the others are
        anybody's of it.

        Parameters
        ----------
        protocol : Protocol
            Over the class of a record.
        own : float
        """
        classes = self.classes.alphabet
        order = [protocol.outputs.index(symbol) for symbol in classes.symbols]
        moves = protocol.weights_for(classes)[order] / float(DENOMINATOR)
        people = self.people.sum(axis=0)
        within = self.counts.sum(axis=0) / np.maximum(people, 1)[:, np.newaxis]
        stays = float(people @ moves.diagonal()) / people.sum()
        is_own = moves.diagonal() * (min(1.0, own / stays) if stays > 0 else 1.0)
        means = moves.T @ within
        by_class = means * (1 - means) - (is_own**2)[:, np.newaxis] * within * (1 - within)
        return np.asarray(np.sqrt(np.maximum(0.0, people @ by_class)))

    def off(self, protocol: Protocol) -> FloatArray:
        """Records by which the mean of every cell is off in a release, shape (c, cells), where the secret is published.

        A record whose class stays keeps its columns, and its secret changes as the protocol says; who comes to a class
        has the columns of anybody there.

        Parameters
        ----------
        protocol : Protocol
            Over the columns of the secret and the class of a record.
        """
        at, to, weights = self._channel(protocol)
        within = self.counts.sum(axis=0) / self.people.sum(axis=0)[:, np.newaxis]
        mean = np.zeros((len(self.secret), len(self.cells)))
        for (t, k), row in zip(to, weights, strict=True):
            for (s, c), probability in zip(at, row.tolist(), strict=True):
                if c == k:
                    mean[t] += probability * self.counts[s, k]
                else:
                    mean[t] += probability * self.people[s, c] * within[k]
        return np.asarray(mean - self.counts.sum(axis=1))

    def concluded(self, protocol: Protocol, budget: float) -> tuple[Concluded, ...]:
        """What observers of each other column conclude at most, whoever the donors are; most people beyond first.

        Between parts of classes donors are drawn evenly, and it is what they conclude: those of sets of columns too.

        In the belief P(record) P(s | class). They see all of a published record y of class k with a secret t. If it
        agrees in their column it is the person's own, or a donor's; of the people of class g a share of at most p_y /
        p_k times p_g comes to it, as every record of k is as often a donor. If it does not agree it is a donor's.

        Parameters
        ----------
        protocol : Protocol
        budget : float
            Nats.
        """
        if self.classes.draws_evenly:
            read = self.joint.read_by(protocol.inputs.columns)
            exact = AnyColumn.of(read).concluded(protocol.weights_for(read.inputs) / float(DENOMINATOR), budget)
            return _worst_first([Concluded(columns, level, outside) for columns, (level, outside) in exact.items()])
        at, to, weights = self._channel(protocol)
        sizes = self.people.sum(axis=0)
        given = self.people / sizes
        rates = np.zeros((len(to), *self.people.shape))
        for (s, c), row in zip(at, weights.T, strict=True):
            rates[:, slice(None) if s is None else s, c] = row[:, np.newaxis] if s is None else row
        inside = self.counts.sum(axis=0)
        found = []
        for column in dict.fromkeys(name for name, _ in self.cells):
            level, outside = 0.0, 0.0
            for known in (inside[:, j] for j, (name, _) in enumerate(self.cells) if name == column):
                prior = given @ known / known.sum()
                for (_, k), rate in zip(to, rates, strict=True):
                    # P(s, y | class) of the people of every class.
                    come = given * rate * (known > 0)
                    own, come[:, k] = come[:, k].copy(), 0.0
                    moved = float(come.sum(axis=0) @ known)
                    # Of a class in which all have the value all are as likely to come to any record.
                    whole, some = known == sizes, (known < sizes) & (come.sum(axis=0) > _HARDLY)
                    come = come * (sizes / sizes[k])
                    sure, unsure = come[:, whole].sum(axis=1), come[:, some]
                    apart = _largest(unsure, sure, prior) if known[k] < sizes[k] else 0.0
                    alike = _largest(unsure, sure + own, prior) if known[k] else 0.0
                    level = max(level, apart, alike)
                    beyond = budget * (1 + _HAIR) + _HAIR
                    outside += moved if max(apart, alike) > beyond else 0.0
                    outside += float(own.sum() * known[k]) if alike > beyond else 0.0
            found.append(Concluded((column,), level, outside / float(sizes.sum())))
        return _worst_first(found)

    def _channel(self, protocol: Protocol) -> tuple[list[Place], list[Place], FloatArray]:
        """Secrets, None where they are not published, and classes of inputs and of outputs; and P(output | input)."""
        place = {name: k for k, name in enumerate(self.classes.names)}
        # Known columns follow from the class.
        width = len(protocol.inputs.columns) - len(self.classes.known) - 1
        at, to = (
            [(self.secret.index(x[:width]) if width else None, place[x[-1]]) for x in alphabet.symbols]
            for alphabet in (protocol.inputs, protocol.outputs)
        )
        return at, to, protocol.weights_for(protocol.inputs) / float(DENOMINATOR)


def _worst_first(found: list[Concluded]) -> tuple[Concluded, ...]:
    return tuple(sorted(found, key=lambda one: (-one.outside, -one.level)))


def _largest(come: FloatArray, own: FloatArray, prior: FloatArray) -> float:
    """The largest |log| of a posterior over the prior (c,) after ``own + Σ_g θ_g come_g``, each θ_g between 0 and 1.

    A share of it is extreme where those θ_g are 1 of which that share is most extreme, and the others 0.
    """
    masses = come
    if own.sum() > _HARDLY:
        shares, one = come / come.sum(axis=0), own[:, np.newaxis]
        further = [one + np.cumsum(come[:, np.argsort(-share)], axis=1) for share in (*shares, *-shares)]
        masses = np.hstack([one, *further])
    if not masses.size:
        return 0.0
    there = prior > 0
    with np.errstate(divide="ignore"):
        changes = np.log(masses[there] / masses.sum(axis=0) / prior[there, np.newaxis])
    return float(np.abs(changes).max())
