"""Rows of a release: drawn from a snapshot, or taken over from an earlier version, and counted."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from funnel.alphabet import Alphabet
from funnel.drawn import DrawnCounts
from funnel.errors import DataError
from funnel.progress import Progress
from funnel.protocol import Protocol
from funnel.readers.source_files import file_digest
from funnel.release.documents import DrawsDocument, WordsDocument, drawn_pairs, draws_document
from funnel.release.drawing_document import drawing_document
from funnel.release.drawn_from import DrawnFrom
from funnel.release.files import FileRef, private_folder, remove_tree, write_new, write_whole
from funnel.release.layout import ReleaseFolder
from funnel.sampling.dask_workers import workers_of
from funnel.sampling.donors import Donors
from funnel.sampling.engine import release_rows
from funnel.sampling.keyed import RecordKey
from funnel.sampling.partitions import Plan, plan_rows
from funnel.spec import ReleaseSpec

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


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a coming version.

    Attributes
    ----------
    data : FileRef
        Parquet of the published columns.
    counts : DrawnCounts, shape (c + 1, a + 1, b)
        Counts of drawn (secret, input, output); internal, as is all that follows.
    secret : Alphabet
        What their secrets are.
    probe : str
        What the sampler answered where outputs meet, see `funnel.sampling.probe`.
    donors : str or None
        Whose place records took, where whole ones are published and these are not followed.
    words : WordsDocument
        Statistics of the words that were drawn with.
    """

    data: FileRef
    counts: DrawnCounts
    secret: Alphabet
    probe: str
    donors: str | None
    words: WordsDocument

    @cached_property
    def pairs(self) -> DrawnCounts:
        """Counts of drawn (input, output) pairs, shape (1, a + 1, b)."""
        return DrawnCounts.of_pairs(self.counts)


def draw_rows(
    spec: ReleaseSpec,
    drawn_from: DrawnFrom,
    folder: ReleaseFolder,
    workspace: Path,
    *,
    record_key: RecordKey | None,
    secret: Alphabet,
    progress: Progress,
    donors: Donors | None = None,
) -> Rows:
    """Draw every record's output, write the rows to one parquet file in bounded memory, and count the pairs drawn.

    Parameters
    ----------
    spec : ReleaseSpec
        Says in which order rows come and who does the work.
    drawn_from : DrawnFrom
    folder : ReleaseFolder
        Of the coming version.
    workspace : Path
        Private folder of the series, where work that a killed run with record keys has finished waits for the next.
    record_key : RecordKey or None
        To give every record the answer that it gets whenever the same is decided about it.
    secret : Alphabet
        The values of the secret, by which draws are counted.
    progress : callable
    donors : Donors, optional
        Where whole records are published for classes that are drawn.

    Raises
    ------
    EntropyError
        If the random source fails; nothing is written from it.
    """
    snapshot, protocol = drawn_from.snapshot, drawn_from.drawing
    counts, target = drawn_from.counts, drawn_from.target
    data = snapshot.data.checked()
    plan = plan_rows(
        data,
        snapshot.data.sha256,
        protocol,
        fresh_folder(folder),
        shuffle=spec.output.shuffle,
        record_key=record_key,
        decided=counts is not None,
        secret=secret,
        donors=donors,
        sizes=snapshot.sizes,
    )
    with working_folder(plan, folder, workspace, record_key is not None) as placed:
        progress("drawing", 0, snapshot.rows)
        with workers_of(spec.engine) as workers:
            drawn = release_rows(placed, folder.data, workers, progress)
    words = WordsDocument.model_validate({"schema": "funnel/words/1", "streams": drawn.words})
    rows = Rows(FileRef.of(folder.data), drawn.counts, secret, drawn.probe, drawn.donors, words)
    _write_evidence(folder, rows)
    # What people with histories were drawn with is internal.
    if counts is not None and target is not None:
        write_whole(folder.drawing, drawing_document(protocol, counts, target).to_bytes())
    return rows


def take_over(earlier: ReleaseFolder, rows_sha256: str, protocol: Protocol, folder: ReleaseFolder) -> Rows:
    """Take over the rows of an earlier version, byte for byte, with the evidence of their draw.

    Parameters
    ----------
    earlier : ReleaseFolder
    rows_sha256 : str
        Digest of its rows.
    protocol : Protocol
        What they were drawn with, which is not the published one where people have histories.
    folder : ReleaseFolder
        Of the coming version.

    Raises
    ------
    DataError
        If they are no longer those of that version.
    """
    data = same_rows(earlier, rows_sha256, folder)
    draws = DrawsDocument.read(earlier.draws)
    drawn_pairs(draws, protocol)
    words = WordsDocument.read(earlier.words)
    rows = Rows(data, draws.counts, draws.secret.alphabet(), draws.probe, draws.donors, words)
    _write_evidence(folder, rows)
    if earlier.drawing.exists():
        shutil.copyfile(earlier.drawing, folder.drawing)
    return rows


def _write_evidence(folder: ReleaseFolder, rows: Rows) -> None:
    private_folder(folder.internal)
    write_new(folder.draws, draws_document(rows.counts, rows.secret, rows.probe, rows.donors).to_bytes())
    write_new(folder.words, rows.words.to_bytes())
