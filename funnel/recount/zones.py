"""Time zones of the columns of a parquet file: stated in a schema of Arrow's own beside that of the format."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

from funnel.errors import DataError


def zones_of(stored: Sequence[tuple[bytes]], shown: str) -> dict[str, str]:
    """The time zone of every column that has one.

    The format itself says only that points in time are counted from 1970 in Greenwich; the zone that they are to be
    written in stands in a schema that Arrow stores with the file.

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
    import pyarrow as pa
    from pyarrow import ipc

    if not stored:
        return {}
    try:
        fields = list(ipc.read_schema(pa.BufferReader(base64.b64decode(stored[0][0]))))
        return {field.name: field.type.tz for field in fields if pa.types.is_timestamp(field.type) and field.type.tz}
    except (pa.ArrowException, binascii.Error, OSError, UnicodeDecodeError):
        raise DataError(f"the schema that is stored in {shown} is damaged, so its times have no text") from None
