"""Records: the distinct records of a table, and what stages read of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from funnel.alphabet import Alphabet, natural_key
from funnel.errors import SpecError
from funnel.joint import FloatArray, IntArray, Joint


@dataclass(frozen=True, eq=False)
class Records:
    """The distinct records of a joint law over the columns to publish.

    Attributes
    ----------
    joint : Joint
        Counts (c, r) of secrets and distinct records.
    values : tuple of tuple of str
        The values of every column, in their natural order.
    codes : ndarray of int64, shape (r, columns)
        Positions in `values`.
    """

    joint: Joint
    values: tuple[tuple[str, ...], ...]
    codes: IntArray

    @classmethod
    def of(cls, joint: Joint) -> Records:
        """The records of a joint law."""
        symbols = joint.inputs.symbols
        values = tuple(
            tuple(sorted({symbol[j] for symbol in symbols}, key=natural_key)) for j in range(len(joint.inputs.columns))
        )
        places = [{value: place for place, value in enumerate(of_column)} for of_column in values]
        codes = [[place[text] for place, text in zip(places, symbol, strict=True)] for symbol in symbols]
        return cls(joint, values, np.array(codes, dtype=np.int64).reshape(len(symbols), len(values)))

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns to publish."""
        return self.joint.inputs.columns

    def place(self, column: str) -> int:
        """Where a column stands among all.

        Raises
        ------
        SpecError
            If it is none of them.
        """
        if column not in self.columns:
            raise SpecError(f"column {column!r} of a group is not among the columns {list(self.columns)} of the joint")
        return self.columns.index(column)

    def read(self, columns: Sequence[str]) -> tuple[Alphabet, IntArray]:
        """What there is of some columns, in the order of their values, and which of it every record has, (r,)."""
        places = [self.place(column) for column in columns]
        found, symbols = np.unique(self.codes[:, places], axis=0, return_inverse=True)
        texts = tuple(
            tuple(self.values[j][code] for j, code in zip(places, row, strict=True)) for row in found.tolist()
        )
        return Alphabet(tuple(columns), texts), symbols.reshape(-1)

    def law(self, symbols: IntArray, size: int) -> FloatArray:
        """P(s, symbol), (c, size), of what every record has, (r,)."""
        return np.stack([np.bincount(symbols, weights=row, minlength=size) for row in self.joint.p])

    def marginal(self, columns: Sequence[str]) -> Joint:
        """Counts of the secret and some of the columns."""
        alphabet, symbols = self.read(columns)
        counts = [np.bincount(symbols, weights=row, minlength=len(alphabet)) for row in self.joint.counts]
        return Joint.from_counts(np.array(counts).astype(np.int64), self.joint.secret, alphabet)
