"""Whether every record of a stream has a key of its own, decided on digests in bounded memory."""

from __future__ import annotations

import os
from types import TracebackType

import numpy as np
import numpy.typing as npt

from funnel.sampling.spill import Spill

_BUCKETS = 256
_HELD_ROWS = 1 << 19
# Up to so many repeated halves are looked at as a whole. Among n distinct keys n²/2^65 are expected.
_FEW = 1 << 16


class DistinctKeys:
    """Counts the records whose key another record has already, over a stream of any length.

    First halves of the digests are spread over the buckets of a temporary file by their first byte, so that equal ones
    meet in the same bucket, and every bucket is sorted in memory. Where few halves are equal, whole digests decide. Use
    as a context manager, over all partitions of a release.

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
    24 bytes of disk per record; memory for n/256 halves. Digests of whole-number keys are never equal by chance,
    others with probability below n²/2^129.
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        self._firsts = Spill(_BUCKETS, directory)
        # Whole digests as they came, for the rare case that first halves do not decide.
        self._whole = Spill(1, directory)
        self._held: list[npt.NDArray[np.uint64]] = []
        self._count = 0

    def add(self, digests: npt.NDArray[np.uint64]) -> None:
        """Take in the digests of a batch, shape (rows, 2), from `funnel.sampling.keyed.key_digests`."""
        self._whole.add_grouped(np.ascontiguousarray(digests), np.array([len(digests)]))
        self._held.append(np.ascontiguousarray(digests[:, 0]))
        self._count += len(digests)
        if self._count >= _HELD_ROWS:
            self._flush()

    def repeated(self) -> int:
        """Number of records taken in whose key an earlier one has: records less distinct keys."""
        self._flush()
        repeated, doubtful = 0, []
        for bucket in range(_BUCKETS):
            firsts = self._in_order(bucket)
            again = firsts[1:][firsts[1:] == firsts[:-1]]
            repeated += len(again)
            doubtful.append(np.unique(again) if repeated <= _FEW else again[:0])
        # Halves of some distinct keys may be alike, but not those of many.
        return self._repeated_among(np.concatenate(doubtful)) if 0 < repeated <= _FEW else repeated

    def _in_order(self, bucket: int) -> npt.NDArray[np.uint64]:
        firsts = np.concatenate([np.empty(0, dtype=np.uint64), *self._firsts.pieces(bucket)])
        firsts.sort()
        return firsts

    def _repeated_among(self, firsts: npt.NDArray[np.uint64]) -> int:
        digests = np.concatenate([part[np.isin(part[:, 0], firsts)] for part in self._whole.pieces(0)])
        return len(digests) - len(np.unique(digests, axis=0))

    def _flush(self) -> None:
        if self._count:
            firsts = np.concatenate(self._held)
            self._firsts.add(firsts, (firsts >> np.uint64(56)).astype(np.uint8))
            self._held, self._count = [], 0

    def __enter__(self) -> DistinctKeys:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._firsts.close()
        self._whole.close()
