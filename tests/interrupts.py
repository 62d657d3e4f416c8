"""Ctrl-C at a moment of one's choice, for tests of what it leaves behind."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Interrupt this process so long after the block has begun.

    What the block does must not end by itself: whether it would have ended before is a matter of the machine.
    """
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
