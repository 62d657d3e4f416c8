"""Sources for the benchmarks of rows: people drawn with replacement from a sample, of any number."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

SAMPLE = Path(__file__).parents[1] / "data" / "adult.parquet"
SECRET = "income"
COLUMNS = ("workclass", "sex", "race", "relationship")
KEY = "id"
_GROUP_ROWS = 1 << 20


def write_source(
    path: Path, rows: int, *, in_order: bool = False, sample: Path = SAMPLE, columns: Sequence[str] = COLUMNS
) -> None:
    """Write a source of dictionary columns, by default four, and a key of distinct 64-bit integers, in no order.

    With ``in_order`` rows are sorted by all these columns, which makes the file as compressible as it gets.
    """
    people = pq.read_table(sample, columns=list(columns))
    texts = {name: people[name].cast(pa.string()).fill_null("?") for name in columns}
    coded = {name: pc.dictionary_encode(column).combine_chunks() for name, column in texts.items()}
    indices = {name: column.indices.to_numpy().astype(np.int32) for name, column in coded.items()}
    order = np.lexsort([indices[name] for name in reversed(columns)])
    choice = np.random.default_rng(2026)
    schema = pa.schema([(name, pa.dictionary(pa.int32(), pa.string())) for name in columns] + [(KEY, pa.int64())])
    with pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=list(columns)) as writer:
        for start in range(0, rows, _GROUP_ROWS):
            here = np.arange(start, min(start + _GROUP_ROWS, rows))
            drawn = order[here * len(order) // rows] if in_order else choice.integers(0, len(order), len(here))
            arrays = [
                pa.DictionaryArray.from_arrays(pa.array(indices[name][drawn]), coded[name].dictionary)
                for name in columns
            ]
            writer.write_table(pa.table([*arrays, pa.array(_keys(here))], schema=schema))


def _keys(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    # An odd factor is a permutation of the 64-bit numbers.
    return (rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)).view(np.int64)
