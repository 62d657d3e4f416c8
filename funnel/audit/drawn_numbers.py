"""Numbers drawn within intervals, made again from the published records: all numbers and all bytes of their tables."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain, repeat
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from funnel.audit.check import Result, State, check, judged
from funnel.audit.encoding import UNREADABLE, WRITTEN, Compared, encoding_check, regrouped, unreadable
from funnel.audit.files import opened
from funnel.audit.package import TABLES, fields_of
from funnel.audit.pages import Layout, walk_pages
from funnel.errors import DataError
from funnel.recount.drawn_numbers import CHUNK, PlainNumbers, csv_cells_again, parsed_numbers, seed_again
from funnel.recount.published import csv_line, in_csv
from funnel.release.layout import ReleaseFolder
from funnel.tables import open_paged

if TYPE_CHECKING:
    from funnel.audit.context import AuditContext

Behind = Mapping[str, Mapping[str, Collection[str]]]
"""Of every published column, in their order, and of every text of it, in theirs, the true values that it may be of."""


def check_drawn_numbers(folder: ReleaseFolder, behind: Behind, package: dict[str, Any]) -> list[Result]:
    """Whether numbers are what the published records make, and whether their tables are what funnel writes of them.

    Nothing of the source is needed: each number is a function of the published records and of the intervals that the
    data package tells.

    Parameters
    ----------
    folder : ReleaseFolder
    behind : mapping of column to mapping of text to values
        As the protocol has it: `sources_of` every column.
    package : JSON object

    Notes
    -----
    O(rows) time for each column of numbers; memory for one row group.
    """
    try:
        told = _declared(package, behind)
        wrong = [said for one in told for said in _unlike_bins(package, one, behind[one.column])]
        if wrong:
            return [judged("drawn numbers", wrong, "")]
        layout, difference, differs = _difference(folder, [*behind], told)
    except UNREADABLE as error:
        return [Result("drawn numbers", State.FAILED, unreadable(error))]
    columns = ", ".join(one.name for one in told)
    if difference is not None:
        return [judged("drawn numbers", [difference], "")]
    why = f"every one of {columns} is what the published records make; none was taken from the source"
    return [judged("drawn numbers", [], why), encoding_check("drawn numbers table", differs, layout)]


@check("drawn numbers", "numbers")
def check_numbers_drawn(known: AuditContext) -> Result:
    """Every drawn number is the one that the published records and the declared intervals make."""
    return known.drawn_numbers[0]


@check("drawn numbers table", "numbers")
def check_numbers_table(known: AuditContext) -> Result | None:
    """The table of drawn numbers is to the byte what funnel writes."""
    return next(iter(known.drawn_numbers[1:]), None)


def _declared(package: dict[str, Any], behind: Behind) -> list[PlainNumbers]:
    fields = fields_of(package, TABLES[0])[len(behind) :]
    if not fields:
        raise DataError("the data package tells of no column of numbers")
    return [parsed_numbers(field, behind) for field in fields]


def _unlike_bins(package: dict[str, Any], told: PlainNumbers, behind: Mapping[str, Collection[str]]) -> Iterator[str]:
    """Where what texts stand for is not made of the bins that the data package tells, and of all that are behind it."""
    fields = fields_of(package, TABLES[0])
    bins = next((field.get("funnel:numbers") for field in fields if field.get("name") == told.column), None) or {}
    of_bin = {text: [list(map(float, ends))] for text, ends in bins.get("intervals", {}).items()}
    known = [ends for (ends,) in of_bin.values()]
    ranges = {text: [list(map(float, ends)) for ends in some] for text, some in told.ranges.items()}
    values = frozenset[str]().union(*behind.values())
    for text, found in ranges.items():
        # What a value stands for that is no bin, such as a group of them, is told where it is published by itself.
        own = [of_bin.get(value, ranges.get(value)) for value in behind[text]]
        sure = [ends for some in own if some is not None for ends in some]
        if text in of_bin and found != of_bin[text]:
            yield f"{told.name} of {text!r} are not those of its bin"
        elif any(ends not in known for ends in found):
            yield f"{told.name} of {text!r} are of no bins"
        elif text not in values and (
            any(ends not in found for ends in sure) or (None not in own and any(ends not in sure for ends in found))
        ):
            yield f"{told.name} of {text!r} are not those of all values that it may be of"


def _difference(
    folder: ReleaseFolder, columns: Sequence[str], told: Sequence[PlainNumbers]
) -> tuple[Layout, str | None, int | None]:
    """How the table is laid out; where its cells differ from those that follow, in words; and where its bytes do."""
    seeds = [seed_again(one.column, chain.from_iterable(_codes(folder, one))) for one in told]
    names = [*columns, *(one.name for one in told)]
    with ExitStack() as files:
        records, file, again = (files.enter_context(opened(path)) for path in (folder.data, folder.drawn, folder.drawn))
        copy = files.enter_context(opened(folder.drawn_csv)) if folder.drawn_csv.exists() else None
        layout = walk_pages(file, 1 << 26)
        file.seek(0)
        sink = Compared(again)
        table, numbers = files.enter_context(open_paged(records)), files.enter_context(open_paged(file))
        fields = [pa.field(one.name, pa.float64() if one.decimals else pa.int64()) for one in told]
        schema = pa.schema([*table.schema_arrow, *fields])
        if not numbers.schema_arrow.equals(schema):
            return layout, "the table of numbers has other columns, or types, than the data package tells", None
        theirs = regrouped(numbers, repeat(CHUNK))
        if copy is not None and not _reads(copy, csv_line(map(in_csv, names))):
            return layout, "the header of the csv is not that of the table", None
        with pq.ParquetWriter(pa.PythonFile(sink, mode="w"), schema, **WRITTEN) as writer:
            for chunk, ours in enumerate(regrouped(table, repeat(CHUNK))):
                steps = [
                    one.steps(_positions(ours[one.column], one), seed, chunk)
                    for one, seed in zip(told, seeds, strict=True)
                ]
                made, found = _made(ours, told, steps, schema), next(theirs, None)
                where = f"from record {chunk * CHUNK + 1:,} on"
                if found is None or not _same(found, made):
                    return layout, f"{where} numbers are others than the published records make", None
                if copy is not None and not all(_reads(copy, line) for line in _lines(ours, told, steps)):
                    return layout, f"{where} the csv is not what the table says", None
                writer.write_table(made)
        if next(theirs, None) is not None or (copy is not None and copy.read(1)):
            return layout, "there are numbers of more records than are published", None
        return layout, None, sink.difference()


def _made(
    records: pa.Table, told: Sequence[PlainNumbers], steps: Sequence[Sequence[int | None]], schema: pa.Schema
) -> pa.Table:
    made: list[pa.Array] = [column.combine_chunks() for column in records.columns]
    for one, of_one in zip(told, steps, strict=True):
        kind = pa.float64() if one.decimals else pa.int64()
        made.append(pa.array([None if step is None else one.number(step) for step in of_one], kind))
    return pa.Table.from_arrays(made, schema=schema)


def _lines(records: pa.Table, told: Sequence[PlainNumbers], steps: Sequence[Sequence[int | None]]) -> Iterator[bytes]:
    rows = zip(*(column.to_pylist() for column in records.columns), strict=True)
    for texts, of_row in zip(rows, zip(*steps, strict=True), strict=True):
        yield csv_line(csv_cells_again(texts, of_row, told))


def _reads(file: IO[bytes], line: bytes) -> bool:
    return file.read(len(line)) == line


def _same(found: pa.Table, made: pa.Table) -> bool:
    return found.num_rows == made.num_rows and all(
        theirs.to_pylist() == ours.to_pylist() for theirs, ours in zip(found.columns, made.columns, strict=True)
    )


def _codes(folder: ReleaseFolder, told: PlainNumbers) -> Iterator[list[int]]:
    with opened(folder.data) as records, open_paged(records) as table:
        for batch in table.iter_batches(CHUNK, columns=[told.column]):
            yield _positions(batch.column(0), told)


def _positions(column: pa.Array | pa.ChunkedArray, told: PlainNumbers) -> list[int]:
    place: Mapping[str, int] = {text: code for code, text in enumerate(told.intervals)}
    try:
        return [place[text] for text in column.to_pylist()]
    except KeyError:
        raise DataError("a record has a text of which the data package tells no numbers") from None
