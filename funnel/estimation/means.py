"""estimate_numbers: means, totals and quantiles of a published column of numbers, with errors and intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funnel.alphabet import Alphabet
from funnel.errors import SpecError
from funnel.estimation.combined import NoisyShares, fit_of
from funnel.estimation.counted import Released, output_counts_by
from funnel.estimation.departed_shares import DepartedShares
from funnel.estimation.fit import Method, method_for, require_confidence, require_few
from funnel.estimation.number_categories import Categories, NumbersOfCell, StandFor
from funnel.estimation.number_estimate import NumberEstimate
from funnel.estimation.plain_counts import PlainCounts
from funnel.estimation.rare import AtMost, RareValues
from funnel.estimation.value_cells import GroupedCells, named_columns, published_columns
from funnel.joint import IntArray
from funnel.protocol import Protocol

QUARTILES = (0.25, 0.5, 0.75)


def estimate_numbers(
    released: Released,
    protocol: Protocol,
    of: str,
    by: str | Sequence[str] | None = None,
    *,
    numbers: StandFor | None = None,
    quantiles: Sequence[float] = QUARTILES,
    method: Method | None = None,
    sampling: bool = False,
    confidence: float = 0.95,
    at_most: AtMost | None = None,
    rounded: float = 0.0,
    beside: NoisyShares | None = None,
    departed: DepartedShares | None = None,
) -> NumberEstimate:
    """Estimate means, totals and quantiles of a column of numbers, from what was drawn for it.

    Parameters
    ----------
    released : pandas or pyarrow table, path of a parquet file, or ndarray of int, shape (b,)
        As of `funnel.estimate`.
    protocol : Protocol
    of : str
        The column of numbers, one that the protocol reads.
    by : str or sequence of str, optional
        Columns in every cell of which it is estimated: others of the protocol, or columns of the table.
    numbers : mapping of str to float, pair of float or None, optional
        What the categories stand for: a number, an interval by its least and largest number, or None for no number, as
        the missing ones. Categories that are not listed are the numbers that they are written as, and those that are
        written as none have none.
    quantiles : sequence of float
        Between 0 and 1.
    method, sampling, confidence, at_most, rounded, beside, departed
        As of `funnel.estimate`.

    Raises
    ------
    DataError
        If records and protocol do not belong together, or there are none.
    SpecError
        If a column or a setting is not known, no category has a number, or intervals overlap.
    SolverError
        If the likeliest shares are not found.

    Notes
    -----
    A mean is a ratio of two linear functions of the shares; its interval is Fieller's (1954), of all ratios that the
    difference from is not significant, so it holds where a cell has few records as well. A quantile is at most a number
    if a share is at least q: its interval has the numbers for which no one-sided test, each with half of what is left
    of the confidence and in order, rules that out (Woodruff 1952). Memory: cells × categories × b.

    Examples
    --------
    >>> import funnel, numpy as np
    >>> from funnel.estimation.means import estimate_numbers
    >>> joint = funnel.Joint.from_counts([[300, 60, 40], [100, 300, 200]], inputs=["20", "40", "60"])
    >>> protocol = funnel.fit("grr", joint, funnel.LIP(0.5))
    >>> found = estimate_numbers(np.array([390, 365, 245]), protocol, of="X")
    >>> found.means.round(1).tolist(), found.mean_errors.round(1).tolist(), found.quantiles.tolist()
    ([35.4], [0.6], [[20.0, 40.0, 40.0]])
    """
    require_confidence(confidence)
    at = _between(quantiles)
    if of not in protocol.inputs.columns:
        raise SpecError(f"{of!r} is none of the protocol's columns, {', '.join(protocol.inputs.columns)}")
    columns, given, inner = named_columns(protocol, () if by is None else by, released)
    if of in columns:
        raise SpecError(f"{of!r} is what is estimated; take it out of by")
    method = method_for(protocol, given, method)
    if method == "count":
        if at_most:
            raise SpecError("plain counts need no rare values; leave at_most out")
        plain = PlainCounts.of(protocol, output_counts_by(released, protocol)[()])
        return plain_numbers(
            plain, of, columns, numbers=numbers, quantiles=at, sampling=sampling, confidence=confidence
        )
    require_few(protocol)
    if beside is not None and given:
        raise SpecError("noisy shares are of all these records; leave them out, or groups")
    if departed is not None and given:
        raise SpecError("departures are of all these records; leave out groups")
    stands = _stands(protocol.inputs, of, numbers)
    rare = RareValues.of(protocol, at_most, rounded, departed)
    grouped = GroupedCells.of(released, protocol, columns, given, inner)
    aims = np.zeros((len(grouped.cells), stands.size, len(protocol.inputs)))
    for cell, places in enumerate(_places(grouped.cell_of)):
        aims[cell][:, places] = stands.aims(places)
    names, found = [], []
    for group, counts in grouped.counts.items():
        n = int(counts.sum())
        fit = fit_of(rare.in_part(n / grouped.records), method, beside)
        aimed = fit.aimed(counts, aims.reshape(-1, len(protocol.inputs)), sampling)
        for cell in range(len(grouped.cells)):
            names.append(grouped.name(group, cell))
            here = aimed.part(slice(cell * stands.size, (cell + 1) * stands.size))
            found.append(NumbersOfCell(here, stands, n, confidence).figures(at))
    return NumberEstimate(
        column=of,
        by=columns,
        cells=tuple(names),
        at=at,
        records=grouped.records,
        method=method if beside is None else "combined",
        sampling=sampling,
        confidence=confidence,
        **_together(found, at),
    )


def plain_numbers(
    plain: PlainCounts,
    of: str,
    by: Sequence[str] = (),
    *,
    numbers: StandFor | None = None,
    quantiles: Sequence[float] = QUARTILES,
    sampling: bool = False,
    confidence: float = 0.95,
) -> NumberEstimate:
    """`estimate_numbers` of records that are counted as usual.

    Parameters
    ----------
    plain : PlainCounts
    of : str
    by : sequence of str
        Columns of its values.
    numbers, quantiles, sampling, confidence
        As of `estimate_numbers`.

    Raises
    ------
    SpecError
        If a column or a setting is not known, no category has a number, or intervals overlap.
    """
    from scipy.sparse import csr_array

    at = _between(quantiles)
    _, *columns = published_columns(plain.values, of, *by)
    stands = _stands(plain.values, of, numbers)
    cells, cell_of = plain.cells(tuple(columns))
    members, found, influence = _places(cell_of), [], []
    for places in members:
        aims = stands.aims(places)
        row, column = np.nonzero(aims)
        sparse = csr_array((aims[row, column], (row, places[column])), shape=(stands.size, len(cell_of)))
        numbers_of_cell = NumbersOfCell(plain.aimed(sparse, sampling), stands, plain.n, confidence)
        found.append(numbers_of_cell.figures(at))
        # A mean is off by what its numbers are off from it.
        influence.append(np.nan_to_num(aims[0] - found[-1]["means"] * aims[-1]))
    figures = _together(found, at)
    ends = np.cumsum([0, *map(len, members)])
    off = csr_array((np.concatenate(influence), np.concatenate(members), ends), shape=(len(cells), len(cell_of)))
    r = plain.ratio(off)
    return NumberEstimate(
        column=of,
        by=tuple(columns),
        cells=cells,
        at=at,
        records=plain.n,
        method="count",
        sampling=sampling,
        confidence=confidence,
        r=np.where(np.isnan(figures["means"]), np.nan, r),
        **figures,
    )


def _between(quantiles: Sequence[float]) -> tuple[float, ...]:
    at = tuple(float(q) for q in quantiles)
    if not all(0 < q < 1 for q in at):
        raise SpecError("quantiles are asked for by shares between 0 and 1, such as 0.5")
    return at


def _stands(values: Alphabet, of: str, numbers: StandFor | None) -> Categories:
    place = values.columns.index(of)
    return Categories.of([symbol[place] for symbol in values.symbols], of, numbers)


def _places(cell_of: IntArray) -> list[IntArray]:
    """The values in every cell."""
    order = np.argsort(cell_of, kind="stable")
    return np.split(order, np.cumsum(np.bincount(cell_of))[:-1])


def _together(found: Sequence[dict[str, Any]], at: tuple[float, ...]) -> dict[str, Any]:
    """Figures of all cells, as a `NumberEstimate` has them."""
    figures = {name: np.array([one[name] for one in found]) for name in found[0]}
    for name in ("quantiles", "quantile_lower", "quantile_upper"):
        figures[name] = figures[name].reshape(len(found), len(at))
    return figures
