"""Drawing sets bit by bit, exactly, for any number of inputs; and sets as columns of a table."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from funnel.errors import DataError
from funnel.mechanisms.unary.encoding import UnaryEncoding
from funnel.sampling.draw import ChannelSampler
from funnel.sampling.words import WordSource, WordStream

BitArray = npt.NDArray[np.bool_]

_CHUNK_CELLS = 1 << 20


def draw_sets(encoding: UnaryEncoding, codes: npt.NDArray[np.integer], words: WordSource | None = None) -> BitArray:
    """Sets for many records: row r holds symbol x where ``[r, x]`` is true.

    Every bit takes one word: it is set where the word's top 63 bits are below the weight of the bit, so its
    probability is ``weight / 2^63`` to the last unit, and all bits are independent. A record whose input is outside the
    alphabet, or never occurred when the encoding was made, first draws an input from the marginal.

    Every call draws anew: published twice, the sets of a record add up to a stronger statement (METHOD section 9).

    Parameters
    ----------
    encoding : UnaryEncoding
        Over a inputs.
    codes : ndarray of integers, shape (n,)
        Positions in ``encoding.inputs``, as from `funnel.sampling.input_codes`; -1 for a value outside it.
    words : callable, optional
        Source of random words; a new `WordStream` by default. Pass one to draw a table batch by batch.

    Returns
    -------
    ndarray of bool, shape (n, a)

    Raises
    ------
    DataError
        If codes are not integers from -1 to a-1.
    EntropyError
        If the system's random source fails a health test.

    Notes
    -----
    O(n a): about 80 million bits/s; memory n·a bytes and 16 MB.
    """
    size = len(encoding.inputs)
    if codes.ndim != 1 or codes.dtype.kind not in "iu":
        raise DataError(f"input codes must be one row of integers, not {codes.dtype} of shape {codes.shape}")
    if len(codes) and (int(codes.min()) < -1 or int(codes.max()) >= size):
        raise DataError(f"input codes run from {codes.min()} to {codes.max()}, not from -1 to {size - 1}")
    source = WordStream().words if words is None else words
    own, other = np.uint64(encoding.own_weight), np.uint64(encoding.other_weight)
    held = _substituted(encoding, codes.astype(np.int64), source)
    sets = np.empty((len(codes), size), dtype=np.bool_)
    step = max(1, _CHUNK_CELLS // size)
    for start in range(0, len(codes), step):
        mine = held[start : start + step]
        uniform = (source(len(mine) * size) >> np.uint64(1)).reshape(len(mine), size)
        rows = np.arange(len(mine))
        bits = uniform < other
        bits[rows, mine] = uniform[rows, mine] < own
        sets[start : start + step] = bits
    return sets


def _substituted(encoding: UnaryEncoding, codes: npt.NDArray[np.int64], source: WordSource) -> npt.NDArray[np.int64]:
    """The codes, with a draw from the marginal in place of inputs that are unknown."""
    # Code -1 reads the last entry, which is appended for it.
    unknown = np.append(encoding.marginal == 0, True)[codes]
    rows = np.flatnonzero(unknown)
    if len(rows):
        sampler = ChannelSampler(encoding.marginal[:, None], encoding.marginal)
        codes[rows] = sampler.draw(np.full(len(rows), -1), source(len(rows)))
    return codes


def to_table(encoding: UnaryEncoding, sets: BitArray) -> pa.Table:
    """Sets (n, a) as a table: one column of lists per published column, ``list<dictionary<string>>``.

    This is how a release of sets over many symbols is stored. Over several published columns the k-th entries of a
    row's lists belong together, as in `set_labels`; members are in the order of the alphabet.
    Table releases of the pipeline have one text per published column instead: they use the listed form of unary
    encoding, which exists for at most 10 symbols.

    Raises
    ------
    DataError
        If the sets are over another number of symbols, or have more than 2^31 - 1 members in all.
    """
    if sets.ndim != 2 or sets.shape[1] != len(encoding.inputs) or sets.dtype != np.bool_:
        raise DataError(
            f"sets of shape {sets.shape} and type {sets.dtype} are no rows of bits over {len(encoding.inputs)} symbols"
        )
    offsets = np.concatenate([[0], sets.sum(axis=1, dtype=np.int64).cumsum()])
    if offsets[-1] > np.iinfo(np.int32).max:
        raise DataError(f"{len(sets):,} sets with {offsets[-1]:,} members are too many for one table; store parts")
    members = np.nonzero(sets)[1]
    columns = {}
    for j, name in enumerate(encoding.inputs.columns):
        texts = [symbol[j] for symbol in encoding.inputs.symbols]
        categories = list(dict.fromkeys(texts))
        positions = np.array([categories.index(text) for text in texts], dtype=np.int32)
        values = pa.DictionaryArray.from_arrays(pa.array(positions[members]), pa.array(categories, pa.string()))
        columns[name] = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)
    return pa.table(columns)
