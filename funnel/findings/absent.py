"""Absent combinations: published records whose combination of values no record of the source has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from funnel.combinations import count_combinations
from funnel.joint import IntArray, Joint
from funnel.protocol import Protocol


def absent_records(joint: Joint, protocol: Protocol, drawn: IntArray) -> int | None:
    """How many published records have a combination of values with a count of zero; None where outputs are sets.

    Parameters
    ----------
    joint : Joint
        Counts of (S, X).
    protocol : Protocol
        The published one, of b outputs.
    drawn : ndarray of int64, shape (b,)
        Published records by output.

    Notes
    -----
    Of public counts the number follows from public files alone: every observer has the records and the combinations
    that ``protocol.json`` gives a share above zero, and learns nothing more of a person by it.

    Of exact counts that noise protects it is internal, and differs: a combination that no record has may have a noisy
    count above zero, and one that some have may have none. An observer who was told which, or how many, would learn
    whether single records exist, which is what the noise hides.
    """
    if not protocol.is_invariant:
        return None
    published = joint.over_published(protocol.outputs.columns)
    there = {x for x, share in zip(published.inputs.symbols, published.p_input, strict=True) if share > 0}
    return sum(int(n) for y, n in zip(protocol.outputs.symbols, drawn, strict=True) if y not in there)


def absent_whole_records(released: Path, snapshot: Path, columns: tuple[str, ...]) -> int:
    """The same of whole records, which are drawn by class, by exact counts; internal.

    Parameters
    ----------
    released, snapshot : Path
        Parquet files of the published records and of those of the source, recoded.
    columns : tuple of str
        The published ones, the secret among them where it is published. Without it every published record is one of
        the source; with it a secret is drawn by class, and may be one that none of these has.
    """
    there, _ = count_combinations(_batches(snapshot, columns), columns)
    published, _ = count_combinations(_batches(released, columns), columns)
    return sum(n for record, n in published.items() if record not in there)


def _batches(path: Path, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(path) as file:
        yield from file.iter_batches(columns=list(columns))
