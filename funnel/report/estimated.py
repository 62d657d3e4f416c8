"""The errors of estimates, of columns and pairs of them, as a map of shades."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from funnel.release.report_parts import EstimatedTable

# Shades are of the same errors on every page: none up to a hundredth of a percentage point, full from ten of them on.
_LEAST, _MOST = 1e-4, 1e-1
# A map of two columns has three fields, which the table beside it shows as well.
_FEWEST = 3


@dataclass(frozen=True)
class Field:
    """Two columns, or one: the typical error of their shares, None if none can be told, and its shade from 0 to 1."""

    typical: float | None
    shade: float
    unknown: int
    cells: int


@dataclass(frozen=True)
class ErrorMap:
    """The fields of the columns, one row each; None where the field is on the other side of the diagonal."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Field | None, ...], ...]


def error_map(tables: Sequence[EstimatedTable]) -> ErrorMap | None:
    """The map of three columns or more; None of fewer, or of none that are crossed."""
    columns = tuple(table.columns[0] for table in tables if len(table.columns) == 1)
    if len(columns) < _FEWEST or len(columns) == len(tables):
        return None
    known = {table.columns: _field(table) for table in tables}
    rows = tuple(
        tuple(known.get((across, down) if across != down else (down,)) for across in columns) for down in columns
    )
    return ErrorMap(columns, rows)


def _field(table: EstimatedTable) -> Field:
    return Field(table.typical, _shade(table.typical), table.unknown, table.cells)


def _shade(error: float | None) -> float:
    if error is None:
        return 1.0
    if error <= _LEAST:
        return 0.0
    return round(min(1.0, math.log(error / _LEAST) / math.log(_MOST / _LEAST)), 3)
