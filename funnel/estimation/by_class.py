"""By class: the channel of some columns of whole records, where a protocol is about the classes of these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from funnel.alphabet import Alphabet
from funnel.errors import DataError, SpecError
from funnel.joint import IntArray
from funnel.protocol import DENOMINATOR, INVARIANT, Protocol

# Combinations of the columns and a class: a table of their square is made.
MOST_CELLS = 3_000


def class_channel(table: pa.Table, protocol: Protocol, columns: Sequence[str]) -> tuple[Protocol, IntArray]:
    """What becomes of values of some columns, and how often each was published.

    A record keeps its values where it keeps its class, and else takes those of anybody of the class that is drawn:
    ``P(b', h | b, g) = T(h | g) q_h(b')``, where q_h are the published shares of the class. Donors are more alike than
    that, so variances are those of the channel at most.

    Parameters
    ----------
    table : pyarrow.Table
        The published records.
    protocol : Protocol
        Over classes: the last column of the table.
    columns : sequence of str
        Of the table.

    Returns
    -------
    tuple of Protocol and ndarray, shape (cells,)
        Over the columns and the class.

    Raises
    ------
    SpecError
        If a column is unknown, the secret is published too, or there are too many combinations.
    DataError
        If a record is of no class that the protocol knows.
    """
    (of_class, *more) = reversed(protocol.inputs.columns)
    if more:
        raise SpecError("shares with their errors are not there yet for whole records with a secret that is published")
    for column in columns:
        if column not in table.column_names:
            raise SpecError(f"{column!r} is no column; the release has {', '.join(table.column_names)}")
    named = (*(column for column in columns if column != of_class), of_class)
    counted = Counter(zip(*(table.column(column).to_pylist() for column in named), strict=True))
    if len(counted) > MOST_CELLS:
        raise SpecError(
            f"these columns have {len(counted):,} combinations with a class, and errors are told for {MOST_CELLS:,} at "
            "most; name fewer columns, and count as usual"
        )
    cells = Alphabet(named, tuple(sorted(counted)))
    counts = np.array([counted[cell] for cell in cells.symbols], dtype=np.int64)
    classes = np.array([protocol.inputs.get((cell[-1],)) for cell in cells.symbols])
    if (classes < 0).any():
        raise DataError("records are of classes that the protocol does not know; take the files of one release")
    sizes = np.bincount(classes, weights=counts, minlength=len(protocol.inputs))
    moves = protocol.matrix[np.ix_(classes, classes)]
    matrix = moves * (counts / sizes[classes])[:, np.newaxis]
    matrix[classes[:, np.newaxis] == classes] = 0.0
    weights = np.floor(np.ldexp(matrix, 63)).astype(np.uint64)
    # What does not leave, and what rounding and classes without a record leave over, stays.
    np.fill_diagonal(weights, np.uint64(DENOMINATOR) - weights.sum(axis=0, dtype=np.uint64))
    return Protocol(weights, weights[:, 0].copy(), cells, cells, INVARIANT), counts
