"""Counts of released outputs, from a table of any size in one pass."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from funnel.errors import DataError
from funnel.joint import IntArray
from funnel.protocol import Protocol
from funnel.tables import read_batches

if TYPE_CHECKING:
    import pandas as pd

Released: TypeAlias = "pd.DataFrame | pa.Table | str | os.PathLike[str] | npt.NDArray[np.integer[Any]]"
_ROWS = 1 << 20


def output_counts_by(
    released: Released, protocol: Protocol, given: tuple[str, ...] = ()
) -> dict[tuple[str, ...], IntArray]:
    """How often each output of a protocol was released, shape (b,), in every group of records.

    Parameters
    ----------
    released : pandas or pyarrow table, path of a parquet file, or ndarray of int, shape (b,)
        The records, or counts that somebody made already, in the order of ``protocol.outputs``.
    protocol : Protocol
    given : tuple of str
        Further columns of the table: a group has the same values in all of them.

    Returns
    -------
    dict
        By group, in the order of their texts; one group, of no values, without ``given``.

    Raises
    ------
    DataError
        If there are no records, or some have values that the protocol never gives.

    Notes
    -----
    One pass; memory is that of a batch and of b counts for each group.
    """
    b = len(protocol.outputs)
    groups: dict[tuple[str, ...], IntArray]
    if isinstance(released, np.ndarray):
        if released.shape != (b,) or not np.issubdtype(released.dtype, np.integer) or (released < 0).any():
            raise DataError(f"counts of released outputs are {b:,} whole numbers, in the order of protocol.outputs")
        groups = {(): released.astype(np.int64)}
    else:
        groups = _of_table(released, protocol, given)
    if not any(counts.any() for counts in groups.values()):
        raise DataError("there are no records to estimate from")
    return dict(sorted(groups.items()))


def _of_table(
    released: pd.DataFrame | pa.Table | str | os.PathLike[str], protocol: Protocol, given: tuple[str, ...]
) -> dict[tuple[str, ...], IntArray]:
    columns, unknown = [*given, *protocol.outputs.columns], 0
    places = {symbol: y for y, symbol in enumerate(protocol.outputs.symbols)}
    groups: dict[tuple[str, ...], IntArray] = {}
    for batch in read_batches(released, columns, _ROWS):
        found = pa.Table.from_batches([batch]).group_by(columns, use_threads=False).aggregate([([], "count_all")])
        texts = [[None if v is None else str(v) for v in found.column(name).to_pylist()] for name in columns]
        for *symbol, number in zip(*texts, found.column("count_all").to_pylist(), strict=True):
            group, place = tuple(map(str, symbol[: len(given)])), places.get(tuple(symbol[len(given) :]))
            if place is None:
                unknown += int(number)
            else:
                counts = groups.setdefault(group, np.zeros(len(places), dtype=np.int64))
                counts[place] += int(number)
    if unknown:
        raise _unknown(unknown)
    return groups


def output_places(
    released: pd.DataFrame | pa.Table | str | os.PathLike[str], protocol: Protocol
) -> npt.NDArray[np.int64]:
    """The output that every record of a table shows, shape (records,), in their order.

    Raises
    ------
    DataError
        As `output_counts_by`.
    """
    columns = list(protocol.outputs.columns)
    found = [np.zeros(0, dtype=np.int64)]
    for batch in read_batches(released, columns, _ROWS):
        texts = [[str(value) for value in batch.column(name).to_pylist()] for name in columns]
        places = [protocol.outputs.get(symbol) for symbol in zip(*texts, strict=True)]
        found.append(np.array(places, dtype=np.int64))
    whole = np.concatenate(found)
    if unknown := int((whole < 0).sum()):
        raise _unknown(unknown)
    if not len(whole):
        raise DataError("there are no records to estimate from")
    return whole


def _unknown(records: int) -> DataError:
    return DataError(
        f"{records:,} records have values that this protocol never publishes; take the protocol.json that was "
        "published with them"
    )
