"""Ingest: from a source file to an immutable snapshot of the columns a release needs, recoded, with digests."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from prefect import task
from prefect.cache_policies import NO_CACHE

from funnel.errors import DataError
from funnel.pipeline.tasks.files import FileRef, private_folder, remove_tree, sync_folder, sync_tree
from funnel.pipeline.tasks.secret import ReleaseSecret
from funnel.pipeline.tasks.step import plain_errors, tell
from funnel.release.documents import dump
from funnel.sampling import KEY_COLUMN
from funnel.source import (
    KEY_TYPE,
    Codings,
    KeyColumn,
    Source,
    coded_batches,
    file_digest,
    learn_codings,
    open_source,
)
from funnel.spec import ReleaseSpec

GROUP_ROWS = 1 << 17
DATA, CODINGS, RECORD = "snapshot.parquet", "codings.json", "snapshot.json"


@dataclass(frozen=True)
class Snapshot:
    """An immutable, recoded copy of the columns a release needs.

    Attributes
    ----------
    data : FileRef
        Parquet: secret columns, then published ones, as dictionary<int32, string>, in the order of the source; with
        record keys also the digest of each record's key under the release secret.
    codings : FileRef
        JSON: the categories of every column, in order, with counts.
    source_sha256 : str
        Digest of the source file it was made from.
    rows, dropped : int
        Records kept, and records left out because a value is missing.
    """

    data: FileRef
    codings: FileRef
    source_sha256: str
    rows: int
    dropped: int

    def read_codings(self) -> Codings:
        """The categories of every column."""
        return Codings.from_json(self.codings.checked().read_text(encoding="utf-8"))


@task(name="ingest", cache_policy=NO_CACHE)
@plain_errors
def ingest(spec_path: str, workspace: str, secret: ReleaseSecret | None = None) -> Snapshot:
    """Take a snapshot of the source of a spec, or find the one already taken of the same content.

    Parameters
    ----------
    spec_path, workspace : str
    secret : ReleaseSecret, optional
        Needed if the spec has a record key.

    Raises
    ------
    SpecError, DataError
        If the spec or the source is wrong, or the source changes while it is read.
    OutputError
        If the snapshot cannot be written.
    """
    spec = ReleaseSpec.load(spec_path)
    # Opening first gives the better sentence for a missing or wrong file.
    source = open_source(spec.reading)
    tell("reading the source")
    # Of the files that were opened: one that comes meanwhile is not read, and must not be taken for one that was.
    digest = source.files.digest()
    name = f"{digest[:16]}-{spec.coding_digest[:16]}"
    folder = Path(workspace) / "snapshots" / (name if secret is None else f"{name}-{secret.fingerprint[:16]}")
    if (found := _existing(folder)) is not None:
        return found
    codings = learn_codings(spec, source, tell)
    private_folder(folder.parent)
    incoming = private_folder(folder.parent / f".{folder.name}-{secrets.token_hex(4)}")
    try:
        rows = _write(spec, source, codings, secret, incoming)
        if rows != codings.n_rows or source.digest() != digest:
            raise _changed(source.address)
        (incoming / CODINGS).write_text(codings.to_json(), encoding="utf-8")
        record = {
            "source_sha256": digest,
            "data_sha256": file_digest(incoming / DATA),
            "codings_sha256": file_digest(incoming / CODINGS),
            "rows": rows,
            "dropped": codings.n_dropped,
            "schema": {name: str(kind) for name, kind in zip(source.schema.names, source.schema.types, strict=True)},
        }
        (incoming / RECORD).write_bytes(dump(record))
        sync_tree(incoming)
        # A damaged or half-removed snapshot of this content gives way to the new one.
        remove_tree(folder)
        incoming.replace(folder)
        sync_folder(folder.parent)
    finally:
        remove_tree(incoming)
    snapshot = _existing(folder)
    if snapshot is None:
        raise DataError(f"the snapshot {folder} was changed while it was made; run the release again")
    return snapshot


def _write(spec: ReleaseSpec, source: Source, codings: Codings, secret: ReleaseSecret | None, incoming: Path) -> int:
    """Write the rows of a snapshot; return their number."""
    fields = [(name, pa.dictionary(pa.int32(), pa.string())) for name in spec.columns]
    with ExitStack() as stack:
        keys = None
        if secret is not None and spec.record_key is not None:
            if KEY_COLUMN in spec.columns:
                raise DataError(f"a column is named {KEY_COLUMN!r}, as the digests of record keys are; rename it")
            record_key = secret.record_key(spec.record_key)
            keys = stack.enter_context(KeyColumn(record_key, spec.source.missing, incoming))
            fields.append((KEY_COLUMN, KEY_TYPE))
        writer = stack.enter_context(
            # Digests are all different: a dictionary of them would only cost time.
            pq.ParquetWriter(incoming / DATA, pa.schema(fields), compression="zstd", use_dictionary=list(spec.columns))
        )
        rows = 0
        batches = coded_batches(spec, source, codings, key_column=None if keys is None else keys.column)
        for group in _even_groups(batches):
            _refuse_nulls(group.select(list(spec.columns)), source.address)
            writer.write_table(group, row_group_size=group.num_rows)
            rows += group.num_rows
            tell("taking the snapshot", rows, codings.n_rows)
        if keys is not None:
            keys.check()
    return rows


def _even_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Row groups of one size, whatever the batches: what is made of a snapshot is cut along them."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        while rows >= GROUP_ROWS:
            table = pa.Table.from_batches(held)
            yield table.slice(0, GROUP_ROWS)
            held = table.slice(GROUP_ROWS).to_batches()
            rows -= GROUP_ROWS
    if rows:
        yield pa.Table.from_batches(held)


def forget_other_snapshots(snapshot: Snapshot) -> None:
    """Remove the snapshots of earlier sources: they hold values of people, and are made again if they are needed."""
    kept = Path(snapshot.data.path).parent
    for folder in kept.parent.iterdir():
        if folder != kept:
            remove_tree(folder)


def _existing(folder: Path) -> Snapshot | None:
    """The snapshot in a folder if it is whole, else None."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        snapshot = Snapshot(
            FileRef(str(folder / DATA), record["data_sha256"]),
            FileRef(str(folder / CODINGS), record["codings_sha256"]),
            record["source_sha256"],
            record["rows"],
            record["dropped"],
        )
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError):
        return None
    return snapshot if snapshot.data.intact() and snapshot.codings.intact() else None


def _refuse_nulls(table: pa.Table, source: str) -> None:
    if any(column.null_count for column in table.columns):
        raise _changed(source)


def _changed(source: str) -> DataError:
    return DataError(f"the source {source} changed while it was read; run the release again when it is complete")
