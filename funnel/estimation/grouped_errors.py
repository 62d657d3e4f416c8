"""Expected errors of a release of groups: how exactly every column and pair of columns will be estimated from it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from funnel.estimation.expected_errors import TableErrors
from funnel.estimation.rounded_errors import RoundedErrors, as_standard_errors
from funnel.estimation.told_channel import EffectiveChannels, ToldChannel

CONFIDENCE = 0.95
"""Of the intervals that errors are told of."""
MOST_WORK = 1e9
"""Of one table: some ten seconds."""
_NOTHING = 1e-12


def grouped_errors(channels: EffectiveChannels) -> tuple[TableErrors, ...]:
    """Expected errors of `funnel.estimate` for every column, then for every two of them, by what is told of channels.

    An error is the standard error of an estimate without bias whose interval of 95 % is as long as the one expected:
    it has room for the rounding of the channels. Nothing but public figures goes into it.

    Parameters
    ----------
    channels : EffectiveChannels

    Returns
    -------
    tuple of TableErrors
        Of the cells that are told of, in the order of the channels; nan where an interval would be all there is. Of
        columns of which nothing is told there are no cells. Tables of a inputs and b outputs with a³ b above 10⁹ are
        left out.

    Notes
    -----
    O(a³ b) for each table, in at most 25 steps.
    """
    wanted: list[tuple[str, ...]] = [(column,) for column in channels.columns]
    found = (_table(channels, some) for some in [*wanted, *combinations(channels.columns, 2)])
    return tuple(one for one in found if one is not None)


def _table(channels: EffectiveChannels, columns: tuple[str, ...]) -> TableErrors | None:
    if not channels.is_told(columns):
        nothing = np.empty(0)
        return TableErrors(columns, (), nothing, nothing)
    told = channels.of(columns)
    if float(len(told.inputs)) ** 3 * len(told.outputs) > MOST_WORK:
        return None
    prior = told.shares / told.shares.sum()
    half = RoundedErrors.of(told.estimates, told, prior, told.records).half_lengths(CONFIDENCE)
    untold = ~told.estimates.told | (half >= np.maximum(prior, 1 - prior))
    # Where nothing is drawn there is what arithmetic leaves of it.
    errors = np.where(untold, np.nan, np.where(half > _NOTHING, as_standard_errors(half, CONFIDENCE), 0.0))
    sums = _sums(told, untold) if len(columns) == 1 else ()
    return TableErrors(columns, told.inputs, told.shares, errors, sums)


def _sums(told: ToldChannel, untold: npt.NDArray[np.bool_]) -> tuple[tuple[int, ...], ...]:
    """Cells that cannot be told one by one, but all together."""
    some = tuple(int(x) for x in np.flatnonzero(untold))
    if len(some) < 2:
        return ()
    if len(some) == len(untold):
        # That all shares together are one is no news, but then nothing else is known.
        return (some,)
    aims = untold[np.newaxis].astype(np.float64)
    prior = told.shares / told.shares.sum()
    found = told.estimates_of(aims)
    (half,) = RoundedErrors.of(found, told, prior, told.records).half_lengths(CONFIDENCE)
    share = float(prior[untold].sum())
    return (some,) if found.told[0] and half < max(share, 1 - share) else ()


def grouped_worth(tables: Sequence[TableErrors], records: int) -> float:
    """What the records of a release of groups are worth for estimates, as a share of as many records as they are.

    Of a cell with a share π, an estimate from n records as they are has the variance π(1 - π)/n, and from the answers
    e² more, with e the expected error. So n answers tell it as well as ``w n`` records would, ``w = v / (v + n e²)``
    with ``v = π(1 - π)``; a cell that cannot be told has w = 0. The worth of a table is the mean of w over its cells,
    weighted by v; that of a release the mean over all columns and pairs, each alike, of which a table that nothing is
    told of counts as 0. Decision 0076 says why this is no ratio of sums, as `funnel.estimation.estimation_worth` is.

    Parameters
    ----------
    tables : sequence of TableErrors
        Of `grouped_errors`.
    records : int
        n.
    """
    columns = sum(len(table.columns) == 1 for table in tables)
    every = columns + columns * (columns - 1) // 2
    return sum(_table_worth(table, records) for table in tables) / every if every else 0.0


def _table_worth(table: TableErrors, records: int) -> float:
    if not len(table.values):
        return 0.0
    law = table.shares / table.shares.sum()
    variances = law * (1 - law)
    if not variances.sum() > 0:
        # A value that all have is known.
        return 1.0
    told = ~np.isnan(table.errors) & (variances > 0)
    of_cells = np.zeros(len(law))
    of_cells[told] = variances[told] / (variances[told] + records * table.errors[told] ** 2)
    return float(variances @ of_cells / variances.sum())


def grouped_sentence(tables: Sequence[TableErrors]) -> str:
    """How exact estimates of columns will be, and of how many pairs nothing can be told."""
    margins = "; ".join(table.said for table in tables if len(table.columns) == 1)
    pairs = [table for table in tables if len(table.columns) == 2]
    typical = [table.typical for table in pairs if table.typical is not None]
    said = f"standard errors of estimated shares, with room for rounding, in percentage points: {margins}"
    if typical:
        said += f"; of two columns crossed typically {100 * float(np.median(typical)):.2g}"
    if untold := len(pairs) - len(typical):
        said += f"; of {untold:,} of {len(pairs):,} pairs no cell can be told"
    return said
