"""Every byte of a parquet file accounted for: magic, pages one after another, footer, magic, and nothing between.

Read here apart from the library that wrote them (parquet.thrift of the Parquet format, in Thrift's compact protocol),
before that library decodes anything: so no page is larger than it may be, and nothing is hidden between pages.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import IO, Any

from funnel.errors import DataError

_MAGIC = b"PAR1"
_LARGEST_FOOTER = 1 << 26
_LONGEST_HEADER = 1 << 16
_DEEPEST = 12
# Rows of a released row group, and the most that a page may hold before it is compressed.
_LARGEST_PAGE = 1 << 25

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)


@dataclass(frozen=True)
class Layout:
    """What the file says of itself.

    Attributes
    ----------
    rows : int
    groups : tuple of int
        Rows of every row group.
    created_by : str
        The library that wrote it.
    metadata : tuple of str
        Keys of the metadata beside the data.
    """

    rows: int
    groups: tuple[int, ...]
    created_by: str
    metadata: tuple[str, ...]


def walk_pages(file: IO[bytes], largest_page: int = _LARGEST_PAGE) -> Layout:
    """Account for every byte of a parquet file.

    Parameters
    ----------
    file : binary file
    largest_page : int
        Bytes that a page may have once it is decompressed.

    Raises
    ------
    DataError
        If a byte belongs to nothing, a page is larger than that, or the file is damaged.

    Notes
    -----
    O(pages) time, memory for the footer.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if size < 12 or file.read(4) != _MAGIC:
        raise DataError("it is no parquet file")
    file.seek(size - 8)
    length, magic = struct.unpack("<I4s", file.read(8))
    if magic != _MAGIC or length + 12 > size or length > _LARGEST_FOOTER:
        raise DataError("it is no parquet file, or it was cut short")
    file.seek(size - 8 - length)
    try:
        reader = _Reader(file.read(length))
        footer = reader.fields()
        if reader.at != length:
            raise DataError("there are bytes after its footer")
        place = 4
        groups = []
        for group in footer[4]:
            for chunk in group[1]:
                place = _walk_chunk(file, chunk[3], place, largest_page)
            groups.append(int(group[3]))
        if place != size - 8 - length:
            raise DataError("there are bytes between its pages and its footer")
        metadata = tuple(entry[1].decode("utf-8", "replace") for entry in footer.get(5, ()))
        return Layout(int(footer[3]), tuple(groups), footer.get(6, b"").decode("utf-8", "replace"), metadata)
    except (IndexError, KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise DataError("its footer or a page is damaged") from error


def _walk_chunk(file: IO[bytes], data: dict[int, Any], place: int, largest_page: int) -> int:
    """Where a column chunk ends that has to begin at a place."""
    end = place + int(data[7])
    if min(data[9], data.get(11, data[9])) != place:
        raise DataError("a column does not begin where the one before it ends")
    while place < end:
        file.seek(place)
        reader = _Reader(file.read(_LONGEST_HEADER))
        header = reader.fields()
        if header[2] > largest_page or header[2] < 0 or header[3] < 0:
            raise DataError("a page is larger than any that funnel writes")
        place += reader.at + int(header[3])
    if place != end:
        raise DataError("a page ends after its column")
    return place


class _Reader:
    """Thrift's compact protocol as plain values: a structure as {field number: value}."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.at = 0
        self._depth = 0

    def fields(self) -> dict[int, Any]:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ValueError("too deep")
        found: dict[int, Any] = {}
        number = 0
        while (head := self._byte()) != 0:
            number = number + (head >> 4) if head >> 4 else _signed(self._varint())
            kind = head & 15
            if number in found:
                raise ValueError("a field is there twice")
            found[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind)
        self._depth -= 1
        return found

    def _value(self, kind: int) -> Any:
        if kind in (_TRUE, _FALSE, _BYTE):
            return self._byte()
        if kind in (_I16, _I32, _I64):
            return _signed(self._varint())
        if kind == _DOUBLE:
            return self._take(8)
        if kind == _BINARY:
            return self._take(self._varint())
        if kind in (_LIST, _SET):
            head = self._byte()
            count = head >> 4 if head >> 4 != 15 else self._varint()
            if count > len(self._content):
                raise ValueError("a list is longer than the file")
            return [self._value(head & 15) for _ in range(count)]
        if kind == _STRUCT:
            return self.fields()
        raise ValueError("an unknown type")

    def _byte(self) -> int:
        self.at += 1
        return self._content[self.at - 1]

    def _take(self, count: int) -> bytes:
        self.at += count
        if self.at > len(self._content):
            raise IndexError(self.at)
        return self._content[self.at - count : self.at]

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("a number has more than 64 bits")


def _signed(number: int) -> int:
    return (number >> 1) ^ -(number & 1)
