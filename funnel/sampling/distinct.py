"""Whether every record of a stream has a key of its own, decided on digests in bounded memory."""

from __future__ import annotations

import os
from types import TracebackType

import numpy as np
import numpy.typing as npt

from funnel.sampling.spill import Spill

_BUCKETS = 256
_HELD_ROWS = 1 << 18


class DistinctKeys:
    """Counts the records whose key another record has already, over a stream of any length.

    Digests are spread over the buckets of a temporary file by their first byte, so that equal ones meet in the same
    bucket, and every bucket is sorted in memory. Use as a context manager, over all partitions of a release.

    Parameters
    ----------
    directory : path, optional
        Where the temporary file lives; see `funnel.sampling.spill.Spill`.

    Raises
    ------
    OutputError
        If the temporary folder is full or cannot be written.

    Notes
    -----
    16 bytes of disk per record; memory for n/256 digests. Digests of whole-number keys are never equal by chance,
    others with probability below n²/2^129.
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        # The halves of the digests are apart, as the first ones nearly always decide.
        self._halves = Spill(_BUCKETS, directory), Spill(_BUCKETS, directory)
        self._held: list[npt.NDArray[np.uint64]] = []
        self._count = 0

    def add(self, digests: npt.NDArray[np.uint64]) -> None:
        """Take in the digests of a batch, shape (rows, 2), from `funnel.sampling.keyed.key_digests`."""
        self._held.append(digests)
        self._count += len(digests)
        if self._count >= _HELD_ROWS:
            self._flush()

    def repeated(self) -> int:
        """Number of records taken in whose key an earlier one has: records less distinct keys."""
        self._flush()
        return sum(self._repeated_in(bucket) for bucket in range(_BUCKETS))

    def _repeated_in(self, bucket: int) -> int:
        if self._halves[0].size(bucket) < 2:
            return 0
        firsts = np.concatenate(list(self._halves[0].pieces(bucket)))
        in_order = np.sort(firsts)
        if not (in_order[1:] == in_order[:-1]).any():
            return 0
        seconds = np.concatenate(list(self._halves[1].pieces(bucket)))
        return len(firsts) - len(np.unique(np.column_stack([firsts, seconds]), axis=0))

    def _flush(self) -> None:
        if self._count:
            digests = np.concatenate(self._held)
            buckets = (digests[:, 0] >> np.uint64(56)).astype(np.uint8)
            order = np.argsort(buckets, kind="stable")
            for half, spill in enumerate(self._halves):
                spill.add_grouped(np.take(digests[:, half], order), np.bincount(buckets, minlength=_BUCKETS))
            self._held, self._count = [], 0

    def __enter__(self) -> DistinctKeys:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for half in self._halves:
            half.close()
