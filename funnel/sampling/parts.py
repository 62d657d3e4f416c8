"""What a worker does: draw a partition, and write a part; each a function of the plan, with a result on disk.

A result is a file and beside it a record of its digest. Both are written under temporary names and renamed, the record
last: so a result is there whole or not at all, whenever a worker dies, and whoever takes over the task finds it or
makes it. Fresh words come from a stream that the worker makes for the task alone; two workers never share one.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol as Interface

import numpy as np
import pyarrow as pa
from pydantic import ConfigDict, TypeAdapter

from funnel.errors import DataError
from funnel.joint import Joint
from funnel.sampling.answers import Answers, answers
from funnel.sampling.chunks import even_chunks
from funnel.sampling.codes import CodeArray, InputEncoder
from funnel.sampling.draw_counts import CellCounts
from funnel.sampling.key_column import KEY_COLUMN
from funnel.sampling.output_columns import GROUP_ROWS, ReleaseWriter
from funnel.sampling.partitions import Plan
from funnel.sampling.random_words import WordArray
from funnel.sampling.row_order import code_bits, order_words, released_order, sorted_pieces
from funnel.sampling.row_words import RowWords, words_for
from funnel.sampling.spill import bounds_of, read_rows, write_rows
from funnel.sampling.word_record import WordRecord, rarity_for
from funnel.storage import writing_in
from funnel.tables import open_paged
from funnel.word_statistics import WordStatistics

_READ_ROWS = 1 << 17


class Work(Interface):
    """What results of tasks are of: a plan."""

    @property
    def folder(self) -> str:
        """Private folder for what workers hand on."""

    @property
    def digest(self) -> str:
        """What the content of the working files depends on."""


@dataclass(frozen=True)
class Done:
    """The result of a task.

    Attributes
    ----------
    file : str
        Name of the file in the folder of the plan.
    digest : str
        BLAKE2b of its bytes.
    rows : int
    cells : bytes
        Of a drawn partition, the cells of its `DrawnCounts` and then their records, as little-endian 64-bit numbers.
    bounds : tuple of tuples of int
        For every piece of a partition that is to be shuffled, the place of the first row of each part, and the end.
    words : tuple of WordStatistics
        Of the words of every purpose of the plan, in order.
    """

    file: str
    digest: str
    rows: int
    cells: bytes = field(default=b"", repr=False)
    bounds: tuple[tuple[int, ...], ...] = ()
    words: tuple[WordStatistics, ...] = ()


# A result on disk: the digest of the plan that it is of, and what is noted of it.
_RECORD = TypeAdapter(tuple[str, Done], config=ConfigDict(ser_json_bytes="base64", val_json_bytes="base64"))


def draw_partition(plan: Plan, index: int) -> Done:
    """Draw the outputs of a partition: encoded, if the order is kept, else sorted by part."""
    published = plan.published
    name = f"partition-{index:05d}.{'codes' if plan.shuffle else 'parquet'}"

    def make(path: Path) -> Done:
        b, words = published.size, words_for(plan.keys)
        seen = _Seen(plan)

        def counted() -> Iterator[Answers]:
            for drawn in _drawn(plan, index, words):
                seen.drawn(drawn)
                yield replace(drawn, outputs=published.codes(drawn, seen.donating(words)))

        bounds: list[tuple[int, ...]] = []
        if plan.shuffle:
            tagged = (seen.ordered(order_words(drawn, b, words)) for drawn in counted())
            bounds += write_by_part(path, tagged, plan.parts)
        else:
            with ReleaseWriter(path, published.columns()) as writer:
                for chunk in even_chunks((drawn.outputs for drawn in counted()), GROUP_ROWS):
                    writer.write(chunk)
        counts = seen.counts.counts()
        cells = np.stack([counts.cells, counts.records]).astype("<i8").tobytes()
        return Done(name, "", counts.n, cells, tuple(bounds), seen.words())

    return result_of(plan, name, make)


def count_partition(
    snapshot: str,
    groups: tuple[int, int],
    secret: tuple[str, ...],
    inputs: tuple[str, ...],
    order: Mapping[str, Sequence[str]],
) -> Joint:
    """Count the joint distribution of the secret and the input in some row groups of a snapshot."""
    return Joint.from_batches(row_groups(snapshot, groups, [*secret, *inputs]), secret, inputs, order)


def write_part(plan: Plan, part: int, drawn: tuple[Done, ...]) -> Done:
    """Put the rows of a part, from all partitions, into their final order and encode them."""
    published = plan.published
    name = f"part-{part:05d}.parquet"

    def make(path: Path) -> Done:
        codes = released_order(read_part(plan, part, drawn), published.size, words_for(plan.keys))
        with ReleaseWriter(path, published.columns()) as writer:
            writer.write(codes)
        return Done(name, "", len(codes))

    return result_of(plan, name, make)


def row_groups(snapshot: str, groups: tuple[int, int], columns: list[str]) -> Iterator[pa.RecordBatch]:
    """The named columns of some row groups of a snapshot."""
    with open_paged(snapshot) as file:
        yield from file.iter_batches(_READ_ROWS, row_groups=list(range(*groups)), columns=columns, use_threads=False)


def _drawn(plan: Plan, index: int, words: RowWords) -> Iterator[Answers]:
    secret = () if plan.secret is None else plan.secret.columns
    # A protocol that reads the secret has its columns among the inputs.
    columns = list(dict.fromkeys([*plan.protocol.inputs.columns, *plan.published.reads, *secret]))
    batches = row_groups(plan.snapshot, plan.groups[index], columns + ([] if plan.keys is None else [KEY_COLUMN]))
    return answers(batches, plan.protocol, words)


class _Seen:
    """What is noted of a partition while it is drawn, for those who judge it."""

    def __init__(self, plan: Plan) -> None:
        secrets = 0 if plan.secret is None else len(plan.secret)
        b, a = plan.protocol.size
        self.counts = CellCounts(a, b, secrets)
        self._secret = None if plan.secret is None else InputEncoder(plan.secret)
        rarity, scopes = rarity_for(plan.rows), {} if plan.keys is None else plan.keys.scopes
        fixed, told_apart = {"order": code_bits(plan.published.size)}, {"order": secrets}
        self._words = {
            use: WordRecord(rarity, fixed.get(use, 0), scopes.get(use), told_apart.get(use, 0)) for use in plan.purposes
        }
        self._secrets: CodeArray | None = None

    def drawn(self, some: Answers) -> None:
        """Note what was drawn."""
        self._secrets = secrets = None if self._secret is None else self._secret.codes(some.batch)
        self.counts.add(some.inputs, some.outputs, secrets)
        self._words["draw"].add(some.words)

    def donating(self, words: RowWords) -> Callable[[pa.RecordBatch, int], WordArray]:
        """Words for donors, noted as they are taken; further attempts, for one record in thousands, are not."""

        def noted(batch: pa.RecordBatch, attempt: int) -> WordArray:
            found = words.to_donate(batch, attempt)
            if not attempt:
                self._words["donors"].add(found)
            return found

        return noted

    def ordered(self, tagged: WordArray) -> WordArray:
        """Note what the rows that were drawn last travel as, and hand it on."""
        self._words["order"].add(tagged, self._secrets)
        return tagged

    def words(self) -> tuple[WordStatistics, ...]:
        """Of the words of every purpose."""
        return tuple(one.statistics() for one in self._words.values())


def write_by_part(path: Path, tagged: Iterable[WordArray], parts: int) -> Iterator[tuple[int, ...]]:
    """Write rows piece by piece, within a piece sorted by part; say where in each piece the parts begin."""
    at = 0
    with path.open("wb", buffering=0) as file:
        for piece, sizes in sorted_pieces(tagged, parts):
            write_rows(file, piece)
            yield tuple(bounds_of(sizes, at).tolist())
            at += len(piece)


def read_part(plan: Work, part: int, drawn: tuple[Done, ...]) -> WordArray:
    """What the rows of a part travel as, from all partitions.

    Raises
    ------
    DataError
        If a working file was cut short.
    """
    sizes = [sum(bounds[part + 1] - bounds[part] for bounds in done.bounds) for done in drawn]
    words, at = np.empty(sum(sizes), dtype=np.uint64), 0
    for done, size in zip(drawn, sizes, strict=True):
        ranges = [(bounds[part], bounds[part + 1]) for bounds in done.bounds]
        try:
            with (Path(plan.folder) / done.file).open("rb", buffering=0) as file:
                read_rows(file, ranges, words[at : at + size])
        except EOFError:
            raise DataError(f"the working file {done.file} was cut short; run the release again") from None
        at += size
    return words


def result_of(plan: Work, name: str, make: Callable[[Path], Done]) -> Done:
    """The result that is there already, if it is whole and of this very plan; else what ``make`` writes."""
    folder = Path(plan.folder)
    record = folder / f"{name}.json"
    if (found := _found(folder, record, plan)) is not None:
        return found
    token = secrets.token_hex(6)
    temporary = folder / f".{name}.{token}"
    said = folder / f".{name}.json.{token}"
    try:
        with writing_in(folder):
            made = make(temporary)
            done = replace(made, digest=content_digest(temporary))
            temporary.replace(folder / name)
            said.write_bytes(_RECORD.dump_json((plan.digest, done)))
            said.replace(record)
    finally:
        temporary.unlink(missing_ok=True)
        said.unlink(missing_ok=True)
    return done


def _found(folder: Path, record: Path, plan: Work) -> Done | None:
    if not record.is_file():
        return None
    try:
        digest, done = _RECORD.validate_json(record.read_bytes())
    except ValueError:
        return None
    path = folder / done.file
    return done if digest == plan.digest and path.is_file() and content_digest(path) == done.digest else None


def content_digest(path: str | os.PathLike[str]) -> str:
    """BLAKE2b of a file: to notice that a working file is not the one that was written."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=32)).hexdigest()


def require_unchanged(path: Path, digest: str) -> None:
    """Refuse a working file that is no longer what a worker wrote.

    Raises
    ------
    DataError
        If its bytes have another digest.
    """
    if content_digest(path) != digest:
        raise DataError(f"the working file {path.name} was changed; run the release again")
