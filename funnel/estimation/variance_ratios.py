"""r: by how much usual variances of statistics grow with records that an invariant protocol has published."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from funnel.errors import SpecError
from funnel.estimation.counted import Released, output_counts_by, output_places
from funnel.estimation.plain_counts import PlainCounts, indicators
from funnel.estimation.value_cells import published_columns
from funnel.joint import FloatArray
from funnel.protocol import Protocol

# Of the spread of influence values: records with the same published values may differ by so much.
_ALIKE = 1e-6
# Of the records: so many could become what no record is, and are taken for the mean of all.
_MOST_UNSEEN = 0.02


def variance_ratio(released: Released, protocol: Protocol, influence: npt.ArrayLike) -> FloatArray:
    """r of any statistic of the published records: its usual variance times 1 + r is that for the population.

    Parameters
    ----------
    released : pandas or pyarrow table, path of a parquet file, or ndarray of int, shape (b,)
        The released records, or counts of the protocol's outputs, in their order.
    protocol : Protocol
        An invariant one.
    influence : array, shape (records,) or (k, records)
        The influence of every record on each of k statistics, in the order of the table: by how much n times the
        statistic changes with the record, up to a factor and a constant. Of a share it is whether the record counts, of
        a mean its number, of coefficients of a regression ``A⁻¹ s``, of the score s of the record and the information
        matrix A. It depends on published values alone. With counts: shape (b,) or (k, b), of a record with each output.

    Returns
    -------
    ndarray, shape () or (k,)
        From 0, where nothing is changed that matters, to 1.

    Raises
    ------
    SpecError
        If the protocol is not invariant, or influence does not fit the records.
    DataError
        If records and protocol do not belong together, or there are none.

    Notes
    -----
    ``r = E[Var(ψ(Y) | X)] / Var(ψ(Y))`` for the influence ψ, where X has the published shares. Outputs that no record
    has count with the mean of ψ, where influence is given by record. O(k (records + weights above zero)).

    Examples
    --------
    Of the share with a degree; half of these records become others, and as many others become these:

    >>> import funnel, numpy as np
    >>> from funnel.estimation.variance_ratios import variance_ratio
    >>> degrees = funnel.Alphabet(("degree",), (("yes",), ("no",)))
    >>> half, column = 2**62, np.array([2**61, 3 * 2**61], dtype=np.uint64)
    >>> weights = np.array([[half, half // 3], [half, 2**63 - half // 3]], dtype=np.uint64)
    >>> protocol = funnel.Protocol(weights, column, degrees, degrees, "invariant")
    >>> round(float(variance_ratio(np.array([250, 750]), protocol, [1, 0])), 3)
    0.889
    """
    require_invariant(protocol)
    if isinstance(released, np.ndarray):
        counts = output_counts_by(released, protocol)[()]
        return influence_ratio(PlainCounts.of(protocol, counts), influence)
    places = output_places(released, protocol)
    counts = np.bincount(places, minlength=len(protocol.outputs))
    return influence_ratio(PlainCounts.of(protocol, counts), influence, places)


def influence_ratio(
    plain: PlainCounts, influence: npt.ArrayLike, places: npt.NDArray[np.int64] | None = None
) -> FloatArray:
    """`variance_ratio`, of records that are counted.

    Parameters
    ----------
    plain : PlainCounts
    influence : array, shape (records,) or (k, records); without places (b,) or (k, b)
    places : ndarray of int, shape (records,), optional
        Which of the b values every record has.

    Raises
    ------
    SpecError
        If influence does not fit the records, or too much of it is missing.
    """
    values = np.asarray(influence, dtype=np.float64)
    rows = np.atleast_2d(values)
    size, named = (len(plain.counts), "outputs of the protocol") if places is None else (len(places), "records")
    if values.ndim not in (1, 2) or rows.shape[1] != size or not np.isfinite(rows).all():
        raise SpecError(f"influence has one finite number for each of the {size:,} {named}, or a row of them each")
    if places is not None:
        if (unseen := float(plain.expected[plain.counts == 0].sum())) > _MOST_UNSEEN:
            raise SpecError(
                f"r depends on values that no record has, such as a record with another secret: {unseen:.0%} of the "
                "records are expected to have one; give influence as a function of a table (load_release), or by output"
            )
        rows = _by_output(rows, places, plain.counts)
    return plain.ratio(rows).reshape(values.shape[:-1])


def rows_of(plain: PlainCounts, table: pa.Table) -> pa.Table:
    """A table with one row for each of the values, also those that no record has, (b,).

    Parameters
    ----------
    plain : PlainCounts
    table : pyarrow.Table
        The records, as dictionary columns.
    """
    columns = []
    for place, column in enumerate(plain.values.columns):
        categories = table.column(column).unify_dictionaries().chunk(0).dictionary
        numbers = {text: number for number, text in enumerate(categories.to_pylist())}
        codes = pa.array([numbers[symbol[place]] for symbol in plain.values.symbols], pa.int32())
        columns.append(pa.DictionaryArray.from_arrays(codes, categories))
    return pa.Table.from_arrays(columns, names=list(plain.values.columns))


def require_invariant(protocol: Protocol) -> None:
    """Refuse a protocol whose records are not counted as usual.

    Raises
    ------
    SpecError
    """
    if not protocol.is_invariant:
        raise SpecError(
            f"r is of records that are counted as usual, and this protocol is {protocol.mechanism or 'none'!r}, not "
            "'invariant': estimate shares of true values with funnel.estimate instead"
        )


def _by_output(rows: FloatArray, places: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> FloatArray:
    """Influence (k, records) as that of a record with each output (k, b)."""
    sums = np.array([np.bincount(places, row, len(counts)) for row in rows])
    means = np.where(counts > 0, sums / np.maximum(counts, 1), rows.mean(axis=1, keepdims=True))
    if (np.abs(rows - means[:, places]) > _ALIKE * (np.ptp(rows, axis=1, keepdims=True) + _ALIKE)).any():
        raise SpecError(
            "influence differs between records with the same published values: take columns that the protocol does not "
            "publish out of the statistic"
        )
    return means


def chi_square_ratio(released: Released, protocol: Protocol, one: str, other: str) -> float:
    """r of the chi-square test of independence of two published columns: its statistic is divided by 1 + r.

    Parameters
    ----------
    released, protocol
        As of `variance_ratio`.
    one, other : str
        Columns that the protocol publishes.

    Raises
    ------
    SpecError
        If the protocol is not invariant, or the columns are not two of its columns.
    DataError
        If records and protocol do not belong together, or there are none.

    Notes
    -----
    The correction of Rao and Scott (1981) of the first order: without dependence the statistic is distributed like
    ``Σ_j (1 + r_j) Z_j²`` for independent standard normal Z, and r is the mean of the r_j; it is exact for two by two
    values. Other tests of tables have influence values of their own (`variance_ratio`).

    Examples
    --------
    >>> import funnel, numpy as np
    >>> from funnel.estimation.variance_ratios import chi_square_ratio
    >>> cells = funnel.Alphabet(("sex", "job"), (("f", "a"), ("f", "b"), ("m", "a"), ("m", "b")))
    >>> same = np.eye(4, dtype=np.uint64) * np.uint64(2**63)
    >>> protocol = funnel.Protocol(same, same[0], cells, cells, "invariant")
    >>> chi_square_ratio(np.array([20, 30, 40, 10]), protocol, "sex", "job")
    0.0
    """
    require_invariant(protocol)
    plain = PlainCounts.of(protocol, output_counts_by(released, protocol)[()])
    return table_ratio(plain, one, other)


def table_ratio(plain: PlainCounts, one: str, other: str) -> float:
    """`chi_square_ratio`, of records that are counted.

    Raises
    ------
    SpecError
        If these are not two of their columns.
    """
    from scipy.sparse import diags_array

    columns = published_columns(plain.values, one, other)
    (_, row), (_, column), (_, cell) = (plain.cells(crossed) for crossed in ((one,), (other,), columns))
    rows, of_columns = (np.bincount(of, plain.shares) for of in (row, column))
    places = np.unique(cell, return_index=True)[1]
    i, j = row[places], column[places]
    expected = rows[i] * of_columns[j]
    # The cell less what its row and its column make expected of it, as far as one record changes that.
    influence = (
        indicators(cell, len(places))
        - diags_array(of_columns[j]) @ indicators(row, len(rows))[i]
        - diags_array(rows[i]) @ indicators(column, len(of_columns))[j]
    )
    there = expected > 0
    given, whole = (found[there] / expected[there] for found in plain.both_variances(influence))
    return min(1.0, float(given.sum() / whole.sum())) if whole.sum() > 0 else 0.0
