"""Step: one step of the way; it tells of its progress, and fails with one clear sentence or not at all.

Inside a flow a step runs as a task of the orchestrator, which shows its state and keeps its log; elsewhere it is the
function itself, and the orchestrator is not even imported.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Generic, ParamSpec, TypeVar

from pydantic import ValidationError

from funnel.errors import FunnelError, OutputError, ReleaseRefused
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


class Step(Generic[P, R]):
    """A function that is a task inside a flow, and itself elsewhere; see `step`.

    Attributes
    ----------
    name : str
    fn : callable
        The function, with plain errors.
    """

    def __init__(self, name: str, function: Callable[P, R]) -> None:
        self.name = name
        self.fn = plain_errors(function)
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the step."""
        return self._task(*args, **kwargs) if _in_a_flow() else self.fn(*args, **kwargs)

    @functools.cached_property
    def _task(self) -> Callable[P, R]:
        from prefect import task
        from prefect.cache_policies import NO_CACHE

        # Never cached by the orchestrator: results are found again by their content, and whether rows are drawn again
        # is decided knowingly.
        made: Callable[P, R] = task(name=self.name, cache_policy=NO_CACHE, persist_result=False)(self.fn)
        return made


def step(function: Callable[P, R]) -> Step[P, R]:
    """Make a step of a function, named as it is."""
    return Step(function.__name__, function)


def _in_a_flow() -> bool:
    if "prefect" not in sys.modules:
        return False
    from prefect.context import FlowRunContext

    return FlowRunContext.get() is not None


def plain_errors(function: Callable[P, R]) -> Callable[P, R]:
    """Let a step fail only with a `FunnelError` whose log shows its one sentence, not what caused it.

    Errors of libraries can quote rows of the source, and the orchestrator logs the whole chain of an exception: so
    the chain is cut here. A failure of the file system, such as a full disk, becomes an `OutputError`; a document of a
    release that cannot be written with what it should say, such as a level that is no number, a `ReleaseRefused`.
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
            failure: FunnelError = OutputError(_sentence(error))
        except ValidationError as error:
            failure = ReleaseRefused(_unwritable(error))
        raise failure

    return guarded


def _unwritable(error: ValidationError) -> str:
    """Which part of which document cannot be written; never its value. Those that are read say so themselves."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(str(part) for part in first["loc"]) or "a part"
    reason = str(first["msg"])
    return (
        f"nothing was published: {place} of a {error.title} cannot be written: {reason[:1].lower()}{reason[1:]}; "
        "this is a defect, please report it"
    )


def _sentence(error: OSError) -> str:
    place = f" {error.filename}" if error.filename else " a file of the release"
    reason = error.strerror or type(error).__name__
    if isinstance(error, ConnectionError):
        return f"the connection for{place} was lost: {reason}; run the release again"
    return f"cannot write or read{place}: {reason}; make room or give permission, then run the release again"
