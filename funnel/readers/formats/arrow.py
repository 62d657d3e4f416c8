"""Arrow IPC, files (Feather is another name for them) and streams, read batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyarrow import ipc

from funnel.readers.formats.columnar import Columnar, FormatError
from funnel.storage import open_binary

_MAGIC = b"ARROW1"
# What the first version of Feather was, which is no Arrow IPC.
_FIRST = b"FEA1"


class Arrow(Columnar):
    """Arrow IPC files and streams; memory is that of one batch as it is stored."""

    name = "arrow"
    suffixes = (".arrow", ".feather", ".ipc", ".arrows")

    def open_file(self, address: str, texts: Sequence[str] = ()) -> _Opened:
        return _Opened(address)


class _Opened:
    def __init__(self, address: str) -> None:
        self._stream = open_binary(address)
        try:
            start = self._stream.read(len(_MAGIC))
            if start.startswith(_FIRST):
                raise FormatError("is a Feather file of version 1; write it as version 2, which is Arrow IPC")
            self._is_file = start == _MAGIC
            self.schema: pa.Schema = self._reader().schema
        except BaseException:
            self._stream.close()
            raise
        self.rows: int | None = None

    def _reader(self, columns: Sequence[str] | None = None) -> ipc.RecordBatchFileReader | ipc.RecordBatchStreamReader:
        fields = None if columns is None else sorted({self.schema.names.index(column) for column in columns})
        options = ipc.IpcReadOptions(included_fields=fields)
        self._stream.seek(0)
        return (ipc.open_file if self._is_file else ipc.open_stream)(self._stream, options=options)

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        reader = self._reader(columns)
        stored = map(reader.get_batch, range(reader.num_record_batches)) if self._is_file else reader
        for batch in stored:
            # What a file says of its own buffers is not taken on trust.
            batch.validate(full=True)
            for start in range(0, batch.num_rows, batch_rows):
                yield batch.slice(start, batch_rows)

    def close(self) -> None:
        self._stream.close()
