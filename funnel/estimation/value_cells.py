"""Value cells: the combinations of values of some columns, which columns make groups, and the records of each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from funnel.alphabet import Alphabet
from funnel.errors import SpecError
from funnel.estimation.counted import Released, output_counts_by
from funnel.joint import IntArray
from funnel.protocol import Protocol
from funnel.wording import did_you_mean


def column_names(columns: str | Sequence[str] | Mapping[str, object] | None) -> tuple[str, ...]:
    """Names of columns, of which one may stand alone.

    Raises
    ------
    SpecError
        If they come with values: shares are of all values.
    """
    if isinstance(columns, Mapping):
        given = ", ".join(map(repr, columns))
        raise SpecError(f"{given} has values, and shares are within every value of a column: name columns alone")
    return () if columns is None else (columns,) if isinstance(columns, str) else tuple(columns)


def named_columns(
    protocol: Protocol, by: str | Sequence[str], released: Released
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The columns asked for; those of them that make groups, since the protocol does not read them; and the others.

    Raises
    ------
    SpecError
        If a column is named twice, or there is no table that could have one which the protocol does not read.
    """
    columns = column_names(by)
    if len(set(columns)) != len(columns):
        raise SpecError(f"name columns once each; the protocol is about {', '.join(protocol.inputs.columns)}")
    given = tuple(column for column in columns if column not in protocol.inputs.columns)
    if given and isinstance(released, np.ndarray):
        near = did_you_mean(given[0], protocol.inputs.columns)
        raise SpecError(f"{given[0]!r} is no column{near}; the protocol is about {', '.join(protocol.inputs.columns)}")
    return columns, given, tuple(column for column in columns if column in protocol.inputs.columns)


def published_columns(values: Alphabet, *names: str) -> tuple[str, ...]:
    """Columns of published values, named once each.

    Raises
    ------
    SpecError
        If one is named twice, or is not published.
    """
    listed = ", ".join(values.columns)
    for name in names:
        if name not in values.columns:
            raise SpecError(f"{name!r} is no column{did_you_mean(name, values.columns)}; the release has {listed}")
    if len(set(names)) != len(names):
        raise SpecError(f"name columns once each; the release has {listed}")
    return names


def cells_of(
    values: Alphabet, columns: Sequence[str], among: IntArray | None = None
) -> tuple[tuple[tuple[str, ...], ...], IntArray]:
    """The cells of some columns of values, and that of every value; of some of them, where these are named."""
    if tuple(columns) == values.columns and among is None:
        return values.symbols, np.arange(len(values))
    symbols = values.symbols if among is None else [values.symbols[x] for x in among.tolist()]
    return _cut(symbols, [values.columns.index(column) for column in columns])


def parts_of(cells: Sequence[tuple[str, ...]], places: Sequence[int]) -> IntArray:
    """The part of every cell: cells with the same values at some places are of one part."""
    return _cut(cells, places)[1]


def _cut(symbols: Sequence[tuple[str, ...]], places: Sequence[int]) -> tuple[tuple[tuple[str, ...], ...], IntArray]:
    """The different values at some places, and which of them each symbol has."""
    known: dict[tuple[str, ...], int] = {}
    of = [known.setdefault(tuple(symbol[i] for i in places), len(known)) for symbol in symbols]
    return tuple(known), np.array(of, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class GroupedCells:
    """Released records by group, and the cells that are estimated in each.

    Attributes
    ----------
    columns : tuple of str
        In the order asked for: those of groups and those of cells.
    cells : tuple of tuple of str
    cell_of : ndarray of int64, shape (a,)
        The cell of every input of the protocol.
    counts : mapping of tuple of str to ndarray, shape (b,)
        Of released outputs, by group.
    """

    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    cell_of: IntArray
    counts: Mapping[tuple[str, ...], IntArray]
    _order: tuple[int, ...]

    @classmethod
    def of(
        cls,
        released: Released,
        protocol: Protocol,
        columns: tuple[str, ...],
        given: tuple[str, ...],
        inner: tuple[str, ...],
    ) -> GroupedCells:
        """Of columns as `named_columns` tells them apart.

        Raises
        ------
        DataError
            As `output_counts_by`.
        """
        order = tuple((*given, *inner).index(column) for column in columns)
        return cls(columns, *cells_of(protocol.inputs, inner), output_counts_by(released, protocol, given), order)

    @property
    def records(self) -> int:
        """Of all groups."""
        return sum(int(counts.sum()) for counts in self.counts.values())

    def name(self, group: tuple[str, ...], place: int) -> tuple[str, ...]:
        """The values of a group and of the cell at a place, in the order asked for."""
        whole = (*group, *self.cells[place])
        return tuple(whole[i] for i in self._order)
