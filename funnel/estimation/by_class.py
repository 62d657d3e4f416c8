"""By class: what becomes of whole records, where a protocol is about the classes of these."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from funnel.alphabet import Alphabet
from funnel.class_parts import PART
from funnel.errors import DataError, SpecError
from funnel.estimation.even_channel import EvenChannel
from funnel.estimation.plain_counts import CountNoise, PlainCounts
from funnel.joint import FloatArray, IntArray
from funnel.protocol import Protocol

# Pairs of records of which one may be published for the other, in all: about forty bytes each.
MOST_PAIRS = 50_000_000
# Of the probability that a record changes to a class: less is taken for none.
_HARDLY = 1e-9


@dataclass(frozen=True)
class Followed:
    """What is published of records that go on over versions as those of the same person or of a donor.

    Attributes
    ----------
    own : float
        The share that are expected to be people's own.
    factor : float
        What errors of counts are multiplied by.
    """

    own: float
    factor: float


def whole_records(
    table: pa.Table, protocol: Protocol, noise: CountNoise | None = None, followed: Followed | None = None
) -> tuple[PlainCounts, IntArray]:
    """Published records, counted, with the channel between them; and which of them each row is.

    A record x of class g stays with ``T(g | g)`` and else becomes a donor of the class h that is drawn: people of
    both classes stand along lines in the order of their columns, and somebody at a share q of the first line takes the
    record of whoever stands at q of the second. Published records of a class have the composition of the true ones,
    so their lines stand for the true ones as their counts stand for true counts. Between parts of classes the donor is
    anybody of the new part, and so is one who is followed, of the class. Where the secret is published too,
    it is drawn with the class: x is a secret and a record then, each with each.

    Parameters
    ----------
    table : pyarrow.Table
        The published records, as dictionary columns that list categories in the order of the release.
    protocol : Protocol
        Over classes, the last column of the table, perhaps the secret, the first ones, and known columns.
    noise : CountNoise, optional
        In the counts of its inputs that it was made for.
    followed : Followed, optional
        Where records are those of donors who are followed over versions.

    Returns
    -------
    tuple of PlainCounts and ndarray, shape (rows,)
        Over the a different records that were published, class by class along their lines, for each secret.

    Raises
    ------
    SpecError
        If there are too many classes and records.
    DataError
        If a record has no secret and class that the protocol knows, or the table does not list its categories.

    Notes
    -----
    O(a) memory for every pair of classes between which the protocol moves records; there are about as many of these as
    of classes, since an optimum of a linear programme is sparse.
    """
    columns, width = tuple(table.column_names), _secret_columns(protocol)
    if not table.num_rows:
        raise DataError("there are no records to estimate from")
    drawn, known = (*columns[:width], *columns[-1:]), protocol.inputs.columns[width:-1]
    named = (*protocol.inputs.columns[:width], *protocol.inputs.columns[-1:])
    if drawn != named or not {*known} <= {*columns} or not all(map(pa.types.is_dictionary, table.schema.types)):
        raise DataError("the records are not those of this release; fetch data/records.parquet again")
    coded = [table.column(name).unify_dictionaries().combine_chunks() for name in columns]
    categories = [array.dictionary.to_pylist() for array in coded]
    codes = np.array([array.indices.to_numpy(zero_copy_only=False) for array in coded], dtype=np.int64)
    secrets, names, moves = _moves(protocol)
    numbers = {name: number for number, name in enumerate(names)}
    classes = np.array([numbers.get(name, -1) for name in categories[-1]])[codes[-1]]
    of_secret = _secrets_of(secrets, categories[:width], codes[:width])
    if (classes < 0).any() or (of_secret < 0).any():
        raise DataError("records are of classes that the protocol does not know; take the files of one release")
    firsts, record_of, people = _distinct(np.array([classes, *codes[width:-1]]))
    texts = [
        np.array(texts, dtype=object)[row] for texts, row in zip(categories[width:], codes[width:, firsts], strict=True)
    ]
    records = tuple(zip(*texts, strict=True))
    values = Alphabet(columns, tuple((*secret, *record) for secret in secrets for record in records))
    row_of = of_secret * len(records) + record_of
    if followed is not None:
        stays = float(np.bincount(classes, minlength=len(names)) @ moves[0, :, 0].diagonal()) / len(classes)
        kept = min(1.0, followed.own / stays) if stays > 0 else 1.0
        channel: Any = EvenChannel(moves, classes[firsts], people, kept)
    elif any(PART in name for name in names):
        channel = EvenChannel(moves, classes[firsts], people)
    else:
        channel = record_channel(moves, classes[firsts], people)
    if noise is not None:
        inputs = {(*x[:width], x[-1]): place for place, x in enumerate(protocol.inputs.symbols)}
        # Nobody has a secret and class that are no input.
        group_of = np.array([inputs.get((*symbol[:width], symbol[-1]), 0) for symbol in values.symbols])
        noise = replace(noise, group_of=group_of)
    counts, factor = np.bincount(row_of, minlength=len(values)), 1.0 if followed is None else followed.factor
    return PlainCounts(values, counts, channel, categories, noise, factor), row_of


def _secret_columns(protocol: Protocol) -> int:
    """How many columns of a protocol are the secret's: known columns, which come after them, follow from the class."""
    *columns, classes = zip(*protocol.inputs.symbols, strict=True)
    alone = len(set(classes))
    return next(
        (j for j, texts in enumerate(columns) if len({*zip(texts, classes, strict=True)}) == alone), len(columns)
    )


def _moves(protocol: Protocol) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...], FloatArray]:
    """The secrets and classes of a protocol, and P(t, h | s, g) of these, shape (c, k, c, k)."""
    symbols = protocol.inputs.symbols
    width = _secret_columns(protocol)
    secrets = tuple(dict.fromkeys(x[:width] for x in symbols))
    names = tuple(dict.fromkeys(x[-1] for x in symbols))
    c, k = len(secrets), len(names)
    # Of a secret that nobody of a class has nothing becomes anything else.
    moves = np.eye(c * k)
    places = [secrets.index(x[:width]) * k + names.index(x[-1]) for x in symbols]
    moves[np.ix_(places, places)] = protocol.matrix
    return secrets, names, np.asarray(moves.reshape(c, k, c, k))


def _secrets_of(secrets: tuple[tuple[str, ...], ...], categories: list[list[str]], codes: IntArray) -> IntArray:
    """The number of the secret of every record, or -1, by the codes (width, n) of its columns."""
    shape = tuple(map(len, categories))
    numbers = {secret: number for number, secret in enumerate(secrets)}
    of = np.array([numbers.get(values, -1) for values in itertools.product(*categories)], dtype=np.int64)
    return np.asarray(of[np.ravel_multi_index(tuple(codes), shape)] if shape else np.zeros(codes.shape[1], np.int64))


def _distinct(keys: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """The distinct columns of keys (k, n), rising: where each is first, which of them every column is, and how many."""
    order = np.lexsort(keys[::-1])
    is_new = np.ones(len(order), dtype=np.bool_)
    is_new[1:] = (np.diff(keys[:, order], axis=1) != 0).any(axis=0)
    row_of = np.empty(len(order), dtype=np.int64)
    row_of[order] = np.cumsum(is_new) - 1
    return order[is_new], row_of, np.bincount(row_of)


def record_channel(moves: FloatArray, classes: IntArray, counts: IntArray) -> Any:
    """What becomes of secrets and records, by what becomes of their classes: sparse, columns with the sum one.

    The shape is (c · a, c · a), secrets varying slowest.

    Parameters
    ----------
    moves : ndarray, shape (c, k, c, k)
        P(t, h | s, g) of secrets and classes; c is 1 where the secret is not published.
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

    c, k = moves.shape[:2]
    ends = np.searchsorted(classes, np.arange(k + 1))
    sizes = np.diff(ends)
    # What would go to a class of which nobody was published stays.
    there = (sizes > 0) & (sizes > 0)[:, np.newaxis] & ~np.eye(k, dtype=np.bool_)
    moving = (moves.max(axis=(0, 2)) > _HARDLY) & there
    to, origins = np.nonzero(moving)
    if (pairs := c * c * int((sizes[to] + sizes[origins]).sum())) > MOST_PAIRS:
        raise SpecError(
            f"the records of these classes become each other in {pairs:,} ways; {MOST_PAIRS:,} are the most"
        )
    a = len(classes)
    lines = [slice(ends[g], ends[g + 1]) for g in range(k)]
    stays = np.where(moving[:, np.newaxis], 0.0, moves).sum(axis=1)
    changes = list(itertools.product(range(c), repeat=2))
    entries = [(stays[t, s, classes], t * a + np.arange(a), s * a + np.arange(a)) for t, s in changes]
    for h, g in zip(to, origins, strict=True):
        chances, donors, records = donor_chances(counts[lines[g]], counts[lines[h]])
        entries += [
            (moves[t, h, s, g] * chances, t * a + ends[h] + donors, s * a + ends[g] + records) for t, s in changes
        ]
    chances, donors, records = (np.concatenate(part) for part in zip(*entries, strict=True))
    return csr_array((chances, (donors, records)), shape=(c * a, c * a))


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
