"""Held out: which records take no part in choosing classes of records, by their place in the source."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Mask = npt.NDArray[np.bool_]
_BITS = 64


def held_out(first: int, count: int, share: float) -> Mask:
    """Whether each of some records is held out, shape (count,): about a share of them, whatever they say.

    Which ones is a function of their number alone, as if drawn: so those that are held out are a sample of the
    population for whatever the others choose, in whichever order the source is.

    Parameters
    ----------
    first, count : int
        The number of the first record, from 0 on among those that are counted; and how many there are.
    share : float
        Between 0 and 1.
    """
    below = Fraction(share) * 2**_BITS
    numbers = (hashlib.sha256(b"funnel held out %d" % number).digest()[:8] for number in range(first, first + count))
    return np.array([int.from_bytes(number, "big") < below for number in numbers], dtype=np.bool_)


def those_that_choose(batches: Iterable[pa.RecordBatch], share: float) -> Iterator[pa.RecordBatch]:
    """The records of all batches, in their order, that are not held out."""
    done = 0
    for batch in batches:
        yield batch.filter(pa.array(~held_out(done, batch.num_rows, share)))
        done += batch.num_rows
