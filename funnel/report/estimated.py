"""The errors of estimates as parts of a report's document: of every column, and of every two of them crossed."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from funnel.estimation.expected_errors import TableErrors
from funnel.release.report_parts import EstimatedTable, EstimatedValue

MAX_VALUES = 30


def estimated(tables: Iterable[TableErrors], told: Callable[[float], float] = float) -> tuple[EstimatedTable, ...]:
    """Tables of errors as a document has them.

    Parameters
    ----------
    tables : iterable of TableErrors
    told : callable
        How a figure is told, such as rounded.
    """

    def figure(error: float | None) -> float | None:
        return None if error is None or np.isnan(error) else told(error)

    parts = []
    for table in tables:
        single = len(table.columns) == 1
        commonest = np.argsort(-table.shares, kind="stable")[:MAX_VALUES] if single else ()
        parts.append(
            EstimatedTable(
                columns=table.columns,
                cells=len(table.values),
                typical=figure(table.typical),
                largest=figure(table.largest),
                unknown=table.untold,
                rows=tuple(EstimatedValue(label=table.values[i][0], error=figure(table.errors[i])) for i in commonest),
                sums=tuple(tuple(table.values[i][0] for i in group) for group in table.sums),
            )
        )
    return tuple(parts)
