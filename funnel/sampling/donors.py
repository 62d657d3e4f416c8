"""Donors: whose record is published for one that changes its class: that of anybody of the new class, evenly."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Self
from typing import Protocol as Interface

import numpy as np
import numpy.typing as npt

from funnel.alphabet import Alphabet
from funnel.errors import DataError, EntropyError
from funnel.joint import FloatArray, IntArray
from funnel.sampling.random_words import WordArray

Codes = npt.NDArray[np.int64]
RECORD_COLUMN: Final = "(record)"
"""The column of a snapshot that has the number of every record among the different ones."""
STANDING_COLUMN: Final = "(standing)"
"""Over versions: whose record was published last, the person's own or a donor's, of which class it is now, or gone."""

# That a word is drawn again is less likely than 2^-24: this many times in a row are a broken source.
_MOST_ATTEMPTS = 8


class Classifier(Interface):
    """Which class every record is of, as `funnel.donors.record_classes.RecordClasses` says it."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a record."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the classes."""

    @property
    def alphabet(self) -> Alphabet:
        """Known values and name of every class."""

    @property
    def draws_evenly(self) -> bool:
        """Whether donors have nothing to do with the record that they stand for."""

    def of_records(self, records: Alphabet) -> IntArray:
        """The number of the class of every record."""


@dataclass(frozen=True, eq=False)
class Donors:
    """The different records of a table, by class, and who takes whose place.

    A record that keeps its class is published as it is. One that goes from class g to class h is published as a record
    of h. Lay the people of g and those of h along one line each, alike people side by side: whoever stands at a share q
    of the first line takes the record of whoever stands at q of the second. Somebody drawn from g stands at any place
    with the same probability, so every person of h is as likely to be the donor: **the published records of a class
    have the composition of the true ones**, whatever moves between classes. Which donor it is depends on the record and
    on a word alone, never on the secret.

    Parameters
    ----------
    columns : tuple of str
        Published columns.
    categories : tuple of tuple of str
        The values of each.
    codes : ndarray of int32, shape (a, columns)
        The values of every record; people who agree in early columns stand together.
    classes : tuple of str
        Their names.
    of_record : ndarray of int64, shape (a,)
        The number of the class of every record.
    counts : ndarray of int64, shape (a,)
        People with each, at least one.
    evenly : bool
        Whether whoever comes to a class takes the place of any person there, each as likely, instead: then what
        observers of one column conclude is known exactly.
    followed : bool
        Whether it is decided already whose record is published: the number that a row has is that of it.
    """

    columns: tuple[str, ...]
    categories: tuple[tuple[str, ...], ...]
    codes: npt.NDArray[np.int32]
    classes: tuple[str, ...]
    of_record: IntArray
    counts: IntArray
    evenly: bool = False
    followed: bool = False

    @classmethod
    def of(
        cls,
        records: Alphabet,
        counts: IntArray,
        classes: Classifier,
        columns: Sequence[str],
        categories: Mapping[str, Sequence[str]] | None = None,
    ) -> Self:
        """Of the different records of a table.

        Parameters
        ----------
        records : Alphabet
            a of them.
        counts : ndarray of int64, shape (a,)
        classes : Classifier
        columns : sequence of str
            Those of the records; who agrees in the first of them stands together.
        categories : mapping of str to sequence of str, optional
            The values of every column in order, before others that occur, which are sorted: so everybody who counts the
            same records finds the same donors.
        """
        places = [records.columns.index(column) for column in columns]
        codes = np.empty((len(records), len(columns)), dtype=np.int32)
        values: list[tuple[str, ...]] = []
        for j, place in enumerate(places):
            texts = [symbol[place] for symbol in records.symbols]
            known = () if categories is None else categories[columns[j]]
            values.append(tuple(dict.fromkeys([*known, *sorted({*texts})])))
            numbers = {text: i for i, text in enumerate(values[j])}
            codes[:, j] = [numbers[text] for text in texts]
        of_record = classes.of_records(records)
        return cls(tuple(columns), tuple(values), codes, classes.names, of_record, counts, classes.draws_evenly)

    def __len__(self) -> int:
        """a, how many different records there are."""
        return len(self.counts)

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of all of it."""
        said = hashlib.sha256(repr((self.columns, self.categories, self.classes)).encode())
        for array in (self.codes, self.of_record, self.counts):
            said.update(np.ascontiguousarray(array).data)
        return said.hexdigest()

    @cached_property
    def _order(self) -> IntArray:
        """Records class by class, in a class along its line."""
        return np.lexsort((*self.codes.T[::-1], self.of_record))

    @cached_property
    def _ends(self) -> IntArray:
        """Where each record of that order ends, in people."""
        return np.cumsum(self.counts[self._order])

    @cached_property
    def sizes(self) -> IntArray:
        """People of every class, shape (k,)."""
        sizes = np.zeros(len(self.classes), dtype=np.int64)
        np.add.at(sizes, self.of_record, self.counts)
        return sizes

    @cached_property
    def _starts(self) -> IntArray:
        """Where each class begins, in people."""
        return np.cumsum(self.sizes) - self.sizes

    @cached_property
    def _places(self) -> IntArray:
        """People of the same class who stand before the first one with a record."""
        places = np.empty_like(self.counts)
        places[self._order] = self._ends - self.counts[self._order]
        return places - self._starts[self.of_record]

    def pairs(self, source: int, target: int) -> tuple[IntArray, IntArray, FloatArray]:
        """Who takes whose place, of those of one class who go to another: records, their donors, and shares of people.

        Parameters
        ----------
        source, target : int
            Numbers of two classes with people.

        Returns
        -------
        tuple of ndarrays, each (pairs,)
            Numbers of records and of donors, and the share of the source class that is both; these sum to 1.
        """
        ends = [
            (np.append(self._starts, self.counts.sum())[[g, g + 1]], self.sizes[other])
            for g, other in ((source, target), (target, source))
        ]
        lines = []
        for (start, stop), times in ends:
            of = slice(*np.searchsorted(self._ends, [start, stop], side="right"))
            lines.append((self._order[of], (self._ends[of] - start) * times))
        (records, first), (others, second) = lines
        cuts = np.unique(np.concatenate([first, second]))
        shares = np.diff(cuts, prepend=0) / cuts[-1]
        return records[np.searchsorted(first, cuts)], others[np.searchsorted(second, cuts)], shares

    @cached_property
    def _shares(self) -> list[FloatArray]:
        """Of every column the shares of the people of each class who have its values, (k, values)."""
        found = []
        for values, codes in zip(self.categories, self.codes.T, strict=True):
            people = np.zeros((len(self.classes), len(values)))
            np.add.at(people, (self.of_record, codes), self.counts)
            found.append(people / np.maximum(self.sizes, 1)[:, np.newaxis])
        return found

    def agreeing(self, source: int, target: int) -> FloatArray:
        """Of those of one class who go to another the share with the value of their donor, shape (columns,)."""
        if self.evenly:
            return np.array([shares[source] @ shares[target] for shares in self._shares])
        records, others, shares = self.pairs(source, target)
        alike: IntArray = self.codes[records] == self.codes[others]
        return np.asarray(shares @ alike)

    def taken(self, records: Codes, classes: Codes, words: Callable[[int], WordArray]) -> Codes:
        """The records that are published for some, given the classes that were drawn for them.

        Parameters
        ----------
        records : ndarray of int64, shape (rows,)
            Numbers of the true records.
        classes : ndarray of int64, shape (rows,)
            Drawn.
        words : callable
            Uniform words for the rows, (rows,), given how many times they were asked for before.

        Raises
        ------
        EntropyError
            If the source of random words is broken.
        DataError
            If a record that was decided on is of another class than was drawn.
        """
        if self.followed:
            words(0)
            if (self.of_record[records] != classes).any():
                raise DataError("whose record is published is not of the class that was drawn; run the release again")
            return records
        out = np.array(records)
        moved = np.flatnonzero(classes != self.of_record[records])
        taken, into = records[moved], classes[moved]
        size, other = self.sizes[self.of_record[taken]], self.sizes[into]
        if self.evenly:
            donor = self._starts[into] + uniform_below(other, moved, words)
        else:
            # At any place of the record's people, exactly: counts of people multiply to less than 2^63.
            place = self._places[taken] * other + uniform_below(self.counts[taken] * other, moved, words)
            donor = self._starts[into] + place // size
        out[moved] = self._order[np.searchsorted(self._ends, donor, side="right")]
        return out


def uniform_below(limits: Codes, rows: Codes, words: Callable[[int], WordArray]) -> Codes:
    """Whole numbers from 0 to each limit - 1, exactly uniform: words that favour the first are drawn again."""
    bounds = limits.astype(np.uint64)
    # 2^64 mod limit: so many of the largest words are too many.
    excess = (np.uint64(2**64 - 1) % bounds + np.uint64(1)) % bounds
    found = np.empty(len(limits), dtype=np.uint64)
    left = np.arange(len(limits))
    # Words are asked for even where no row needs one: their number is that of the rows, whatever was drawn.
    for attempt in range(_MOST_ATTEMPTS):
        drawn = words(attempt)[rows[left]]
        fit = drawn <= np.uint64(2**64 - 1) - excess[left]
        found[left[fit]] = drawn[fit]
        left = left[~fit]
        if not len(left):
            return (found % bounds).astype(np.int64)
    raise EntropyError(f"random words were of no use in {_MOST_ATTEMPTS} tries; their source cannot be used")
