"""Reading: what a stage reads of every record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from funnel.groups.ahead import Ahead, look_ahead
from funnel.groups.records import Records
from funnel.joint import IntArray


@dataclass(frozen=True, eq=False)
class Reading:
    """What a stage reads of every record.

    Attributes
    ----------
    columns : tuple of str
    symbols : tuple of tuple of str
        Combinations of their values.
    ahead : Ahead or None
        Classes of a later column that are read besides.
    inputs : ndarray of int64, shape (r,)
        Of every record: ``symbol · folds + class``.
    folds : int
        Classes.
    """

    columns: tuple[str, ...]
    symbols: tuple[tuple[str, ...], ...]
    ahead: Ahead | None
    inputs: IntArray
    folds: int

    @classmethod
    def of(cls, records: Records, group: Sequence[str], later: Sequence[str], classes: int) -> Self:
        """Of a group of columns, with at most so many classes of one of the later columns."""
        alphabet, symbols = records.read(group)
        looked = look_ahead(records, later, classes)
        if looked is None:
            return cls(tuple(group), alphabet.symbols, None, symbols, 1)
        ahead, of_record = looked
        return cls(tuple(group), alphabet.symbols, ahead, symbols * ahead.number + of_record, ahead.number)

    @classmethod
    def known_from(
        cls, records: Records, some: Records, group: Sequence[str], later: Sequence[str], classes: int
    ) -> Self:
        """The same with classes that follow from some of the records alone.

        Values that none of these have are a class of their own, so that whoever has one has an input that none of these
        have either.
        """
        alphabet, symbols = records.read(group)
        looked = look_ahead(some, later, classes)
        if looked is None:
            return cls(tuple(group), alphabet.symbols, None, symbols, 1)
        known = looked[0]
        of_value = dict(zip(known.values, known.classes, strict=True))
        place = records.place(known.column)
        values = records.values[place]
        ahead = Ahead(known.column, values, tuple(of_value.get(value, known.number) for value in values))
        of_record = np.array(ahead.classes, dtype=np.int64)[records.codes[:, place]]
        return cls(tuple(group), alphabet.symbols, ahead, symbols * ahead.number + of_record, ahead.number)

    @property
    def size(self) -> int:
        """Inputs."""
        return len(self.symbols) * self.folds
