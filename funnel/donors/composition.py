"""Composition: what records of a class are like, and how far tables of the secret and a column are off on average."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from funnel.alphabet import Alphabet
from funnel.donors.record_classes import RecordClasses
from funnel.joint import FloatArray, IntArray, Joint
from funnel.protocol import DENOMINATOR, Protocol

# A secret, None where it is not published, and a class.
Place = tuple[int | None, int]
# What has less than this share of a record is taken for nothing, and a change by exactly the bound is within it.
_HARDLY, _HAIR = 1e-9, 1e-9


@dataclass(frozen=True)
class Concluded:
    """What observers of a record conclude who know one other column.

    Attributes
    ----------
    column : str
        With which most people are beyond the budget.
    level : float
        The largest change of a belief in a secret with it, nats.
    outside : float
        The share of people whose record changes one by more than the budget.
    """

    column: str
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
    """

    secret: Alphabet
    classes: RecordClasses
    cells: tuple[tuple[str, str], ...]
    counts: IntArray
    people: IntArray

    @classmethod
    def of(cls, joint: Joint, classes: RecordClasses) -> Composition:
        """From counts (c, a) of secrets and whole records."""
        of_record = classes.of_records(joint.inputs)
        cells, tables = [], []
        for j, column in enumerate(joint.inputs.columns):
            places: dict[str, int] = {}
            values = np.array([places.setdefault(symbol[j], len(places)) for symbol in joint.inputs.symbols])
            table = np.zeros((len(joint.secret), len(classes.names), len(places)), dtype=np.int64)
            for of_secret, row in zip(table, joint.counts, strict=True):
                np.add.at(of_secret, (of_record, values), row)
            cells += [(column, value) for value in places]
            tables.append(table)
        people = classes.counted(joint).counts
        return cls(joint.secret, classes, tuple(cells), np.concatenate(tables, axis=2), people)

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

    def concluded(self, protocol: Protocol, budget: float) -> Concluded:
        """What observers conclude at most who know one other column of a person, whichever it is.

        In the belief P(record) P(s | class). Of a published record they see its secret t, where that is published, its
        class k, and whether it agrees in their column; all else of it is as likely for every secret. It is the person's
        own if the class stayed, and else a donor's, who agrees as often as people of k do.

        Parameters
        ----------
        protocol : Protocol
        budget : float
            Nats.
        """
        at, to, weights = self._channel(protocol)
        people = self.people.sum(axis=0)
        given = self.people / people
        inside = self.counts.sum(axis=0)
        found = Concluded("", 0.0, 0.0)
        for column in dict.fromkeys(name for name, _ in self.cells):
            level, outside = 0.0, 0.0
            for cell in (j for j, (name, _) in enumerate(self.cells) if name == column):
                known = inside[:, cell]
                mass = given * known
                prior = mass.sum(axis=1) / known.sum()
                agrees = known / people
                for (_, k), row in zip(to, weights, strict=True):
                    own, come = np.zeros(len(prior)), np.zeros(len(prior))
                    for (s, c), probability in zip(at, row.tolist(), strict=True):
                        for secret in range(len(prior)) if s is None else (s,):
                            (own if c == k else come)[secret] += mass[secret, c] * probability
                    for shown in (own + come * agrees[k], come * (1 - agrees[k])):
                        if (total := float(shown.sum())) <= _HARDLY:
                            continue
                        with np.errstate(divide="ignore", invalid="ignore"):
                            change = np.abs(np.log(shown / total / prior))
                        most = float(change[prior > 0].max())
                        level = max(level, most)
                        outside += total if most > budget * (1 + _HAIR) + _HAIR else 0.0
            if outside > found.outside or (outside == found.outside and level > found.level) or not found.column:
                found = Concluded(column, level, outside)
        return dataclasses.replace(found, outside=found.outside / float(people.sum()))

    def _channel(
        self, protocol: Protocol
    ) -> tuple[list[tuple[int | None, int]], list[tuple[int | None, int]], FloatArray]:
        """Secrets, None where they are not published, and classes of inputs and of outputs; and P(output | input)."""
        place = {name: k for k, name in enumerate(self.classes.names)}
        at, to = (
            [(self.secret.index(x[:-1]) if len(x) > 1 else None, place[x[-1]]) for x in alphabet.symbols]
            for alphabet in (protocol.inputs, protocol.outputs)
        )
        return at, to, protocol.weights_for(protocol.inputs) / float(DENOMINATOR)
