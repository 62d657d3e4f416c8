"""Snapshot: an immutable, recoded copy of the columns a release needs, with digests, found again by its content."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from funnel.errors import DataError
from funnel.progress import Progress
from funnel.readers.formats import Source, open_source
from funnel.release.document import dump
from funnel.release.files import FileRef, Sink, private_folder, remove_tree, sync_folder, write_whole
from funnel.release.provenance import code_digest
from funnel.sampling.key_column import KEY_COLUMN, KEY_TYPE, KeyColumn, Units
from funnel.sampling.keyed import RecordKey, key_kind
from funnel.source.coding import Codings, coded_batches
from funnel.source.counting import recoded
from funnel.spec import ReleaseSpec
from funnel.tables import even_tables, numbers_of

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
    content_sha256 : str
        Digest of the recoded records, whatever the file: the same after another version of the library writes it.
    source_sha256 : str
        Digest of the source file it was made from.
    sizes : tuple of int
        Records of each row group of the file.
    dropped : int
        Records left out because a value is missing.
    key_kinds : tuple of "text" or "number", or None
        Of each column of the record key; None without one.
    """

    data: FileRef
    codings: FileRef
    content_sha256: str
    source_sha256: str
    sizes: tuple[int, ...]
    dropped: int
    key_kinds: tuple[Literal["text", "number"], ...] | None = None

    @property
    def rows(self) -> int:
        """Records kept."""
        return sum(self.sizes)

    def read_codings(self) -> Codings:
        """The categories of every column."""
        return Codings.from_json(self.codings.read().decode())


def take_snapshot(
    spec: ReleaseSpec,
    workspace: Path,
    record_key: RecordKey | None,
    progress: Progress,
    codings: Callable[[Source, str], Codings] | None = None,
) -> Snapshot:
    """Take a snapshot of the source of a spec, or find the one already taken of the same content by the same code.

    Parameters
    ----------
    spec : ReleaseSpec
    workspace : Path
        Private folder of the series.
    record_key : RecordKey or None
        With the release secret, if the spec has a record key.
    progress : callable
        Told what is done, rows done, rows in all.
    codings : callable, optional
        Gives the codings of the source, from it and its digest; by default they are learned.

    Raises
    ------
    SpecError, DataError
        If the spec or the source is wrong, or the source changes while it is read.
    OutputError
        If the snapshot cannot be written.
    """
    # Opening first gives the better sentence for a missing or wrong file.
    source = open_source(spec.reading)
    progress("reading the source", 0, None)
    # Of the files that were opened: one that comes meanwhile is not read, and must not be taken for one that was.
    digest = source.files.digest()
    parts = [digest[:16], spec.coding_digest[:16], code_digest()[:16]]
    folder = workspace / "snapshots" / "-".join(parts + _of_key(record_key))
    if (found := _existing(folder)) is not None:
        return found
    coded = recoded(spec, source, progress) if codings is None else codings(source, digest)
    spec = coded.settled(spec)
    private_folder(folder.parent)
    incoming = private_folder(folder.parent / f".{secrets.token_hex(8)}")
    try:
        content = _Content()
        data_sha256, sizes = _write(spec, source, coded, record_key, incoming, content, progress)
        if sum(sizes) != coded.n_rows or source.digest() != digest:
            raise _changed(source.address)
        record: dict[str, Any] = {
            "source_sha256": digest,
            "content_sha256": content.digest(coded),
            "data_sha256": data_sha256,
            "codings_sha256": write_whole(incoming / CODINGS, coded.to_json().encode()).sha256,
            "sizes": sizes,
            "dropped": coded.n_dropped,
            "key_kinds": None if record_key is None else _key_kinds(source, record_key),
            "schema": {name: str(kind) for name, kind in zip(source.schema.names, source.schema.types, strict=True)},
        }
        write_whole(incoming / RECORD, dump(record))
        sync_folder(incoming)
        # A damaged or half-removed snapshot of this content gives way to the new one.
        remove_tree(folder)
        incoming.replace(folder)
        sync_folder(folder.parent)
    finally:
        remove_tree(incoming)
    return _snapshot(folder, record)


def _of_key(record_key: RecordKey | None) -> list[str]:
    """What the digests of keys depend on besides the key columns, as part of a folder's name."""
    if record_key is None:
        return []
    scope = hashlib.sha256((record_key.series or "").encode()).hexdigest()
    return [f"{record_key.fingerprint[:16]}-{scope[:8]}"]


def _key_kinds(source: Source, record_key: RecordKey) -> tuple[Literal["text", "number"], ...]:
    kinds = (key_kind(source.schema.field(column).type) for column in record_key.columns)
    # A column of another kind was refused when its keys were digested.
    return tuple(kind for kind in kinds if kind is not None)


def forget_other_snapshots(snapshot: Snapshot) -> None:
    """Remove the snapshots of earlier sources: they hold values of people, and are made again if they are needed."""
    kept = Path(snapshot.data.path).parent
    for folder in kept.parent.iterdir():
        if folder != kept:
            remove_tree(folder)


class _Content:
    """Digest of records: of every column its categories and, in order, the category of each record."""

    def __init__(self) -> None:
        self._columns: dict[str, hashlib._Hash] = {}

    def add(self, group: pa.Table) -> None:
        """Take in the next records."""
        for name, column in zip(group.column_names, group.columns, strict=True):
            total = self._columns.setdefault(name, hashlib.sha256())
            for chunk in column.chunks:
                if pa.types.is_dictionary(chunk.type):
                    total.update(numbers_of(chunk.indices).astype("<i4", copy=False).data)
                else:
                    width = chunk.type.byte_width
                    total.update(memoryview(chunk.buffers()[1])[width * chunk.offset :][: width * len(chunk)])

    def digest(self, codings: Codings) -> str:
        """SHA-256 (hex) of all of them."""
        said = [
            [name, codings[name].labels if name in codings else None, total.hexdigest()]
            for name, total in self._columns.items()
        ]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def _write(
    spec: ReleaseSpec,
    source: Source,
    codings: Codings,
    record_key: RecordKey | None,
    incoming: Path,
    content: _Content,
    progress: Progress,
) -> tuple[str, list[int]]:
    """Write the rows of a snapshot; return the digest of the file, and the rows of each of its row groups."""
    fields = [(name, pa.dictionary(pa.int32(), pa.string())) for name in spec.columns]
    with ExitStack() as stack:
        if record_key is not None:
            if KEY_COLUMN in spec.columns:
                raise DataError(f"a column is named {KEY_COLUMN!r}, as the digests of record keys are; rename it")
            fields.append((KEY_COLUMN, KEY_TYPE))
        keys, units = stack.enter_context(distinct_people(spec, record_key, incoming))
        sink = stack.enter_context(Sink(incoming / DATA))
        writer = stack.enter_context(
            # Digests are all different: a dictionary of them would only cost time.
            pq.ParquetWriter(sink, pa.schema(fields), compression="zstd", use_dictionary=list(spec.columns))
        )
        sizes: list[int] = []
        batches = coded_batches(
            spec,
            source,
            codings,
            key_column=None if keys is None else keys.column,
            seen=None if units is None else units.column,
        )
        # Of one size, whatever the batches: what is made of a snapshot is cut along them.
        for group in even_tables(batches, GROUP_ROWS):
            _refuse_nulls(group.select(list(spec.columns)), source.address)
            writer.write_table(group, row_group_size=group.num_rows)
            content.add(group)
            sizes.append(group.num_rows)
            progress("taking the snapshot", sum(sizes), codings.n_rows)
    return sink.sha256, sizes


@contextmanager
def distinct_people(
    spec: ReleaseSpec, record_key: RecordKey | None, directory: Path | None = None
) -> Iterator[tuple[KeyColumn | None, Units | None]]:
    """What is to see all rows; at the end it refuses units that have several, and keys that do not identify records."""
    with ExitStack() as stack:
        missing, keys, units = spec.source.missing, None, None
        if record_key is not None:
            keys = stack.enter_context(KeyColumn(record_key, missing, directory, spec.follows_units))
        if spec.unit is not None and not spec.follows_units:
            units = stack.enter_context(Units(spec.unit, missing, directory))
        yield keys, units
        # Whoever names units is told of them rather than of keys that are theirs.
        for one in (units, keys):
            if one is not None:
                one.check()


def _existing(folder: Path) -> Snapshot | None:
    """The snapshot in a folder if it is whole, else None."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        snapshot = _snapshot(folder, record)
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
        return None
    return snapshot if snapshot.data.intact() and snapshot.codings.intact() else None


def _snapshot(folder: Path, record: Mapping[str, Any]) -> Snapshot:
    """The snapshot in a folder, by its record."""
    kinds = record["key_kinds"]
    return Snapshot(
        FileRef(str(folder / DATA), record["data_sha256"]),
        FileRef(str(folder / CODINGS), record["codings_sha256"]),
        record["content_sha256"],
        record["source_sha256"],
        tuple(int(size) for size in record["sizes"]),
        record["dropped"],
        None if kinds is None else tuple(kinds),
    )


def _refuse_nulls(table: pa.Table, source: str) -> None:
    if any(column.null_count for column in table.columns):
        raise _changed(source)


def _changed(source: str) -> DataError:
    return DataError(f"the source {source} changed while it was read; run the release again when it is complete")
