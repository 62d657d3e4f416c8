"""Sanitise: draw the released rows from a snapshot with a protocol, and count what was drawn."""

from __future__ import annotations

import dataclasses
import shutil
from dataclasses import dataclass
from pathlib import Path

from prefect import task
from prefect.cache_policies import NO_CACHE

from funnel.errors import DataError
from funnel.pipeline.tasks.engines import workers_of
from funnel.pipeline.tasks.files import FileRef, private_folder, remove_tree
from funnel.pipeline.tasks.ingest import Snapshot
from funnel.pipeline.tasks.optimise import Optimised
from funnel.pipeline.tasks.secret import ReleaseSecret
from funnel.pipeline.tasks.step import plain_errors, tell
from funnel.protocol import Protocol
from funnel.release.documents import draws_document
from funnel.release.layout import ReleaseFolder
from funnel.sampling import plan_rows, release_rows
from funnel.settings import EngineSettings
from funnel.source import file_digest

ROWS = "rows"


@dataclass(frozen=True)
class Drawn:
    """The drawn rows, in the folder where the release is being put together.

    Attributes
    ----------
    folder : str
        Root of the coming release.
    data : FileRef
        Parquet of the published columns.
    draws : FileRef
        JSON counts of (input, output) pairs; internal.
    drawn : bool
        False if the rows are those of an earlier version, taken over unchanged.
    """

    folder: str
    data: FileRef
    draws: FileRef
    drawn: bool


@dataclass(frozen=True)
class Keys:
    """How answers of records are repeated.

    Attributes
    ----------
    columns : tuple of str
        The record key.
    secret : ReleaseSecret
    workspace : str
        Private folder of the series, where work that a killed run has finished waits for the next one.
    """

    columns: tuple[str, ...]
    secret: ReleaseSecret
    workspace: str


# Never cached by the orchestrator: whether rows are drawn again is decided by the flow, knowingly.
@task(name="sanitise", cache_policy=NO_CACHE, persist_result=False)
@plain_errors
def sanitise(
    snapshot: Snapshot,
    optimised: Optimised,
    incoming: str,
    shuffle: bool,
    earlier: str | None = None,
    engine: EngineSettings = EngineSettings(),  # noqa: B008 - immutable
    keys: Keys | None = None,
) -> Drawn:
    """Draw every record's output, write the rows to one parquet file in bounded memory, and count the pairs drawn.

    Parameters
    ----------
    incoming : str
        Folder of the coming release.
    shuffle : bool
        Whether rows come in random order.
    earlier : str, optional
        Folder of a version whose rows were drawn from the same snapshot with the same protocol: they are taken over,
        and nothing is drawn.
    engine : EngineSettings, optional
        Who does the work; one process by default.
    keys : Keys, optional
        To give every record the answer that it gets in every release with this secret.

    Raises
    ------
    EntropyError
        If the random source fails; nothing is written from it.
    """
    protocol = optimised.read_protocol()
    folder = ReleaseFolder(Path(incoming))
    folder.data.parent.mkdir(parents=True, exist_ok=True)
    private_folder(folder.audit)
    if earlier is None:
        _draw(snapshot, protocol, folder, shuffle, engine, keys)
    else:
        _take_over(ReleaseFolder(Path(earlier)), folder)
    return Drawn(incoming, FileRef.of(folder.data), FileRef.of(folder.draws), earlier is None)


def forget_rows(workspace: str) -> None:
    """Remove what workers left for a run that might have been taken up again."""
    remove_tree(Path(workspace) / ROWS)


def _draw(
    snapshot: Snapshot,
    protocol: Protocol,
    folder: ReleaseFolder,
    shuffle: bool,
    engine: EngineSettings,
    keys: Keys | None,
) -> None:
    data = snapshot.data.checked()
    record_key = None if keys is None else keys.secret.record_key(keys.columns)
    # Fresh draws go with the folder of this run: what was drawn for a run that was killed is not used by another one.
    work = folder.root / f".{ROWS}"
    plan = plan_rows(data, snapshot.data.sha256, protocol, work, shuffle=shuffle, record_key=record_key)
    if keys is not None:
        # Answers of records are the same whoever draws them and when: a further run takes up what there is.
        work = Path(keys.workspace) / ROWS / plan.digest[:16]
        plan = dataclasses.replace(plan, folder=str(work))
        for other in work.parent.iterdir() if work.parent.is_dir() else ():
            if other != work:
                remove_tree(other)
    private_folder(work)
    tell("drawing", 0, snapshot.rows)
    with workers_of(engine) as workers:
        pairs = release_rows(plan, folder.data, workers, tell)
    if keys is None:
        remove_tree(work)
    folder.draws.write_bytes(draws_document(pairs).to_bytes())


def _take_over(earlier: ReleaseFolder, folder: ReleaseFolder) -> None:
    shutil.copyfile(earlier.data, folder.data)
    shutil.copyfile(earlier.draws, folder.draws)
    if file_digest(earlier.data) != file_digest(folder.data):
        raise DataError(f"the rows of {earlier.root} changed while they were taken over; run the release again")
