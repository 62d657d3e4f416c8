"""The row engine: all partitions drawn and all parts put in order, by whatever workers there are, into one file."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol as Interface
from typing import TypeVar

import numpy as np

from funnel.drawn import DrawnCounts
from funnel.errors import DataError, PipelineError
from funnel.progress import Progress, quiet
from funnel.sampling.chunks import even_chunks
from funnel.sampling.output_columns import GROUP_ROWS, ReleaseWriter
from funnel.sampling.partitions import Plan
from funnel.sampling.parts import Done, draw_partition, read_codes, write_part
from funnel.sampling.probe import donors_digest, probe_digest
from funnel.sampling.spill import Closing
from funnel.storage import writing_in
from funnel.word_statistics import WordStatistics, together

R = TypeVar("R")

# How often a task is given to another worker when its own has died.
_TRIES = 3


@dataclass(frozen=True, eq=False)
class Drawn:
    """What was seen of the drawing of all rows: evidence for those who judge it, internal.

    Attributes
    ----------
    counts : DrawnCounts
        Of (secret, input, output); without telling secrets apart if the plan names none.
    words : mapping of str to WordStatistics
        By purpose, as `funnel.sampling.partitions.Plan.purposes` has them; empty without rows.
    probe : str
        What the sampler answers where outputs meet, see `funnel.sampling.probe`.
    donors : str or None
        Whose place records take, where whole ones are published and these are not followed.
    """

    counts: DrawnCounts
    words: Mapping[str, WordStatistics]
    probe: str
    donors: str | None


class Workers(Interface):
    """Something that does tasks."""

    def run(self, function: Callable[..., R], tasks: Sequence[tuple[object, ...]]) -> Iterator[tuple[int, R]]:
        """Call ``function`` with the arguments of every task; yield number and result of each as it is done.

        A task whose worker dies is given to another one; an exception of a task ends all.
        """


class OneWorker:
    """This very process, one task after the other."""

    def run(self, function: Callable[..., R], tasks: Sequence[tuple[object, ...]]) -> Iterator[tuple[int, R]]:
        """See `Workers`."""
        for i, arguments in enumerate(tasks):
            yield i, function(*arguments)


class Processes(Closing):
    """Processes of this machine, started when they are first needed; use as a context manager.

    Parameters
    ----------
    count : int
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._pool: ProcessPoolExecutor | None = None
        self._starter = ThreadPoolExecutor(1)

    def run(self, function: Callable[..., R], tasks: Sequence[tuple[object, ...]]) -> Iterator[tuple[int, R]]:
        """See `Workers`.

        Raises
        ------
        PipelineError
            If workers keep dying.
        """
        waiting = dict(enumerate(tasks))
        for _ in range(_TRIES):
            try:
                for i, result in self._once(function, waiting):
                    del waiting[i]
                    yield i, result
            except BrokenProcessPool:
                self.close()
                continue
            return
        raise PipelineError(
            f"worker processes died {_TRIES} times, perhaps for want of memory; set fewer workers in [engine] of the "
            "spec and run the release again"
        )

    def _once(self, function: Callable[..., R], tasks: dict[int, tuple[object, ...]]) -> Iterator[tuple[int, R]]:
        if self._pool is None:
            # Forked from a server of one thread that holds no locks and no stream of words, and has imported all.
            context = multiprocessing.get_context("forkserver")
            context.set_forkserver_preload([draw_partition.__module__, function.__module__])
            self._pool = ProcessPoolExecutor(self._count, mp_context=context, initializer=_begin)
        pool, numbers = self._pool, dict[Future[R], int]()

        def submit() -> None:
            numbers.update((pool.submit(function, *tasks[i]), i) for i in list(tasks))

        try:
            # By a thread, which an interrupt does not reach: half-started processes could not be ended.
            self._starter.submit(submit).result()
            for future in as_completed(numbers):
                yield numbers[future], future.result()
        finally:
            for future in list(numbers):
                future.cancel()

    def close(self) -> None:
        """End the processes, after the tasks that they are at."""
        # Whatever is being started is started.
        self._starter.shutdown(wait=True)
        self._starter = ThreadPoolExecutor(1)
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None


def _begin() -> None:
    """What a worker process does first: it leaves interrupts to the process that it works for, and ends with that."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(multiprocessing.parent_process(),), daemon=True).start()


def _end_with(parent: multiprocessing.process.BaseProcess) -> None:
    parent.join()
    # Killed, or it would have ended this process itself.
    os._exit(1)


def release_rows(plan: Plan, target: str | Path, workers: Workers | None = None, progress: Progress = quiet) -> Drawn:
    """Draw all rows of a plan and write them to one parquet file.

    With record keys the bytes of the file depend on the plan alone. What workers hand on stays in the folder of the
    plan until the caller removes it.

    Parameters
    ----------
    plan : Plan
        From `funnel.sampling.partitions.plan_rows`.
    target : path
        The file to write.
    workers : Workers, optional
        `OneWorker` (the default), `Processes`, or others of the same kind.
    progress : callable, optional
        Called with what is done, rows done so far, rows in all.

    Returns
    -------
    Drawn
        What was seen of the drawing.

    Raises
    ------
    DataError
        If a snapshot or a working file is damaged or changes on the way, or rows are missing in the end.
    EntropyError
        If a worker's source of random words fails.
    PipelineError
        If workers keep dying.
    """
    workers = workers if workers is not None else OneWorker()
    drawn = all_done(
        workers, draw_partition, [(plan, i) for i in range(len(plan.groups))], "drawing", plan.rows, progress
    )
    parts = drawn
    if plan.shuffle:
        without_evidence = tuple(replace(done, cells=b"", words=()) for done in drawn)
        tasks = [(plan, i, without_evidence) for i in range(plan.parts)]
        parts = all_done(workers, write_part, tasks, "writing in random order", plan.rows, progress)
    rows = _written(plan, parts, Path(target))
    b, a = plan.protocol.size
    shape = (1 if plan.secret is None else len(plan.secret) + 1, a + 1, b)
    tables = (np.frombuffer(done.cells, dtype="<i8").astype(np.int64).reshape(2, -1) for done in drawn)
    counts = DrawnCounts.total(shape, ((table[0], table[1]) for table in tables))
    if not rows == counts.n == plan.rows:
        raise DataError(
            f"{counts.n:,} rows were drawn and {rows:,} written for {plan.rows:,} records; run the release again"
        )
    streams = zip(*(done.words for done in drawn), strict=True)
    words = dict(zip(plan.purposes, (together(some) for some in streams), strict=False))
    taken = None if plan.donors is None or plan.donors.followed else donors_digest(plan.donors)
    return Drawn(counts, words, probe_digest(plan.protocol), taken)


def _written(plan: Plan, parts: Sequence[Done], target: Path) -> int:
    """Encode the rows that workers left into one file; how many they are.

    By this process alone: encoding is so small a part of a release that sharing it among workers saved nothing.
    """
    rows = 0
    with writing_in(target.parent), ReleaseWriter(target, plan.published.columns()) as writer:
        for done in parts:
            codes = read_codes(plan, done)
            # A part in random order is one row group, whatever its size.
            for group in [codes] if plan.shuffle else even_chunks([codes], GROUP_ROWS):
                writer.write(group)
                rows += len(group)
    return rows


def all_done(
    workers: Workers,
    function: Callable[..., Done],
    tasks: Sequence[tuple[object, ...]],
    what: str,
    rows: int,
    progress: Progress,
) -> list[Done]:
    """The results of tasks in their order; ``progress`` is told ``what`` and how many of the rows are done."""
    results: dict[int, Done] = {}
    for i, done in workers.run(function, tasks):
        results[i] = done
        progress(what, sum(one.rows for one in results.values()), rows)
    return [results[i] for i in range(len(tasks))]
