"""Composition: what records of a class are like, and how far tables of the secret and a column are off on average."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from funnel.alphabet import Alphabet
from funnel.donors.record_classes import RecordClasses
from funnel.joint import FloatArray, IntArray, Joint
from funnel.protocol import DENOMINATOR, Protocol


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
        place = {name: k for k, name in enumerate(self.classes.names)}
        at = [(self.secret.index(x[:-1]), place[x[-1]]) for x in protocol.inputs.symbols]
        to = [(self.secret.index(y[:-1]), place[y[-1]]) for y in protocol.outputs.symbols]
        weights = protocol.weights_for(protocol.inputs) / float(DENOMINATOR)
        within = self.counts.sum(axis=0) / self.people.sum(axis=0)[:, np.newaxis]
        mean = np.zeros((len(self.secret), len(self.cells)))
        for (t, k), row in zip(to, weights, strict=True):
            for (s, c), probability in zip(at, row.tolist(), strict=True):
                if c == k:
                    mean[t] += probability * self.counts[s, k]
                else:
                    mean[t] += probability * self.people[s, c] * within[k]
        return np.asarray(mean - self.counts.sum(axis=1))
