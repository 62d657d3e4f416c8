"""Alphabet: the labelled values that a secret, an input or an output can take, over one or several columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from funnel.errors import SpecError
from funnel.wording import listed

SEPARATOR = " · "
#: The column that says of every whole record which class it is of.
CLASS_COLUMN = "record_class"


@dataclass(frozen=True)
class Alphabet:
    """An ordered, finite set of symbols, each a tuple with one text per column.

    Parameters
    ----------
    columns : tuple of str
        Names of the columns the symbols are read from (or written to).
    symbols : tuple of tuple of str
        Distinct symbols, each of ``len(columns)`` texts.

    Raises
    ------
    SpecError
        If a column or a symbol occurs twice or a symbol does not fit the columns.

    Examples
    --------
    >>> import funnel
    >>> sizes = funnel.Alphabet(("size",), (("small",), ("large",)))
    >>> len(sizes), sizes.labels
    (2, ('small', 'large'))
    """

    columns: tuple[str, ...]
    symbols: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        if not self.columns:
            raise SpecError("an alphabet needs at least one column name")
        if len(set(self.columns)) != len(self.columns):
            raise SpecError(f"the columns {list(self.columns)} of an alphabet must be distinct")
        if any(len(symbol) != len(self.columns) for symbol in self.symbols):
            raise SpecError(f"every symbol over the columns {list(self.columns)} needs {len(self.columns)} texts")
        if len(self._positions) != len(self.symbols):
            raise SpecError(f"the symbols over the columns {list(self.columns)} must be distinct")

    @classmethod
    def of(cls, labels: Alphabet | Iterable[object] | None, size: int, column: str) -> Alphabet:
        """An alphabet of ``size`` symbols from labels, from tuples of labels, or numbered ``column`` symbols.

        Raises
        ------
        SpecError
            If the number of labels is not ``size``.
        """
        if isinstance(labels, Alphabet):
            alphabet = labels
        elif labels is None:
            alphabet = cls((column,), tuple((f"{column}{i}",) for i in range(size)))
        else:
            symbols = tuple(
                tuple(str(part) for part in label) if isinstance(label, tuple) else (str(label),) for label in labels
            )
            width = len(symbols[0]) if symbols else 1
            columns = (column,) if width == 1 else tuple(f"{column}{j}" for j in range(width))
            alphabet = cls(columns, symbols)
        if len(alphabet) != size:
            raise SpecError(f"{len(alphabet)} labels were given for the {size} symbols of {column}")
        return alphabet

    @cached_property
    def _positions(self) -> dict[tuple[str, ...], int]:
        return {symbol: i for i, symbol in enumerate(self.symbols)}

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """One readable text per symbol: its texts joined by a middle dot."""
        return tuple(SEPARATOR.join(symbol) for symbol in self.symbols)

    @cached_property
    def codes(self) -> npt.NDArray[np.int64]:
        """The number of every symbol's text among the `texts` of each column, shape (a, columns)."""
        found = np.empty((len(self.symbols), len(self.columns)), dtype=np.int64)
        for j, texts in enumerate(self.texts):
            numbers = {text: number for number, text in enumerate(texts)}
            found[:, j] = [numbers[symbol[j]] for symbol in self.symbols]
        return found

    @cached_property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The different texts of every column, in the order in which symbols have them."""
        return tuple(tuple(dict.fromkeys(symbol[j] for symbol in self.symbols)) for j in range(len(self.columns)))

    def index(self, symbol: Sequence[str] | str) -> int:
        """Position of a symbol (a tuple of texts, or one text for a single column); KeyError if it is not there."""
        return self._positions[(symbol,) if isinstance(symbol, str) else tuple(symbol)]

    def get(self, symbol: tuple[str, ...]) -> int:
        """Position of a symbol, or -1 when it is outside the alphabet."""
        return self._positions.get(symbol, -1)

    @property
    def described(self) -> str:
        """Its columns and its size in words."""
        return f"{' × '.join(self.columns)} ({len(self):,} {'value' if len(self) == 1 else 'values'})"

    def __repr__(self) -> str:
        return f"<Alphabet of {self.described}: {listed(self.labels, 6)}>"

    def __len__(self) -> int:
        return len(self.symbols)

    def __iter__(self) -> Iterator[str]:
        return iter(self.labels)

    def __contains__(self, symbol: object) -> bool:
        return ((symbol,) if isinstance(symbol, str) else symbol) in self._positions


def product(first: Alphabet, second: Alphabet) -> Alphabet:
    """All pairs of symbols, ``first`` varying slowest: the input alphabet of a protocol that also reads the secret."""
    return Alphabet(
        first.columns + second.columns,
        tuple(one + two for one in first.symbols for two in second.symbols),
    )


def natural_key(text: str) -> tuple[tuple[int, float, str], ...]:
    """Sort key that orders the numbers inside texts by value, so that ``9`` comes before ``10``.

    Distinct texts have distinct keys (``9``, ``09``), so an order never depends on which row came first.
    """
    parts = re.split(r"(\d+)", text)
    values = [(1, float(part), "") if part.isdecimal() else (0, 0.0, part) for part in parts if part]
    return (*values, (-1, 0.0, text))
