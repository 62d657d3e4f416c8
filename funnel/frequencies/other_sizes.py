"""Expected: the same frequencies in another number of records, and what noise of a size would leave open of them."""

from __future__ import annotations

import numpy as np

from funnel.errors import SpecError
from funnel.frequencies.limits import bounds_of
from funnel.frequencies.noise import Noise
from funnel.joint import MAX_ROWS, Joint


def scaled(joint: Joint, n: int) -> Joint:
    """A table of ``n`` records with the frequencies of ``joint``, in whole numbers, without bounds.

    Every count times ``n / joint.n``, rounded down; the records that are missing then go one each to the largest
    remainders, of equal ones to the first cells. Nothing is random. O(c a log(c a)).

    Parameters
    ----------
    joint : Joint
        Counts of shape (c, a).
    n : int
        From 1 to less than 2^31.

    Raises
    ------
    SpecError
        If there are too few or too many records.
    """
    if not 0 < n < MAX_ROWS:
        raise SpecError(f"a table of {n:,} records cannot be laid out: from 1 to {MAX_ROWS - 1:,} are possible")
    # Both factors are below 2^31.
    whole, left = np.divmod(joint.counts.ravel() * np.int64(n), np.int64(joint.n))
    whole[np.argsort(-left, kind="stable")[: n - int(whole.sum())]] += 1
    return Joint(whole.reshape(joint.counts.shape), joint.secret, joint.inputs)


def expected(joint: Joint, noise: Noise) -> Joint:
    """The counts with the bounds that such noise would leave, had it come out as 0 everywhere.

    Bounds are as wide wherever noise puts the counts, so this is the middle of what a draw gives.
    """
    return Joint(joint.counts, joint.secret, joint.inputs, bounds_of(joint.counts, noise))
