"""Time zones of the columns of a parquet file: stated in a schema of Arrow's own beside that of the format."""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Iterator, Sequence
from typing import cast

from funnel.errors import DataError

# Where things are in the tables of the format (Schema.fbs and Message.fbs of Apache Arrow).
_HEADER, _FIELDS, _NAME, _KIND, _TYPE, _ZONE = 2, 1, 0, 2, 3, 1
_TIMESTAMP = 10
_CONTINUED = 0xFFFFFFFF


def zones_of(stored: Sequence[tuple[bytes]], shown: str) -> dict[str, str]:
    """The time zone of every column that has one.

    The format itself says only that points in time are counted from 1970 in Greenwich; the zone that they are to be
    written in stands in a schema that Arrow stores with the file, as a flat buffer.

    Parameters
    ----------
    stored : sequence of tuple of bytes
        What the file has under ``ARROW:schema``: nothing, or one value.
    shown : str
        The name of the file, for messages.

    Raises
    ------
    DataError
        If it is damaged.
    """
    if not stored:
        return {}
    try:
        return dict(_zones(base64.b64decode(stored[0][0])))
    except (struct.error, binascii.Error, UnicodeDecodeError, IndexError):
        raise DataError(f"the schema that is stored in {shown} is damaged, so its times have no text") from None


def _zones(message: bytes) -> Iterator[tuple[str, str]]:
    start = 8 if _number("<I", message, 0) == _CONTINUED else 4
    buffer = _Buffer(message[start:])
    schema = buffer.table(buffer.root(), _HEADER)
    for field in buffer.tables(schema, _FIELDS) if schema is not None else ():
        kind, type_ = buffer.place(field, _KIND), buffer.table(field, _TYPE)
        if kind is None or type_ is None or buffer.content[kind] != _TIMESTAMP:
            continue
        if zone := buffer.text(type_, _ZONE):
            yield buffer.text(field, _NAME) or "", zone


class _Buffer:
    """Tables of a flat buffer: each begins with the way back to a list of where its fields are."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def root(self) -> int:
        return _number("<I", self.content, 0)

    def place(self, table: int, field: int) -> int | None:
        """Where a field of a table is; None if it is left out."""
        fields = table - _number("<i", self.content, table)
        at = 4 + 2 * field
        if fields < 0 or at >= _number("<H", self.content, fields):
            return None
        offset = _number("<H", self.content, fields + at)
        return table + offset if offset else None

    def table(self, table: int, field: int) -> int | None:
        """Where the table, text or list is that a field refers to."""
        place = self.place(table, field)
        return None if place is None else place + _number("<I", self.content, place)

    def tables(self, table: int, field: int) -> Iterator[int]:
        start = self.table(table, field)
        if start is not None:
            for k in range(_number("<I", self.content, start)):
                place = start + 4 + 4 * k
                yield place + _number("<I", self.content, place)

    def text(self, table: int, field: int) -> str | None:
        start = self.table(table, field)
        if start is None:
            return None
        length = _number("<I", self.content, start)
        return self.content[start + 4 : start + 4 + length].decode()


def _number(form: str, content: bytes, place: int) -> int:
    return cast(int, struct.unpack_from(form, content, place)[0])
