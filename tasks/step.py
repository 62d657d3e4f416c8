"""What every step of the way shares: it tells of its progress, and fails with one clear sentence or not at all."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

from funnel.errors import FunnelError, OutputError
from funnel.progress import Progress, quiet

P = ParamSpec("P")
R = TypeVar("R")

# Nobody listens in a run on a worker.
_listener: ContextVar[Progress] = ContextVar("funnel_progress", default=quiet)


@contextmanager
def listening(listener: Progress) -> Iterator[None]:
    """Have the steps run inside this block tell ``listener`` of their progress."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def tell(what: str, done: int = 0, total: int | None = None) -> None:
    """Tell whoever listens what is being done."""
    _listener.get()(what, done, total)


def plain_errors(function: Callable[P, R]) -> Callable[P, R]:
    """Let a step fail only with a `FunnelError` whose log shows its one sentence, not what caused it.

    Errors of libraries can quote rows of the source, and the orchestrator logs the whole chain of an exception: so
    the chain is cut here. A failure of the file system, such as a full disk, becomes an `OutputError`.
    """

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except FunnelError as error:
            error.__cause__ = None
            error.__context__ = None
            error.__suppress_context__ = True
            raise
        except OSError as error:
            if error.errno is None:
                # Not the file system: a library's own error that only borrows the class.
                raise
            failure = OutputError(_sentence(error))
        raise failure

    return guarded


def _sentence(error: OSError) -> str:
    place = f" {error.filename}" if error.filename else " a file of the release"
    reason = error.strerror or type(error).__name__
    if isinstance(error, ConnectionError):
        return f"the connection for{place} was lost: {reason}; run the release again"
    return f"cannot write or read{place}: {reason}; make room or give permission, then run the release again"
