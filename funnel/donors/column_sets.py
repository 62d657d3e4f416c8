"""Column sets: which columns observers may know of a person at once, and what every record has in them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Self

import numpy as np

from funnel.alphabet import CLASS_COLUMN, Alphabet
from funnel.class_parts import ClassParts, Known
from funnel.donors.record_classes import RecordClasses
from funnel.errors import SpecError
from funnel.joint import IntArray, Joint

# Values, and values together, that observers may know: documents and checks grow with them, to a megabyte and a minute.
_MOST = 12_000


@dataclass(frozen=True, eq=False)
class ColumnSets:
    """All sets of so many columns or fewer, with the values that records have in them.

    Attributes
    ----------
    known : tuple of Known
        Sets of columns with values that some record has: set by set, the smallest first.
    of_record : ndarray of int32, shape (sets, a)
        Of every set the number of what every record has.
    """

    known: tuple[Known, ...]
    of_record: IntArray

    @classmethod
    def of(cls, records: Alphabet, at_once: int) -> Self:
        """Of records, and of observers who know so many columns at once.

        Raises
        ------
        SpecError
            If these have too many values together.
        """
        known: list[Known] = []
        of_record = []
        for places in _sets(len(records.columns), at_once):
            texts = [records.texts[j] for j in places]
            shape = [len(of) for of in texts]
            codes = np.ravel_multi_index(tuple(records.codes[:, list(places)].T), shape)
            found, numbers = np.unique(codes, return_inverse=True)
            of_record.append((numbers + len(known)).astype(np.int32))
            names = [records.columns[j] for j in places]
            for values in zip(*np.unravel_index(found, shape), strict=True):
                known.append(tuple((name, of[k]) for name, of, k in zip(names, texts, values, strict=True)))
            if len(known) > _MOST:
                raise SpecError(
                    f"observers of any {at_once} of {len(records.columns)} columns may know more than {_MOST:,} values "
                    'together; publish fewer columns, group their values in [recode], or write known = "single"'
                )
        return cls(tuple(known), np.array(of_record))

    def people(self, of_part: IntArray, counts: IntArray, parts: int) -> IntArray:
        """The people (v, parts) with what is known, given the part and the people of every record."""
        found = np.zeros((len(self.known), parts), dtype=np.int64)
        for numbers in self.of_record:
            np.add.at(found, (numbers, of_part), counts)
        return found


def _sets(columns: int, at_once: int) -> Iterator[tuple[int, ...]]:
    for size in range(1, at_once + 1):
        yield from combinations(range(columns), size)


def number_of_sets(columns: int, at_once: int) -> int:
    """How many sets of so many columns or fewer there are, the empty one left out."""
    return sum(math.comb(columns, size) for size in range(1, at_once + 1))


def parts_known(joint: Joint, classes: RecordClasses, sets: ColumnSets) -> ClassParts:
    """Which class each part belongs to, itself if it is none, and the people there with what observers may know.

    Parameters
    ----------
    joint : Joint
        Counts (c, a) of the secret and of whole records.
    classes : RecordClasses
    sets : ColumnSets
        Of the same records.
    """
    whole, class_of = classes.whole
    names = Alphabet((CLASS_COLUMN,), tuple((name,) for name in whole))
    people = sets.people(classes.of_records(joint.inputs), joint.counts.sum(axis=0), len(classes.names))
    return ClassParts(names, class_of, people, sets.known)
