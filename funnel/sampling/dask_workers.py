"""The workers that a spec asks for: those of this machine, or of Dask, here or at a scheduler that is running."""

from __future__ import annotations

import logging
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, TypeVar

from funnel.errors import PipelineError, SpecError
from funnel.sampling.engine import OneWorker, Processes, Workers
from funnel.settings.work import EngineSettings

if TYPE_CHECKING:
    from distributed import Client

R = TypeVar("R")

_CONNECT_SECONDS = 15
# One thread, as by default, and one heap for it; not Dask's setting of the C library's allocator, which gives every
# array back to the system at once: drawing takes twice as long with it.
_ONE = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MALLOC_ARENA_MAX")
_ENVIRONMENT = dict.fromkeys(_ONE, "1")


class DaskWorkers:
    """Gives tasks to the workers of a Dask client; see `funnel.sampling.engine.Workers`.

    Dask gives the task of a worker that died to another one, and gives up a task that has cost it several.
    """

    def __init__(self, client: Client) -> None:
        self.client = client

    def run(self, function: Callable[..., R], tasks: Sequence[tuple[object, ...]]) -> Iterator[tuple[int, R]]:
        """Call ``function`` with the arguments of every task; yield number and result of each as it is done.

        Raises
        ------
        PipelineError
            If workers keep dying or the scheduler is gone.
        """
        from distributed import KilledWorker, as_completed
        from distributed.client import FutureCancelledError

        name = f"funnel-{function.__name__}-{secrets.token_hex(8)}"
        numbers = {
            self.client.submit(function, *arguments, key=f"{name}-{i}", pure=False): i
            for i, arguments in enumerate(tasks)
        }
        try:
            for future in as_completed(list(numbers), loop=self.client.loop):
                yield numbers[future], future.result()
        except KilledWorker as error:
            raise PipelineError(
                "workers of Dask died again and again over one partition, perhaps for want of memory; give them more, "
                "and run the release again"
            ) from error
        except FutureCancelledError as error:
            raise _gone(error) from None
        except OSError as error:
            # Not a file, but the way to the scheduler.
            if error.errno is None:
                raise _gone(error) from None
            raise
        finally:
            self.client.cancel(list(numbers))


def _gone(error: BaseException) -> PipelineError:
    return PipelineError(f"the Dask scheduler is gone ({type(error).__name__}); run the release again when it is back")


@contextmanager
def dask_workers(engine: EngineSettings) -> Iterator[DaskWorkers]:
    """Workers of the scheduler that the engine names, or as many as it says of this machine.

    Raises
    ------
    SpecError
        If Dask is not installed.
    PipelineError
        If the scheduler cannot be reached.
    """
    # Workers that are ended at the end complain that they were; what goes wrong with a task is said here.
    os.environ.setdefault("DASK_LOGGING__DISTRIBUTED", "critical")
    try:
        import dask
        import distributed  # noqa: F401
    except ImportError as error:
        raise SpecError("[engine] kind = \"dask\" needs more packages; pip install 'funnel[dask]'") from error
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with (
        tempfile.TemporaryDirectory(prefix="funnel-dask-") as folder,
        # Also what is made beside the workers, which would stay.
        dask.config.set({"temporary-directory": folder, "distributed.nanny.pre-spawn-environ": _ENVIRONMENT}),
        _started(engine, folder) as client,
    ):
        yield DaskWorkers(client)


@contextmanager
def _started(engine: EngineSettings, folder: str) -> Iterator[Client]:
    from distributed import Client, LocalCluster

    with ExitStack() as running:

        def start() -> Client:
            if engine.scheduler is not None:
                client: Client = Client(engine.scheduler, timeout=_CONNECT_SECONDS, set_as_default=False)
                return running.enter_context(client)
            cluster = LocalCluster(
                n_workers=engine.workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                # Without a dashboard too there is a server, by default at a port that only one run could have.
                scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                local_directory=folder,
            )
            return running.enter_context(Client(running.enter_context(cluster), set_as_default=False))

        try:
            # By a thread, which an interrupt does not reach: half-started workers could not be ended.
            with ThreadPoolExecutor(1) as starter:
                # Nobody waits for a thread that an interrupt meets while it starts: it starts without work.
                starter.submit(int).result()
                client = starter.submit(start).result()
        except (OSError, TimeoutError, ValueError) as error:
            place = "on this machine" if engine.scheduler is None else f"at {engine.scheduler}"
            raise PipelineError(f"no workers of Dask can be had {place} ({type(error).__name__})") from error
        yield client


@contextmanager
def workers_of(engine: EngineSettings) -> Iterator[Workers]:
    """The workers of an engine, for as long as the block lasts.

    Raises
    ------
    SpecError, PipelineError
        If Dask is asked for and not installed, or gives no workers.
    """
    if engine.kind == "dask":
        with dask_workers(engine) as workers:
            yield workers
    elif engine.workers > 1:
        with Processes(engine.workers) as processes:
            yield processes
    else:
        yield OneWorker()
