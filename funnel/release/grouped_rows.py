"""Rows of a grouped release: drawn from a snapshot, or taken over from an earlier version, with their evidence."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from funnel.alphabet import Alphabet
from funnel.groups.protocol import GroupedProtocol
from funnel.groups.rows import plan_groups, release_groups
from funnel.progress import Progress
from funnel.release.files import FileRef, private_folder
from funnel.release.grouped_draws import GroupedDraws
from funnel.release.layout import ReleaseFolder
from funnel.release.row_files import fresh_folder, same_rows, working_folder
from funnel.release.snapshot import Snapshot
from funnel.release.words import PURPOSES, WordsDocument, words_document
from funnel.sampling import RecordKey
from funnel.sampling.engines import workers_of
from funnel.settings.work import EngineSettings


@dataclass(frozen=True, eq=False)
class GroupedRows:
    """The rows of a coming version.

    Attributes
    ----------
    data : FileRef
        Parquet of the published columns.
    draws : GroupedDraws
        What was drawn at every stage; internal, as is what follows.
    words : WordsDocument
    """

    data: FileRef
    draws: GroupedDraws
    words: WordsDocument


def draw_grouped_rows(
    snapshot: Snapshot,
    protocol: GroupedProtocol,
    folder: ReleaseFolder,
    workspace: Path,
    *,
    shuffle: bool,
    record_key: RecordKey | None,
    secret: Alphabet,
    engine: EngineSettings,
    progress: Progress,
) -> GroupedRows:
    """Draw what every record is published as, write it to one parquet file, and count what was drawn at each stage.

    Parameters as `funnel.release.rows.draw_rows`.

    Raises
    ------
    EntropyError
        If the random source fails; nothing is written from it.
    """
    data = snapshot.data.checked()
    plan = plan_groups(
        data,
        snapshot.data.sha256,
        protocol,
        fresh_folder(folder),
        shuffle=shuffle,
        record_key=record_key,
        secret=secret,
        sizes=snapshot.sizes,
    )
    with working_folder(plan, folder, workspace, record_key is not None) as placed:
        progress("drawing", 0, snapshot.rows)
        with workers_of(engine) as workers:
            drawn = release_groups(placed, folder.data, workers, progress)
    draws = GroupedDraws(secret, drawn.cells, drawn.records, drawn.probe)
    words = words_document(dict(zip(PURPOSES, drawn.words, strict=False)))
    rows = GroupedRows(FileRef.of(folder.data), draws, words)
    _write_evidence(folder, rows)
    return rows


def take_over_grouped(earlier: ReleaseFolder, rows_sha256: str, folder: ReleaseFolder) -> GroupedRows:
    """Take over the rows of an earlier version, byte for byte, with the evidence of their draw.

    Raises
    ------
    DataError
        If they are no longer those of that version.
    """
    data = same_rows(earlier, rows_sha256, folder)
    rows = GroupedRows(data, GroupedDraws.read(earlier), WordsDocument.read(earlier.words))
    _write_evidence(folder, rows)
    return rows


def _write_evidence(folder: ReleaseFolder, rows: GroupedRows) -> None:
    private_folder(folder.audit)
    rows.draws.write(folder)
    folder.words.write_bytes(rows.words.to_bytes())
