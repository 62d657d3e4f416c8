"""Cells: the combinations of values of some columns of a protocol, and which columns make groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from funnel.errors import SpecError
from funnel.estimation.counted import Released
from funnel.joint import IntArray
from funnel.protocol import Protocol


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
        raise SpecError(f"{given[0]!r} is no column; the protocol is about {', '.join(protocol.inputs.columns)}")
    return columns, given, tuple(column for column in columns if column in protocol.inputs.columns)


def cells_of(protocol: Protocol, columns: tuple[str, ...]) -> tuple[tuple[tuple[str, ...], ...], IntArray]:
    """The cells of some of the columns, and that of every input."""
    inputs = protocol.inputs
    if columns == inputs.columns:
        return inputs.symbols, np.arange(len(inputs))
    places = [inputs.columns.index(column) for column in columns]
    known: dict[tuple[str, ...], int] = {}
    of = [known.setdefault(tuple(symbol[place] for place in places), len(known)) for symbol in inputs.symbols]
    return tuple(known), np.array(of, dtype=np.int64)
