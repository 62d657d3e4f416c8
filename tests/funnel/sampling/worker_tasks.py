"""Tasks for workers: in a module of their own, which a worker imports when it starts, without the packages of tests."""

from __future__ import annotations

import os
import signal
from pathlib import Path


def die_once(path: str, number: int) -> int:
    """A task whose first worker is killed."""
    marker = Path(path) / f"tried-{number}"
    if number == 1 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number * 10


def die(path: str) -> int:
    """A task whose workers are all killed."""
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def interrupt(process: int, number: int) -> int:
    """A task during which somebody presses Ctrl-C, if it is the first."""
    if number == 0:
        os.kill(process, signal.SIGINT)
    return number
