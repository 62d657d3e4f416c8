"""The law of a grouped release: how likely every record is to be published as what, and what that tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from funnel.joint import FloatArray, IntArray
from funnel.recount.grouped import Followed
from funnel.recount.grouped_text import members_of

# Cells of a table of true values by published texts that are laid out in full.
_CELLS = 1 << 24


@dataclass(frozen=True, eq=False)
class Effective:
    """What becomes of some columns, averaged over all that else is in a record.

    Attributes
    ----------
    columns : tuple of str
    inputs, outputs : tuple of tuple of str
        Combinations of true values that occur, and of published texts that can; in the order of codes.
    people : ndarray of int64, shape (a,)
        How many have each input.
    inputs_of, outputs_of : ndarray of int64, shape (k,)
        Entries that are not zero, by input and then by output.
    masses : ndarray, shape (k,)
        People expected with both.
    """

    columns: tuple[str, ...]
    inputs: tuple[tuple[str, ...], ...]
    outputs: tuple[tuple[str, ...], ...]
    people: IntArray
    inputs_of: IntArray
    outputs_of: IntArray
    masses: FloatArray

    @property
    def information(self) -> float:
        """I of the columns and what is published of them, nats."""
        n = self.people.sum()
        shown = np.bincount(self.outputs_of, weights=self.masses, minlength=len(self.outputs))
        ratio = self.masses * n / (self.people[self.inputs_of] * shown[self.outputs_of])
        return max(0.0, float((self.masses / n * np.log(ratio)).sum()))

    @property
    def entropy(self) -> float:
        """H of the columns, nats."""
        return entropy(self.people)

    @property
    def kept(self) -> float:
        """Their quotient; 1 where there is nothing to know."""
        return min(1.0, self.information / self.entropy) if self.entropy > 0 else 1.0


def entropy(people: IntArray) -> float:
    """H of counts, nats."""
    shares = people[people > 0] / people.sum()
    return max(0.0, float(-(shares * np.log(shares)).sum()))


@dataclass(frozen=True, eq=False)
class PublishedLaw:
    """Entries of P(published | record), those of a pair added up.

    Attributes
    ----------
    followed : Followed
    rows, published : ndarray of int64, shape (k,)
    masses : ndarray, shape (k,)
        People expected with both.
    """

    followed: Followed
    rows: IntArray
    published: IntArray
    masses: FloatArray

    @classmethod
    def following(cls, followed: Followed) -> PublishedLaw:
        """Of all ways through the stages."""
        rows, published = np.array(followed.rows, dtype=np.int64), np.array(followed.published, dtype=np.int64)
        people = np.array(followed.totals, dtype=np.int64)
        flat = rows * len(followed.masses) + published
        found, places = np.unique(flat, return_inverse=True)
        likely = _sums(places.reshape(-1), np.array(followed.likely))
        rows, published = np.divmod(found, len(followed.masses))
        return cls(followed, rows, published, likely * people[rows])

    @property
    def columns(self) -> tuple[str, ...]:
        """As they are published."""
        return self.followed.text.columns

    @cached_property
    def people(self) -> IntArray:
        """How many have each record of the source."""
        return np.array(self.followed.totals, dtype=np.int64)

    @cached_property
    def records(self) -> tuple[tuple[str, ...], ...]:
        """The published records that are possible."""
        return tuple(self.followed.masses)

    @cached_property
    def true(self) -> tuple[tuple[tuple[str, ...], IntArray], ...]:
        """Of every column its values, and that of every record of the source."""
        return _coded(self.followed.sources, len(self.columns))

    @cached_property
    def texts(self) -> tuple[tuple[tuple[str, ...], IntArray], ...]:
        """Of every column the texts that can be published, and that of every published record."""
        return _coded(self.records, len(self.columns))

    @cached_property
    def information(self) -> float:
        """I(X;Y) of whole records, nats."""
        n = int(self.people.sum())
        shown = np.bincount(self.published, weights=self.masses)
        ratio = self.masses * n / (self.people[self.rows] * shown[self.published])
        return max(0.0, float((self.masses / n * np.log(ratio)).sum()))

    @cached_property
    def entropy(self) -> float:
        """H(X) of whole records, nats."""
        return entropy(self.people)

    @cached_property
    def plain(self) -> dict[str, float]:
        """The share of people of whom a column is expected to be published as its plain, true value."""
        n, shares = int(self.people.sum()), {}
        for column, (values, of_row), (texts, of_record) in zip(self.columns, self.true, self.texts, strict=True):
            place = {value: x for x, value in enumerate(values)}
            as_value = np.array([place.get(text, -1) for text in texts], dtype=np.int64)
            true = as_value[of_record[self.published]] == of_row[self.rows]
            shares[column] = float(self.masses[true].sum()) / n
        return shares

    def untrue(self, column: int) -> int:
        """Entries at which a record is published as a value that it does not have, or as a set without its own."""
        values, of_row = self.true[column]
        texts, of_record = self.texts[column]
        stage = next(one for one in self.followed.text.stages if self.columns[column] in one.columns)
        of_column = stage.values[stage.columns.index(self.columns[column])]
        known = {value: x for x, value in enumerate(values)}
        inside = np.zeros((len(texts), len(values)), dtype=np.bool_)
        for y, text in enumerate(texts):
            inside[y, [known[value] for value in members_of(text, of_column) if value in known]] = True
        return int((~inside[of_record[self.published], of_row[self.rows]]).sum())

    def of(self, columns: Sequence[str]) -> Effective:
        """The effective channel of some columns together."""
        return self._effective([self.columns.index(column) for column in columns])

    @cached_property
    def effective(self) -> dict[tuple[str, ...], Effective]:
        """The effective channel of every column, then of every pair, in the order of columns."""
        width = len(self.columns)
        wanted = [*((j,) for j in range(width)), *combinations(range(width), 2)]
        return {tuple(self.columns[j] for j in some): self._effective(some) for some in wanted}

    def _effective(self, some: Sequence[int]) -> Effective:
        inputs, of_row = _joined([self.true[j] for j in some])
        outputs, of_record = _joined([self.texts[j] for j in some])
        people = np.bincount(of_row, weights=self.people, minlength=len(inputs)).astype(np.int64)
        flat = of_row[self.rows] * len(outputs) + of_record[self.published]
        if len(inputs) * len(outputs) <= _CELLS:
            table = _sums(flat, self.masses, len(inputs) * len(outputs))
            cells, masses = np.flatnonzero(table), table[table > 0]
        else:
            cells, places = np.unique(flat, return_inverse=True)
            masses = _sums(places.reshape(-1), self.masses)
        inputs_of, outputs_of = np.divmod(cells, len(outputs))
        columns = tuple(self.columns[j] for j in some)
        return Effective(columns, inputs, outputs, people, inputs_of, outputs_of, masses)

    def expected(self, some: Sequence[int]) -> dict[tuple[str, ...], float]:
        """Published texts of some columns, with how many records are expected to have them."""
        outputs, of_record = _joined([self.texts[j] for j in some])
        masses = np.bincount(of_record[self.published], weights=self.masses, minlength=len(outputs))
        return dict(zip(outputs, masses.tolist(), strict=True))


def _sums(places: IntArray, weights: FloatArray, size: int = 0) -> FloatArray:
    """The sum of the weights at every place."""
    return np.asarray(np.bincount(places, weights=weights, minlength=size), dtype=np.float64)


def _coded(symbols: Sequence[tuple[str, ...]], width: int) -> tuple[tuple[tuple[str, ...], IntArray], ...]:
    found = []
    for column in zip(*symbols, strict=True) if symbols else [()] * width:
        place: dict[str, int] = {}
        codes = np.array([place.setdefault(text, len(place)) for text in column], dtype=np.int64)
        found.append((tuple(place), codes))
    return tuple(found)


def _joined(parts: Sequence[tuple[tuple[str, ...], IntArray]]) -> tuple[tuple[tuple[str, ...], ...], IntArray]:
    """Combinations that occur, and the number of each row's."""
    codes = parts[0][1]
    for names, more in parts[1:]:
        codes = codes * len(names) + more
    found, places = np.unique(codes, return_inverse=True)
    symbols, left = [], found
    for names, _ in reversed(parts):
        left, last = np.divmod(left, len(names))
        symbols.append([names[place] for place in last.tolist()])
    return tuple(zip(*reversed(symbols), strict=True)), places.reshape(-1).astype(np.int64)
