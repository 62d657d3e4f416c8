"""Rereading: what the file about to be published really holds, by streaming it in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from funnel.alphabet import Alphabet
from funnel.errors import ReleaseRefused
from funnel.joint import IntArray
from funnel.sampling import InputEncoder
from funnel.tables import open_paged

BATCH_ROWS = 1 << 16
# The column of every table of evidence that holds the number of records in the file: none is a failure.
ROWS = "rows_in_file"
# Where parquet keeps the Arrow types of its columns, dictionaries among them; what users add is beside it.
_TYPES_KEY = b"ARROW:schema"


@dataclass(frozen=True)
class RereadColumn:
    """A column as the file has it.

    Attributes
    ----------
    name : str
    type : str
        Arrow type, such as ``"dictionary<values=string, indices=int8, ordered=0>"``.
    is_category : bool
        Whether the type is a dictionary of strings.
    nulls : int
        Records without a value.
    """

    name: str
    type: str
    is_category: bool
    nulls: int


@dataclass(frozen=True, eq=False)
class Reread:
    """Sufficient statistics of a released file.

    Attributes
    ----------
    rows : int
        Records that could be read.
    footer_rows : int
        Records that the footer of the file announces.
    metadata : tuple of str
        Keys of the metadata of the file, its schema and its columns, the Arrow types excepted.
    columns : tuple of RereadColumn
        In the order of the file.
    categories : mapping of str to Counter
        Records by category, for every published column that is in the file once and of a plain type. A category that
        only a dictionary declares counts zero records, and is published all the same.
    output_counts : ndarray of int64, shape (b + 1,)
        Records by output symbol; the last number is for records that hold none, which are all if a published column
        cannot be read.
    """

    rows: int
    footer_rows: int
    metadata: tuple[str, ...]
    columns: tuple[RereadColumn, ...]
    categories: Mapping[str, Counter[str]]
    output_counts: IntArray


def reread(path: Path, outputs: Alphabet, columns: tuple[str, ...] = ()) -> Reread:
    """Read a released file back, trusting nothing but its bytes.

    Parameters
    ----------
    path : Path
        A parquet file.
    outputs : Alphabet
        The b output symbols over columns of the file.
    columns : tuple of str
        Whose categories are counted; by default those of the outputs.

    Raises
    ------
    ReleaseRefused
        If the file cannot be read as parquet.

    Notes
    -----
    O(rows) time; memory for one batch of 65,536 rows and the dictionaries.
    """
    columns = columns or outputs.columns
    try:
        # Opened once, so that types and rows are those of the same file.
        with pa.OSFile(str(path)) as opened:
            with open_paged(opened) as file:
                schema, footer = file.schema_arrow, file.metadata
            # As dictionaries, text columns show what their dictionary pages declare, whatever their type says.
            with open_paged(opened, _text_columns(schema, columns)) as file:
                return _stream(file, schema, footer, outputs, columns)
    except (OSError, pa.ArrowException) as error:
        raise ReleaseRefused(
            f"the file about to be published cannot be read back as parquet ({type(error).__name__}), so it is refused"
        ) from error


def _stream(
    file: pq.ParquetFile, schema: pa.Schema, footer: pq.FileMetaData, outputs: Alphabet, columns: tuple[str, ...]
) -> Reread:
    readable = [column for column in columns if _is_plain(schema, column)]
    encoder = InputEncoder(outputs) if {*outputs.columns} <= {*readable} else None
    rows, nulls = 0, [0] * len(schema)
    categories: dict[str, Counter[str]] = {column: Counter() for column in readable}
    drawn = np.zeros(len(outputs) + 1, dtype=np.int64)
    for batch in file.iter_batches(batch_size=BATCH_ROWS):
        rows += batch.num_rows
        for i, values in enumerate(batch.columns):
            nulls[i] += values.null_count
        for column in readable:
            _add_categories(categories[column], batch.column(column))
        codes = encoder.codes(batch) if encoder is not None else np.full(batch.num_rows, -1)
        drawn += np.bincount(np.where(codes < 0, len(outputs), codes), minlength=len(drawn))
    present = tuple(
        RereadColumn(field.name, str(field.type), _is_category(field.type), nulls[i]) for i, field in enumerate(schema)
    )
    return Reread(rows, footer.num_rows, _metadata_keys(schema, footer), present, categories, drawn)


def _text_columns(schema: pa.Schema, names: Sequence[str]) -> list[str]:
    return [name for name in names if schema.names.count(name) == 1 and _is_text(schema.field(name).type)]


def _is_text(kind: pa.DataType) -> bool:
    values = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(values) or pa.types.is_large_string(values))


def _is_category(kind: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(kind) and pa.types.is_string(kind.value_type))


def _is_plain(schema: pa.Schema, name: str) -> bool:
    return schema.names.count(name) == 1 and not pa.types.is_nested(schema.field(name).type)


def _add_categories(counted: Counter[str], values: pa.Array) -> None:
    # Nulls are never in a dictionary here: parquet keeps them apart from the values.
    coded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    indices = coded.indices.drop_null().to_numpy(zero_copy_only=False)
    records = np.bincount(indices, minlength=len(coded.dictionary))
    for value, count in zip(coded.dictionary.to_pylist(), records.tolist(), strict=True):
        counted[str(value)] += count


def _metadata_keys(schema: pa.Schema, footer: pq.FileMetaData) -> tuple[str, ...]:
    """Keys of all metadata beside the data: of the file, of the Arrow schema and its fields, of every column chunk."""
    sources = [footer.metadata, schema.metadata, *(field.metadata for field in schema)]
    for group in map(footer.row_group, range(footer.num_row_groups)):
        sources += [group.column(i).metadata for i in range(footer.num_columns)]
    keys = {key for source in sources for key in source or {} if key != _TYPES_KEY}
    return tuple(sorted(key.decode("utf-8", "replace") for key in keys))
