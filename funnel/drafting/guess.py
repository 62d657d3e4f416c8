"""Guesses about a file before it is read: of a csv file its encoding and delimiter, of a workbook its sheet."""

from __future__ import annotations

import codecs
import csv
import io
import shlex
from contextlib import closing
from itertools import islice

from funnel.errors import SpecError
from funnel.readers.formats.excel import Excel
from funnel.readers.formats.packed import guarded, open_unpacked
from funnel.readers.source_files import find_files
from funnel.wording import listed

_BLOCK_BYTES = 1 << 20
_LINES = 200
_DELIMITERS = ",;\t|"
_MARKED = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def guessed(address: str) -> dict[str, str]:
    """Settings of ``[source]`` for a csv file, those at their defaults left out.

    Raises
    ------
    DataError
        If it cannot be read.
    """

    def beginning() -> bytes:
        with closing(open_unpacked(address)) as stream:
            found = b""
            while len(found) < _BLOCK_BYTES and (more := stream.read(_BLOCK_BYTES - len(found))):
                found += more
            return found

    # Looked for first: that has the better sentence for a file that is not there.
    find_files(address, "csv")
    block = guarded(address, beginning)
    encoding = _encoding(block)
    delimiter = _delimiter(codecs.getincrementaldecoder(encoding)(errors="replace").decode(block))
    is_tabbed = ".tsv" in address.lower()
    said = {} if encoding == "utf-8" else {"encoding": encoding}
    return said if delimiter == ("\t" if is_tabbed else ",") else {**said, "delimiter": delimiter}


def only_sheet(address: str, title: str) -> dict[str, str]:
    """Which sheet of a workbook is read, where it is not the first.

    Raises
    ------
    SpecError
        If several have rows.
    DataError
        If it cannot be read.
    """
    sheets, first = Excel().filled_sheets(address)
    if len(sheets) > 1:
        raise SpecError(
            f"{title} has {len(sheets)} sheets with rows: say which to read, as in --table "
            f"{shlex.quote(sheets[0])} (it has {listed(sheets)})"
        )
    return {"table": sheets[0]} if sheets and sheets[0] != first else {}


def _encoding(block: bytes) -> str:
    for mark, name in _MARKED:
        if block.startswith(mark):
            return name
    try:
        # A block may end within a character.
        codecs.getincrementaldecoder("utf-8")().decode(block, final=len(block) < _BLOCK_BYTES)
    except UnicodeDecodeError:
        # Every byte means something there but five; it is what old programs write on most machines.
        return "cp1252"
    return "utf-8"


def _delimiter(text: str) -> str:
    """The character that cuts the first lines into the same number of values, most of them."""

    def fit(delimiter: str) -> tuple[float, int]:
        try:
            rows = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=delimiter)
            widths = [len(row) for row in islice(rows, _LINES) if row]
        except csv.Error:
            return 0.0, 0
        if not widths or widths[0] < 2:
            return 0.0, 0
        return widths.count(widths[0]) / len(widths), widths[0]

    return max(_DELIMITERS, key=fit)
