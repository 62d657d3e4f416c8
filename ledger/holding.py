"""One publisher of a register at a time: the lock of a database server, or of a file beside a database file."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout
from sqlalchemy import Connection, text

from funnel.errors import LedgerError, PipelineError
from funnel.progress import Progress, quiet


@dataclass(frozen=True)
class Patience:
    """How long to wait for another publisher.

    Attributes
    ----------
    tries : int
        How often to ask in all; at least one.
    pause : float
        Seconds between two of them.
    sleep : callable
    """

    tries: int = 1200
    pause: float = 0.5
    sleep: Callable[[float], None] = time.sleep

    def attempts(self) -> Iterator[int]:
        """Numbers from 0 on, with the pause between two of them."""
        for number in range(self.tries):
            if number:
                self.sleep(self.pause)
            yield number


PATIENT = Patience()


def key_of(register: str) -> int:
    """The number of a register's lock, signed with 64 bits."""
    digest = hashlib.sha256(f"funnel register {register}".encode()).digest()
    return int.from_bytes(digest[:8], signed=True)


def hold_on_server(
    connection: Connection, register: str, patience: Patience = PATIENT, progress: Progress = quiet
) -> None:
    """Hold a register by a lock of the session: it ends with the connection, however that ends.

    Raises
    ------
    PipelineError
        If another run holds it for longer than the patience lasts.
    """
    key = {"key": key_of(register)}

    def taken() -> bool:
        with connection.begin():
            return bool(connection.execute(text("SELECT pg_try_advisory_lock(:key)"), key).scalar_one())

    _wait(taken, register, patience, progress)


@contextmanager
def holding_by_file(
    folder: Path, register: str, patience: Patience = PATIENT, progress: Progress = quiet
) -> Iterator[None]:
    """Hold a register by a lock file, which a run that was killed holds no longer.

    Raises
    ------
    PipelineError
        If another run holds it for longer than the patience lasts.
    LedgerError
        If the file cannot be made.
    """
    lock = FileLock(folder / f"ledger-{register}.lock", blocking=False, thread_local=False)

    def taken() -> bool:
        try:
            lock.acquire()
        except Timeout:
            return False
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise LedgerError(f"{lock.lock_file} cannot be written: {reason}; give permission or make room") from error
        return True

    _wait(taken, register, patience, progress)
    try:
        yield
    finally:
        lock.release()


def _wait(taken: Callable[[], bool], register: str, patience: Patience, progress: Progress) -> None:
    for number in patience.attempts():
        if taken():
            return
        if number == 0:
            progress(f"waiting for another run that publishes about the people of {register}", 0, None)
    raise PipelineError(
        f"another run is publishing about the people of {register}; wait until it has ended, then run it again"
    )
