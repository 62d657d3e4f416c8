"""Cells: the combinations of values of some columns, and which columns make groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from funnel.alphabet import Alphabet
from funnel.errors import SpecError
from funnel.estimation.counted import Released
from funnel.joint import IntArray
from funnel.protocol import Protocol
from funnel.wording import did_you_mean


def named_columns(
    protocol: Protocol, by: str | Sequence[str], released: Released
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The columns asked for; those of them that make groups, since the protocol does not read them; and the others.

    Raises
    ------
    SpecError
        If a column is named twice, or there is no table that could have one which the protocol does not read.
    """
    columns = (by,) if isinstance(by, str) else tuple(by)
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
    places = [values.columns.index(column) for column in columns]
    known: dict[tuple[str, ...], int] = {}
    symbols = values.symbols if among is None else [values.symbols[x] for x in among.tolist()]
    of = [known.setdefault(tuple(symbol[place] for place in places), len(known)) for symbol in symbols]
    return tuple(known), np.array(of, dtype=np.int64)


def parts_of(cells: Sequence[tuple[str, ...]], places: Sequence[int]) -> IntArray:
    """The part of every cell: cells with the same values at some places are of one part."""
    known: dict[tuple[str, ...], int] = {}
    return np.array([known.setdefault(tuple(cell[i] for i in places), len(known)) for cell in cells], dtype=np.int64)
