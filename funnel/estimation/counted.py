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


def output_counts(released: Released, protocol: Protocol) -> IntArray:
    """How often each output of a protocol was released, shape (b,).

    Parameters
    ----------
    released : pandas or pyarrow table, path of a parquet file, or ndarray of int, shape (b,)
        The records, or counts that somebody made already, in the order of ``protocol.outputs``.
    protocol : Protocol

    Raises
    ------
    DataError
        If there are no records, or some have values that the protocol never gives.

    Notes
    -----
    One pass; memory is that of a batch and of b counts.
    """
    b = len(protocol.outputs)
    if isinstance(released, np.ndarray):
        if released.shape != (b,) or not np.issubdtype(released.dtype, np.integer) or (released < 0).any():
            raise DataError(f"counts of released outputs are {b:,} whole numbers, in the order of protocol.outputs")
        counts = released.astype(np.int64)
    else:
        counts = np.zeros(b, dtype=np.int64)
        columns, unknown = list(protocol.outputs.columns), 0
        places = {symbol: y for y, symbol in enumerate(protocol.outputs.symbols)}
        for batch in read_batches(released, columns, _ROWS):
            found = pa.Table.from_batches([batch]).group_by(columns, use_threads=False).aggregate([([], "count_all")])
            texts = [[None if v is None else str(v) for v in found.column(name).to_pylist()] for name in columns]
            for *symbol, number in zip(*texts, found.column("count_all").to_pylist(), strict=True):
                place = places.get(tuple(symbol))
                if place is None:
                    unknown += int(number)
                else:
                    counts[place] += int(number)
        if unknown:
            raise DataError(
                f"{unknown:,} records have values that this protocol never publishes; take the protocol.json that was "
                "published with them"
            )
    if not counts.any():
        raise DataError("there are no records to estimate from")
    return counts
