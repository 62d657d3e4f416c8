"""Parquet, read page by page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from funnel.readers.formats.columnar import Columnar
from funnel.storage import is_url, local_path, open_binary
from funnel.tables import open_paged


class Parquet(Columnar):
    """Parquet files."""

    name = "parquet"
    suffixes = (".parquet", ".pq")

    def open_file(self, address: str, texts: Sequence[str] = ()) -> _Opened:
        return _Opened(address, texts)


class _Opened:
    def __init__(self, address: str, texts: Sequence[str]) -> None:
        # A path is read by the library itself, faster than through an open file.
        self._stream = open_binary(address) if is_url(address) else None
        try:
            self._file = open_paged(self._stream or local_path(address) or address, texts)
        except BaseException:
            if self._stream is not None:
                self._stream.close()
            raise
        self.schema: pa.Schema = self._file.schema_arrow
        self.rows: int | None = self._file.metadata.num_rows

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        return iter(self._file.iter_batches(batch_size=batch_rows, columns=list(columns)))

    def close(self) -> None:
        self._file.close(force=True)
        if self._stream is not None:
            self._stream.close()
