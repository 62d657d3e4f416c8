"""Columns of a table of counts apart from one another, so that values of one can be grouped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from funnel.alphabet import Alphabet
from funnel.joint import IntArray, Joint


@dataclass(frozen=True)
class Axis:
    """A column of a table of counts.

    Parameters
    ----------
    column : str
    secret : bool
        Whether it is secret; else it is published.
    values : tuple of str
        Its values, in order.
    ordered : bool
        Whether only neighbours may be grouped, as numbers and ranges of them.
    """

    column: str
    secret: bool
    values: tuple[str, ...]
    ordered: bool = False


@dataclass(frozen=True, eq=False)
class Table:
    """Counts of the combinations that occur, by the places of their values.

    Parameters
    ----------
    axes : tuple of Axis
        Secret columns, then published ones.
    places : ndarray of int64, shape (m, number of axes)
        Of every combination that occurs, the place of its value in each axis.
    counts : ndarray of int64, shape (m,)
        Records of each, above zero.
    """

    axes: tuple[Axis, ...]
    places: IntArray
    counts: IntArray

    @classmethod
    def of(
        cls, joint: Joint, order: Mapping[str, Sequence[str]] | None = None, ordered: frozenset[str] = frozenset()
    ) -> Table:
        """The table of a joint distribution.

        Parameters
        ----------
        order : mapping of column to sequence of str, optional
            Values of a column in their order; by default as the joint distribution first has them.
        ordered : frozenset of str
            Columns of which only neighbours may be grouped.
        """
        s, x = np.nonzero(joint.counts)
        axes: list[Axis] = []
        places: list[IntArray] = []
        for is_secret, alphabet, rows in ((True, joint.secret, s), (False, joint.inputs, x)):
            for j, column in enumerate(alphabet.columns):
                met = _met(alphabet, j)
                known = [value for value in (order or {}).get(column, ()) if value in met]
                values = tuple(dict.fromkeys([*known, *met]))
                rank = {value: place for place, value in enumerate(values)}
                of_symbol = np.array([rank[symbol[j]] for symbol in alphabet.symbols], dtype=np.int64)
                axes.append(Axis(column, is_secret, values, column in ordered))
                places.append(of_symbol[rows])
        return cls(tuple(axes), np.stack(places, axis=1), joint.counts[s, x])

    @property
    def n(self) -> int:
        """Number of records."""
        return int(self.counts.sum())

    def axes_of(self, secret: bool) -> tuple[int, ...]:
        """Numbers of the secret axes, or of the published ones."""
        return tuple(j for j, axis in enumerate(self.axes) if axis.secret == secret)

    def codes(self, axes: Sequence[int], grouped: Sequence[IntArray]) -> tuple[IntArray, int]:
        """One number for the groups that a combination has in some axes, and how many such numbers there are.

        Numbers are those of combinations of groups that occur, in the order of their groups.
        """
        code = np.zeros(len(self.counts), dtype=np.int64)
        size = 1
        for j in axes:
            groups = int(grouped[j].max()) + 1
            code = code * groups + grouped[j][self.places[:, j]]
            size *= groups
            if size > 1 << 40:
                code, size = _compact(code)
        return _compact(code)

    def cells(self, axis: int, grouped: Sequence[IntArray]) -> IntArray:
        """Counts by the values of one axis, with all others grouped.

        Returns
        -------
        ndarray of int64, shape (values, r, c) or (values, q, a)
            Of a published axis: values × combinations of the other published axes × secrets. Of a secret axis: values ×
            combinations of the other secret axes × published combinations.
        """
        own = self.axes[axis].secret
        rest, r = self.codes([j for j in self.axes_of(own) if j != axis], grouped)
        other, c = self.codes(self.axes_of(not own), grouped)
        m = len(self.axes[axis].values)
        flat = (self.places[:, axis] * r + rest) * c + other
        return np.bincount(flat, weights=self.counts, minlength=m * r * c).astype(np.int64).reshape(m, r, c)

    def grouped(self, grouped: Sequence[IntArray]) -> IntArray:
        """Counts (c, a) of the groups that occur."""
        s, c = self.codes(self.axes_of(True), grouped)
        x, a = self.codes(self.axes_of(False), grouped)
        return np.bincount(s * a + x, weights=self.counts, minlength=c * a).astype(np.int64).reshape(c, a)


def _met(alphabet: Alphabet, j: int) -> dict[str, None]:
    return dict.fromkeys(symbol[j] for symbol in alphabet.symbols)


def _compact(code: IntArray) -> tuple[IntArray, int]:
    met, place = np.unique(code, return_inverse=True)
    return place.astype(np.int64).reshape(-1), len(met)
