"""Splicing: several parquet files of one schema become one file, byte for byte their row groups, encoded by anybody.

Encoding is most of the work of a release, and workers do it in files of their own. Their row groups are copied into one
file, and the footer is made from theirs: every place in it moves by as much as its row group moved. The footer is a
structure in Thrift's compact protocol (parquet.thrift of the Parquet format), read here into plain fields and written
back with nothing but those places, the numbers of row groups and the number of rows changed.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from funnel.errors import DataError

_MAGIC = b"PAR1"
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)

# Numbers of the fields, by the names of parquet.thrift.
_NUM_ROWS, _ROW_GROUPS = 3, 4
_COLUMNS, _GROUP_OFFSET, _ORDINAL = 1, 5, 7
_CHUNK_OFFSET, _META_DATA = 2, 3
_PLACES_IN_META_DATA = (9, 10, 11, 14)  # data, index and dictionary pages, bloom filter
_PLACES_IN_CHUNK = (4, 6)  # offset index, column index

# A structure as {field number: (type, value)}; a list as (type of its elements, values).
Struct = dict[int, tuple[int, Any]]


def splice(parts: Sequence[Path], target: str | os.PathLike[str]) -> int:
    """Write one parquet file with the row groups of several, in their order; return its number of rows.

    Parameters
    ----------
    parts : sequence of Path
        Files of the same schema, at least one, each without encryption.
    target : path
        The file to write.

    Raises
    ------
    DataError
        If a part is no parquet file or has another schema than the first.

    Notes
    -----
    O(bytes): nothing is decoded. Memory for the footers.
    """
    if not parts:
        raise DataError("there are no parts to put together into one file")
    first = _footer(parts[0])
    groups: list[Struct] = []
    with Path(target).open("wb") as file:
        file.write(_MAGIC)
        for part in parts:
            footer = _footer(part)
            alike = (set(footer) | set(first)) - {_NUM_ROWS, _ROW_GROUPS}
            if any(footer.get(field) != first.get(field) for field in alike):
                raise DataError(f"the part {part.name} has another schema than the first part; make it anew")
            shift = file.tell() - len(_MAGIC)
            for group in footer[_ROW_GROUPS][1][1]:
                _move(group, shift, len(groups))
                groups.append(group)
            with part.open("rb") as source:
                source.seek(len(_MAGIC))
                _copy(source, file, _end_of_data(part) - len(_MAGIC))
        first[_ROW_GROUPS] = (_LIST, (_STRUCT, groups))
        rows = sum(group[3][1] for group in groups)
        first[_NUM_ROWS] = (_I64, rows)
        written = bytearray()
        _write_struct(written, first)
        file.write(written + struct.pack("<I", len(written)) + _MAGIC)
    return int(rows)


def _copy(source: Any, target: Any, count: int) -> None:
    piece = 1 << 20
    while count:
        content = source.read(min(piece, count))
        if not content:
            raise DataError("a part of the released rows was cut short while it was read; run the release again")
        target.write(content)
        count -= len(content)


def _move(group: Struct, shift: int, ordinal: int) -> None:
    """Add to every place of a row group, and give it its number."""
    _add(group, _GROUP_OFFSET, shift)
    if _ORDINAL in group:
        group[_ORDINAL] = (_I16, ordinal)
    for chunk in group[_COLUMNS][1][1]:
        # 0 where the writer leaves this field, which is deprecated, unused.
        if chunk[_CHUNK_OFFSET][1]:
            _add(chunk, _CHUNK_OFFSET, shift)
        for field in _PLACES_IN_CHUNK:
            _add(chunk, field, shift)
        for field in _PLACES_IN_META_DATA:
            _add(chunk[_META_DATA][1], field, shift)


def _add(fields: Struct, field: int, shift: int) -> None:
    if field in fields:
        kind, place = fields[field]
        fields[field] = (kind, place + shift)


def _end_of_data(part: Path) -> int:
    """Where the footer of a part starts."""
    size = part.stat().st_size
    with part.open("rb") as file:
        start = file.read(len(_MAGIC))
        file.seek(max(0, size - 8))
        end = file.read(8)
    length = struct.unpack("<I", end[:4])[0] if len(end) == 8 else 0
    if start != _MAGIC or end[4:] != _MAGIC or length + 12 > size:
        raise DataError(f"the part {part.name} is no parquet file, or it was cut short; make it anew")
    return size - 8 - int(length)


def _footer(part: Path) -> Struct:
    end = _end_of_data(part)
    with part.open("rb") as file:
        file.seek(end)
        content = file.read()
    reader = _Reader(content[:-8])
    try:
        footer = reader.struct()
    except (IndexError, KeyError) as error:
        raise DataError(f"the footer of the part {part.name} is damaged; make it anew") from error
    if not reader.at_end or not {_NUM_ROWS, _ROW_GROUPS} <= footer.keys():
        raise DataError(f"the footer of the part {part.name} is damaged; make it anew")
    return footer


class _Reader:
    """Reads Thrift's compact protocol into plain fields."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    @property
    def at_end(self) -> bool:
        """Whether all has been read."""
        return self._at == len(self._content)

    def struct(self) -> Struct:
        fields: Struct = {}
        number = 0
        while (head := self._byte()) != 0:
            number = number + (head >> 4) if head >> 4 else _signed(self._varint())
            kind = head & 15
            fields[number] = (kind, kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind))
        return fields

    def _value(self, kind: int) -> Any:
        if kind in (_TRUE, _FALSE):
            return self._byte() == _TRUE
        if kind == _BYTE:
            return self._byte()
        if kind in (_I16, _I32, _I64):
            return _signed(self._varint())
        if kind == _DOUBLE:
            return self._take(8)
        if kind == _BINARY:
            return self._take(self._varint())
        if kind in (_LIST, _SET):
            head = self._byte()
            size = head >> 4 if head >> 4 != 15 else self._varint()
            return head & 15, [self._value(head & 15) for _ in range(size)]
        if kind == _STRUCT:
            return self.struct()
        raise KeyError(kind)

    def _byte(self) -> int:
        self._at += 1
        return self._content[self._at - 1]

    def _take(self, count: int) -> bytes:
        self._at += count
        if self._at > len(self._content):
            raise IndexError(self._at)
        return self._content[self._at - count : self._at]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value


def _write_struct(out: bytearray, fields: Struct) -> None:
    last = 0
    for number in sorted(fields):
        kind, value = fields[number]
        if kind in (_TRUE, _FALSE):
            kind = _TRUE if value else _FALSE
        if 0 < number - last <= 15:
            out.append((number - last) << 4 | kind)
        else:
            out.append(kind)
            _write_varint(out, _unsigned(number))
        last = number
        if kind not in (_TRUE, _FALSE):
            _write_value(out, kind, value)
    out.append(0)


def _write_value(out: bytearray, kind: int, value: Any) -> None:
    if kind in (_TRUE, _FALSE):
        out.append(_TRUE if value else _FALSE)
    elif kind == _BYTE:
        out.append(value)
    elif kind in (_I16, _I32, _I64):
        _write_varint(out, _unsigned(value))
    elif kind == _DOUBLE:
        out += value
    elif kind == _BINARY:
        _write_varint(out, len(value))
        out += value
    elif kind == _STRUCT:
        _write_struct(out, value)
    else:
        element, values = value
        if len(values) < 15:
            out.append(len(values) << 4 | element)
        else:
            out.append(15 << 4 | element)
            _write_varint(out, len(values))
        for one in values:
            _write_value(out, element, one)


def _write_varint(out: bytearray, value: int) -> None:
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def _signed(number: int) -> int:
    return (number >> 1) ^ -(number & 1)


def _unsigned(number: int) -> int:
    return number << 1 if number >= 0 else (-number << 1) - 1
