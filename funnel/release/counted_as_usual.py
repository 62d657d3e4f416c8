"""The records of an invariant release, counted as usual, with the noise of the counts that it was made for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from funnel.alphabet import Alphabet
from funnel.donors.composition import Composition
from funnel.errors import DataError, SpecError
from funnel.estimation.by_class import Followed, whole_records
from funnel.estimation.counted import output_places
from funnel.estimation.expected_errors import TableErrors
from funnel.estimation.plain_counts import CountNoise, PlainCounts
from funnel.estimation.variance_ratios import require_invariant
from funnel.frequencies.averages import variances_of_noise
from funnel.frequencies.noise import discrete_laplace_variance
from funnel.frequencies.public_counts import Frequencies
from funnel.joint import IntArray
from funnel.protocol import Protocol
from funnel.release.frequencies_document import FrequenciesDocument
from funnel.release.layout import ReleaseFolder
from funnel.release.public_report import PublicReport
from funnel.tables import open_paged

# A group that is told of has one of so many records.
LEAST_GROUP = 1_000
# A value that is kept so seldom is not kept; a variance below it is a rounding of sums.
_HARDLY = 1e-9


@dataclass(frozen=True)
class GroupStays:
    """How often the records of a group keep their value of a column, over groups of a thousandth of the records.

    Attributes
    ----------
    typical, least : float
        In the median group, and in the group that keeps it least often.
    worst : str
        The value of that group.
    """

    typical: float
    least: float
    worst: str


@dataclass(frozen=True)
class WholeStays:
    """What stays of published whole records.

    Attributes
    ----------
    agree : mapping of str to float
        Of every column but that of the class the share of the records that are expected to be changed and still have
        its true value.
    unique : int
        Records like no other.
    unique_stays : float or None
        The share of these that are expected to be unchanged.
    groups : mapping of str to GroupStays or None
        Of every such column; None where no value has a thousandth of the records.
    errors : tuple of TableErrors
        Of every such column what drawing adds to the standard errors of the shares of its values.
    """

    agree: Mapping[str, float]
    unique: int
    unique_stays: float | None
    groups: Mapping[str, GroupStays | None]
    errors: tuple[TableErrors, ...] = ()


def whole_stays(folder: ReleaseFolder) -> WholeStays | None:
    """What stays of the whole records of a release, by its public files alone; None where there are too many.

    Raises
    ------
    DataError
        As `counted_as_usual`.
    """
    try:
        plain, _ = counted_as_usual(folder)
    except SpecError:
        return None
    alone, whole = plain.counts == 1, float(plain.unchanged @ plain.shares)
    columns = plain.values.columns[:-1]
    return WholeStays(
        {column: max(0.0, plain.stays((column,)) - whole) for column in columns},
        int(alone.sum()),
        float(plain.unchanged[alone].mean()) if alone.any() else None,
        {column: _group_stays(plain, column) for column in columns},
        tuple(_errors(plain, column) for column in columns),
    )


def _errors(plain: PlainCounts, column: str) -> TableErrors:
    cells, of = plain.cells((column,))
    # Of counts, so that those of equal ones are equal.
    shares = np.bincount(of, plain.counts, len(cells)) / plain.n
    return TableErrors((column,), cells, shares, plain.drawing_errors(of, len(cells)))


def _group_stays(plain: PlainCounts, column: str) -> GroupStays | None:
    cells, of = plain.cells((column,))
    counts = np.bincount(of, plain.counts, len(cells))
    large = counts * LEAST_GROUP >= plain.n
    if not large.any():
        return None
    stays = np.minimum(1.0, plain.stays_by_cell(of)[large] * plain.n / counts[large])
    stays[stays < _HARDLY] = 0.0
    (worst,) = cells[int(np.flatnonzero(large)[stays.argmin()])]
    return GroupStays(float(np.median(stays)), float(stays.min()), worst)


def counted_as_usual(folder: ReleaseFolder) -> tuple[PlainCounts, IntArray]:
    """Counts of published values with what becomes of each; and which of them every record has, shape (rows,).

    Parameters
    ----------
    folder : ReleaseFolder
        Of an invariant release: with ``classes.json`` values are whole records, else outputs of the protocol.

    Raises
    ------
    SpecError
        If the protocol is not invariant, or estimates of such records are not there.
    DataError
        If a file cannot be read, or the records are not those of the protocol.
    """
    protocol = Protocol.from_json(folder.protocol.read_bytes())
    require_invariant(protocol)
    if not folder.classes.is_file():
        places = output_places(folder.data, protocol)
        counts = np.bincount(places, minlength=len(protocol.outputs))
        return PlainCounts.of(protocol, counts, count_noise(folder, protocol)), places
    try:
        table = pq.read_table(folder.data)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{folder.data.name} cannot be read as parquet; the release is damaged") from error
    return whole_records(table, protocol, count_noise(folder, protocol), _followed(folder))


def _followed(folder: ReleaseFolder) -> Followed | None:
    """What is published of records of the same people; None where they are of others."""
    report = PublicReport.read(folder.numbers) if folder.numbers.is_file() else None
    if report is None or report.unchanged is None or report.unchanged.followed is None:
        return None
    history = report.figures.history
    if history is None or history.own is None:
        raise DataError("report.json does not state how many records are people's own; the release is damaged")
    return Followed(history.own, max(1.0, report.unchanged.followed.factor))


@dataclass(frozen=True)
class CountsOff:
    """How far counts of values are off in whole records of the same people, in standard errors of `Composition`.

    Attributes
    ----------
    factor : float
        The root of the mean square over all values of all columns.
    column, value : str
        Whose count is farthest off.
    errors : float
        By so much.
    """

    factor: float
    column: str
    value: str
    errors: float


def counts_off(data: Path, composition: Composition, protocol: Protocol, own: float) -> CountsOff | None:
    """How far published counts are off those of the source; None where no count varies.

    Parameters
    ----------
    data : Path
        The published records.
    composition : Composition
        Of the true ones.
    protocol : Protocol
        Over classes.
    own : float
        The share of the records that are expected to be people's own, as it is published.

    Raises
    ------
    DataError
        If a file cannot be read.
    """
    with open_paged(data) as file:
        table = file.read(columns=list(composition.classes.columns))
    shown = {column: dict(_value_counts(table.column(column))) for column in table.column_names}
    published = np.array([shown[column].get(value, 0) for column, value in composition.cells])
    errors = composition.followed_errors(protocol, own)
    varies = np.flatnonzero(errors**2 > _HARDLY)
    if not len(varies):
        return None
    off = np.abs(published - composition.counts.sum(axis=(0, 1)))[varies] / errors[varies]
    farthest = int(off.argmax())
    column, value = composition.cells[varies[farthest]]
    return CountsOff(float(np.sqrt((off**2).mean())), column, value, float(off[farthest]))


def _value_counts(column: pa.ChunkedArray) -> Iterator[tuple[str, int]]:
    for one in column.value_counts().to_pylist():
        yield str(one["values"]), int(one["counts"])


def input_of_counts(public: Frequencies, inputs: Alphabet) -> IntArray | None:
    """Which input of a protocol each noisy count (secret by secret) is of, -1 where of none; None if not all have one.

    Parameters
    ----------
    public : Frequencies
        Of c secrets and a inputs.
    inputs : Alphabet

    Returns
    -------
    ndarray of int, shape (c * a,), or None
    """
    joint = public.joint
    columns = (*joint.secret.columns, *joint.inputs.columns)
    if not set(inputs.columns) <= set(columns):
        return None
    places = [columns.index(column) for column in inputs.columns]
    order = {symbol: place for place, symbol in enumerate(inputs.symbols)}
    cells = ((*s, *x) for s in joint.secret.symbols for x in joint.inputs.symbols)
    found = np.array([order.get(tuple(cell[i] for i in places), -1) for cell in cells])
    return found if set(found.tolist()) >= set(range(len(order))) else None


def count_noise(folder: ReleaseFolder, protocol: Protocol) -> CountNoise | None:
    """Noise of the counts that an invariant protocol was made for, by input; None where there is none.

    Later versions about the same people are put right by noisy means and noisy counts: the whole noise of both is left.

    Raises
    ------
    DataError
        If the public frequencies cannot be read, or are not those of the protocol.
    """
    public = FrequenciesDocument.read(folder.frequencies).frequencies if folder.frequencies.is_file() else None
    if public is None or public.noise is None:
        return None
    if public.means is not None:
        found = dict(zip(public.joint.inputs.symbols, variances_of_noise(public.means, public), strict=True))
        return CountNoise(np.array([found[symbol] for symbol in protocol.outputs.symbols]), is_whole=True)
    of = input_of_counts(public, protocol.inputs)
    if of is None:
        raise DataError("the noisy counts are not those of the protocol; take the files of one release")
    counts = np.bincount(of[of >= 0], minlength=len(protocol.inputs)).astype(np.float64)
    return CountNoise(discrete_laplace_variance(public.noise.scale) * counts)
