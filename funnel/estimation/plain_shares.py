"""Shares of records that are counted as usual."""

from __future__ import annotations

from collections.abc import Sequence

from funnel.errors import SpecError
from funnel.estimation.fit import normal_quantile
from funnel.estimation.plain_counts import PlainCounts
from funnel.estimation.share_estimate import Estimate
from funnel.estimation.value_cells import parts_of, published_columns
from funnel.estimation.variance_ratios import table_ratio


def plain_shares(
    plain: PlainCounts,
    by: Sequence[str],
    within: Sequence[str] = (),
    *,
    sampling: bool = False,
    confidence: float = 0.95,
    simultaneous: bool = False,
) -> Estimate:
    """`funnel.estimate` of records that are counted.

    Parameters
    ----------
    plain : PlainCounts
    by, within : sequence of str
        Columns of its values.
    sampling, confidence, simultaneous
        As of `funnel.estimate`.

    Raises
    ------
    SpecError
        If a column is not known.
    """
    columns = published_columns(plain.values, *within, *by)
    if not by:
        raise SpecError(
            f"name the columns to count together, such as --by {plain.values.columns[0]}; there are "
            f"{', '.join(plain.values.columns)}"
        )
    cells, cell_of = plain.cells(columns)
    each = 1 - (1 - confidence) / len(cells) if simultaneous else confidence
    part_of_cell = parts_of(cells, range(len(within)))
    figures = plain.in_cells(cell_of, part_of_cell, sampling, normal_quantile(each))
    return Estimate(
        columns,
        tuple(within),
        cells,
        *figures[:4],
        (),
        plain.n,
        "count",
        sampling,
        confidence,
        simultaneous,
        (),
        figures.r,
        table_ratio(plain, *columns) if len(columns) == 2 and not within else None,
    )
