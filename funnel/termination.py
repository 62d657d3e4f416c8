"""Termination: SIGTERM ends a command as Ctrl-C does, so that what is unfinished is thrown away and said to be."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


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
