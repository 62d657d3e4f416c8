"""Accounted: what the ledger says of a version is so, seen by other means than those it was decided by.

What is published is judged; what is *said* of it to the publisher alone, that nothing has changed, or that nobody was
drawn again, is not in any public file. It decides what the next release does, so it is checked here.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.parquet as pq

from funnel.alphabet import CLASS_COLUMN
from funnel.errors import LedgerError
from funnel.readers.source_files import file_digest
from funnel.recount.promise import declared_promise, read_promise
from funnel.release.earlier import Earlier
from funnel.release.layout import ReleaseFolder
from funnel.release.record import Record
from funnel.spec import ReleaseSpec


def require_same_spec(spec: ReleaseSpec, record: Record) -> None:
    """Make sure that a version is of this spec, before it is said that nothing has changed.

    Parameters
    ----------
    spec : ReleaseSpec
    record : Record
        Of the version.

    Raises
    ------
    LedgerError
        If it is of another bound, other columns or another spec.
    """
    origin = record.origin
    promises = (declared_promise(spec.text), read_promise(origin.guarantee))
    # Numbers are told as the doubles they are read as.
    declared, kept = ((one.kind, {k: v and float(v) for k, v in one.numbers.items()}) for one in promises)
    # Whole records have their class besides, which no spec names.
    columns = tuple(column for column in origin.fields if column != CLASS_COLUMN)
    for what, same in (
        ("has another bound", declared == kept),
        ("has other columns", columns == spec.whole.publish),
        ("is of another spec", origin.spec == spec.digest),
    ):
        if not same:
            raise LedgerError(
                f"version {record.version} was taken for this release, but it {what}; remove the cached files in the "
                "workspace and run the release again"
            )


def require_accounted(record: Record, folder: ReleaseFolder, earlier: Sequence[Earlier]) -> None:
    """Make sure that the record of a coming version tells what is in its folder, and counts its draw.

    Parameters
    ----------
    record : Record
        About to be written.
    folder : ReleaseFolder
        Of the coming version.
    earlier : sequence of Earlier
        All versions before it.

    Raises
    ------
    LedgerError
        If its number was used, it is of other rows or of another number of them, or calls a fresh draw none.
    """
    published = [one for one in earlier if one.published]
    rows = file_digest(folder.data)
    wrong = None
    if any(one.record.version == record.version for one in published):
        wrong = "its number was used before"
    elif record.files.get(folder.data.relative_to(folder.root).as_posix()) != rows:
        wrong = "it names other rows than those in its folder"
    elif record.rows != pq.read_metadata(folder.data).num_rows:
        wrong = "it names another number of records than those in its folder"
    elif not record.fresh and not any(
        one.rows_sha256 == rows or _keeps_answers(record, one.record) for one in published
    ):
        wrong = "it says that nobody was drawn again, and no version before it holds these answers"
    if wrong is not None:
        raise LedgerError(f"the record of version {record.version} is not true, so nothing was published: {wrong}")


def _keeps_answers(record: Record, before: Record) -> bool:
    """Whether records may have had their answers before: the same columns were drawn with the same release secret."""
    secret = record.origin.secret
    return secret is not None and (before.origin.secret, before.origin.fields) == (secret, record.origin.fields)
