"""ORC, read stripe by stripe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from funnel.readers.formats.columnar import Columnar
from funnel.storage import open_binary


class Orc(Columnar):
    """ORC files; memory is that of one stripe."""

    name = "orc"
    suffixes = (".orc",)

    def open_file(self, address: str, texts: Sequence[str] = ()) -> _Opened:
        return _Opened(address)


class _Opened:
    def __init__(self, address: str) -> None:
        # Imported where it is needed: it takes as long to load as everything else of the library.
        from pyarrow import orc

        self._stream = open_binary(address)
        try:
            self._file = orc.ORCFile(self._stream)
            self.schema: pa.Schema = self._file.schema
        except BaseException:
            self._stream.close()
            raise
        self.rows: int | None = self._file.nrows

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        places = [self.schema.names.index(column) for column in columns]
        for stripe in range(self._file.nstripes):
            batch = self._file.read_stripe(stripe, columns=places)
            batch.validate(full=True)
            for start in range(0, batch.num_rows, batch_rows):
                yield batch.slice(start, batch_rows)

    def close(self) -> None:
        self._stream.close()
