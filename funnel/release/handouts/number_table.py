"""Drawn numbers: a table beside the records that has a number of its interval for each, a function of what is public.

A number is made of the published records and of what is public about a column, and of nothing else: no record of the
source, no secret word, no key. So it tells nothing that the records do not tell, whatever is known or computed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from funnel.errors import SpecError
from funnel.numbers import steps_of
from funnel.protocol import Protocol
from funnel.release.csv_cells import guarded, guarded_column
from funnel.release.layout import ReleaseFolder
from funnel.settings.numbers import drawn_name
from funnel.spec import ReleaseSpec
from funnel.tables import even_tables, open_paged

# Records that words are made for at a time; a part of the rule, as is the name of it.
CHUNK = 1 << 16
RULE = b"funnel/drawn-numbers/1\n"
# How the table is written.
WRITTEN = {"compression": "zstd", "write_batch_size": CHUNK}

Steps = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class DrawnColumn:
    """A column of numbers that are drawn within what published texts stand for.

    Attributes
    ----------
    column : str
        Whose texts they are.
    decimals : int
        Digits after the point; intervals count in units of the last one.
    steps : mapping of text to tuple of (first, last)
        The whole numbers that each text stands for, in rising intervals apart; none where it has no number.
    """

    column: str
    decimals: int
    steps: Mapping[str, Steps]

    @property
    def name(self) -> str:
        """Of the column of numbers."""
        return drawn_name(self.column)

    @property
    def texts(self) -> tuple[str, ...]:
        """All that may be published of the column, in the order of the outputs."""
        return tuple(self.steps)

    def value(self, step: int) -> int | float:
        """The number of a step: whole where there are no decimals, else the nearest double."""
        return step / 10**self.decimals if self.decimals else step

    def ranges(self) -> dict[str, list[list[int | float]]]:
        """The numbers that each text stands for, ends included."""
        return {text: [[self.value(a), self.value(b)] for a, b in steps] for text, steps in self.steps.items()}


def drawn_columns(spec: ReleaseSpec, protocol: Protocol) -> list[DrawnColumn]:
    """The columns of numbers that a spec asks for.

    A text that is a bin, or a group of bins, stands for its numbers; any other one for those of all values that a
    record which is published so can have.

    Parameters
    ----------
    spec : ReleaseSpec
        With the recoding that the published values were made by.
    protocol : Protocol
        That is published.

    Raises
    ------
    SpecError
        If a bin has no number of so many decimals.
    """
    return [_drawn_column(spec, protocol, column) for column in spec.drawn_columns]


def _drawn_column(spec: ReleaseSpec, protocol: Protocol, column: str) -> DrawnColumn:
    group_of, of_label = spec.recode[column].group_of, dict[str, set[tuple[int, int]]]()
    for label, (first, last) in steps_of(spec, column).items():
        if last < first:
            raise SpecError(
                f"[numbers] {column!r}: no number with the declared decimals is in the bin {label!r}, so none can be "
                "drawn within it; give more decimals, or other bins"
            )
        of_label.setdefault(group_of.get(label, label), set()).add((first, last))
    values = _values_behind(protocol, column, of_label)
    steps = {text: {step for value in some for step in of_label.get(value, ())} for text, some in values.items()}
    return DrawnColumn(
        column, spec.numbers[column].decimals or 0, {text: tuple(sorted(some)) for text, some in steps.items()}
    )


def _values_behind(protocol: Protocol, column: str, numbered: Collection[str]) -> Mapping[str, Collection[str]]:
    """Of every text the values that it stands for: a value with numbers for itself, another text for all behind it."""
    place, shown = protocol.inputs.columns.index(column), protocol.outputs.columns.index(column)
    texts = [symbol[shown] for symbol in protocol.outputs.symbols]
    found: dict[str, set[str]] = {text: {text} if text in numbered else set() for text in texts}
    for y, x in zip(protocol.sparse.outputs.tolist(), protocol.sparse.inputs.tolist(), strict=True):
        if texts[y] not in numbered:
            found[texts[y]].add(protocol.inputs.symbols[x][place])
    return found


class NumbersOf:
    """The numbers of one column, in the order of the records.

    Parameters
    ----------
    drawn : DrawnColumn
    seed : bytes
        From `seed_of`.
    """

    def __init__(self, drawn: DrawnColumn, seed: bytes) -> None:
        most = max(map(len, drawn.steps.values()))
        widths = np.zeros((len(drawn.steps), most), dtype=np.int64)
        firsts = np.zeros_like(widths)
        for code, steps in enumerate(drawn.steps.values()):
            for j, (first, last) in enumerate(steps):
                firsts[code, j], widths[code, j] = first, last - first + 1
        # How many numbers are before each interval, and in all.
        ends = np.cumsum(widths, axis=1)
        self._before, self._sizes = ends - widths, ends[:, -1] if most else np.zeros(len(widths), dtype=np.int64)
        self._firsts, self._seed, self._chunk = firsts, seed, 0

    def next(self, codes: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Steps of the next records, `CHUNK` of them but for the last, by positions of their texts; and where none is.

        The word w of a record, uniform on 0 to 2^64 - 1, becomes number ``floor(w k / 2^64)`` of k: each has a
        probability that is less than 2^-64 away from 1/k.
        """
        words = np.frombuffer(_words(self._seed, self._chunk, len(codes)), dtype="<u8").astype(np.uint64)
        self._chunk += 1
        sizes = self._sizes[codes]
        chosen = _parts(words, sizes.astype(np.uint64)).astype(np.int64)
        none = sizes == 0
        if none.all():
            return np.zeros(len(codes), dtype=np.int64), none
        # The last interval that does not begin after it; those that are not there begin where the others end.
        interval = (self._before[codes] <= chosen[:, None]).sum(axis=1) - 1
        interval = np.minimum(interval, np.maximum((self._before < self._sizes[:, None]).sum(axis=1)[codes] - 1, 0))
        return self._firsts[codes, interval] + chosen - self._before[codes, interval], none


def _words(seed: bytes, chunk: int, number: int) -> bytes:
    return hashlib.shake_256(seed + chunk.to_bytes(8, "little")).digest(8 * number)


def _parts(words: npt.NDArray[np.uint64], sizes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """``floor(word size / 2^64)``, exactly, by halves of 32 bits."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    low, high, size_low, size_high = words & mask, words >> half, sizes & mask, sizes >> half
    one, other = low * size_high, high * size_low
    carried = ((low * size_low) >> half) + (one & mask) + (other & mask)
    return np.asarray(high * size_high + (one >> half) + (other >> half) + (carried >> half))


def seed_of(column: str, codes: Iterator[npt.NDArray[np.int64]]) -> bytes:
    """SHA-256 of the rule, the name of the column, and the positions of the texts of all records, 32 bits each."""
    digest = hashlib.sha256(RULE + column.encode() + b"\n")
    for some in codes:
        digest.update(some.astype("<u4").tobytes())
    return digest.digest()


def write_drawn_numbers(drawn: Sequence[DrawnColumn], folder: ReleaseFolder, csv: bool) -> None:
    """Write the table of numbers, from the records that are about to be published; also as csv if that is asked for.

    Parameters
    ----------
    drawn : sequence of DrawnColumn
        Nothing is written without any.
    folder : ReleaseFolder
    csv : bool

    Notes
    -----
    The records are read once for every column, and once more; memory for one row group.
    """
    if not drawn:
        return
    makers = []
    for one in drawn:
        with open_paged(folder.data) as file:
            makers.append(NumbersOf(one, seed_of(one.column, _codes(file, one))))
    with open_paged(folder.data) as file:
        fields = [pa.field(one.name, pa.float64() if one.decimals else pa.int64()) for one in drawn]
        schema = pa.schema([*(field.remove_metadata() for field in file.schema_arrow), *fields])
        texts = pa.schema([(guarded(name), pa.string()) for name in schema.names])
        with (
            pq.ParquetWriter(folder.drawn, schema, **WRITTEN) as writer,
            pacsv.CSVWriter(folder.drawn_csv, texts) if csv else nullcontext() as copy,
        ):
            for table in even_tables(file.iter_batches(CHUNK), CHUNK):
                columns: list[pa.Array] = [column.combine_chunks() for column in table.columns]
                shown = [guarded_column(column.cast(pa.string())) for column in columns]
                for one, maker in zip(drawn, makers, strict=True):
                    steps, none = maker.next(_positions(table[one.column], one))
                    numbers = steps / 10**one.decimals if one.decimals else steps
                    columns.append(pa.array(numbers, mask=none))
                    shown.append(pa.array([_written(step, one.decimals) for step in steps.tolist()], mask=none))
                writer.write_table(pa.Table.from_arrays(columns, schema=schema))
                if copy is not None:
                    copy.write_table(pa.Table.from_arrays(shown, schema=texts))


def _written(step: int, decimals: int) -> str:
    """A number with all of its decimals."""
    if not decimals:
        return str(step)
    whole, part = divmod(abs(step), 10**decimals)
    return f"{'-' if step < 0 else ''}{whole}.{part:0{decimals}}"


def _codes(file: pq.ParquetFile, drawn: DrawnColumn) -> Iterator[npt.NDArray[np.int64]]:
    for batch in file.iter_batches(CHUNK, columns=[drawn.column]):
        yield _positions(batch.column(0), drawn)


def _positions(column: pa.Array | pa.ChunkedArray, drawn: DrawnColumn) -> npt.NDArray[np.int64]:
    """The positions of its texts, all of which may be published."""
    found = pc.index_in(column.cast(pa.string()), value_set=pa.array(drawn.texts, pa.string()))
    return np.asarray(found.to_numpy(), dtype=np.int64)
