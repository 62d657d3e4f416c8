"""The records of an invariant release, counted as usual: of values that the protocol draws, or of whole records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from funnel.errors import DataError, SpecError
from funnel.estimation.by_class import whole_records
from funnel.estimation.counted import output_places
from funnel.estimation.plain_counts import PlainCounts
from funnel.estimation.variance_ratios import require_invariant
from funnel.joint import IntArray
from funnel.protocol import Protocol
from funnel.release.count_noise import count_noise
from funnel.release.layout import ReleaseFolder


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
    """

    agree: Mapping[str, float]
    unique: int
    unique_stays: float | None


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
    return WholeStays(
        {column: max(0.0, plain.stays((column,)) - whole) for column in plain.values.columns[:-1]},
        int(alone.sum()),
        float(plain.unchanged[alone].mean()) if alone.any() else None,
    )


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
    return whole_records(table, protocol, count_noise(folder, protocol))
