"""What can go wrong: one class per kind of failure, each with the exit code of the command; and the end by SIGTERM."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = [
    "DataError",
    "EntropyError",
    "FunnelError",
    "InfeasibleGuarantee",
    "LeakageExceeded",
    "LedgerError",
    "NotChecked",
    "OutputError",
    "PipelineError",
    "ReleaseRefused",
    "SolverError",
    "SpecError",
]


class FunnelError(Exception):
    """A failure the user can act on; its message is one clear sentence without any row of the source.

    Attributes
    ----------
    exit_code : int
        Exit status of the ``funnel`` command for this kind of failure.

    Examples
    --------
    >>> import funnel
    >>> try:
    ...     funnel.parse_guarantee("lip:-1")
    ... except funnel.FunnelError as error:
    ...     print(error.exit_code, error)
    3 lip needs a finite epsilon >= 0 (nats), not -1.0
    """

    exit_code = 1


class SpecError(FunnelError):
    """The description of a release, a parameter or a command is wrong."""

    exit_code = 3


class DataError(FunnelError):
    """The source is missing, unreadable, or does not fit the description of the release."""

    exit_code = 4


class InfeasibleGuarantee(FunnelError):
    """No protocol of the asked kind meets the guarantee.

    Attributes
    ----------
    best_level : float or None
        The smallest level (nats) the mechanism can reach, where that is known.
    """

    exit_code = 5

    def __init__(self, message: str, best_level: float | None = None) -> None:
        super().__init__(message)
        self.best_level = best_level


class SolverError(FunnelError):
    """The optimiser failed, or its time ended before it had anything; no number is returned in its place.

    What it has found when its time ends is returned, with its bound, and is no failure.
    """

    exit_code = 6


class LeakageExceeded(FunnelError):
    """A protocol or a release leaks more than its declared bound, or a published release fails its audit otherwise."""

    exit_code = 7


class ReleaseRefused(FunnelError):
    """Validation refused the release; nothing was published."""

    exit_code = 8


class LedgerError(FunnelError):
    """The record of past releases is missing, damaged, or contradicts the release."""

    exit_code = 9


class OutputError(FunnelError):
    """A result could not be written (no permission, disk full); what was there before is untouched."""

    exit_code = 10


class EntropyError(FunnelError):
    """The source of random words failed a health test; nothing may be drawn from it."""

    exit_code = 11


class PipelineError(FunnelError):
    """The orchestrator could not be started or reached, or another run holds the same release."""

    exit_code = 12


class NotChecked(FunnelError):
    """An audit found nothing wrong, but could not check everything: some evidence is not there or cannot be read."""

    exit_code = 13


class Terminated(KeyboardInterrupt):
    """SIGTERM, such as the system sends on shutdown; whoever answers Ctrl-C answers this."""


@contextmanager
def terminable() -> Iterator[Callable[[], bool]]:
    """Let SIGTERM raise `Terminated` inside this block, and tell whether it came, also where the exception was lost.

    Elsewhere than in the main thread, where Python handles no signals, nothing changes.
    """
    seen = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        seen.set()
        raise Terminated

    if threading.current_thread() is not threading.main_thread():
        yield seen.is_set
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield seen.is_set
    finally:
        signal.signal(signal.SIGTERM, before)
