"""Classify: where a record has many columns, the classes of records that it is counted and drawn by."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from funnel.alphabet import CLASS_COLUMN
from funnel.errors import DataError
from funnel.joint import Joint
from funnel.pipeline.tasks.estimate import Estimated
from funnel.pipeline.tasks.step import step, tell
from funnel.register.register import Register
from funnel.release.classified import classify_records
from funnel.release.files import FileRef, Sink, private_folder, write_whole
from funnel.release.snapshot import CODINGS, DATA, Snapshot
from funnel.sampling.codes import InputEncoder
from funnel.sampling.donors import RECORD_COLUMN, STANDING_COLUMN, Donors
from funnel.source.coding import Coding, Codings
from funnel.source.counting import count_choosing
from funnel.spec import ReleaseSpec
from funnel.tables import arrow_numbers, arrow_texts, open_paged

# In the workspace of the series: the records of the newest snapshot with their classes.
FOLDER = "classes"


@step
def classify(
    spec: ReleaseSpec, snapshot: Snapshot, estimated: Estimated, workspace: Path, register: Register | None = None
) -> tuple[ReleaseSpec, Snapshot, Estimated]:
    """Find the classes of records between which the secret differs most, or read them, and count the records by them.

    For every record a class is drawn by the protocol, and the record of somebody of that class is published: so the
    bound is about what an observer concludes from a record who knows of the secret what the counts of classes say.
    Spec, snapshot and counts that are returned are by class from here on. Later versions about the same people have the
    classes of the first one.

    Raises
    ------
    SpecError
        If the spec asks for what classes cannot be chosen for.
    DataError
        If the records have one class only, a column has a name that is used here, or a file of classes does not fit.
    """
    joint, codings = estimated.joint, snapshot.read_codings()
    for column in (RECORD_COLUMN, STANDING_COLUMN):
        if column in (*spec.secret, *spec.publish):
            raise DataError(f"a column is named {column!r}, as funnel names one of its own; rename it")
    if register is not None:
        register.require_alike(whole=True)
    kept = None if register is None or register.classes is None else register.classes.classes
    choosing = count_choosing(spec, _batches(snapshot), {name: one.labels for name, one in codings.items()})
    classified = classify_records(spec, joint, codings, snapshot.source_sha256, tell, kept, choosing)
    if kept is not None and register is not None and classified.joint.secret != register.entries[0].secret.alphabet():
        raise DataError(
            f"the secret has other values than in the first version about the people of the register {register.name}; "
            "group them as they were there"
        )
    classes, counted = classified.composition.classes, classified.joint
    donors = Donors.of(joint.inputs, joint.counts.sum(axis=0), classes, joint.inputs.columns, codings.labels)
    told = Coding(CLASS_COLUMN, "categories", classes.names, tuple(counted.counts.sum(axis=0).tolist()))
    found = _with_classes(snapshot, codings, told, donors, joint, workspace)
    tell(f"{len(classes.names)} classes of records")
    counts = dataclasses.replace(estimated, joint=counted, donors=donors, composition=classified.composition)
    return spec.by_class(CLASS_COLUMN), found, counts


def _batches(snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
    """All records, in their order."""
    with open_paged(snapshot.data.checked()) as file:
        for group in range(file.num_row_groups):
            yield from file.read_row_group(group).to_batches()


def _with_classes(
    snapshot: Snapshot, codings: Codings, told: Coding, donors: Donors, joint: Joint, workspace: Path
) -> Snapshot:
    """The snapshot with the number and the class of every record, in the same row groups."""
    folder = private_folder(private_folder(workspace) / FOLDER)
    encoder = InputEncoder(joint.inputs)
    names = arrow_texts(list(donors.classes))
    done = 0
    with ExitStack() as stack:
        file = stack.enter_context(open_paged(snapshot.data.checked()))
        sink = stack.enter_context(Sink(folder / DATA))
        writer: pq.ParquetWriter | None = None
        for group in range(file.num_row_groups):
            table = file.read_row_group(group)
            records = encoder.codes(table)
            if (records < 0).any():
                raise DataError("the snapshot has records that were not counted; run the release again")
            of_class = donors.of_record[records].astype(np.int32)
            table = table.append_column(RECORD_COLUMN, pa.array(records.astype(np.int32))).append_column(
                CLASS_COLUMN, pa.DictionaryArray.from_arrays(arrow_numbers(of_class), names)
            )
            if writer is None:
                writer = stack.enter_context(pq.ParquetWriter(sink, table.schema, compression="zstd"))
            writer.write_table(table, row_group_size=table.num_rows)
            done += table.num_rows
            tell("noting classes", done, snapshot.rows)
    further = dataclasses.replace(codings, columns=(*codings.columns, told))
    content = hashlib.sha256(json.dumps([snapshot.content_sha256, donors.digest]).encode()).hexdigest()
    return dataclasses.replace(
        snapshot,
        data=FileRef(str(folder / DATA), sink.sha256),
        codings=write_whole(folder / CODINGS, further.to_json().encode()),
        content_sha256=content,
    )
