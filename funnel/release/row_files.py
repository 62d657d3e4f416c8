"""Files of rows: the folder that workers share while rows are drawn, and rows that an earlier version has."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from funnel.errors import DataError
from funnel.readers.source_files import file_digest
from funnel.release.files import FileRef, private_folder, remove_tree
from funnel.release.layout import ReleaseFolder
from funnel.sampling.partitions import Plan

_ROWS = "rows"


def fresh_folder(folder: ReleaseFolder) -> Path:
    """Where rows that are drawn anew are worked on.

    It goes with the folder of this run: what was drawn for a run that was killed is not used by another one.
    """
    return folder.root / f".{_ROWS}"


@contextmanager
def working_folder(plan: Plan, folder: ReleaseFolder, workspace: Path, keyed: bool) -> Iterator[Plan]:
    """The plan with the folder that it is worked out in, which is there as long as it is of use.

    Parameters
    ----------
    plan : Plan
        With `fresh_folder`.
    folder : ReleaseFolder
        Of the coming version; the folder of its rows is made.
    workspace : Path
        Private folder of the series, where work that a killed run with record keys has finished waits for the next.
    keyed : bool
        Whether answers of records are the same whoever draws them and when: a further run takes up what there is.
    """
    work = Path(plan.folder)
    if keyed:
        work = workspace / _ROWS / plan.digest[:16]
        plan = dataclasses.replace(plan, folder=str(work))
        for other in work.parent.iterdir() if work.parent.is_dir() else ():
            if other != work:
                remove_tree(other)
    private_folder(work)
    folder.data.parent.mkdir(parents=True, exist_ok=True)
    yield plan
    if not keyed:
        remove_tree(work)


def forget_rows(workspace: Path) -> None:
    """Remove what workers left for a run that might have been taken up again."""
    remove_tree(workspace / _ROWS)


def same_rows(earlier: ReleaseFolder, rows_sha256: str, folder: ReleaseFolder) -> FileRef:
    """The rows of an earlier version, byte for byte, in the folder of a coming one.

    Raises
    ------
    DataError
        If they are no longer those of that version.
    """
    folder.data.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(earlier.data, folder.data)
    if file_digest(folder.data) != rows_sha256:
        raise DataError(f"the rows of {earlier.root} were changed since they were drawn; restore them from a backup")
    return FileRef(str(folder.data), rows_sha256)
