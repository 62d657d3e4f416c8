"""The records of an invariant release, counted as usual: of values that the protocol draws, or of whole records."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from funnel.errors import DataError
from funnel.estimation.by_class import whole_records
from funnel.estimation.counted import output_places
from funnel.estimation.plain_counts import PlainCounts
from funnel.estimation.variance_ratios import require_invariant
from funnel.joint import IntArray
from funnel.protocol import Protocol
from funnel.release.layout import ReleaseFolder


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
        return PlainCounts.of(protocol, np.bincount(places, minlength=len(protocol.outputs))), places
    try:
        table = pq.read_table(folder.data)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{folder.data.name} cannot be read as parquet; the release is damaged") from error
    return whole_records(table, protocol)
