"""By class: what becomes of whole records, where a protocol is about the classes of these."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from funnel.alphabet import Alphabet
from funnel.errors import DataError, SpecError
from funnel.estimation.plain_counts import PlainCounts
from funnel.joint import FloatArray, IntArray
from funnel.protocol import Protocol

# Pairs of records of which one may be published for the other, in all: about forty bytes each.
MOST_PAIRS = 50_000_000
# Of the probability that a record changes to a class: less is taken for none.
_HARDLY = 1e-9


def whole_records(table: pa.Table, protocol: Protocol) -> tuple[PlainCounts, IntArray]:
    """Published records, counted, with the channel between them; and which of them each row is.

    A record x of class g stays with ``T(g | g)`` and else becomes a donor of the class h that is drawn: people of
    both classes stand along lines in the order of their columns, and somebody at a share q of the first line takes the
    record of whoever stands at q of the second. Published records of a class have the composition of the true ones,
    so their lines stand for the true ones as their counts stand for true counts.

    Parameters
    ----------
    table : pyarrow.Table
        The published records, as dictionary columns that list categories in the order of the release.
    protocol : Protocol
        Over classes: the last column of the table.

    Returns
    -------
    tuple of PlainCounts and ndarray, shape (rows,)
        Over the a different records that were published, class by class along their lines.

    Raises
    ------
    SpecError
        If the secret is published too, or there are too many classes and records.
    DataError
        If a record is of no class that the protocol knows, or the table does not list its categories.

    Notes
    -----
    O(a) memory for every pair of classes between which the protocol moves records; there are about as many of these as
    of classes, since an optimum of a linear programme is sparse.
    """
    if len(protocol.inputs.columns) > 1:
        raise SpecError("estimates are not there yet for whole records with a secret that is published")
    columns = tuple(table.column_names)
    if not table.num_rows:
        raise DataError("there are no records to estimate from")
    if columns[-1:] != protocol.inputs.columns or not all(map(pa.types.is_dictionary, table.schema.types)):
        raise DataError("the records are not those of this release; fetch data/records.parquet again")
    coded = [table.column(name).unify_dictionaries().combine_chunks() for name in columns]
    categories = [array.dictionary.to_pylist() for array in coded]
    codes = np.array([array.indices.to_numpy(zero_copy_only=False) for array in coded], dtype=np.int64)
    known = np.array([protocol.inputs.get((name,)) for name in categories[-1]])
    classes = known[codes[-1]]
    if (classes < 0).any():
        raise DataError("records are of classes that the protocol does not know; take the files of one release")
    firsts, row_of, counts = _distinct(np.array([classes, *codes[:-1]]))
    texts = [np.array(names, dtype=object)[row] for names, row in zip(categories, codes[:, firsts], strict=True)]
    values = Alphabet(columns, tuple(zip(*texts, strict=True)))
    channel = record_channel(protocol.matrix, classes[firsts], counts)
    return PlainCounts(values, counts, channel, categories), row_of


def _distinct(keys: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """The distinct columns of keys (k, n), rising: where each is first, which of them every column is, and how many."""
    order = np.lexsort(keys[::-1])
    is_new = np.ones(len(order), dtype=np.bool_)
    is_new[1:] = (np.diff(keys[:, order], axis=1) != 0).any(axis=0)
    row_of = np.empty(len(order), dtype=np.int64)
    row_of[order] = np.cumsum(is_new) - 1
    return order[is_new], row_of, np.bincount(row_of)


def record_channel(moves: FloatArray, classes: IntArray, counts: IntArray) -> Any:
    """What becomes of records, by what becomes of their classes: sparse, shape (a, a), columns with the sum one.

    Parameters
    ----------
    moves : ndarray, shape (k, k)
        P(h | g) of classes.
    classes : ndarray of int, shape (a,)
        The class of every record, rising; records of a class stand along its line.
    counts : ndarray of int, shape (a,)
        People with each record, at least one.

    Raises
    ------
    SpecError
        If there are too many entries.
    """
    from scipy.sparse import csr_array

    ends = np.searchsorted(classes, np.arange(len(moves) + 1))
    sizes = np.diff(ends)
    # What would go to a class of which nobody was published stays.
    moving = (moves > _HARDLY) & (sizes > 0) & (sizes > 0)[:, np.newaxis] & ~np.eye(len(moves), dtype=np.bool_)
    to, origins = np.nonzero(moving)
    if (pairs := int((sizes[to] + sizes[origins]).sum())) > MOST_PAIRS:
        raise SpecError(
            f"the records of these classes become each other in {pairs:,} ways; {MOST_PAIRS:,} are the most"
        )
    a = len(classes)
    lines = [slice(ends[g], ends[g + 1]) for g in range(len(moves))]
    stays = 1.0 - np.where(moving, moves, 0.0).sum(axis=0)
    entries = [(stays[classes], np.arange(a), np.arange(a))]
    for h, g in zip(to, origins, strict=True):
        chances, donors, records = donor_chances(counts[lines[g]], counts[lines[h]])
        entries.append((moves[h, g] * chances, ends[h] + donors, ends[g] + records))
    chances, donors, records = (np.concatenate(part) for part in zip(*entries, strict=True))
    return csr_array((chances, (donors, records)), shape=(a, a))


def donor_chances(line: IntArray, other: IntArray) -> tuple[FloatArray, npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Who takes whose place: the probabilities that are not zero, and the donor and the record that each is of.

    Parameters
    ----------
    line, other : ndarray of int
        People with each record of a class along its line, and with each record of the class of the donors.
    """
    size, width = int(line.sum()), int(other.sum())
    # Both lines on one scale of whole numbers, cut where a record of either ends.
    mine, theirs = np.cumsum(line) * width, np.cumsum(other) * size
    cuts = np.union1d(mine, theirs)
    records, donors = np.searchsorted(mine, cuts), np.searchsorted(theirs, cuts)
    return np.diff(cuts, prepend=0) / (line[records] * width), donors, records
